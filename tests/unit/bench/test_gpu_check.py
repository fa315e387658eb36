# SPDX-License-Identifier: BSD-3-Clause
"""tools/gpu-check where there is no GPU: its build, its parts and limits, what it writes; and all
that can be run as threads."""

import array
import ast
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.gpu_check import build, figures, main, parts, report
from bench.gpu_check.agent import Subscriber
from bench.gpu_check.phases import a_exact, a_times, c_processes, e_engines, e_graphs
from bench.gpu_check.run import Late, NotRun, Run, Wrong
from bench.gpu_check.subscriber import ids_of
from dpdk_tokd.embeddings import layout
from ended import ended

ROOT = Path(__file__).resolve().parents[3]


def has_gpu() -> bool:
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def run_in(folder: Path) -> Run:
    return Run(build.Build(folder), "cpu", 1, folder / "work")


def one(function, limit_s: float, folder: Path) -> dict:
    part = parts.Part("A", 1, "a part", limit_s, function)
    return parts.run_part(part, run_in(folder), limit_s)


# Summaries


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100), (0.001, 1), (0.501, 51)]
)
def test_percentiles_are_samples_by_nearest_rank(share, value):
    assert figures.percentile(list(range(1, 101)), share) == value


def test_no_p99_is_said_of_few_samples():
    found = figures.summary([3.0, 1.0, 2.0])
    assert found == {"n": 3, "p50": 2.0, "p90": 3.0, "p99": None, "max": 3.0}
    assert figures.summary(range(1000))["p99"] == 989
    assert figures.summary([]) == {"n": 0}


def test_ticks_become_microseconds():
    found = figures.microseconds([1000, 2000, 3000], 0.5)
    assert found == {"n": 3, "p50": 1.0, "p90": 1.5, "p99": None, "max": 1.5}


def test_samples_that_are_cut_short_are_an_error(tmp_path):
    path = tmp_path / "samples"
    path.write_bytes(array.array("Q", [1, 2, 3]).tobytes())
    assert [list(s) for s in figures.series(path, [1, 2])] == [[1], [2, 3]]
    with pytest.raises(ValueError, match="1 samples, 2 were announced"):
        figures.series(path, [2, 2])


# Parts


def says_something(run: Run) -> None:
    run.right("one thing")
    run.figure(what="w", ring="host", clock="c", n=2, p50=1.0, p90=1.0, p99=None, max=2.0)


def test_a_part_is_what_it_said(tmp_path):
    result = one(says_something, 10, tmp_path)
    assert (result["state"], result["right"]) == ("right", ["one thing"])
    assert result["figures"][0]["what"] == "w"


def test_a_part_that_hangs_keeps_what_it_said_and_leaves_nothing_behind(tmp_path):
    def hangs(run: Run) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "1000"])
        (tmp_path / "child").write_text(str(child.pid))
        run.right("before it hung")
        time.sleep(1000)

    result = one(hangs, 1, tmp_path)
    assert result["state"] == "not run" and result["why"].startswith("time")
    assert result["right"] == ["before it hung"] and 1 <= result["seconds"] < 8
    assert result["hung"] and main.failed({"parts": [result]})
    assert is_gone(int((tmp_path / "child").read_text()))


def is_gone(pid: int) -> bool:
    """Within 10 s: it was killed, and dies when the kernel has time."""
    cmdline = Path(f"/proc/{pid}/cmdline")
    deadline = time.monotonic() + 10
    # Gone, or nobody has asked how it ended.
    while cmdline.exists() and cmdline.read_bytes():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# What a wrapper may do: its program has a session of its own.
APART = 'setsid sleep 1000 & echo $! >"$0"; [ "$1" = ends ] || wait'


