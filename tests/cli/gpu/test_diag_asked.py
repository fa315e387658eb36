# SPDX-License-Identifier: BSD-3-Clause
"""What tokd-diag learns by asking pyverbs, nvidia-ml-py and CUDA, with libraries of the test's own.

That shows what is made of answers, not that a real device gives them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import diag_machines as lab
import pytest
from dpdk_tokd.ops.diag import __main__ as program
from dpdk_tokd.ops.diag import gather, nvidia
from dpdk_tokd.ops.diag.files import Files
from ended import ended
from test_diag import TOOL, findings, path_of, run

FAKES = Path(__file__).with_name("fakes")


class Live(Files):
    """A prepared machine that libraries are asked about."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.live = True


class Cuda:
    """libcuda.so.1, with one GPU that has no dma-buf."""

    def __init__(self, fake: str) -> None:
        if "x" in fake:
            raise OSError("libcuda.so.1: cannot open shared object file")
        self.fake = fake

    def cuInit(self, flags: int) -> int:
        return 999 if "i" in self.fake else 0

    def cuDriverGetVersion(self, version: object) -> int:
        version._obj.value = 13000 if "v" in self.fake else 13030
        return 1 if "V" in self.fake else 0

    def cuDeviceGetByPCIBusId(self, device: object, address: bytes) -> int:
        return 101 if "g" in self.fake or address != b"0000:19:00.0" else 0

    def cuDeviceGetAttribute(self, value: object, attribute: int, device: int) -> int:
        answers = {118: 0 if "o" in self.fake else 100, 124: 0}
        value._obj.value = answers.get(attribute, 0)
        return 0 if attribute in answers else 1  # an older CUDA


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict]]:
    machine = lab.host(tmp_path)

    def asked(fake: str = "", *options: str) -> dict:
        monkeypatch.setenv("FAKE", fake)
        monkeypatch.setattr(nvidia, "load_cuda", lambda: Cuda(fake))
        done = run("--root", machine.root, "--json", *options)
        assert (done.returncode in (0, 1), done.stderr) == (True, "")
        assert run("--root", machine.root, *options).returncode == done.returncode
        return json.loads(done.stdout)

    monkeypatch.setattr(program, "Files", Live)
    monkeypatch.syspath_prepend(FAKES)
    yield asked
    for name in [name for name in sys.modules if name.split(".")[0] in ("pyverbs", "pynvml")]:
        del sys.modules[name]


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


@pytest.mark.parametrize("fake", ["P", "C", "I"])
def test_objects_that_cannot_be_made_are_not_known(ask: Callable[..., dict], fake: str) -> None:
    assert ask(fake)["rdma"][1]["max_inline"] is None


def test_device_that_may_not_be_opened_is_a_problem(ask: Callable[..., dict]) -> None:
    report = ask("O")
    assert report["chosen"]["device"] is None
    problem = findings(report, problems=True)["mlx5_1"]
    assert "Permission denied" in problem["value"] and "uverbs" in problem["remedy"]


def test_no_device_list_is_a_problem_where_there_are_devices(ask: Callable[..., dict]) -> None:
    report = ask("L")
    assert "devices list" in report["verbs_note"]
    assert report["chosen"]["device"] is None
    assert "ib_uverbs" in findings(report, problems=True)["verbs"]["remedy"]


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


@pytest.mark.parametrize("fake", ["q", "p", "m", "g", "n", "l", "h", "c", "b", "V", "gqplcbmV"])
def test_missing_answers_are_not_known(ask: Callable[..., dict], fake: str) -> None:
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


# ---- libraries that are not there


def test_missing_pyverbs_is_a_problem_and_sysfs_decides(
    ask: Callable[..., dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(FAKES)])
    report = ask()
    assert "python3-pyverbs is not installed" in report["verbs_note"]
    problem = findings(report, problems=True)["verbs"]
    assert "apt-get install python3-pyverbs" in problem["remedy"]
    assert report["chosen"]["device"] == "mlx5_0"
    assert report["rdma"][0]["dmabuf"] is None


def test_pyverbs_that_does_not_load_says_why(
    ask: Callable[..., dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyverbs.py").write_text("raise ImportError('libibverbs.so.1: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    assert "libibverbs.so.1: no such file" in ask()["verbs_note"]


def test_missing_nvml_is_a_note_and_sysfs_has_bar1(
    ask: Callable[..., dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    report = ask()
    note = findings(report, problems=False)["NVML"]
    assert "nvidia-ml-py is not installed" in note["value"] and "pip" in note["remedy"]
    gpu = report["gpus"][0]
    assert (gpu["bar1"], gpu["bar1_from"], gpu["bar1_free"]) == (128 * lab.GIB, "sysfs", None)
    assert (gpu["major"], gpu["asked"], report["cuda_version"]) == (0, True, 13030)


def test_missing_libcuda_is_against_the_paths_of_the_gpu(ask: Callable[..., dict]) -> None:
    report = ask("x")
    for path in ("verbs with dma-buf", "verbs with peer memory", "cuda with dma-buf"):
        reasons = {r["thing"]: r for r in path_of(report, path)["against"]}
        assert reasons["CUDA"]["value"] == report["cuda_note"] == "libcuda.so.1 does not load"
        assert "libraries" in reasons["CUDA"]["remedy"]


@pytest.mark.parametrize(
    ("lspci", "name", "note"),
    [
        ("printf 'Device:\\tGH100 [H100 PCIe]\\n'", "NVIDIA GH100 [H100 PCIe]", None),
        ("exit 1", "NVIDIA 10de:2331", None),
        (None, "NVIDIA 10de:2331", "apt-get install pciutils"),
    ],
)
def test_gpu_without_its_driver_has_the_name_that_lspci_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lspci: str | None, name: str, note: str | None
) -> None:
    machine = lab.Machine(tmp_path / "machine")
    machine.pci("pci0000:00/0000:01:00.0", (0x10DE, 0x2331), 0x030200, "vfio-pci")
    (tmp_path / "bin").mkdir()
    if lspci:
        (tmp_path / "bin/lspci").write_text(f"#!/bin/sh\n{lspci}\n")
        (tmp_path / "bin/lspci").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(program, "Files", Live)
    report = json.loads(run("--root", machine.root, "--json").stdout)
    assert report["gpus"][0]["name"] == name
    found = findings(report, problems=False).get("names of devices")
    assert (found and found["remedy"]) == note


# ---- the whole program, with a prepared /sys in place of this machine's


def test_the_program_asks_the_libraries_of_its_python(tmp_path: Path) -> None:
    machine = lab.host(tmp_path)
    script = 'mount --bind "$0" /sys && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", script, machine.root / "sys"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace of one's own: not root")
    done = ended(*inside, TOOL, "--json", env=os.environ | {"PYTHONPATH": str(FAKES), "FAKE": ""})
    report = json.loads(done.stdout)
    assert done.stderr == ""
    assert (report["chosen"]["device"], report["rdma"][1]["max_inline"]) == ("mlx5_1", 316)
    assert report["gpus"][0]["bar1_from"] == "nvml"
    no_cuda = report["cuda_note"] == "libcuda.so.1 does not load"
    assert no_cuda == (not gather.loads("libcuda.so.1"))
