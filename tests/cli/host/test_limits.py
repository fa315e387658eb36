# SPDX-License-Identifier: BSD-3-Clause
"""What may be locked: of this process as the kernel says it, of an image as its file does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import roots

CONFIG = Path(__file__).parents[3] / "config"
sys.path.insert(0, str(CONFIG))
from host import limits
from host.plan import Plan
from host.report import Level
from host.root import Root


class Here(Root):
    """A prepared root that is taken for the machine that runs."""

    is_this_machine = True


def found(root: Root) -> list[tuple[Level, str]]:
    return [(f.level, f.what) for f in limits.check(root, Plan())]


def prepared(folder: Path, locked: str, login: str) -> None:
    roots.put(folder, limits.FILE, limits.TEXT)
    roots.put(
        folder,
        "/proc/self/limits",
        f"Max locked memory         {locked}       {locked}       bytes     \n",
    )
    roots.put(folder, "/proc/self/loginuid", login)


@pytest.mark.parametrize(
    ("locked", "login", "level", "said"),
    [
        ("unlimited", "1000", Level.OK, "this session may lock all"),
        ("8388608", "1000", Level.WARN, "this session may lock 8388608 bytes"),
        ("8388608", "4294967295", Level.NOTE, "no login started it"),
        ("8388608", "", Level.NOTE, "no login started it"),
    ],
)
def test_a_file_that_is_ours_is_not_believed(tmp_path, locked, login, level, said):
    prepared(tmp_path, locked, login)
    (_, of_file), (now, what) = found(Here(str(tmp_path)))
    assert "lets logins lock memory" in of_file and now is level and said in what


def test_of_an_image_there_is_the_file_alone(tmp_path):
    prepared(tmp_path, "8388608", "1000")
    assert found(Root(str(tmp_path))) == [(Level.OK, f"{limits.FILE}: lets logins lock memory")]
    assert found(Root(str(tmp_path / "proc"))) == [(Level.WARN, f"{limits.FILE}: is missing")]


def test_the_kernels_own_words_are_understood():
    """This machine's, of a process with a limit that is nobody's default."""
    code = (
        f"import resource, sys; sys.path.insert(0, {str(CONFIG)!r}); sys.dont_write_bytecode = True\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (61440, 61440))\n"
        "from host import limits, root\n"
        "print(*(f.what for f in limits._session(root.Root('/'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert re.match(r"this (session|process) may lock 61440 bytes", done.stdout)
