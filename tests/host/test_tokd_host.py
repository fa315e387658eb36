# SPDX-License-Identifier: BSD-3-Clause
"""config/tokd-host on prepared roots: what it writes, that it does so once, that revert restores every byte."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import roots

PROGRAM = Path(__file__).parents[2] / "config/tokd-host"
sys.path.insert(0, str(PROGRAM.parent))
from grub import stage as boot  # noqa: E402
from host.plan import make  # noqa: E402
from host.report import Refusal  # noqa: E402
from host.revert import revert  # noqa: E402
from host.root import Root  # noqa: E402
from hugepages import doca  # noqa: E402

ASK = ("--cores", "1-4", "--hugepages", "8x1G")
DROP_IN = "etc/default/grub.d/zz-dpdk-tokd.cfg"
WORDS = (
    "isolcpus=managed_irq,domain,1-4 nohz_full=1-4 rcu_nocbs=1-4 irqaffinity=0,5-7 "
    "default_hugepagesz=1G hugepagesz=1G hugepages=8"
)


def host(root: Path, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PROGRAM, *args, "--root", root], capture_output=True, text=True, check=False, timeout=60
    )


def good(root: Path, *args: str) -> str:
    done = host(root, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(root: Path, *args: str) -> str:
    done = host(root, *args)
    assert done.returncode == 2, done.stdout
    return done.stderr


def command_line(root: Path) -> str:
    """What grub-mkconfig makes of the settings: it sources them in this order."""
    script = f'for f in {root}/etc/default/grub {root}/etc/default/grub.d/*.cfg; do [ ! -e "$f" ] || . "$f"; done\n'
    script += 'echo "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"'
    done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


class Live(Root):
    """A prepared root; those programs that it has are run, by chroot, as this machine's are."""

    def run(self, name: str, *args: str, in_root: bool = False) -> bool:
        return super().run(name, *args, in_root=bool(self.program(name)))


@pytest.fixture
def chroot():
    if not os.access("/bin/busybox", os.X_OK) or os.geteuid() != 0:
        pytest.skip("needs root and /bin/busybox: programs of a prepared root are run by chroot")


@pytest.fixture(params=roots.ALL)
def machine(request, tmp_path):
    if request.param == "rhel":
        if not os.access("/bin/busybox", os.X_OK):
            pytest.skip("/bin/busybox is missing: the prepared RHEL's grubby needs a static shell")
        if os.geteuid() != 0:
            pytest.skip("not root: grubby is run by chroot")
    roots.ALL[request.param](tmp_path)
    return tmp_path


def test_apply_twice_changes_nothing_the_second_time(machine):
    good(machine, "apply", *ASK)
    once = roots.snapshot(machine)
    assert "nothing to change" in good(machine, "apply", *ASK)
    assert roots.snapshot(machine) == once


def test_revert_restores_every_byte(machine):
    before = roots.snapshot(machine)
    good(machine, "apply", *ASK)
    assert roots.snapshot(machine) != before
    good(machine, "revert")
    assert roots.snapshot(machine) == before


def test_revert_goes_behind_several_applies(machine):
    before = roots.snapshot(machine)
    good(machine, "apply", *ASK)
    good(machine, "apply", "--cores", "2-3", "--hugepages", "4x1G")
    good(machine, "revert")
    assert roots.snapshot(machine) == before


def test_a_dry_run_writes_nothing_and_prints_what_it_would(machine):
    before = roots.snapshot(machine)
    said = good(machine, "apply", *ASK, "--dry-run")
    assert roots.snapshot(machine) == before
    assert "/etc/dpdk-tokd/host.conf" in said


def test_every_write_is_printed(machine):
    before = roots.snapshot(machine)
    said = good(machine, "apply", *ASK)
    after = roots.snapshot(machine)
    changed = [n for n, what in after.items() if before.get(n) != what and what[0] != "folder"]
    own = [n for n in changed if not n.startswith(("var/lib/dpdk-tokd", "boot/loader"))]
    assert own
    assert [n for n in own if f" /{n}" not in said] == []


