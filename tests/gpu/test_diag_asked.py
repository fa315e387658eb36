# SPDX-License-Identifier: BSD-3-Clause
"""What tokd-diag learns by asking libibverbs, CUDA and NVML, with libraries of the test's own.

It asks them on the machine itself alone, so a prepared /sys is put in place of its own in a mount
namespace. That shows what is made of answers, not that a real device gives them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import diag_machines as lab
import pytest
from test_diag import PROGRAM, findings, path_of

SOURCE = Path(__file__).with_name("fake_libraries.c")
LIBRARIES = {"CUDA": "libcuda.so.1", "NVML": "libnvidia-ml.so.1", "VERBS": "libfakeverbs.so"}
# $0: the machine's sys. Preloaded into tokd-diag alone.
SCRIPT = 'mount --bind "$0" /sys && exec env LD_PRELOAD="$PRELOADED" "$@"'
INSIDE = ["unshare", "--mount", "sh", "-c", SCRIPT]

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason=f"{PROGRAM} is not built")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries")
    for name, file in LIBRARIES.items():
        command = ["cc", "-shared", "-fPIC", "-w", f"-DFAKE_{name}", "-o", folder / file, SOURCE]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture
def ask(tmp_path: Path, libraries: Path) -> Callable[..., dict]:
    machine = lab.host(tmp_path)
    if subprocess.run([*INSIDE, tmp_path / "sys", "true"], check=False).returncode:
        pytest.skip("no mount namespace of one's own: not root")

    def asked(fake: str = "", *options: str) -> dict:
        environment = os.environ | {
            "FAKE": fake,
            "LD_LIBRARY_PATH": str(libraries),
            "PRELOADED": str(libraries / LIBRARIES["VERBS"]),
            # The libraries above come before a sanitizer's.
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
        }
        done = subprocess.run(
            [*INSIDE, machine.root / "sys", PROGRAM, "--json", *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
        assert done.stderr == ""
        assert done.returncode in (0, 1)
        return json.loads(done.stdout)

    return asked


def test_verbs_say_mtu_queue_inline_and_dmabuf(ask: Callable[..., dict]) -> None:
    report = ask()
    first, second = report["rdma"]
    assert (first["opened"], second["opened"]) == (False, True)
    assert "libibverbs does not know it" in first["open_error"]
    assert report["chosen"]["device"] == "mlx5_1"  # the one that can be opened
    assert (second["max_qp_wr"], second["max_inline"], second["dmabuf"]) == (32768, 316, True)
    port = second["ports"][0]
    assert (port["mtu"], port["mtu_max"], port["mtu_from"]) == (2048, 4096, "verbs")
    assert "2048" in findings(report, problems=False)["mlx5_1"]["value"]


def test_nic_without_dmabuf_is_named(ask: Callable[..., dict]) -> None:
    report = ask("D")
    assert report["rdma"][1]["dmabuf"] is False
    reasons = path_of(report, "verbs with dma-buf")["against"]
    assert any("mlx5_1 refuses it" in r["value"] for r in reasons)


@pytest.mark.parametrize("fake,inline", [("P", None), ("C", None), ("I", None), ("", 316)])
def test_objects_that_cannot_be_made_are_not_known(
    ask: Callable[..., dict], fake: str, inline: int | None
) -> None:
    assert ask(fake)["rdma"][1]["max_inline"] == inline


def test_device_that_may_not_be_opened_is_a_problem(ask: Callable[..., dict]) -> None:
    report = ask("O")
    assert report["chosen"]["device"] is None
    problem = findings(report, problems=True)["mlx5_1"]
    assert "Permission denied" in problem["value"] and "uverbs" in problem["remedy"]


def test_cuda_and_nvml_say_name_capability_order_and_bar1(ask: Callable[..., dict]) -> None:
    report = ask()
    (gpu,) = report["gpus"]
    assert gpu["asked"] and gpu["name"] == "NVIDIA H100 PCIe ?"
    assert (gpu["major"], gpu["minor"], gpu["write_order"]) == (9, 0, "owner")
    assert (gpu["dmabuf"], gpu["gpudirect_rdma"]) == (False, None)
    assert (gpu["bar1"], gpu["bar1_free"], gpu["bar1_from"]) == (256 << 20, 250 << 20, "nvml")
    reasons = path_of(report, "verbs with dma-buf")["against"]
    assert any(r["thing"] == "dma-buf of the GPU" for r in reasons)


def test_gpu_without_order_is_told_to_be_strict(ask: Callable[..., dict]) -> None:
    report = ask("o")
    assert report["gpus"][0]["write_order"] == "none"
    assert any("STRICT" in f["remedy"] for f in report["findings"])


@pytest.mark.parametrize("fake", ["g", "n", "l", "a", "m", "glam"])
def test_strange_answers_are_survived(ask: Callable[..., dict], fake: str) -> None:
    assert len(ask(fake)["gpus"]) == 1


def test_cuda_that_does_not_start_is_said(ask: Callable[..., dict]) -> None:
    report = ask("i")
    assert "error 999" in report["cuda_note"]
    assert report["gpus"][0]["asked"] is False


def test_free_part_of_bar1_counts(ask: Callable[..., dict]) -> None:
    reasons = path_of(ask("", "--region", "253M"), "verbs with peer memory")["against"]
    assert any("free of" in r["value"] and "250 MiB" in r["value"] for r in reasons)


def test_driver_that_maps_no_gpu_memory_is_named(ask: Callable[..., dict]) -> None:
    thing = "mapping GPU memory"
    reasons = {r["thing"]: r for r in path_of(ask("v"), "cuda with dma-buf")["against"]}
    assert "13.0" in reasons[thing]["value"] and "13.3" in reasons[thing]["remedy"]
    assert thing not in {r["thing"] for r in path_of(ask(), "cuda with dma-buf")["against"]}