@pytest.mark.parametrize("how", ["ends", "hangs"])
def test_a_process_that_left_the_parts_group_ends_with_the_part(how, tmp_path):
    def leaves_one(_: Run) -> None:
        subprocess.run(["sh", "-c", APART, tmp_path / "pid", how], check=True)

    one(leaves_one, 1, tmp_path)
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_the_program_of_a_wrapper_that_hangs_is_ended_with_it(tmp_path):
    run = run_in(tmp_path)
    run.begin(60)
    assert run.call(["sh", "-c", APART, tmp_path / "pid"], 1)[0] == 124
    assert is_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("function", "state", "words"),
    [
        (lambda run: (_ for _ in ()).throw(NotRun("needs a thing")), "not run", "needs a thing"),
        (lambda run: run.skipped("no thing"), "not run", "no thing"),
        (lambda run: None, "not run", "no output"),
        (lambda run: 1 / 0, "WRONG", "ZeroDivisionError"),
        (lambda run: os._exit(0), "WRONG", "ended without its last record"),
        (lambda run: signal.raise_signal(signal.SIGKILL), "WRONG", "without its last record"),
        (lambda run: (run.right("x"), run.wrong("y is not z")), "WRONG", "y is not z"),
    ],
)
def test_how_a_part_ends_is_told_apart(function, state, words, tmp_path):
    result = one(function, 10, tmp_path)
    assert result["state"] == state
    assert words in result["why"] + "".join(result["wrong"])


def test_a_program_that_hangs_is_ended_before_its_part(tmp_path):
    run = run_in(tmp_path)
    run.begin(60)
    assert run.call(["sh", "-c", "echo said; sleep 100"], 1)[:2] == (124, "said\n")
    assert run.call(["no-such-program"])[0] == 127


def test_a_program_that_ends_itself_at_its_limit_hung(tmp_path):
    run = run_in(tmp_path)
    run.begin(60)
    script = 'sleep "$TOKD_GPU_LIMIT_S"; exit 9'
    assert run.call(["sh", "-c", script], 1)[0] == 124
    assert run.call(["sh", "-c", "exit 9"], 1)[0] == 9


def test_a_program_that_hangs_is_time_and_makes_the_whole_wrong(tmp_path):
    def hangs(run: Run) -> None:
        run.right("before")
        run.failed("a program", *run.call(["sleep", "100"], 1))

    result = one(hangs, 20, tmp_path)
    assert (result["state"], result["right"]) == ("not run", ["before"])
    assert result["why"].startswith("time: a program timed out")
    assert main.failed({"parts": [result]})


def hangs_for(asked_s: float):
    def hangs(run: Run) -> None:
        run.failed("a program", *run.call(["sh", "-c", "exec sleep 100"], asked_s))

    return hangs


def test_a_part_whose_phase_is_over_did_not_hang(tmp_path):
    part = parts.Part("A", 1, "a part", 60, hangs_for(40))
    result = parts.run_part(part, run_in(tmp_path), 4)
    assert (result["state"], result["why"]) == ("not run", "time: its phase is over")
    assert not main.failed({"parts": [result]})


def test_a_part_that_is_killed_at_the_end_of_its_phase_did_not_hang(tmp_path):
    part = parts.Part("A", 1, "a part", 60, lambda run: time.sleep(100))
    result = parts.run_part(part, run_in(tmp_path), 1)
    assert (result["state"], result["why"]) == ("not run", "time: its phase is over")
    assert not main.failed({"parts": [result]})


def test_what_a_helper_said_is_kept_with_a_part_that_is_killed(tmp_path):
    def hangs(run: Run) -> None:
        (run.work / "helper.log").write_text("-" * parts.LOG_MOST + "its last words")
        time.sleep(100)

    result = parts.run_part(parts.Part("A", 1, "a part", 60, hangs), run_in(tmp_path), 1)
    assert len(result["logs"]["helper.log"]) == parts.LOG_MOST
    assert "-its last words" in report.part_lines(result)[-2]


def test_a_program_that_hangs_before_its_phase_is_over_hung(tmp_path):
    part = parts.Part("A", 1, "a part", 60, hangs_for(1))
    assert main.failed({"parts": [parts.run_part(part, run_in(tmp_path), 20)]})


def test_rows_that_hang_in_one_ring_are_time_and_the_other_ring_is_tried(monkeypatch, tmp_path):
    def hangs(run: Run, ring: str) -> None:
        if ring == "gpu":
            run.failed("a program", 124, "", "")
        run.right(f"ring {ring}")

    monkeypatch.setattr(a_exact, "against_numpy", hangs)
    monkeypatch.setattr(Run, "rings", ("gpu", "host"))
    result = one(a_exact.rows_against_numpy, 20, tmp_path)
    assert (result["state"], result["right"]) == ("not run", ["ring host"])
    assert result["why"].startswith("time: ring gpu") and main.failed({"parts": [result]})


NO_HOST_RING = "device cuda:0: --ring host: it cannot use the ring's memory: not supported"


