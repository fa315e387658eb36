# SPDX-License-Identifier: BSD-3-Clause
"""The minimal build: nvcc, gcc and g++ alone make the programs that the parts run.

Programs that were built from the same sources, with code for the GPUs here, are taken as they are if
they start here: a build can be brought along, also in a tree that cannot be written. Else an object
is made again when its source, any header or its command has changed. RDMA, libnuma and cmocka are
left out: what needs RDMA ends with an error that says so, and NO_CMOCKA replaces cmocka.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parents[3]

# Where sources and headers are. Files are found by name below these folders, so that moving one within
# them changes nothing here.
SOURCES = (
    *("lib/gpu_sink", "lib/mix", "lib/monotonic", "lib/notify", "lib/options", "lib/sandbox"),
    *("app/tokd-gpu", "tests/unit/gpu", "tests/support", "tools/bench/native/gpu"),
)
INCLUDE = "include"  # <tokd/ring.h>
TOKENIZER = "lib/tokenizer"  # needs libc alone; its files name one another from this folder
NO_CMOCKA = "tests/unit/gpu/device/no_cmocka"

VIEW = (
    "view.c",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / TOKENIZER).rglob("*.c"))),
)
DEVICE = (
    *("device_cuda.cu", "graphs_cuda.cu", "cuda_memory.cu", "device_cpu.cpp", "host_memory.c"),
    *("geometry.c", "check.c"),
    *VIEW,
)
MEASURE = (
    *("measure.c", "measure_texts.c", "measure_generate.c", "texts_made.c", "post.c"),
    *("produce_cuda.cu", "produce_cpu.cpp"),
    *("host_engine_cuda.cu", "host_engine_cpu.c", "engine_loop.c", "engine_cuda.cu"),
)
TESTS = ("bench.c", "post.c", "test.c", "test_main.c")
TRANSPORT = (
    *("transport.c", "transport_shm.c", "transport_cuda.c", "shm_open.c", "session.c", "link.c"),
    *("hello.c", "inside.c", "target.c", "handshake_client.c", "verbs_none.c"),
)
SINK = (
    *("sink.c", "sink_batch.c", "sink_done.c", "sink_lanes.c", "sink_post.c", "sink_recover.c"),
    "sink_setup.c",
)
OPTIONS = ("bash.c", "file.c", "man.c", "near.c", "parse.c", "show.c", "value.c")
AGENT = (
    *("agent.c", "consumer.c", "delivery.c", "subscribers.c", "log.c", "producers.c", "postings.c"),
    *("convert.c", "options.c", "table_npy.c", "table_random.c", "table_safetensors.c"),
    *("tables.c", "handshake_server.c", "listen.c", "notify.c", "main.c"),
    *OPTIONS,
    *TRANSPORT,
)
DROPPED = "tokd-gpu-dropped"  # tokd-gpu as it is installed: it drops its privileges
TEXTS = ("texts_made.c", "texts_cuda.cu", "texts_cpu.cpp", *VIEW)
PROGRAMS: Dict[str, Tuple[str, ...]] = {
    "gpu_promises": ("promises.cu",),
    "gpu_launch_times": ("launch_times.cu",),
    "gpu_measure": (*MEASURE, *DEVICE),
    "gpu_embed_once": ("embed_once.c", "post.c", *DEVICE),
    "test_consumer": ("test_consumer.c", *TESTS, *DEVICE),
    "test_life": ("test_life.c", *TESTS, *DEVICE),
    "test_hostile": ("test_hostile.c", *TESTS, *DEVICE),
    "test_generate": ("test_generate.c", *TESTS, *DEVICE),
    "test_text": ("test_text.c", "texts_made.c", "small_vocab.c", *TESTS, *DEVICE),
    "tokd-gpu": ("sandbox_none.c", *AGENT, *DEVICE),
    DROPPED: ("enter.c", "threads.c", "filter_none.c", *AGENT, *DEVICE),
    "gpu_check_texts": ("check_texts.c", "compare.c", *TEXTS),
    "gpu_time_texts": ("time_texts.c", *TEXTS),
    "poster": ("poster.c", "geometry.c", "check.c", *TRANSPORT),
    "generator": ("generator.c", "geometry.c", "check.c", *SINK, *TRANSPORT),
}
STAGES = "gpu_measure_stages"  # gpu_measure, all but VIEW with TOKG_STAGES
PROGRAMS[STAGES] = PROGRAMS["gpu_measure"]

CUDA_FOLDERS = ("/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda")


class BuildError(Exception):
    """What is missing, or a compiler's error."""


