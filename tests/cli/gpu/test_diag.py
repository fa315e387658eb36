# SPDX-License-Identifier: BSD-3-Clause
"""tokd-diag on prepared machines, on broken ones, and on this one."""

import contextlib
import ctypes
import io
import json
import os
import random
import re
import socket
import subprocess
from ipaddress import IPv6Address
from pathlib import Path

import diag_machines as lab
import pytest
from dpdk_tokd.ops.diag import gids
from dpdk_tokd.ops.diag.__main__ import main
from dpdk_tokd.ops.diag.machine import Gid

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TOKD_BUILD", REPOSITORY / "build"))
TOOL = REPOSITORY / "tools/tokd-diag"


def run(*options: object) -> subprocess.CompletedProcess[str]:
    """The program, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(option) for option in options])
        except SystemExit as done:  # of argparse
            code = done.code
    return subprocess.CompletedProcess(options, code, out.getvalue(), err.getvalue())


def run_tool(*options: object) -> subprocess.CompletedProcess[str]:
    """The program as a user starts it."""
    return subprocess.run(
        [TOOL, *map(str, options)], capture_output=True, text=True, timeout=120, check=False
    )


def look(machine: lab.Machine, *options: object) -> dict:
    """The report, which must be the same in its verdict as the exit code."""
    done = run("--root", machine.root, "--json", *options)
    report = json.loads(done.stdout)
    assert done.stderr == ""
    assert done.returncode == (0 if report["good"] else 1)
    text = run("--root", machine.root, *options)
    assert text.returncode == done.returncode
    assert f"-> {report['taken']}:" in text.stdout
    return report


def path_of(report: dict, name: str) -> dict:
    return next(p for p in report["paths"] if p["path"] == name)


def against(report: dict, name: str) -> list[str]:
    """What stands against a path, by its things."""
    return [reason["thing"] for reason in path_of(report, name)["against"]]


def findings(report: dict, problems: bool) -> dict[str, dict]:
    return {f["thing"]: f for f in report["findings"] if f["problem"] == problems}


# ---- prepared machines


def test_bluefield_takes_the_roce_v2_address_of_its_active_port(tmp_path: Path) -> None:
    report = look(lab.bluefield(tmp_path))
    assert report["chosen"] | {"why": ""} == {
        "device": "mlx5_0",
        "port": 1,
        "gid": 3,
        "why": "",
    }
    assert "RoCE v2 of an IPv4 address" in report["chosen"]["why"]
    assert (report["role"], report["taken"], report["good"]) == ("producer", "verbs", True)
    assert "mlx5_1 port 1" in findings(report, problems=False)  # down, but not needed
    assert findings(report, problems=True) == {}
    device = report["rdma"][0]
    assert (device["firmware"], device["model"]) == ("32.39.1002", "MT41692")
    assert device["pci"]["address"] == "0000:03:00.0"
    assert device["pci"]["driver"] == "mlx5_core"
    port = device["ports"][0]
    assert (port["state"], port["link_layer"]) == ("ACTIVE", "Ethernet")
    assert (port["mtu"], port["mtu_from"]) == (4096, "netdev")


def test_gid_table_has_types_scopes_and_netdevs_without_empty_places(tmp_path: Path) -> None:
    gids = look(lab.bluefield(tmp_path))["rdma"][0]["ports"][0]["gids"]
    assert [(g["index"], g["type"], g["scope"], g["netdev"]) for g in gids] == [
        (0, "RoCE v1", "link-local", "p0"),
        (1, "RoCE v2", "link-local", "p0"),
        (2, "RoCE v1", "IPv4", "p0"),
        (3, "RoCE v2", "IPv4", "p0"),
    ]
    assert gids[3]["gid"] == "::ffff:192.0.2.1"


@pytest.mark.parametrize(("want", "code"), [("verbs", 0), ("cuda", 1), ("shm", 0)])
def test_want_answers_for_bluefield(tmp_path: Path, want: str, code: int) -> None:
    assert run("--root", lab.bluefield(tmp_path).root, "--want", want).returncode == code


def test_host_with_two_nics_and_a_gpu_takes_dmabuf_and_names_the_nearer_nic(
    tmp_path: Path,
) -> None:
    report = look(lab.host(tmp_path))
    assert (report["role"], report["taken"], report["good"]) == (
        "agent",
        "verbs with dma-buf",
        True,
    )
    assert report["chosen"]["device"] == "mlx5_0"  # the first that is as good
    (gpu,) = report["gpus"]
    assert (gpu["name"], gpu["bar1"]) == ("NVIDIA H100 PCIe", 128 * lab.GIB)
    assert gpu["to"] == {"mlx5_0": "two NUMA nodes", "mlx5_1": "the same PCIe switch"}
    notes = findings(report, problems=False)
    assert "nearer" in notes["mlx5_1"]["value"]
    assert "--rdma-device" in notes["mlx5_1"]["remedy"]
    assert "two NUMA nodes" in notes["mlx5_0 and 0000:19:00.0"]["value"]
    assert path_of(report, "cuda with dma-buf")["works"] == "not known"  # CUDA not asked


def test_each_gpu_is_judged_and_has_its_path(tmp_path: Path) -> None:
    machine = lab.host(tmp_path)
    machine.gpu("pci0000:97/0000:97:03.0/0000:9a:00.0", bar1=16 << 20, model="NVIDIA T4")
    machine.gpu("pci0000:97/0000:97:05.0/0000:9c:00.0")
    report = look(machine)
    taken = {gpu["pci"]["address"]: gpu["taken"] for gpu in report["gpus"]}
    assert taken == {
        "0000:19:00.0": "verbs with dma-buf",
        "0000:9a:00.0": "verbs with --ring host",
        "0000:9c:00.0": "verbs with dma-buf",
    }
    assert report["taken"] == "verbs with dma-buf"
    small = next(gpu for gpu in report["gpus"] if gpu["name"] == "NVIDIA T4")
    against = small["paths"][0]["against"]
    assert [a["thing"] for a in against] == ["BAR1"] and "NVIDIA T4" in against[0]["value"]
    notes = findings(report, problems=False)
    assert "the GPU at 0000:9a:00.0" in notes["GPUDirect RDMA"]["value"]
    text = run("--root", machine.root).stdout
    assert text.count("\nPaths for tokd-gpu (there is a GPU here), NVIDIA") == 3
    assert "NVIDIA T4 at 0000:9a:00.0, best first" in text
    assert run("--root", machine.root, "--want", "verbs").returncode == 0


def test_the_best_of_the_gpus_stands_for_all(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.modules("nvidia")
    machine.nic("mlx5_0", f"{lab.SWITCH}/0000:18:00.0", "eth0", [(lab.IPV4, lab.V2)])
    machine.gpu("pci0000:97/0000:97:03.0/0000:10:00.0", bar1=16 << 20, model="NVIDIA T4")
    machine.gpu("pci0000:97/0000:97:05.0/0000:20:00.0")
    report = look(machine)
    assert [gpu["taken"] for gpu in report["gpus"]] == [
        "verbs with --ring host",
        "verbs with dma-buf",
    ]
    assert report["taken"] == "verbs with dma-buf"
    assert path_of(report, "verbs with dma-buf")["works"] is not False


def test_acs_on_the_switch_between_nic_and_gpu_is_named(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.modules("nvidia")
    machine.nic("mlx5_0", f"{lab.SWITCH}/0000:18:00.0", "eth0", [(lab.IPV4, lab.V2)])
    port = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0"
    machine.gpu(f"{port}/0000:19:00.0")
    thing = "mlx5_0 and 0000:19:00.0"
    machine.bridge(port, acs_control=0x11)  # neither of the redirects
    assert thing not in findings(look(machine), problems=False)
    machine.bridge(port, acs_control=0x1D)
    note = findings(look(machine), problems=False)[thing]
    assert "0000:17:01.0" in note["value"] and "ACS" in note["remedy"]


def test_translating_iommu_is_named(tmp_path: Path) -> None:
    machine = lab.host(tmp_path)
    machine.write("/sys/kernel/iommu_groups/7/type", "DMA-FQ")
    machine.link(
        "/sys/bus/pci/devices/0000:98:00.0/iommu_group".replace(
            "bus/pci/devices", "devices/pci0000:97/0000:97:01.0"
        ),
        "/sys/kernel/iommu_groups/7",
    )
    report = look(machine)
    assert report["rdma"][0]["pci"]["iommu_group"] == "7"
    notes = [f["value"] for f in report["findings"]]
    assert any("DMA-FQ" in value for value in notes)


def test_closed_driver_has_no_dmabuf_and_peer_memory_is_taken(tmp_path: Path) -> None:
    report = look(lab.host(tmp_path, version=lab.CLOSED))
    assert report["taken"] == "verbs with peer memory"
    (reason,) = path_of(report, "verbs with dma-buf")["against"]
    assert "535.183.01" in reason["value"] and "open kernel modules" in reason["remedy"]


def test_old_kernel_has_no_dmabuf(tmp_path: Path) -> None:
    machine = lab.host(tmp_path)
    for kernel, wanted in (("5.11.22", ["dma-buf"]), ("5.12.0", []), ("4.18.0-553", ["dma-buf"])):
        machine.write("/proc/sys/kernel/osrelease", kernel)
        assert against(look(machine), "verbs with dma-buf") == wanted, kernel


def test_neither_dmabuf_nor_peer_memory_is_a_problem(tmp_path: Path) -> None:
    machine = lab.host(tmp_path, version=lab.CLOSED)
    machine.modules("mlx5_ib", "nvidia", "gdrdrv")
    machine.write("/dev/gdrdrv", "")
    report = look(machine)
    assert report["taken"] == "verbs with --ring host"
    assert report["system"]["gdrdrv"] and report["system"]["gdrdrv_node"]
    assert "--ring host" in findings(report, problems=True)["GPUDirect RDMA"]["remedy"]
    assert not report["good"]
    assert look(machine, "--want", "verbs")["good"]
    assert not look(machine, "--want", "cuda")["good"]
    assert look(machine, "--want", "verbs", "--role", "producer")["good"]


def test_a_ring_in_the_hosts_memory_needs_locked_memory_and_the_gpus_driver(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.nic("mlx5_0", f"{lab.SWITCH}/0000:18:00.0", "eth0", [(lab.IPV4, lab.V2)])
    machine.pci("pci0000:00/0000:01:00.0", (0x10DE, 0x2331), 0x030200, "vfio-pci")
    machine.locked("8388608", capable=False)
    report = look(machine)
    assert against(report, "verbs with --ring host") == ["locked memory", "GPU driver"]
    assert report["taken"] == "shm"


def test_an_agent_without_a_gpu_has_the_hosts_memory_alone(tmp_path: Path) -> None:
    machine = lab.bluefield(tmp_path)
    machine.modules("mlx5_ib", "mlx5_core", "nvidia")
    machine.write("/proc/driver/nvidia/version", lab.OPEN)
    report = look(machine, "--role", "agent")
    assert report["gpus"] == []
    assert (report["taken"], report["good"]) == ("verbs into host memory", True)
    assert "verbs with --ring host" not in [p["path"] for p in report["paths"]]
    machine.locked("8388608", capable=False)  # with the driver, and no GPU: nothing to write to
    report = look(machine, "--role", "agent")
    assert (report["taken"], list(findings(report, problems=True))) == ("shm", ["locked memory"])


def test_a_producer_beside_a_gpu_is_not_judged_by_how_its_nic_reaches_that(tmp_path: Path) -> None:
    machine = lab.host(tmp_path, version=lab.CLOSED)
    machine.modules("mlx5_ib", "mlx5_core", "nvidia")  # no dma-buf, no peer memory
    assert "GPUDirect RDMA" in findings(look(machine), problems=True)
    report = look(machine, "--role", "producer")
    assert (report["taken"], report["good"]) == ("verbs", True)
    assert findings(report, problems=True) == {}
    machine.locked("8388608", capable=False)  # against both paths that are first for a producer
    problems = findings(look(machine, "--role", "producer"), problems=True)
    assert list(problems) == ["locked memory"]


def test_gpu_without_its_driver_is_a_problem(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.pci("pci0000:00/0000:01:00.0", (0x10DE, 0x2331), 0x030200, "vfio-pci")
    report = look(machine)
    assert "NVIDIA 10de:2331" in findings(report, problems=True)
    assert report["taken"] == "shm"
    assert "GPU driver" in against(report, "cuda with dma-buf")


def test_link_down_is_a_problem_with_the_port_in_it(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.nic("mlx5_0", "pci0000:00/0000:03:00.0", "p0", [(lab.IPV4, lab.V2)], state="1: DOWN")
    report = look(machine)
    assert report["chosen"]["device"] is None
    assert "no port of an RDMA device is active" in report["chosen"]["why"]
    problem = findings(report, problems=True)["mlx5_0 port 1"]
    assert "DOWN" in problem["value"] and "cable" in problem["remedy"]
    assert report["taken"] == "shm"
    assert run("--root", tmp_path, "--want", "verbs").returncode == 1


def test_roce_v1_alone_is_the_last_resort_and_a_problem(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    gids = [(lab.LINK_LOCAL, lab.V1), (lab.IPV4, lab.V1)]
    machine.nic("mlx4_0", "pci0000:00/0000:03:00.0", "p0", gids)
    report = look(machine)
    assert report["chosen"]["gid"] == 0
    assert "RoCE v1" in findings(report, problems=True)["mlx4_0"]["value"]
    assert look(machine, "--want", "verbs")["good"]


@pytest.mark.parametrize(
    ("gids", "wanted"),
    [
        ([(lab.LINK_LOCAL, lab.V1), (lab.LINK_LOCAL, lab.V2)], 1),
        ([(lab.LINK_LOCAL, lab.V2), (lab.IPV6, lab.V2)], 1),
        ([(lab.IPV6, lab.V2), (lab.IPV4, lab.V1), (lab.IPV4, lab.V2)], 2),
        ([(lab.IPV4, lab.V2), (lab.IPV4, lab.V2)], 0),
        ([(lab.ZERO, "")], None),
    ],
)
def test_the_best_gid_is_chosen(
    tmp_path: Path, gids: list[tuple[str, str]], wanted: int | None
) -> None:
    machine = lab.Machine(tmp_path)
    machine.nic("mlx5_0", "pci0000:00/0000:03:00.0", "p0", gids)
    assert look(machine)["chosen"].get("gid") == wanted


ADDRESSES = ("fe80::1", "febf::1", "fec0::1", "2001:db8::1", "::ffff:192.0.2.1", "::192.0.2.1")


def test_gids_are_ranked_as_the_transport_ranks_them(tmp_path: Path) -> None:
    """The same table of cases to this rule and to the one in C, compiled here."""
    source = REPOSITORY / "lib/gpu_sink/transport/verbs_rank.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "rank.so", source], check=True)
    in_c = ctypes.CDLL(str(tmp_path / "rank.so")).tokg_gid_rank
    for number, kind in enumerate(gids.TYPES):
        for index in (0, 1, 255):
            for text in ADDRESSES:
                raw = socket.inet_pton(socket.AF_INET6, text)
                gid = Gid(index, text, kind, gids.scope(IPv6Address(raw)))
                rank = in_c(number, ctypes.c_uint32(index), raw)
                assert gids.rank(gid) == rank, (kind, index, text)


def test_infiniband_is_chosen_by_its_first_gid(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    gids = [(lab.LINK_LOCAL, lab.V1)] * 2  # what sysfs calls InfiniBand's as well
    machine.nic(
        "mlx5_0", "pci0000:00/0000:03:00.0", "ib0", gids, link="InfiniBand", lid=7, mtu=2044
    )
    report = look(machine)
    assert (report["chosen"]["gid"], report["chosen"]["device"]) == (0, "mlx5_0")
    port = report["rdma"][0]["ports"][0]
    assert (port["lid"], port["gids"][0]["type"]) == (7, "InfiniBand")


def test_iwarp_is_not_chosen(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.nic("irdma0", "pci0000:00/0000:03:00.0", "p0", [(lab.IPV4, lab.V2)])
    machine.write("/sys/class/infiniband/irdma0/node_type", "4: RNIC")
    report = look(machine)
    assert report["chosen"]["device"] is None
    assert "iWARP" in findings(report, problems=True)["irdma0"]["value"]


def test_small_mtu_is_named_with_the_netdevs_mtu_that_it_takes(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.nic("mlx5_0", "pci0000:00/0000:03:00.0", "p0", [(lab.IPV4, lab.V2)], mtu=1500)
    report = look(machine)
    assert report["rdma"][0]["ports"][0]["mtu"] == 1024
    assert "4200" in findings(report, problems=False)["mlx5_0"]["remedy"]


def test_tiny_bar1_stands_against_all_but_a_ring_in_the_hosts_memory(tmp_path: Path) -> None:
    machine = lab.host(tmp_path, bar1=32 << 20)
    report = look(machine)
    for path in ("verbs with dma-buf", "verbs with peer memory", "cuda with dma-buf"):
        (reason,) = path_of(report, path)["against"]
        assert "32 MiB" in reason["value"] and "64 MiB" in reason["value"]
        assert "slots" in reason["remedy"]
    assert against(report, "verbs with --ring host") == against(report, "shm") == []
    assert report["taken"] == "verbs with --ring host"
    assert not report["good"]
    assert look(machine, "--region", "16M")["taken"] == "verbs with dma-buf"


def test_locked_memory_limit_stands_against_verbs(tmp_path: Path) -> None:
    machine = lab.bluefield(tmp_path)
    machine.locked("8388608", capable=False)
    report = look(machine)
    (reason,) = path_of(report, "verbs")["against"]
    assert "8 MiB" in reason["value"] and "16 MiB" in reason["value"]
    assert "LimitMEMLOCK" in reason["remedy"]
    assert "locked memory" in findings(report, problems=True)
    assert run("--root", tmp_path, "--want", "verbs").returncode == 1
    assert look(machine, "--ring", "4M")["good"]
    machine.locked("8388608", capable=True)
    assert look(machine)["good"]


def test_huge_pages_per_node_and_where_they_are_mounted(tmp_path: Path) -> None:
    machine = lab.bluefield(tmp_path)
    machine.huge_pages(1, 64)
    system = look(machine)["system"]
    assert [(h["node"], h["kb"], h["total"]) for h in system["huge_pages"]] == [
        (0, 2048, 512),
        (1, 2048, 64),
    ]
    assert system["hugetlbfs"] == ["/dev/hugepages"]
    machine.write("/proc/mounts", "")
    assert "hugetlbfs" in findings(look(machine), problems=False)
    machine.huge_pages(0, 0)
    machine.huge_pages(1, 0)
    assert "huge pages" in findings(look(machine), problems=False)


def test_empty_machine_has_shm(tmp_path: Path) -> None:
    done = run("--root", tmp_path, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["taken"]) == (0, "shm")


# ---- contents that nobody should have written

NASTY = [
    b"",
    b"\n",
    b"\xff\xfe\x00\x01" * 40,
    b"%s%n" * 50,
    b"A" * 100_000,
    b"-1",
    b"0x",
    b"99999999999999999999999999",
    b"../../../../etc/passwd",
    b"::ffff:c000:0201",
    bytes(range(256)) * 20,
]


def spoil(machine: lab.Machine, rng: random.Random) -> None:
    """A few files of the machine become something else."""
    files = sorted(p for p in machine.root.rglob("*") if not p.is_symlink() and p.is_file())
    for file in rng.sample(files, k=min(6, len(files))):
        kind = rng.randrange(6)
        file.unlink()
        if kind == 0:
            continue
        if kind == 1:
            file.mkdir()
        elif kind == 2:
            os.mkfifo(file)
        elif kind == 3:
            file.symlink_to(file.name)  # a circle
        else:
            file.write_bytes(rng.choice(NASTY))


@pytest.mark.parametrize("seed", range(int(os.environ.get("TOKD_DIAG_SEEDS", "20"))))
def test_broken_contents_never_crash_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    machine = rng.choice([lab.bluefield, lab.host])(tmp_path)
    machine.bridge(f"{lab.SWITCH}/x", 0)
    spoil(machine, rng)
    done = run("--root", tmp_path, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["taken"]


def test_configuration_space_that_is_a_circle_or_cut_ends(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    machine.modules("nvidia")
    machine.nic("mlx5_0", f"{lab.SWITCH}/0000:18:00.0", "eth0", [(lab.IPV4, lab.V2)])
    port = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0"
    machine.gpu(f"{port}/0000:19:00.0")
    circle = (0x100 << 20 | 0x10001).to_bytes(4, "little")
    for config in (
        bytes(256) + circle + bytes(3836),
        bytes(256) + circle,
        bytes(256) + b"\xff" * 3840,
        b"\xff" * 5000,
        bytes(255),
    ):
        machine.write(f"/sys/devices/{port}/config", config)
        look(machine)


def test_names_and_links_that_leave_the_root_or_cannot_be_shown(tmp_path: Path) -> None:
    machine = lab.bluefield(tmp_path / "machine")
    folder = machine.root / "sys/class/infiniband"
    os.mkdir(os.fsencode(folder) + b"/mlx5_\xff\n")
    (folder / "mlx5_9").mkdir()
    outside = tmp_path / "outside"  # as long as the root
    (outside / "sys/devices/pci0000:00/0000:03:00.0").mkdir(parents=True)
    (folder / "mlx5_9/device").symlink_to(outside / "sys/devices/pci0000:00/0000:03:00.0")
    (folder / ("x" * 200)).mkdir()
    machine.write("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3", "../../../../etc")
    report = look(machine)
    assert [d["name"] for d in report["rdma"]] == ["mlx5_0", "mlx5_1", "mlx5_9"]
    assert report["rdma"][2]["pci"] is None


def test_more_devices_ports_and_gids_than_are_looked_at_are_counted(tmp_path: Path) -> None:
    machine = lab.Machine(tmp_path)
    gids = [(lab.LINK_LOCAL, lab.V1)] * 299 + [(lab.IPV4, lab.V2)]
    machine.nic("mlx5_0", "pci0000:00/0000:03:00.0", "p0", gids)
    for i in range(1, 40):
        machine.write(f"/sys/class/infiniband/mlx5_{i}/fw_ver", "1")
    for i in range(2, 30):
        machine.write(f"/sys/class/infiniband/mlx5_0/ports/{i}/state", "1: DOWN")
    report = look(machine)
    assert len(report["rdma"]) == 32
    assert "8 more devices" in findings(report, problems=False)["RDMA"]["value"]
    assert any("13 more ports" in f["value"] for f in report["findings"])


# ---- this machine


def has_rdma() -> bool:
    folder = Path("/sys/class/infiniband")
    return folder.is_dir() and any(folder.iterdir())


def test_this_machine_without_a_device_says_so_and_what_would_give_one() -> None:
    if has_rdma():
        pytest.skip("there is an RDMA device here")
    text = run_tool("--want", "verbs")
    assert (text.returncode, text.stderr) == (1, "")
    assert "RDMA devices\n  none. A NIC with RDMA" in text.stdout
    assert "rdma link add rxe0 type rxe" in text.stdout
    assert run_tool("--want", "shm").returncode == 0
    report = json.loads(run_tool("--json").stdout)
    assert (report["rdma"], report["chosen"]["device"]) == ([], None)


def test_a_module_of_its_name_where_it_is_started_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "diag.py").write_text("raise SystemExit('not this')")
    subprocess.run([TOOL, "--version"], cwd=tmp_path, capture_output=True, check=True)


def test_json_goes_nowhere_when_standard_output_is_full() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [TOOL, "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "tokd-diag: standard output: No space left on device\n"


# ---- options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--want", "rdma"], "'verbs', 'cuda', 'shm'"),
        (["--role", "host"], "'producer', 'agent'"),
        (["--ring", "0"], "1 to 1024G"),
        (["--ring", "16MB"], "1 to 1024G"),
        (["--region", "2000G"], "1 to 1024G"),
        (["--root", "/nonexistent"], "No such file"),
        (["--root", "/etc/passwd"], "Not a directory"),
        (["word"], "word: not an option"),
        (["--drivers"], "name the programs"),
        (["--drivers", "--want", "shm", "/bin/true"], "one of them"),
    ],
)
def test_wrong_options_are_one_line_and_2(options: list[str], words: str) -> None:
    done = run(*options)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_version_is_the_same_with_and_without_the_package() -> None:
    assert re.fullmatch(r"tokd-diag \d+\.\d+\.\d+\n", run("--version").stdout)
    assert run_tool("--version").stdout == run("--version").stdout


# ---- drivers


def drivers(*files: object, root: Path | None = None) -> tuple[int, dict, str]:
    prefix = ["--root", root] if root else []
    done = run("--drivers", "--json", *prefix, *files)
    return done.returncode, json.loads(done.stdout)["files"], done.stderr


def shared_driver(name: str) -> Path:
    found = sorted(Path("/usr/lib").glob(f"*/dpdk/pmds-*/librte_{name}.so*"))
    if not found:
        pytest.skip(f"librte_{name} is not installed")
    return found[0]


def test_drivers_of_a_shared_library_and_the_devices_they_claim(tmp_path: Path) -> None:
    machine = lab.bluefield(tmp_path)
    library = shared_driver("net_mlx5")
    code, files, _ = drivers(library, root=machine.root)
    assert code == 0
    own = [d for d in files[str(library)] if d["how"] == "in it"]
    claimed = {device["address"] for d in own for device in d["devices"]}
    assert claimed <= {"0000:03:00.0", "0000:03:00.1"}
    by_name = {d["name"]: d for d in files[str(library)]}
    mlx5 = by_name.get("mlx5_pci") or by_name["mlx5_eth"]
    assert [d["address"] for d in mlx5["devices"]] == ["0000:03:00.0", "0000:03:00.1"]
    assert mlx5["devices"][0]["driver"] == "mlx5_core"
    assert "mlx5_core" in mlx5["kmod"]


def test_drivers_of_a_program_with_a_shared_eal_are_its_plug_ins() -> None:
    program = BUILD / "app/dpdk-tokd"
    if not program.is_file():
        pytest.skip(f"{program} is not built")
    code, files, _ = drivers(program)
    found = {d["name"]: d["how"] for d in files[str(program)]}
    assert code == 0
    assert "net_null" in found and "net_virtio" in found
    assert set(found.values()) <= {"in it", "linked", "plug-in"}


INFO = (
    'PMD_INFO_STRING= {"name" : "net_own", "kmod" : " vfio-pci", '
    '"pci_ids" : [[5555, 41692, 65535, 65535]]}'
)


def compiled(tmp_path: Path, text: str, *options: str) -> Path:
    source, program = tmp_path / "own.c", tmp_path / "own"
    literal = json.dumps(text)
    source.write_text(
        f"const char info[] __attribute__((used)) = {literal};\n"
        "int main(void) { return info[0] == 0; }\n"
    )
    subprocess.run(["cc", *options, "-o", program, source], check=True)
    return program


@pytest.mark.parametrize("options", [[], ["-static"], ["-static", "-s"]], ids=str)
def test_drivers_linked_into_a_program(tmp_path: Path, options: list[str]) -> None:
    machine = lab.bluefield(tmp_path / "machine")
    program = compiled(tmp_path, INFO, *options)
    code, files, _ = drivers(program, root=machine.root)
    (own,) = files[str(program)]
    assert code == 0
    assert (own["name"], own["how"], own["kmod"]) == ("net_own", "in it", "vfio-pci")
    assert own["pci_ids"] == [{"vendor": "15b3", "device": "a2dc"}]
    assert [d["address"] for d in own["devices"]] == ["0000:03:00.0", "0000:03:00.1"]
    text = run("--drivers", "--root", machine.root, program).stdout
    assert "net_own: 1 PCI ids; kernel modules: vfio-pci" in text
    assert "claims 0000:03:00.0, bound to mlx5_core" in text


@pytest.mark.parametrize(
    "text",
    [
        "PMD_INFO_STRING= {",
        "PMD_INFO_STRING= {}",
        'PMD_INFO_STRING= {"name": 5}',
        'PMD_INFO_STRING= {"name": "x", "pci_ids": 7}',
        'PMD_INFO_STRING= {"name": "x", "pci_ids": [[1, 2]]}',
        'PMD_INFO_STRING= {"name": "x", "pci_ids": [["a", 2, 3, 4]]}',
        "PMD_INFO_STRING= {" + "[" * 20000 + "}",
    ],
    ids=range(7),
)
def test_driver_strings_that_are_none_are_passed_over(tmp_path: Path, text: str) -> None:
    code, files, message = drivers(compiled(tmp_path, text))
    assert code == 1
    assert list(files.values()) == [[]]
    assert "no DPDK driver in it" in message


def test_files_that_are_no_programs_are_one_line_and_the_others_are_read(tmp_path: Path) -> None:
    program = compiled(tmp_path, INFO)
    whole = program.read_bytes()
    rng = random.Random(1)
    bad = []
    for i in range(40):
        data = bytearray(whole[: rng.choice([len(whole), 64, 200, 1000])])
        for _ in range(20):
            data[rng.randrange(min(len(data), 600))] = rng.randrange(256)
        bad.append(tmp_path / f"bad{i}")
        bad[-1].write_bytes(data)
    bad += [tmp_path / "text", tmp_path / "missing", tmp_path, tmp_path / "pipe"]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("no program")
    code, files, message = drivers(*bad, program)
    assert code == 1
    assert [d["name"] for d in files[str(program)]] == ["net_own"]
    assert "Traceback" not in message
    for file in ("text", "missing"):
        assert len(re.findall(rf"/{file}: not an ELF", message)) == 1
