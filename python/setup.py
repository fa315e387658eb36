# SPDX-License-Identifier: BSD-3-Clause
"""The extension `libtok`: libtok of this repository and its Python binding, in one library."""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
LIBTOK = Path("..", "lib", "tokenizer")
NATIVE = Path("dpdk_tokd", "_native")

os.chdir(HERE)  # sources are named relative to this file
if not LIBTOK.is_dir():
    raise SystemExit(
        f"dpdk-tokd: {(HERE / LIBTOK).resolve()} not found: the package compiles libtok "
        "from the repository; run `pip install ./python` in a full clone of it"
    )


def pkg_config(what: str, *packages: str) -> list[str]:
    """Flags for `packages`; empty where pkg-config or a .pc file is missing."""
    program = shutil.which(os.environ.get("PKG_CONFIG", "pkg-config"))
    if program is None:
        return []
    out = subprocess.run([program, what, *packages], capture_output=True, text=True, check=False)
    return out.stdout.split() if out.returncode == 0 else []


def files(suffix: str) -> list[str]:
    return sorted(str(path) for at in (NATIVE, LIBTOK) for path in at.rglob(f"*{suffix}"))


setup(
    ext_modules=[
        Extension(
            "dpdk_tokd._native.libtok",
            sources=files(".c"),
            depends=files(".h"),
            include_dirs=[str(LIBTOK)],
            define_macros=[("_GNU_SOURCE", None), ("Py_LIMITED_API", "0x030b0000")],
            extra_compile_args=["-std=gnu11", "-O3", "-fvisibility=hidden", "-Wno-unused-parameter"]
            + ["-pthread", *pkg_config("--cflags", "jansson", "zlib")],
            extra_link_args=pkg_config("--libs", "jansson", "zlib") or ["-ljansson", "-lz"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