class Tools(NamedTuple):
    nvcc: Path
    gcc: str
    gxx: str


def find_nvcc() -> Optional[Path]:
    """Searches the PATH, the usual folders of CUDA, and this Python's packages."""
    on_path = shutil.which("nvcc")
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    folders = [Path(home) for home in homes if home] + [Path(home) for home in CUDA_FOLDERS]
    folders += sorted(Path("/usr/local").glob("cuda-*"), reverse=True)
    for packages in sys.path:
        folders += sorted(Path(packages or ".").glob("nvidia/cu[1-9]*"), reverse=True)
    places = [Path(on_path)] if on_path else []
    places += [folder / "bin" / "nvcc" for folder in folders]
    return next((place for place in places if os.access(place, os.X_OK)), None)


def find_tools() -> Tools:
    nvcc, gcc, gxx = find_nvcc(), shutil.which("gcc"), shutil.which("g++")
    missing = []
    if nvcc is None:
        missing.append(
            f"nvcc (looked on the PATH and in {', '.join(CUDA_FOLDERS)}; CUDA 12.5 or newer)"
        )
    missing += [name for name, found in (("gcc", gcc), ("g++", gxx)) if found is None]
    if nvcc is None or gcc is None or gxx is None:
        raise BuildError(f"not found: {', '.join(missing)}: install it, or put it on the PATH")
    return Tools(nvcc, gcc, gxx)


DRIVER_FOLDER = Path("/usr/local/nvidia/lib64")  # where containers have it, not always on the path
COMPILE_S = 900  # beside other builds on two CPUs nvcc took more than 300 s for three targets


def with_driver(env: Dict[str, str]) -> Dict[str, str]:
    """`env`, with a PATH, and the driver's libraries where a program looks for them."""
    more = {"PATH": env.get("PATH", os.defpath)}
    if DRIVER_FOLDER.is_dir():
        more["LD_LIBRARY_PATH"] = f"{env.get('LD_LIBRARY_PATH', '')}:{DRIVER_FOLDER}".lstrip(":")
    return {**env, **more}


def ran(command: List[str], limit_s: float = 300) -> str:
    """Output of a command; raises BuildError if it fails."""
    env = with_driver(dict(os.environ))
    try:
        end = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit_s,
            env=env,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise BuildError(f"{command[0]}: {wrong}") from wrong
    output = end.stdout.decode(errors="replace")
    if end.returncode != 0:
        raise BuildError(f"{' '.join(command)}\n{output[-4000:]}")
    return output


def driver_program(name: str) -> Optional[str]:
    """On the PATH, or beside the driver's libraries in a container."""
    return shutil.which(name) or shutil.which(name, path=str(DRIVER_FOLDER.with_name("bin")))


def compute_capabilities() -> List[str]:
    """Compute capabilities of the machine's GPUs, as "90"; empty if nvidia-smi lists none."""
    smi = driver_program("nvidia-smi")
    if smi is None:
        return []
    try:
        said = ran([smi, "--query-gpu=compute_cap", "--format=csv,noheader"], 30)
    except BuildError:
        return []
    words = {line.strip().replace(".", "") for line in said.splitlines()}
    return sorted(word for word in words if word.isdigit())


def driver_cuda() -> int:
    """The major version of CUDA that the driver knows; 0 without a driver."""
    version = ctypes.c_int(0)
    for folder in (DRIVER_FOLDER, Path()):
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(folder / "libcuda.so.1")).cuDriverGetVersion(ctypes.byref(version))
            break
    return version.value // 1000


def gencode(tools: Tools) -> List[str]:
    """For the GPUs here; else for sm_90, and PTX for all from sm_80 on."""
    known = ran([str(tools.nvcc), "--list-gpu-code"], 60).split()
    here = compute_capabilities()
    if here and all(f"sm_{arch}" in known for arch in here):
        return [
            word for arch in here for word in ("-gencode", f"arch=compute_{arch},code=sm_{arch}")
        ]
    return [
        *("-gencode", "arch=compute_80,code=compute_80"),
        *("-gencode", "arch=compute_90,code=sm_90"),
    ]


