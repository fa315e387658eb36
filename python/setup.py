# SPDX-License-Identifier: BSD-3-Clause
"""The extensions: libtok, and libtokd-client with libtokd-reader, of this repository, each with
its Python binding in one library."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy
from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
NATIVE = Path("dpdk_tokd", "_native")
LIB = Path("..", "lib")
INCLUDE = Path("..", "include")

os.chdir(HERE)  # sources are named relative to this file
for folder in (LIB, INCLUDE):
    if not folder.is_dir():
        raise SystemExit(
            f"dpdk-tokd: {(HERE / folder).resolve()} not found: the package compiles libraries of "
            "the repository; run `pip install ./python` in a full clone of it"
        )


def pkg_config(what: str, *packages: str) -> list[str]:
    """Flags for `packages`; empty where pkg-config or a .pc file is missing."""
    program = shutil.which(os.environ.get("PKG_CONFIG", "pkg-config"))
    if program is None:
        return []
    out = subprocess.run([program, what, *packages], capture_output=True, text=True, check=False)
    return out.stdout.split() if out.returncode == 0 else []


def extension(binding: str, *libraries: str, cflags: list[str], libs: list[str]) -> Extension:
    """`binding` names sources in _native/, the first of them the module; each of `libraries` a
    folder of lib/."""
    names = binding.split()
    folders = [LIB / library for library in libraries]
    headers = [h for folder in (*folders, INCLUDE, NATIVE) for h in folder.rglob("*.h")]
    return Extension(
        f"dpdk_tokd._native.{names[0]}",
        sources=[
            *(str(NATIVE / f"{name}.c") for name in names),
            *sorted(str(c) for folder in folders for c in folder.rglob("*.c")),
        ],
        depends=sorted(map(str, headers)),
        include_dirs=[str(INCLUDE), str(NATIVE), *map(str, folders)],
        define_macros=[("_GNU_SOURCE", None)],
        extra_compile_args=[
            "-std=gnu11",
            "-O3",
            "-fvisibility=hidden",
            "-Wno-unused-parameter",
            "-pthread",
            *for_cpu(),
            *cflags,
        ],
        extra_link_args=libs,
    )


def for_cpu() -> list[str]:
    """As meson's option `cpu` does: what $TOKD_CPU names, or any CPU that DPDK runs on."""
    cpu = os.environ.get("TOKD_CPU") or ("x86-64-v2" if platform.machine() == "x86_64" else "")
    return [f"-march={cpu}"] if cpu else []


def version() -> str:
    """The one in meson.build."""
    found = re.search(r"^  version: '([^']+)'", Path("..", "meson.build").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("dpdk-tokd: no version: '…' in meson.build")
    return found[1]


setup(
    version=version(),
    ext_modules=[
        extension(
            "libtok vocab encode encode_batch encode_long spans stream decode options batch encoder pool "
            "text/texts text/lists text/words text/dlpack text/utf8_portable text/utf8_avx512",
            "tokenizer",
            cflags=[f"-I{numpy.get_include()}", *pkg_config("--cflags", "jansson", "zlib")],
            libs=pkg_config("--libs", "jansson", "zlib") or ["-ljansson", "-lz"],
        ),
        extension("libtokd client ring", "client", "reader", cflags=[], libs=[]),
    ],
)