@pytest.mark.parametrize("function", [a_times.looks, e_graphs.beside_workers])
def test_a_ring_that_cannot_be_in_host_memory_is_no_failure_of_the_other(
    function, monkeypatch, tmp_path
):
    def measured(run: Run, mode: str, ring: str, **_: object) -> dict:
        if ring == "host":
            run.failed(mode, 1, "", f"a warning\n{NO_HOST_RING}\n")
        run.right("the GPU's ring")
        return {**SAID, "compared": 0, "done": 1, "out_of_time": 0}

    monkeypatch.setattr(Run, "on_gpu", True)
    monkeypatch.setattr(Run, "measured", measured)
    result = one(function, 20, tmp_path)
    assert result["state"] == "right" and not main.failed({"parts": [result]})
    assert set(result["skipped"]) == {f"ring host: {NO_HOST_RING}"}


def test_rows_that_are_wrong_in_one_ring_do_not_end_the_other(monkeypatch, tmp_path):
    def rows(run: Run, ring: str) -> None:
        if ring == "gpu":
            raise Wrong("a row")
        run.right(f"ring {ring}")

    monkeypatch.setattr(a_exact, "against_numpy", rows)
    monkeypatch.setattr(Run, "rings", ("gpu", "host"))
    result = one(a_exact.rows_against_numpy, 20, tmp_path)
    assert (result["wrong"], result["right"]) == (["ring gpu: a row"], ["ring host"])


@pytest.mark.parametrize(
    ("why", "state"),
    [(f"gpu_measure: {e_engines.NO_IPC}: not supported", "not run"), ("an id is wrong", "WRONG")],
)
def test_outputs_that_cannot_be_shared_are_no_failure(why, state, monkeypatch, tmp_path):
    def fails(*_: object, **__: object) -> None:
        raise Wrong(why)

    monkeypatch.setattr(Run, "measured", fails)
    assert one(e_engines.by_ipc, 20, tmp_path)["state"] == state


def test_ids_of_an_engine_that_attached_are_compared():
    def batch(answers: dict) -> list[dict[int, int]]:
        serials, stops = iter(range(1, 5)), []
        fake = SimpleNamespace(
            prompt=lambda *_: next(serials),
            give=stops.append,
            answers=lambda _: answers,
            release=lambda: None,
        )
        e_engines.one_batch(fake, fake, 0)
        return stops

    right = {
        k + 1: (e_engines.next_ids(ids_of(k, 1000), 4 if k % 2 else 8), 1 if k % 2 else 2)
        for k in range(4)
    }
    assert batch(right) == 4 * [{1: 0, 2: 4, 3: 0, 4: 4}]
    with pytest.raises(Wrong, match="must be"):
        batch(right | {2: ([*right[2][0][:3], 1000], 1)})


SAID = {"ring": "host", "series": [], "ids": 8, "ns": 1, "answers": 1, "whole": 1, "start_ns": 1}


@pytest.mark.parametrize(
    ("why", "state"), [(Wrong("it ended with 1"), "WRONG"), (Late("it timed out"), "not run")]
)
def test_an_engine_that_fails_leaves_the_others_their_figures(why, state, monkeypatch, tmp_path):
    order = []

    def measured(run: Run, *_: object, graphs: int, external: int, **__: object) -> dict:
        order.append((graphs, external))
        run.fact("order", order)
        if (graphs, external) == (0, e_engines.OWN):
            raise why
        return SAID

    monkeypatch.setattr(Run, "on_gpu", True)
    monkeypatch.setattr(Run, "measured", measured)
    result = one(e_engines.in_process, 20, tmp_path)
    rates = [f["what"] for f in result["figures"] if f["unit"] == "a second"]
    assert len(rates) == 9 and not any(
        e_engines.ENGINES[e_engines.OWN] in rate and "workers" in rate for rate in rates
    )
    assert len(result["right"]) == 9 and result["state"] == state
    assert main.failed({"parts": [result]})
    # With workers both engines are measured before any graph is made.
    assert [graphs for graphs, _ in result["facts"]["order"]] == [0] * 6 + [1] * 6


