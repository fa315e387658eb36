# SPDX-License-Identifier: BSD-3-Clause
"""Noisy neighbours: they do what they are called, and nothing of them is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

neighbours = pytest.importorskip("bench.lab.neighbours", reason="run tools/setup")
CPU = neighbours.CPUS[-1]
WAIT_S = 60


def until(true) -> bool:
    """Becomes true within WAIT_S."""
    deadline = time.monotonic() + WAIT_S
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def running(folder: Path) -> list[str]:
    """Names of live processes that were told of a folder, or work in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            told = str(folder) in (path / "cmdline").read_text()
            works = str(folder) in os.readlink(path / "cwd")
            alive = "Z" not in (path / "stat").read_text().rpartition(")")[2].split()[0]
            if (told or works) and alive:
                found.append((path / "comm").read_text().strip())
        except OSError:
            continue  # it has ended meanwhile
    return found


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A text to compress, which takes longer than the test."""
    path = tmp_path / "english.txt"
    path.write_bytes(b"".join(b"%d and more of it; " % (n * n) for n in range(400_000)))
    monkeypatch.setattr(neighbours.fetch_corpus, "fetch", lambda _: {"english": path})
    return tmp_path


@pytest.mark.slow
def test_compiling_compiles_and_ends_with_its_children(tmp_path):
    with neighbours.neighbour("compile", [CPU], 2, tmp_path):
        made = [tmp_path / f"objects{i}" / "added.o" for i in range(2)]
        assert until(lambda: all(path.is_file() for path in made))
        assert until(lambda: "cc1" in running(tmp_path))
    assert until(lambda: not running(tmp_path)), running(tmp_path)


@pytest.mark.slow
def test_all_of_what_is_compiled_compiles(tmp_path):
    """Or the neighbour would end when it comes to the file that does not."""
    (command,) = neighbours.KINDS["compile"](1, tmp_path)
    compiler = command[command.index("neighbour") + 1 :]
    sources = [word for word in compiler if word.endswith(".c")]
    assert len(sources) > 50
    only_looks = [*compiler, "-fsyntax-only"]
    done = subprocess.run(
        only_looks, capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_compressing_compresses_and_ends(corpus):
    with neighbours.neighbour("compress", [CPU], 1, corpus):
        assert until(lambda: "xz" in running(corpus))
    assert until(lambda: not running(corpus)), running(corpus)


def test_no_neighbour_starts_nothing(tmp_path):
    with neighbours.neighbour("none", [CPU], 1, tmp_path):
        assert running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_one_that_ends_by_itself_is_told(tmp_path, monkeypatch):
    missing = neighbours._again(["cat", str(tmp_path / "nothing")])
    monkeypatch.setitem(neighbours.KINDS, "cpu", lambda _count, _folder: [missing])
    with (
        pytest.raises(subprocess.SubprocessError, match=r"cpu\) ended with 1 before .*nothing: No"),
        neighbours.neighbour("cpu", [CPU], 1, tmp_path),
    ):
        assert until(lambda: not running(tmp_path))


def test_a_program_that_is_not_there_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(neighbours.shutil, "which", lambda _: None)
    for kind, program in (("cpu", "stress-ng"), ("compile", "cc")):
        with pytest.raises(neighbours.Missing, match=f"{program} is not installed"):
            neighbours.KINDS[kind](1, tmp_path)


def test_a_neighbour_ends_when_the_sweep_is_killed(tmp_path):
    code = (
        "import sys; from pathlib import Path; from bench.lab import neighbours\n"
        f"with neighbours.neighbour('compile', [{CPU}], 1, Path({str(tmp_path)!r})):\n"
        "    print('on', flush=True); sys.stdin.read()"
    )
    path = os.pathsep.join([str(neighbours.ROOT / "tools"), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    ) as sweep:  # fmt: skip
        assert sweep.stdout.readline() == b"on\n"
        assert until(lambda: "cc1" in running(tmp_path))
        sweep.send_signal(signal.SIGKILL)
    assert until(lambda: not running(tmp_path)), running(tmp_path)
