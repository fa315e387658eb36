# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host in an initramfs, where meson installs it: with the root's Python, and of Python's
library what it imports.

All of it compiled here, by the same version of Python: in a guest that would take longer than all
else.
"""

import py_compile
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import debian
from initramfs import Initramfs

CONFIG = debian.REPOSITORY / "config"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
LIBRARY = Path(sysconfig.get_path("stdlib"))
# What is loaded once it has read its command line. It says that nothing is asked, to standard
# error.
ASK = f"""\
import sys
sys.path.insert(0, {str(CONFIG)!r})
sys.argv = ["tokd-host", "check", "--root", "/proc"]
from host.cli import main
assert main() == 2
for module in list(sys.modules.values()):
    print(getattr(module, "__file__", None) or "")
"""


def add(archive: Initramfs, root: Path, libraries: list[Path]) -> None:
    """/usr/local/sbin/tokd-host, and /usr/bin/python3. libraries: where Python's are looked for."""
    archive.program(root / f"usr/bin/{VERSION}", libraries, "usr/bin/python3")
    archive.link("usr/bin/env", "/bin/busybox")
    archive.folder(f"usr/lib/{VERSION}/lib-dynload")  # nothing is in it, but Python looks for it
    for name in _imports():
        _compiled(archive, root / f"usr/lib/{VERSION}" / name, f"usr/lib/{VERSION}/{name}")
    archive.file("usr/local/sbin/tokd-host", (CONFIG / "tokd-host").read_bytes())
    for path in sorted(CONFIG.glob("*/*.py")):
        _compiled(archive, path, f"usr/local/share/dpdk-tokd/config/{path.relative_to(CONFIG)}")


def _imports() -> list[str]:
    """Files of Python's library, below its folder. What is missing in a guest ends tokd-host
    there."""
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", ASK], capture_output=True, text=True, check=True
    )
    paths = [Path(line) for line in done.stdout.splitlines() if line]
    inside = [
        p.relative_to(LIBRARY) for p in paths if p.suffix == ".py" and p.is_relative_to(LIBRARY)
    ]
    return sorted(str(p) for p in inside if p.name != "sitecustomize.py")  # a link to /etc


def _compiled(archive: Initramfs, path: Path, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        to = py_compile.compile(str(path), str(Path(folder) / "code"), name, doraise=True)
        archive.file(f"{name}c", Path(to).read_bytes(), 0o644)
