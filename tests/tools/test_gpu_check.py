# SPDX-License-Identifier: BSD-3-Clause
"""tools/gpu-check where there is no GPU, and how it judges what it ran."""

from __future__ import annotations

import json
from pathlib import Path

import gpu_check
import pytest

NUMBERS = {"n": 2000, "p50": 8.0, "p99": 9.5}
RIGHT = {
    "gpu": True,
    "name": "a GPU, 580.1",
    "not_run": ["racecheck: compute-sanitizer is not on the PATH"],
    "parts": {
        "exactness, ring gpu": {"right": True, "compared_with": "NumPy", "output": "60 passed"},
        "memcheck": {"right": True, "output": ""},
        "racecheck": {"not_run": "compute-sanitizer is not on the PATH"},
        "times, ring gpu": {
            "right": True,
            "numbers": {"embed_2048x768_fp32": NUMBERS, "scan_4096_slots": NUMBERS},
        },
    },
}


@pytest.fixture
def no_build(monkeypatch):
    """The build is taken as done; programs end as told."""
    ends = {}

    def ran(command, *_, **__):
        return ends.get(str(command[0]).rpartition("/")[2], (0, ""))

    monkeypatch.setattr(gpu_check, "ran", ran)
    monkeypatch.setattr(gpu_check, "gpu_here", lambda: False)
    return ends


def test_without_a_gpu_nothing_is_run_and_that_is_said(no_build, capsys, tmp_path):
    no_build["gpu_measure"] = (77, "no GPU: device cuda:0: no NVIDIA driver is loaded\n")
    report = tmp_path / "report.json"
    assert gpu_check.main(["--json", str(report)]) == 77
    said = capsys.readouterr().out
    assert said.startswith("gpu-check: no GPU: not run: ")
    assert "no NVIDIA driver is loaded" in said
    written = json.loads(report.read_text())
    assert written["gpu"] is False
    assert written["parts"] == {}


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (1, "device cuda:0: 8000 bytes for the ring (0 of 0 are free): out of memory"),
        (77, "something else that ends with 77"),
        (127, "gpu_measure: No such file or directory"),
        (-11, ""),
    ],
)
def test_a_probe_that_fails_is_not_taken_for_a_machine_without_gpu(no_build, status, output, capsys):
    no_build["gpu_measure"] = (status, output)
    assert gpu_check.main([]) == 1
    said = capsys.readouterr().out
    assert "probe is WRONG" in said
    assert output in said
    assert f"ended with {status}" in said


def test_a_program_that_is_not_there_is_said_in_words(capsys, monkeypatch):
    assert gpu_check.ran(["no-such-program"]) == (127, "no-such-program: No such file or directory")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(gpu_check, "gpu_here", lambda: False)
    assert gpu_check.main([]) == 1
    assert "ninja: No such file or directory" in capsys.readouterr().err
    assert "nvidia-smi: No such file or directory" in gpu_check.gpu_name()


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_check, "INT_GRACE_S", 0.5)
    child = tmp_path / "child"
    script = f"trap '' INT; sleep 1000 & echo $! > {child}; printf 'said \\377'; wait; wait"
    status, output = gpu_check.ran(["bash", "-c", script], 1)
    assert status == 124
    assert output == "said \ufffd\nnot finished after 1 s"
    cmdline = Path(f"/proc/{child.read_text().strip()}/cmdline")
    assert not cmdline.exists() or not cmdline.read_bytes()  # gone, or nobody has asked how it ended


@pytest.mark.parametrize(("tool", "parts"), [("memcheck", 5), ("racecheck", 3)])
def test_the_sanitizer_has_few_workers(tool, parts, monkeypatch):
    asked = []
    monkeypatch.setattr(gpu_check.shutil, "which", lambda *_, **__: "/cuda/compute-sanitizer")
    monkeypatch.setattr(gpu_check, "ran", lambda command, *_, **env: asked.append((command, env)) or (0, ""))
    found = gpu_check.sanitized("cuda:0", tool)
    assert len(found) == len(asked) == parts and all(part["right"] for part in found.values())
    wrapper = f"/cuda/compute-sanitizer --tool {tool} --error-exitcode 9"
    for command, env in asked:
        assert int(env["TOKD_GPU_WORKERS"]) <= 8 and env["TOKD_GPU_DEVICE"] == "cuda:0"
        assert env.get("TOKD_GPU_WRAPPER") == wrapper or " ".join(command[:5]) == wrapper


def test_without_a_sanitizer_that_is_said(monkeypatch):
    monkeypatch.setattr(gpu_check.shutil, "which", lambda *_, **__: None)
    assert gpu_check.sanitized("cuda:0", "memcheck")["memcheck"]["not_run"]


def test_what_tests_leave_out_is_listed_with_its_reason():
    parts = {
        "life, ring gpu": gpu_check.judged(0, "1..2\n# skipped: no threads to pin\nok 1 # SKIP\nok 2\n"),
        "exactness, ring gpu": gpu_check.judged(0, "60 passed\nSKIPPED [1] a.py:3: PyTorch is not there\n"),
        "times, ring host": {"not_run": "device cuda:0: --ring host: it cannot use memory"},
        "hostile, ring gpu": gpu_check.judged(1, "not ok 1\n"),
    }
    assert gpu_check.not_run(parts) == [
        "times, ring host: device cuda:0: --ring host: it cannot use memory",
        "life, ring gpu: skipped: no threads to pin",
        "exactness, ring gpu: SKIPPED [1] a.py:3: PyTorch is not there",
    ]
    assert gpu_check.wrong({"parts": parts}) == ["hostile, ring gpu"]