def test_debian_gets_a_drop_in_and_its_main_file_stays(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    assert (tmp_path / "etc/default/grub").read_text() == roots.GRUB
    assert command_line(tmp_path) == WORDS + " quiet"


def test_grub_is_asked_again_where_its_own_file_lost_a_word(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    entry = "menuentry 'Debian' {\n\tlinux /vmlinuz root=/dev/vda1 ro quiet "
    roots.put(tmp_path, "/boot/grub/grub.cfg", f"{entry}{WORDS}\n}}\n")
    assert "grub-mkconfig" not in good(tmp_path, "apply", *ASK)
    roots.put(tmp_path, "/boot/grub/grub.cfg", f"{entry}{WORDS.replace('nohz_full=1-4 ', '')}\n}}\n")
    assert "grub-mkconfig" in good(tmp_path, "apply", *ASK)


def test_words_that_others_set_are_replaced_and_all_else_is_kept(tmp_path):
    roots.hand_edited(tmp_path)
    good(tmp_path, "apply", *ASK)
    assert command_line(tmp_path) == (
        "console=ttyS0,115200 intel_iommu=on iommu=pt rootflags=subvol=@* " + WORDS + " quiet splash"
    )


def test_cores_alone_leave_huge_pages_as_they_are(tmp_path):
    roots.hand_edited(tmp_path)
    good(tmp_path, "apply", "--cores", "1")
    line = command_line(tmp_path)
    assert "hugepages=1024" in line and "default_hugepagesz=2M" in line
    assert line.count("isolcpus=") == 1


def test_ubuntu_cloud_image_settings_stay(tmp_path):
    roots.ubuntu(tmp_path)
    good(tmp_path, "apply", "--cores", "1-3,9-11")
    assert command_line(tmp_path).startswith("isolcpus=managed_irq,domain,1-3,9-11 ")
    assert command_line(tmp_path).endswith(" console=tty1 console=ttyS0")
    assert 'IRQBALANCE_BANNED_CPULIST="1-3,9-11"' in (tmp_path / "etc/default/irqbalance").read_text()


def test_rhel_entries_are_changed_by_its_own_grubby(tmp_path, chroot):
    roots.rhel(tmp_path)
    good(tmp_path, "apply", *ASK)
    for entry in (tmp_path / "boot/loader/entries").iterdir():
        (options,) = [x for x in entry.read_text().splitlines() if x.startswith("options ")]
        assert options.endswith("rhgb quiet " + WORDS)
        assert "isolcpus=5" not in options
    assert not (tmp_path / DROP_IN).exists()


def test_bluefield_asks_doca_hugepages_and_writes_no_count(tmp_path):
    roots.bluefield(tmp_path)
    said = good(tmp_path, "apply", "--cores", "4-15", "--hugepages", "512x2M")
    assert "doca-hugepages config --app dpdk-tokd --size 2048 --num 512" in said
    assert "hugepages=" not in command_line(tmp_path)
    count = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    assert count.read_text() == "0\n"


def asked_of_doca(root: Path) -> list[str]:
    log = (root / "doca-hugepages.log").read_text().splitlines()
    return [line for line in log if line != "show"]


def test_doca_hugepages_is_asked_once_and_told_on_revert(tmp_path, chroot):
    roots.doca(tmp_path)
    database, count = tmp_path / "etc/doca-hugepages.db", "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    for _ in range(2):
        doca.apply(Live(str(tmp_path)), make("", "512x2M", "", False))
    assert asked_of_doca(tmp_path) == ["config --app dpdk-tokd --size 2048 --num 512 --force", "reload"]
    assert (tmp_path / count).read_text() == "612\n"
    doca.apply(Live(str(tmp_path)), make("", "256x2M", "", False))  # it is there: --force, or it asks
    assert database.read_text() == "other 2048 100\ndpdk-tokd 2048 256\n"
    assert (tmp_path / count).read_text() == "356\n"
    revert(Live(str(tmp_path)))
    assert database.read_text() == "other 2048 100\n"
    assert (tmp_path / count).read_text() == "100\n"


def test_pages_that_doca_hugepages_has_not_made_are_asked_for_again(tmp_path, chroot):
    roots.doca(tmp_path)
    doca.apply(Live(str(tmp_path)), make("", "512x2M", "", False))
    roots.put(tmp_path, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n")
    doca.apply(Live(str(tmp_path)), make("", "512x2M", "", False))
    assert asked_of_doca(tmp_path)[2:] == ["reload"]


def test_doca_hugepages_knows_no_nodes(tmp_path):
    roots.bluefield(tmp_path)
    assert "knows no nodes; leave @0 out" in refused(tmp_path, "apply", "--hugepages", "512x2M@0")


def test_a_program_that_does_not_end_is_no_hang(tmp_path, chroot, monkeypatch):
    roots.doca(tmp_path)
    roots.put(tmp_path, "/usr/sbin/doca-hugepages", "#!/bin/busybox sh\nexec /bin/busybox sleep 60\n", 0o755)
    monkeypatch.setattr("host.root.RUN_S", 0.2)
    with pytest.raises(Refusal, match="doca-hugepages reload: not done after 0.2 s"):
        Live(str(tmp_path)).run("doca-hugepages", "reload")


@pytest.mark.parametrize(
    ("current", "then", "level", "said"),
    [
        ("ENABLED(0)", "ENABLED(0)", "ok", "is in DPU mode"),
        ("ENABLED(0)", "DISABLED(1)", "warn", "set to NIC mode from the next power cycle on"),
        ("DISABLED(1)", "DISABLED(1)", "bad", "is in NIC mode"),
        ("DISABLED(1)", "ENABLED(0)", "bad", "DPU mode is set for the next power cycle"),
    ],
)
def test_bluefield_mode_is_what_mlxconfig_says(tmp_path, chroot, current, then, level, said):
    roots.bluefield(tmp_path)
    roots.programs(tmp_path)
    default = "DISABLED(1)" if current == "ENABLED(0)" else "ENABLED(0)"
    answer = roots.MLXCONFIG.format(default=default, current=current, then=then)
    roots.put(tmp_path, "/usr/bin/mlxconfig", answer, 0o755)
    done = host(tmp_path, "check", "--cores", "4-15", "--json")
    (found,) = [f for f in json.loads(done.stdout) if "mode" in f["what"]]
    assert (found["stage"], found["level"]) == ("bluefield", level)
    assert said in found["what"]
    assert ("mlxconfig -d DEVICE set" in found["remedy"]) == (then == "DISABLED(1)")


@pytest.mark.parametrize(("mask", "clash"), [("0x3", False), ("0x13", True)])
def test_cores_that_open_vswitch_polls_on_are_no_workers(tmp_path, chroot, mask, clash):
    roots.bluefield(tmp_path)
    roots.programs(tmp_path)
    script = f"#!/bin/busybox sh\n/bin/busybox echo '\"{mask}\"'\n"
    roots.put(tmp_path, "/usr/bin/ovs-vsctl", script, 0o755)
    said = host(tmp_path, "check", "--cores", "4-15").stdout
    assert ("Open vSwitch polls on CPU 4" in said) == clash


def test_cores_stay_for_open_vswitch(tmp_path):
    roots.bluefield(tmp_path)
    assert "CPU 0 alone is left" in host(tmp_path, "check", "--cores", "1-15").stdout
    assert "alone is left" not in host(tmp_path, "check", "--cores", "2-15").stdout


def test_two_sizes_stand_in_the_order_the_kernel_reads(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", "--hugepages", "512x2M,4x1G@0,2x1G@1")
    assert command_line(tmp_path) == (
        "default_hugepagesz=1G hugepagesz=1G hugepages=0:4,1:2 hugepagesz=2M hugepages=512 quiet"
    )


def test_interrupts_and_governors(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    assert (tmp_path / "proc/irq/24/smp_affinity_list").read_text() == "0,5-7\n"
    assert (tmp_path / "proc/irq/default_smp_affinity").read_text() == "000000e1\n"
    governor = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    assert (tmp_path / governor.format(2)).read_text() == "performance\n"
    assert (tmp_path / governor.format(5)).read_text() == "schedutil\n"


def test_interrupts_that_nobody_can_move_are_no_fault(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    booted(tmp_path, WORDS)
    for irq in ("24", "25"):
        (tmp_path / f"proc/irq/{irq}/smp_affinity_list").write_text("0-7\n")
    assert "2 interrupts may be handled on isolated cores: 24, 25" in host(tmp_path, "verify").stdout
    # As apply writes it where the kernel says EIO.
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run/tokd-host-irq").write_text("25\n")
    done = host(tmp_path, "verify")
    assert done.returncode == 1
    assert "1 interrupts may be handled on isolated cores: 24" in done.stdout
    (tmp_path / "run/tokd-host-irq").write_text("24 25\n")
    assert "2 interrupts are the kernel's to place" in good(tmp_path, "verify")


def booted(root: Path, words: str, isolated: str = "1-4") -> None:
    """As the machine looks after it has booted with these words."""
    roots.put(root, "/proc/cmdline", f"BOOT_IMAGE=/vmlinuz ro quiet {words}\n")
    roots.put(root, "/sys/devices/system/cpu/isolated", isolated + "\n")
    roots.put(root, "/sys/devices/system/cpu/nohz_full", isolated + "\n")
    roots.put(root, "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "8\n")
    roots.put(root, "/proc/mounts", "none /dev/hugepages-1G hugetlbfs rw,relatime,pagesize=1G 0 0\n")


def test_verify_passes_after_the_boot(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    assert host(tmp_path, "verify").returncode == 1
    booted(tmp_path, WORDS)
    good(tmp_path, "verify")


@pytest.mark.parametrize("word", WORDS.split())
def test_verify_fails_for_each_word_that_is_missing(tmp_path, word):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    booted(tmp_path, " ".join(w for w in WORDS.split() if w != word))
    done = host(tmp_path, "verify", "--json")
    assert done.returncode == 1
    bad = [f for f in json.loads(done.stdout) if f["level"] == "bad"]
    assert any(word in f["what"] and f["reboot"] and f["remedy"] for f in bad)


def test_verify_fails_where_the_kernel_dropped_what_it_was_told(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    booted(tmp_path, WORDS, isolated="1-3")
    assert "isolated is 1-3, asked: 1-4" in host(tmp_path, "verify").stdout


def test_check_says_cost_and_remedy_of_each_finding(tmp_path):
    roots.debian(tmp_path)
    done = host(tmp_path, "check", *ASK, "--json")
    found = [f for f in json.loads(done.stdout) if f["level"] in ("warn", "bad")]
    assert done.returncode == 1 and len(found) > 10
    assert [f["what"] for f in found if not f["remedy"]] == []
    assert [f["what"] for f in found if not f["cost"] and "hugepagesz" not in f["what"]] == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--cores", "0-3"), "core 0 cannot be isolated"),
        (("--cores", "1-9"), "CPU 8-9 is not there"),
        (("--cores", "1-x"), "expected CPUs like 1-4"),
        (("--cores", "4-1"), "no range"),
        (("--hugepages", "8x3G"), "COUNTxSIZE"),
        (("--hugepages", "8x1G,4x1G@0"), "one count for each size and node"),
        (("--hugepages", "8x1G@7"), "no pages of 1G on node 7"),
        (("--hugepages", "8x16G"), "no pages of 16G"),
        (("--nic", "eth0"), "no PCI address"),
        (("--nic", "0000:99:00.0"), "no such device"),
        ((), "nothing is asked"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(tmp_path, args, said):
    roots.debian(tmp_path)
    before = roots.snapshot(tmp_path)
    assert said in refused(tmp_path, "apply", *args)
    good(tmp_path, "revert")
    assert roots.snapshot(tmp_path) == before


def test_siblings_and_too_few_cores_are_warned_of(tmp_path):
    roots.ubuntu(tmp_path)
    said = host(tmp_path, "check", "--cores", "1-7").stdout
    assert "CPU 1 shares its core with CPU 9" in said
    roots.kernel(tmp_path)
    assert "0 alone is left" in host(tmp_path, "check", "--cores", "1-7").stdout


def test_a_kernel_that_drops_nohz_full_in_silence_is_named(tmp_path):
    roots.debian(tmp_path)
    roots.put(tmp_path, "/boot/config-6.1.0-test", roots.CONFIG.replace("CONFIG_NO_HZ_FULL=y", ""))
    assert "no CONFIG_NO_HZ_FULL" in host(tmp_path, "check", *ASK).stdout


def test_secure_boot_is_said(tmp_path):
    roots.debian(tmp_path)
    name = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    roots.put(tmp_path, name, "\x06\0\0\0\x01")
    assert "Secure Boot is on" in host(tmp_path, "check", *ASK).stdout


def tuned_params(root: Path) -> str:
    """What tuned adds to the command line that GRUB's settings make."""
    return (root / "etc/tuned/bootcmdline").read_text().partition('"')[2].partition('"')[0]


@pytest.mark.parametrize("profile", ["cpu-partitioning", "dpdk-tokd"])
@pytest.mark.parametrize("gives", ["nohz_full rcu_nocbs", "nohz_full"])
def test_each_word_is_given_once_under_tuned_and_verify_passes(tmp_path, chroot, profile, gives):
    conf = roots.TUNED_PROFILE
    if "rcu_nocbs" not in gives:
        conf = conf.replace("rcu_nocbs=${isolated_cores} ", "")
    roots.tuned(tmp_path, profile, conf)
    said = good(tmp_path, "apply", *ASK)
    assert f"to do tuned-adm profile {profile}" in said
    subprocess.run(["chroot", tmp_path, "/usr/sbin/tuned-adm", "profile", profile], check=True)
    line = f"{command_line(tmp_path)} {tuned_params(tmp_path)}"
    assert [line.split().count(word) for word in WORDS.split()] == [1] * len(WORDS.split())
    booted(tmp_path, line)
    good(tmp_path, "verify")
    assert "tuned-adm" not in good(tmp_path, "apply", *ASK)


def test_one_line_of_tuneds_variables_is_ours(tmp_path):
    roots.tuned(tmp_path)
    variables = tmp_path / "etc/tuned/cpu-partitioning-variables.conf"
    theirs = roots.TUNED_VARIABLES.replace("# no_balance", "no_balance")
    variables.write_text(theirs)
    good(tmp_path, "apply", *ASK)
    assert variables.read_text() == theirs.replace("${f:calc_isolated_cores:1}", "1-4")
    assert "no_balance_cores=5-10 has tuned give isolcpus a second time" in host(tmp_path, "check", *ASK).stdout


def test_tuned_is_told_once_and_again_when_its_variables_are_as_before(tmp_path, chroot):
    roots.tuned(tmp_path)
    subprocess.run(["chroot", tmp_path, "/usr/sbin/tuned-adm", "profile", "cpu-partitioning"], check=True)
    before = tuned_params(tmp_path)
    plan = make("1-4", "", "", False)
    for _ in range(2):
        boot.apply(Live(str(tmp_path)), plan)
    assert "nohz_full=1-4" in tuned_params(tmp_path)
    assert len((tmp_path / "tuned-adm.log").read_text().splitlines()) == 2
    revert(Live(str(tmp_path)))
    assert tuned_params(tmp_path) == before
    assert (tmp_path / "etc/tuned/cpu-partitioning-variables.conf").read_text() == roots.TUNED_VARIABLES


def nic(root: Path, vendor: str, driver: str, iommu: bool = True, up: bool = False) -> str:
    name = "0000:3b:00.0"
    folder = f"/sys/bus/pci/devices/{name}"
    roots.put(root, f"{folder}/vendor", vendor + "\n")
    roots.put(root, f"{folder}/driver_override", "(null)\n")
    roots.put(root, f"/sys/bus/pci/drivers/{driver}/unbind", "")
    roots.put(root, "/sys/bus/pci/drivers/vfio-pci/bind", "")
    roots.put(root, "/sys/bus/pci/drivers_probe", "")
    (root / folder[1:] / "driver").symlink_to(f"../../drivers/{driver}")
    if iommu:
        (root / folder[1:] / "iommu_group").mkdir()
    roots.put(root, f"{folder}/net/eth0/x", "")
    roots.put(root, "/sys/class/net/eth0/operstate", "up\n" if up else "down\n")
    return name


def test_a_nic_goes_to_vfio(tmp_path):
    roots.debian(tmp_path)
    name = nic(tmp_path, "0x8086", "ice")
    good(tmp_path, "apply", "--nic", name)
    folder = tmp_path / f"sys/bus/pci/devices/{name}"
    assert (folder / "driver_override").read_text() == "vfio-pci\n"
    assert (tmp_path / "sys/bus/pci/drivers/ice/unbind").read_text() == name
    assert (tmp_path / "sys/bus/pci/drivers_probe").read_text() == name


def test_mlx5_stays_on_its_kernel_driver(tmp_path):
    roots.debian(tmp_path)
    name = nic(tmp_path, "0x15b3", "mlx5_core")
    good(tmp_path, "apply", "--nic", name)
    assert (tmp_path / f"sys/bus/pci/devices/{name}/driver_override").read_text() == "(null)\n"


@pytest.mark.parametrize(
    ("how", "said"),
    [({"up": True}, "eth0 is up"), ({"iommu": False}, "--unsafe-noiommu")],
)
def test_binding_that_cuts_off_or_is_unsafe_is_refused(tmp_path, how, said):
    roots.debian(tmp_path)
    name = nic(tmp_path, "0x8086", "ice", **how)
    assert said in refused(tmp_path, "apply", "--nic", name)
    assert (tmp_path / f"sys/bus/pci/devices/{name}/driver_override").read_text() == "(null)\n"


def test_a_stage_that_fails_is_undone_and_those_before_it_stand(tmp_path):
    roots.debian(tmp_path)
    shutil.rmtree(tmp_path / "etc/security", ignore_errors=True)
    roots.put(tmp_path, "/etc/security", "a file where a folder must be")
    before = roots.snapshot(tmp_path)
    done = host(tmp_path, "apply", *ASK)
    assert done.returncode != 0
    assert (tmp_path / DROP_IN).exists()
    good(tmp_path, "revert")
    assert roots.snapshot(tmp_path) == before


def test_at_boot_applies_only_what_a_boot_undoes(tmp_path):
    roots.debian(tmp_path)
    good(tmp_path, "apply", *ASK)
    for cpu in range(8):
        roots.put(tmp_path, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "schedutil\n")
    (tmp_path / DROP_IN).unlink()
    good(tmp_path, "apply", "--at-boot")
    governor = tmp_path / "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
    assert governor.read_text() == "performance\n"
    assert not (tmp_path / DROP_IN).exists()