def test_rows_that_cannot_be_shared_among_processes_are_no_failure(tmp_path):
    """A subscriber that tokd-gpu refuses as it does where the GPU has no IPC handle."""
    refusal = layout.REP.pack(
        layout.HOLD_MAGIC, layout.VERSION, *(0,) * 9, b"", b"", b"rows are not shared (no CUDA IPC)"
    )
    path = tmp_path / "subscribers"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(path))
        server.listen()

        def attaches(run: Run) -> None:
            Subscriber(run, SimpleNamespace(subscribers=path), 1)

        def refuses() -> None:
            with server.accept()[0] as connection:
                connection.recv(100)
                connection.send(refusal)

        thread = threading.Thread(target=refuses)
        thread.start()
        result = one(attaches, 60, tmp_path)
        thread.join()
    assert result["state"] == "not run" and result["why"].startswith("no CUDA IPC: refused"), result


CONTROL = """#!/bin/sh
[ "$1" = -f ] || {{ cat >"$CUDA_MPS_PIPE_DIRECTORY/said"; exit; }}
echo "no GPU for MPS" >"$CUDA_MPS_LOG_DIRECTORY/control.log"
echo $$ >"$CUDA_MPS_PIPE_DIRECTORY/pid"
{daemon}
"""


@pytest.mark.parametrize(
    ("daemon", "why"),
    [
        ("exit 3", "MPS: it ended with 3"),
        (': >"$CUDA_MPS_PIPE_DIRECTORY/control"; exec sleep 1000', "MPS serves no client here: no"),
    ],
)
def test_mps_that_does_not_serve_is_no_failure_and_is_ended(daemon, why, monkeypatch, tmp_path):
    control = tmp_path / "nvidia-cuda-mps-control"
    control.write_text(CONTROL.format(daemon=daemon))
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(Run, "on_gpu", True)
    monkeypatch.setattr(c_processes, "CLIENT", "import sys; sys.exit('no context')")
    folder = tmp_path / "work" / "mps"
    result = one(c_processes.under_mps, 60, tmp_path)
    assert result["state"] == "not run" and result["why"].startswith(why)
    assert "no GPU for MPS" in result["why"] and not main.failed({"parts": [result]})
    assert (folder / "said").read_text() == "quit -t 5\n"
    assert not Path("/proc", (folder / "pid").read_text().strip()).exists()


def test_what_tells_most_comes_first():
    order = [part.phase for part in parts.load()]
    assert "".join(dict.fromkeys(order)) == "AEDCB"
    titles = [part.title for part in parts.load()]
    first = ["properties of GPU and driver", "rows against NumPy"]
    assert titles[:2] == first and titles.index("tests in C on the device") == 4


def test_no_part_may_outlast_its_phase():
    assert {part.phase for part in parts.load()} == {"A", "B", "C", "D", "E"}
    for part in parts.load():
        assert part.limit_s <= parts.phase_limit_s(part.phase)
    assert parts.phase_limit_s("A") == 240 and parts.phase_limit_s("D") == 480
    build_s = 90  # on 16 cores
    assert build_s + parts.phase_limit_s("A") + parts.phase_limit_s("E") <= 600


# The whole program, with parts made for it

