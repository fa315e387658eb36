# SPDX-License-Identifier: BSD-3-Clause
"""The extensions: libtok, libtokd-client with libtokd-reader, and libtokd-block-keys, of this
repository, each with its Python binding in one library."""

import os
import re
import sys
import sysconfig
from pathlib import Path

import numpy
from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
NATIVE = Path("dpdk_tokd", "_native")
LIB = Path("lib")  # a link in a clone, a copy in an sdist: MANIFEST.in
INCLUDE = Path("include")

os.chdir(HERE)  # sources are named relative to this file
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit(
        f"dpdk-tokd: {sys.executable} is a free-threaded Python: give one with a GIL, whose name has "
        "no t at the end"
    )
for folder in (LIB, INCLUDE):
    if not folder.is_dir():
        raise SystemExit(
            f"dpdk-tokd: {HERE / folder} is not a folder: the package compiles libraries of the "
            "repository; run `pip install ./python` in a full clone of it, with its links"
        )


def extension(
    binding: str, *libraries: str, needs: tuple[str, ...] = (), stable: bool = False
) -> Extension:
    """`binding` names sources in _native/, the first of them the module; each of `libraries` a
    folder of lib/; `needs` libraries of the system. The package is built without an extension whose
    libraries are not installed. stable: it keeps to the stable ABI of Python 3.11."""
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
        include_dirs=[str(INCLUDE), str(NATIVE), *map(str, folders), numpy.get_include()],
        define_macros=[
            ("_GNU_SOURCE", None),
            *([("Py_LIMITED_API", "0x030B0000")] if stable else []),
        ],
        libraries=list(needs),
        optional=bool(needs),
        extra_compile_args=[
            "-std=gnu11",
            "-O3",
            "-fvisibility=hidden",
            "-Wno-unused-parameter",
            "-pthread",
            *for_cpu(),
        ],
        extra_link_args=["-pthread"],  # before glibc 2.34 a library of its own
    )


def for_cpu() -> list[str]:
    """As meson's option `cpu` does: what $TOKD_CPU names, or any CPU that DPDK runs on."""
    cpu = os.environ.get("TOKD_CPU") or (
        "x86-64-v2" if sysconfig.get_platform().endswith("x86_64") else ""
    )
    return [f"-march={cpu}"] if cpu else []


def version() -> str:
    """The one in meson.build."""
    found = re.search(r"^  version: '([^']+)'", Path("meson.build").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("dpdk-tokd: no version: '…' in meson.build")
    return found[1]


setup(
    version=version(),
    data_files=[
        ("lib/systemd/system", ["tokd-gateway.service"]),
        ("share/dpdk-tokd/default", ["tokd-gateway.default"]),
        ("share/bash-completion/completions", ["tokd-gateway.bash"]),
        ("share/man/man1", ["tokd-gateway.1"]),
    ],
    ext_modules=[
        extension(
            "libtok vocab encode encode_batch encode_long spans stream decode options batch encoder pool "
            "signals "
            "embeddings/engine embeddings/words embeddings/dlpack "
            "text/texts text/json_lines text/lists text/utf8_portable text/utf8_avx512",
            "tokenizer",
        ),
        extension(
            "libtokd client ring", "client", "crc32c", "mix", "monotonic", "reader", stable=True
        ),
        extension("block_keys", "block_keys", needs=("crypto",)),
    ],
)