def host_flags() -> List[str]:
    """Not `native`: the build may be copied to another machine."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return []
    try:
        has_v3 = " avx2 " in Path("/proc/cpuinfo").read_text()
    except OSError:
        has_v3 = True
    return ["-march=x86-64-v3" if has_v3 else "-march=x86-64"]


def files(pattern: str) -> List[Path]:
    folders = [ROOT / folder for folder in SOURCES]
    return sorted(path for folder in folders if folder.is_dir() for path in folder.rglob(pattern))


def source(name: str) -> Path:
    """A file by its name; by its path from the root if the name has a folder."""
    if "/" in name:
        return ROOT / name
    found = files(name)
    if len(found) != 1:
        raise BuildError(
            f"{name}: found {len(found)} times below {', '.join(SOURCES)}: gpu_check/build.py"
        )
    return found[0]


def headers() -> List[Path]:
    own = [path for kind in ("*.h", "*.cuh") for path in files(kind)]
    return own + sorted([*(ROOT / INCLUDE).rglob("*.h"), *(ROOT / TOKENIZER).rglob("*.h")])


def digest(*parts: bytes) -> str:
    sum_of = hashlib.sha256()
    for part in parts:
        sum_of.update(hashlib.sha256(part).digest())
    return sum_of.hexdigest()[:24]


def sources_digest() -> str:
    """Digest of all sources of the programs, and of how they are built."""
    names = sorted({name for sources in PROGRAMS.values() for name in sources})
    return digest(
        *(path.read_bytes() for path in [*map(source, names), *headers(), Path(__file__)])
    )


def include_flags() -> List[str]:
    roots = [ROOT / folder for folder in SOURCES if (ROOT / folder).is_dir()]
    folders = roots + sorted({path.parent for path in headers()} - {*roots, ROOT / NO_CMOCKA})
    apart = {ROOT / INCLUDE, ROOT / TOKENIZER}
    own = [folder for folder in folders if not apart & {folder, *folder.parents}]
    return [f"-I{folder}" for folder in (ROOT / NO_CMOCKA, *sorted(apart), *own)]


def _fits(codes: List[str], here: List[str]) -> bool:
    """Do programs with these codes run on these GPUs? If none is known here: on all, by PTX."""
    if here:
        return all(f"sm_{arch}" in codes for arch in here)
    return any(code.startswith("compute_") for code in codes)


def cannot_start(program: Path) -> Optional[str]:
    """Why not, as where the C library is older than the one it was linked with. The loader says it,
    and does not run the program."""
    env = {**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}
    try:
        end = subprocess.run(
            [str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, check=False
        )
    except OSError as wrong:
        return f"{program.name}: {wrong.strerror}"
    lines = end.stdout.decode(errors="replace").splitlines()
    return next((line.strip() for line in lines if "not found" in line), None)


class Build:
    """The programs in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def program(self, name: str) -> Path:
        return self.folder / name

    @property
    def _stamp(self) -> Path:
        return self.folder / "sources"

    def made_before(self) -> Optional[List[str]]:
        """If all programs are built from the current sources, for such a CPU: the version of CUDA,
        as "cuda_13", and which code for GPUs they have, as "sm_90", or "compute_80" for PTX."""
        there = all(os.access(self.program(name), os.X_OK) for name in PROGRAMS)
        words = self._stamp.read_text().split() if there and self._stamp.exists() else []
        return words[2:] if words[:2] == [sources_digest(), platform.machine()] else None

    def broken(self) -> Optional[str]:
        """Why one of them cannot start here."""
        newest = driver_cuda()
        for code in self.made_before() or []:
            name, _, version = code.partition("_")
            if name == "cuda" and 0 < newest < int(version):
                return f"they need a driver for CUDA {version}, and this one is for CUDA {newest}"
        return next(filter(None, (cannot_start(self.program(name)) for name in PROGRAMS)), None)

    def runs_here(self) -> bool:
        made = self.made_before()
        return made is not None and _fits(made, compute_capabilities()) and self.broken() is None

    def make(self, *, fall_back: bool = True) -> str:
        """Build; returns a description. Raises BuildError.

        fall_back: if the build fails, programs of the current sources are taken although they have
        no code for the GPUs here.
        """
        before = f"the programs in {self.folder} were built before, from these sources"
        if self.runs_here():
            return before
        try:
            return self._make()
        except (BuildError, OSError) as why:
            if not fall_back or self.made_before() is None:
                raise
            broken = self.broken()
            if broken is not None:
                raise BuildError(f"{why}\n{before}, and cannot start here: {broken}") from why
            return f"{before}; they cannot be built for the GPUs here: {str(why).splitlines()[0]}"

    def _make(self) -> str:
        tools = find_tools()
        units = _Units(self, tools)
        jobs = [(name, sources) for name, sources in PROGRAMS.items()]
        objects = {units.key(program, name) for program, sources in jobs for name in sources}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "objects").mkdir(exist_ok=True)
        order = sorted(objects, key=lambda key: not key[0].endswith(".cu"))  # the slow ones first
        with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            made = sum(pool.map(units.compile, order))
            self._stamp.unlink(missing_ok=True)  # from here on old and new programs stand together
            list(pool.map(units.link, jobs))
        for old in set(self.folder.glob("objects/*.o")) - {units.object(key) for key in objects}:
            old.unlink()
        self._stamp.write_text(" ".join([sources_digest(), platform.machine(), *units.codes]))
        return f"{made} of {len(objects)} objects compiled, {len(jobs)} programs, in {self.folder}"