DRIVER = """
import sys, time
sys.path.append({tools!r})
from bench.gpu_check import main, parts
def end(run): run.right("done")
def stand(run): run.right("begun"); time.sleep(1000)
main.no_gpu = lambda: None
main.built = lambda *_, **__: "not built"
made = [parts.Part("A", k, f"part {{k}}", 60, stand if k == {stands} else end) for k in range(4)]
parts.load = lambda: made
sys.exit(main.main(["A", "--out", {out!r}]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_killed_after_any_part_its_results_are_there(after, how, tmp_path):
    script = DRIVER.format(tools=str(ROOT / "tools"), stands=after, out=str(tmp_path))
    path = tmp_path / "gpu-check.md"  # the second that is written
    with subprocess.Popen(
        [sys.executable, "-B", "-c", script], stdout=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + 30
        while not path.exists() or f"Running A: part {after}" not in path.read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(how)
        assert process.wait(20) == (-signal.SIGKILL if how == signal.SIGKILL else 1)
    said = json.loads((tmp_path / "gpu-check.json").read_text())
    states = [part["state"] for part in said["parts"]]
    assert states == ["right"] * after + ["running"]
    text = path.read_text()
    assert all(f"## A: part {k}" in text for k in range(after + 1))
    assert text.count("- done") == after


def test_one_wrong_part_makes_the_whole_wrong_and_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    functions = [says_something, lambda run: run.wrong("a row"), says_something]
    made = [parts.Part("A", k, f"part {k}", 60, f) for k, f in enumerate(functions)]
    monkeypatch.setattr(parts, "load", lambda: made)
    monkeypatch.setattr(main, "built", lambda *_, **__: "not built")
    assert main.main(["--device", "cpu", "--out", str(tmp_path)]) == 1
    said = json.loads((tmp_path / "gpu-check.json").read_text())
    assert [part["state"] for part in said["parts"]] == ["right", "WRONG", "right"]
    assert said["state"] == "Complete"
    assert report.CPU in (tmp_path / "gpu-check.md").read_text()
    assert "WRONG: a row" in capsys.readouterr().out


def test_results_of_an_earlier_run_are_kept(tmp_path):
    report.begin(tmp_path)
    for kind in ("json", "md"):
        (tmp_path / f"gpu-check.{kind}").write_text("earlier")
        os.utime(tmp_path / f"gpu-check.{kind}", (0, 0))
    report.begin(tmp_path)
    kept = ["gpu-check-19700101-000000.json", "gpu-check-19700101-000000.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept


def test_a_folder_that_cannot_be_written_is_refused_before_the_build(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main.main(["--device", "cpu", "--out", str(tmp_path / "file")]) == 2
    assert "cannot write results" in capsys.readouterr().err


def test_wrong_options_are_refused_by_name(capsys):
    for arguments, words in (
        (["Z"], "phase Z: give A, B, C"),
        (["--device", "gpu"], "give cuda:N or cpu"),
        (["--device", "CUDA:0"], "give cuda:N or cpu"),
        (["--seed", "-1"], "give 0 to 2147483647"),
    ):
        with pytest.raises(SystemExit) as refused:
            main.main(arguments)
        assert refused.value.code == 2
        assert words in capsys.readouterr().err


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so_and_claims_nothing(tmp_path):
    command = ["env", "-i", ROOT / "tools/gpu-check", "--out", tmp_path / "out"]
    end = ended(*command)
    assert end.returncode == 77 and end.stdout.startswith("gpu-check: no GPU: not run: "), end
    assert not (tmp_path / "out").exists()


def test_a_driver_that_fails_is_not_taken_for_no_gpu(monkeypatch, capsys):
    for script, expected in (("77 the driver has no GPU", "the driver has no GPU"), ("x", None)):
        monkeypatch.setattr(main, "ASK", f"import sys; sys.exit({script!r})")
        assert main.no_gpu() == expected
    assert capsys.readouterr().err == "gpu-check: x\n"


def test_a_driver_that_is_slow_or_stands_is_told_of(monkeypatch, capsys):
    monkeypatch.setattr(main, "ASK", "import sys, time; time.sleep(2); sys.exit('77 late')")
    monkeypatch.setattr(main, "ASK_S", ((0.1, "waiting"), (60, "no longer")))
    assert main.no_gpu() == "late"
    assert capsys.readouterr().out == "gpu-check: the driver has not answered for 0.1 s: waiting\n"
    monkeypatch.setattr(main, "ASK_S", ((0.1, "waiting"), (0.1, "no longer")))
    assert main.no_gpu() is None
    assert "for 0.2 s: no longer\n" in capsys.readouterr().out


# The build


def test_what_is_missing_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(build, "find_nvcc", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build, "tree_folder", lambda: tmp_path / "b")
    assert main.main(["--build-only"]) == 1
    said = capsys.readouterr().err
    assert "not found: nvcc (looked on the PATH and in /usr/local/cuda" in said
    assert ", gcc, g++: install it" in said


def test_the_build_asks_for_gpus_with_the_libraries_of_the_driver(monkeypatch, tmp_path):
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\n[ "$LD_LIBRARY_PATH" = "/a:{tmp_path}" ] && echo 9.0\n')
    smi.chmod(0o755)
    monkeypatch.setattr(build, "driver_program", lambda name: str(smi))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/a")
    assert build.compute_capabilities() == []
    monkeypatch.setattr(build, "DRIVER_FOLDER", tmp_path)
    assert build.compute_capabilities() == ["90"]


@pytest.mark.parametrize(
    ("stamp", "gpus", "makes", "words"),
    [
        ("{} {} sm_90", ["90"], True, "were built before, from these sources"),
        ("{} {} compute_80 sm_90", [], True, "were built before, from these sources"),
        ("{} {} sm_90", [], True, "made"),
        ("{} {} sm_90", ["90", "100"], True, "made"),
        ("{} {} sm_90", ["100"], False, "cannot be built for the GPUs here: not found: nvcc"),
        ("{} of-another sm_90", ["90"], False, None),
        ("of others sm_90", ["90"], True, "made"),
        ("of others sm_90", ["90"], False, None),
    ],
)
def test_programs_that_were_brought_along_are_taken_if_they_fit(
    stamp, gpus, makes, words, monkeypatch, tmp_path
):
    monkeypatch.setattr(build, "find_nvcc", lambda: None)
    monkeypatch.setattr(build, "compute_capabilities", lambda: gpus)
    if makes:
        monkeypatch.setattr(build.Build, "_make", lambda self: "made")
    made = brought(tmp_path, stamp)
    if words is None:
        with pytest.raises(build.BuildError, match="nvcc"):
            made.make()
    else:
        assert words in made.make()
    if not makes:
        with pytest.raises(build.BuildError, match="nvcc"):
            made.make(fall_back=False)


def brought(folder, stamp, program="#!/bin/sh\n"):
    made = build.Build(folder)
    for name in build.PROGRAMS:
        made.program(name).write_text(program)
        made.program(name).chmod(0o755)
    (folder / "sources").write_text(stamp.format(build.sources_digest(), platform.machine()))
    return made


def test_programs_that_cannot_start_here_are_made_again_or_named(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "compute_capabilities", lambda: ["90"])
    monkeypatch.setattr(build, "find_nvcc", lambda: None)
    made = brought(tmp_path, "{} {} sm_90", "\x7fELF of another machine")
    with pytest.raises(build.BuildError, match="not found: nvcc.*\n.*Exec format error"):
        made.make()
    monkeypatch.setattr(build.Build, "_make", lambda self: "made")
    assert made.make() == "made"


def test_programs_that_need_a_newer_driver_are_made_again_or_named(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "compute_capabilities", lambda: ["90"])
    monkeypatch.setattr(build, "find_nvcc", lambda: None)
    made = brought(tmp_path, "{} {} sm_90 cuda_13")
    for driver, runs in ((0, True), (13, True), (14, True), (12, False)):
        monkeypatch.setattr(build, "driver_cuda", lambda driver=driver: driver)
        monkeypatch.setattr(build, "cannot_start", lambda _: None)
        assert made.runs_here() == runs
    with pytest.raises(build.BuildError, match="nvcc.*\n.*driver for CUDA 13.* for CUDA 12"):
        made.make()
    monkeypatch.setattr(build.Build, "_make", lambda self: "made")
    assert made.make() == "made"


def test_cuda_of_the_driver(monkeypatch, tmp_path):
    source = "int cuDriverGetVersion(int *v) { *v = 12090; return 0; }"
    (tmp_path / "cuda.c").write_text(source)
    words = ["-shared", "cuda.c", "-o", "libcuda.so.1"]
    subprocess.run(["gcc", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(build, "DRIVER_FOLDER", tmp_path)
    assert build.driver_cuda() == 12


def linked(folder: Path, version: str, *of_program: str) -> None:
    (folder / "map").write_text(f"{version} {{ f; }};")
    shared = ["-shared", "-Wl,--version-script=map", "-x", "c", "f.c", "-o", "libf.so"]
    for words in (shared, of_program):
        if words:
            subprocess.run(["gcc", *words], cwd=folder, check=True)


def test_a_program_of_a_newer_library_is_noticed(tmp_path):
    """As where the C library is older than the one that the program was linked with."""
    (tmp_path / "f.c").write_text("void f(void) {}\n")
    (tmp_path / "main.c").write_text("void f(void); int main(void) { f(); return 0; }\n")
    linked(tmp_path, "NEW_2", "main.c", "-L.", "-lf", f"-Wl,-rpath,{tmp_path}", "-o", "program")
    assert build.cannot_start(tmp_path / "program") is None
    linked(tmp_path, "OLD_1")
    assert "version `NEW_2' not found" in str(build.cannot_start(tmp_path / "program"))


@pytest.mark.parametrize(
    ("stamp", "gpus", "taken"),
    [("{} {} sm_90", ["90"], True), ("{} {} sm_90", ["100"], False), ("of others", ["90"], False)],
)
def test_programs_in_a_tree_that_cannot_be_written_are_taken_if_they_fit(
    stamp, gpus, taken, monkeypatch, tmp_path
):
    monkeypatch.setattr(build, "compute_capabilities", lambda: gpus)
    monkeypatch.setattr(build, "tree_folder", lambda: tmp_path)
    brought(tmp_path, stamp)
    assert build.programs_folder(Path("/cache")) == (tmp_path if taken else Path("/cache"))


class HalfLinked:
    """Links a program; the next one fails."""

    codes = ("sm_90",)

    def __init__(self, *_):
        self.linked = []

    def key(self, program, name):
        return name, program

    def object(self, key):
        return Path(key[0])

    def compile(self, _):
        return True

    def link(self, job):
        self.linked.append(job)
        if len(self.linked) > 1:
            raise build.BuildError("disk full")


def test_old_and_new_programs_together_are_not_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "find_tools", lambda: None)
    monkeypatch.setattr(build, "_Units", HalfLinked)
    monkeypatch.setattr(build, "compute_capabilities", lambda: ["100"])
    made = brought(tmp_path, "{} {} sm_90")
    for _ in range(2):
        with pytest.raises(build.BuildError, match="disk full"):
            made.make()
    assert made.made_before() is None


def test_a_tree_that_cannot_be_written_is_built_elsewhere(monkeypatch, tmp_path):
    assert build.default_folder() == ROOT / "build" / "gpu-check"
    monkeypatch.setattr(build.os, "access", lambda path, _: path == str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not there"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert build.default_folder().parent == tmp_path
    monkeypatch.delenv("HOME")
    assert str(build.default_folder().parent) == tempfile.gettempdir()


def test_python_3_9_can_read_it():
    for path in [ROOT / "tools/gpu-check", *(ROOT / "tools/bench/gpu_check").rglob("*.py")]:
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The tracked files alone, as an archive has them; built in an empty environment."""
    if build.find_nvcc() is None:
        pytest.skip("nvcc was not found")
    listed = ended("git", "ls-files", "-z", cwd=ROOT)
    if listed.returncode != 0:
        pytest.skip("not a checkout of git: which files an archive has cannot be told")
    to = tmp_path_factory.mktemp("tree")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    command = ["env", "-i", to / "tools/gpu-check", "--build-only"]
    end = ended(*command, timeout=1500, cwd="/")
    assert end.returncode == 0, end.stdout + end.stderr
    return to