NO_KERNEL = (77, "no GPU: device cuda:0: this program was built without CUDA: install nvcc\n")


def test_a_gpu_without_a_kernel_in_the_build_is_a_failure(no_build, monkeypatch, capsys):
    no_build["gpu_measure"] = NO_KERNEL
    assert gpu_check.main([]) == 77  # nothing here speaks of a GPU
    monkeypatch.setattr(gpu_check, "gpu_here", lambda: True)
    assert gpu_check.main([]) == 1
    said = capsys.readouterr().out
    assert "has a GPU, and this build no kernel" in said
    assert "nvcc" in said


def test_where_there_is_a_gpu_nvcc_is_looked_for_anew(no_build, monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "gpu_here", lambda: True)
    no_build["meson"] = (1, "meson: error")
    assert gpu_check.main([]) == 1
    assert "meson: error" in capsys.readouterr().err


@pytest.mark.parametrize("can", [True, False])
def test_what_a_gpu_cannot_is_asked_once_and_failures_are_failures(can, monkeypatch):
    refusal = "device cuda:0: --ring host: it cannot use memory that processes share"
    asked = []

    def ran(command, *_, **env):
        asked.append(env.get("TOKD_GPU_RING"))
        if "measure" in str(command[0]):
            wrong_ring = env["TOKD_GPU_RING"] == "host" and not can
            return (1, refusal) if wrong_ring else (0, json.dumps({"posted_to_done_read": NUMBERS}))
        return (1, refusal) if "hostile" in str(command[0]) else (0, "")

    monkeypatch.setattr(gpu_check, "ran", ran)
    report = gpu_check.checked("cuda:0", 1000, with_sanitizer=False)
    rings = gpu_check.RINGS if can else ("gpu",)
    assert gpu_check.wrong(report) == [f"hostile, ring {ring}" for ring in rings]
    assert (f"everything with --ring host: {refusal}" in report["not_run"]) is not can
    assert asked.count("host") == (1 + 2 + len(gpu_check.C_TESTS) if can else 1)


@pytest.mark.parametrize("there", [True, False])
def test_rows_that_were_not_compared_with_pytorch_are_said(there, monkeypatch):
    def ran(command, *_, **__):
        if "import torch" in command:
            return (0 if there else 1, "")
        return (0, "{}")

    monkeypatch.setattr(gpu_check, "ran", ran)
    report = gpu_check.checked("cuda:0", 1000, with_sanitizer=False)
    listed = [text for text in report["not_run"] if text.startswith("exactness against PyTorch: ")]
    assert len(listed) == (0 if there else 1)
    assert gpu_check.wrong(report) == []


def test_a_failed_build_is_a_failure(no_build, capsys):
    no_build["ninja"] = (1, "error: something")
    assert gpu_check.main([]) == 1
    assert "error: something" in capsys.readouterr().err


@pytest.mark.parametrize("part", list(RIGHT["parts"]))
def test_one_wrong_part_makes_the_whole_wrong(part, monkeypatch, no_build, capsys):
    parts = RIGHT["parts"] | {part: {"right": False, "output": "what it said"}}
    monkeypatch.setattr(gpu_check, "checked", lambda *_: RIGHT | {"parts": parts})
    assert gpu_check.main([]) == 1
    assert f"{part} is WRONG:\nwhat it said" in capsys.readouterr().out


def test_numbers_goals_and_what_was_not_run_are_printed(monkeypatch, no_build, capsys):
    monkeypatch.setattr(gpu_check, "checked", lambda *_: RIGHT)
    assert gpu_check.main([]) == 0
    said = capsys.readouterr().out
    assert "embed_2048x768_fp32 us: n 2000, p50 8.0, p99 9.5  (goal 10.0 us: met)" in said
    assert "scan_4096_slots us: n 2000, p50 8.0, p99 9.5  (goal 3.0 us: MISSED)" in said
    assert "compared with NumPy" in said
    assert "not run: racecheck: compute-sanitizer is not on the PATH" in said


def test_everything_is_run_with_both_rings(monkeypatch):
    asked = []

    def ran(command, *_, **env):
        asked.append((str(command[-1]).rpartition("/")[2], env.get("TOKD_GPU_RING")))
        return (0, json.dumps({"posted_to_done_read": NUMBERS}) if "measure" in str(command[0]) else "")

    monkeypatch.setattr(gpu_check, "ran", ran)
    report = gpu_check.checked("cuda:0", 1000, with_sanitizer=False)
    for ring in gpu_check.RINGS:
        for name in ("gpu", "1000", *(f"test_gpu_device_{name}" for name in gpu_check.C_TESTS)):
            assert (name, ring) in asked
        assert report["parts"][f"times, ring {ring}"]["numbers"]["posted_to_done_read"] == NUMBERS
    assert gpu_check.wrong(report) == []


def test_goals_are_called_as_the_program_calls_what_it_measures():
    """On the CPU with the host's ring: 256 slots there, 4,096 where the ring is a GPU's."""
    program = gpu_check.BUILD / "tests/gpu_device/gpu_measure"
    status, output = gpu_check.ran([program, "cpu", "3"], 100, TOKD_GPU_RING="host")
    assert status == 0, output
    measured = {name.replace("256_slots", "4096_slots") for name in json.loads(output)}
    assert set(gpu_check.GOALS) <= measured


def test_fewer_than_a_thousand_requests_are_refused(capsys):
    with pytest.raises(SystemExit) as refused:
        gpu_check.main(["--requests", "999"])
    assert refused.value.code == 2
    assert "at least 1000" in capsys.readouterr().err