class _Units:
    """How each object is made."""

    def __init__(self, build: Build, tools: Tools) -> None:
        includes = include_flags()
        common = ["-O3", "-D_GNU_SOURCE", "-DTOKG_NO_NUMA", '-DTOKD_VERSION="gpu-check"', *includes]
        host = [*common, *host_flags(), "-pthread"]
        targets = gencode(tools)
        self.build, self.tools = build, tools
        nvcc = ran([str(tools.nvcc), "--version"], 60)
        self.codes = [word.rpartition("=")[2] for word in targets if "=" in word]
        # The runtime that they are linked with; a driver for its major version is enough.
        self.codes += [f"cuda_{major}" for major in re.findall(r"release (\d+)\.", nvcc)]
        self.compilers = {
            ".c": [tools.gcc],
            ".cpp": [tools.gxx],
            ".cu": [str(tools.nvcc), "-ccbin", tools.gxx],
        }
        self.flags = {
            ".c": ["-std=c11", *host],
            ".cpp": ["-std=c++17", "-fno-exceptions", "-fno-rtti", *host],
            ".cu": ["-std=c++17", "-lineinfo", *common, *targets],
        }
        # Versions, not paths, which depend on the PATH. The C library's: its headers name symbols.
        versions = [
            ran([tools.gcc, "-dumpfullversion"], 60),
            nvcc,
            " ".join(platform.libc_ver()),
        ]
        parts = [text.encode() for text in versions] + [path.read_bytes() for path in headers()]
        self.common = digest(*parts).encode()

    @staticmethod
    def key(program: str, name: str) -> Tuple[str, bool]:
        return name, program == STAGES and name not in VIEW

    def _flags(self, key: Tuple[str, bool]) -> List[str]:
        name, stages = key
        path = source(name)
        return [*self.flags[path.suffix], *(["-DTOKG_STAGES"] if stages else []), "-c", str(path)]

    def object(self, key: Tuple[str, bool]) -> Path:
        words = " ".join(self._flags(key)).replace(str(ROOT), "")  # wherever the tree was unpacked
        name = digest(words.encode(), source(key[0]).read_bytes(), self.common)
        return self.build.folder / "objects" / f"{Path(key[0]).name}-{name}.o"

    def compile(self, key: Tuple[str, bool]) -> bool:
        """False: it existed."""
        to = self.object(key)
        if to.exists():
            return False
        with tempfile.TemporaryDirectory(dir=to.parent) as folder:
            half = Path(folder) / "half.o"
            compiler = self.compilers[Path(key[0]).suffix]
            ran([*compiler, *self._flags(key), "-o", str(half)], COMPILE_S)
            half.replace(to)
        return True

    def link(self, job: Tuple[str, Tuple[str, ...]]) -> None:
        name, sources = job
        objects = [str(self.object(self.key(name, each))) for each in sources]
        half = self.build.folder / f".{name}.half"
        # By nvcc: it knows where its libraries are, also where what is found is a script.
        ran([*self.compilers[".cu"], "-o", str(half), *objects, "-Xcompiler", "-pthread"])
        half.replace(self.build.program(name))


def tree_folder() -> Path:
    return ROOT / "build" / "gpu-check"


def programs_folder(folder: Path) -> Path:
    """`folder`; or the tree's, though it cannot be written, if its programs run here."""
    own = tree_folder()
    return own if folder != own and Build(own).runs_here() else folder


def default_folder() -> Path:
    """In the tree if writable, else in the user's cache or /tmp, named by the sources."""
    own = tree_folder()
    nearest = next(path for path in (own, *own.parents) if path.exists())
    if os.access(nearest, os.W_OK):
        return own
    homes = [os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "HOME")]
    cache = next(
        (home for home in homes if home and os.access(home, os.W_OK)), tempfile.gettempdir()
    )
    return Path(cache) / f"tokd-gpu-check-{sources_digest()}"