@pytest.mark.slow
def test_an_archive_builds_in_an_empty_environment(tree):
    for name in build.PROGRAMS:
        assert os.access(tree / "build/gpu-check" / name, os.X_OK)


@pytest.mark.slow
def test_every_part_that_needs_no_gpu_is_right(tree, tmp_path):
    command = [sys.executable, tree / "tools/gpu-check", "--device", "cpu", "--out", tmp_path]
    end = ended(*command, timeout=400)
    assert end.returncode == 0, end.stdout + end.stderr
    said = json.loads((tmp_path / "gpu-check.json").read_text())
    assert said["state"] == "Complete" and said["device"] == "cpu"
    for part in said["parts"]:
        assert part["state"] == "right" or part["why"] in (
            "needs a GPU",
            "needs torch in this Python",
            "no vocabulary: run tools/fetch-vocab, or set TOK_VOCAB_PATH",
        ), part
    by_title = {part["title"]: part for part in said["parts"]}
    assert len(by_title["rows against NumPy"]["right"]) == 12
    assert by_title["tests in C on the device"]["right"] == [
        "test_consumer, ring host: 13 tests",
        "test_life, ring host: 14 tests",
        "test_hostile, ring host: 4 tests",
        "test_generate, ring host: 13 tests",
        "test_text, ring host: 8 tests",
    ]
    assert by_title["an engine that attaches to tokd-gpu by its socket"]["right"] == [
        "20 answers, half of them ended by the engine, each id compared"
    ]
    dropped = by_title["a subscriber in another process, both without root's privileges"]
    assert dropped["state"] == "right", dropped
    assert int(dropped["facts"]["capabilities of tokd-gpu"], 16) & ~(1 << 14) == 0  # IPC_LOCK
    assert int(dropped["facts"]["capabilities of the subscriber"], 16) == 0
    timed = [f for part in said["parts"] for f in part["figures"] if "p50" in f]
    assert len(timed) > 50
    for figure in timed:
        assert figure["ring"] in ("host", "-") and figure["clock"] == "CLOCK_MONOTONIC"
        assert figure["n"] > 0
        assert figure["p50"] <= figure["p90"] <= figure["max"]
