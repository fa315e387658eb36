# SPDX-License-Identifier: BSD-3-Clause
"""config/tokd-host on prepared roots: what it writes, that it does so once, that revert restores
every byte."""

import errno
import gzip
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import roots

PROGRAM = Path(__file__).parent / "kernel.py"  # config/tokd-host, and a kernel that answers
sys.path.insert(0, str(Path(__file__).parents[3] / "config"))
from ended import ended
from grub import stage as boot
from grub import tuned
from host.plan import make
from host.report import Failed
from host.revert import revert
from host.root import Root
from hugepages import doca

ASK = ("--cores", "1-4", "--hugepages", "8x1G")
DROP_IN = "etc/default/grub.d/zz-dpdk-tokd.cfg"
WORDS = (
    "isolcpus=managed_irq,domain,1-4 nohz_full=1-4 rcu_nocbs=1-4 irqaffinity=0,5-7 "
    "default_hugepagesz=1G hugepagesz=1G hugepages=8"
)


def start(args: list[str], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv = ["tokd-host", *args]
    import kernel  # it replaces parts of tokd-host

    sys.exit(kernel.cli.main())


def host(root: Path, *args: str) -> subprocess.CompletedProcess:
    """A fork of this process: starting Python takes longer than most of what tokd-host does."""
    command = [*args, "--root", str(root)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = multiprocessing.get_context("fork").Process(
            target=start, args=(command, out.fileno(), err.fileno()), daemon=True
        )
        child.start()
        child.join(60)
        assert child.exitcode is not None, f"tokd-host {command} takes more than a minute"
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, child.exitcode, out.read(), err.read())


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
    """A prepared root; programs that it has stand-ins of are run, by chroot, as this machine's
    are."""

    def run(self, name: str, *args: str, in_root: bool = False) -> bool:
        return super().run(name, *args, in_root=name in ("tuned-adm", "doca-hugepages"))

    def ask(self, name: str, *args: str) -> str:
        return roots.ask(self.folder, name, *args)


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


def test_the_program_itself_starts(debian):
    program = Path(__file__).parents[3] / "config/tokd-host"
    command = [program, "check", *ASK, "--root", debian]
    done = ended(*command)
    assert done.returncode == 1 and "governor schedutil" in done.stdout


def test_apply_twice_changes_nothing_the_second_time(machine):
    good(machine, "apply", *ASK)
    once = roots.snapshot(machine)
    assert "nothing to change" in good(machine, "apply", *ASK)
    assert roots.snapshot(machine) == once


def test_revert_restores_every_byte(machine):
    before = roots.snapshot(machine)
    good(machine, "apply", *ASK)
    assert roots.snapshot(machine) != before
    assert "everything, not only" not in good(machine, "revert")
    assert roots.snapshot(machine) == before
    good(machine, "apply", *ASK)
    assert "everything, not only --cores\n" in good(machine, "revert", "--cores", "1")
    assert roots.snapshot(machine) == before


@pytest.mark.slow
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


def test_debian_gets_a_drop_in_and_its_main_file_stays(debian):
    good(debian, "apply", *ASK)
    assert (debian / "etc/default/grub").read_text() == roots.GRUB
    assert command_line(debian) == WORDS + " quiet"


def test_grub_is_asked_again_where_its_own_file_lost_a_word(debian):
    good(debian, "apply", *ASK)
    roots.put(debian, "/boot/grub/grub.cfg", roots.GRUB_CFG.format(words=WORDS))
    assert "grub-mkconfig" not in good(debian, "apply", *ASK)
    roots.put(
        debian,
        "/boot/grub/grub.cfg",
        roots.GRUB_CFG.format(words=WORDS.replace("nohz_full=1-4 ", "")),
    )
    assert "grub-mkconfig" in good(debian, "apply", *ASK)


def test_words_that_others_set_are_replaced_and_all_else_is_kept(hand_edited):
    good(hand_edited, "apply", *ASK)
    assert command_line(hand_edited) == (
        "console=ttyS0,115200 intel_iommu=on iommu=pt rootflags=subvol=@* "
        + WORDS
        + " quiet splash"
    )


def test_cores_alone_leave_huge_pages_as_they_are(hand_edited):
    good(hand_edited, "apply", "--cores", "1")
    line = command_line(hand_edited)
    assert "hugepages=1024" in line and "default_hugepagesz=2M" in line
    assert line.count("isolcpus=") == 1


def test_ubuntu_cloud_image_settings_stay(ubuntu):
    good(ubuntu, "apply", "--cores", "1-3,9-11")
    assert command_line(ubuntu).startswith("isolcpus=managed_irq,domain,1-3,9-11 ")
    assert command_line(ubuntu).endswith(" console=tty1 console=ttyS0")
    assert 'IRQBALANCE_BANNED_CPULIST="1-3,9-11"' in (ubuntu / "etc/default/irqbalance").read_text()


def test_rhel_entries_are_changed_by_its_own_grubby(chroot, rhel):
    good(rhel, "apply", *ASK)
    for entry in (rhel / "boot/loader/entries").iterdir():
        (options,) = [x for x in entry.read_text().splitlines() if x.startswith("options ")]
        assert options.endswith("rhgb quiet " + WORDS)
        assert "isolcpus=5" not in options
    assert not (rhel / DROP_IN).exists()


def test_bluefield_asks_doca_hugepages_and_writes_no_count(bluefield):
    said = good(bluefield, "apply", "--cores", "4-15", "--hugepages", "512x2M")
    assert "doca-hugepages config --app dpdk-tokd --size 2048 --num 512" in said
    assert "hugepages=" not in command_line(bluefield)
    count = bluefield / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    assert count.read_text() == "0\n"


def asked_of_doca(root: Path) -> list[str]:
    log = (root / "doca-hugepages.log").read_text().splitlines()
    return [line for line in log if line != "show"]


def test_doca_hugepages_is_asked_once_and_told_on_revert(chroot, dpu):
    database, count = (
        dpu / "etc/doca-hugepages.db",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    )
    for _ in range(2):
        doca.apply(Live(str(dpu)), make("", "512x2M", "", False))
    assert asked_of_doca(dpu) == [
        "config --app dpdk-tokd --size 2048 --num 512 --force",
        "reload",
    ]
    assert (dpu / count).read_text() == "612\n"
    doca.apply(Live(str(dpu)), make("", "256x2M", "", False))  # it is there: --force, or it asks
    assert database.read_text() == "other 2048 100\ndpdk-tokd 2048 256\n"
    assert (dpu / count).read_text() == "356\n"
    revert(Live(str(dpu)))
    assert database.read_text() == "other 2048 100\n"
    assert (dpu / count).read_text() == "100\n"


def test_pages_that_doca_hugepages_has_not_made_are_asked_for_again(chroot, dpu):
    doca.apply(Live(str(dpu)), make("", "512x2M", "", False))
    roots.put(dpu, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n")
    doca.apply(Live(str(dpu)), make("", "512x2M", "", False))
    assert asked_of_doca(dpu)[2:] == ["reload"]


def test_doca_hugepages_knows_no_nodes(bluefield):
    before = roots.snapshot(bluefield)
    assert "knows no nodes; leave @0 out" in refused(
        bluefield, "apply", "--cores", "4", "--hugepages", "512x2M@0"
    )
    assert roots.snapshot(bluefield) == before


def test_a_program_that_does_not_end_is_no_hang(chroot, dpu, monkeypatch):
    roots.put(
        dpu,
        "/usr/sbin/doca-hugepages",
        "#!/bin/busybox sh\nexec /bin/busybox sleep 60\n",
        0o755,
    )
    monkeypatch.setattr("host.root.RUN_S", 0.2)
    with pytest.raises(Failed, match="doca-hugepages reload: not done after 0.2 s"):
        Live(str(dpu)).run("doca-hugepages", "reload")


@pytest.mark.parametrize(
    ("current", "then", "level", "said"),
    [
        ("ENABLED(0)", "ENABLED(0)", "ok", "is in DPU mode"),
        ("ENABLED(0)", "DISABLED(1)", "warn", "set to NIC mode from the next power cycle on"),
        ("DISABLED(1)", "DISABLED(1)", "bad", "is in NIC mode"),
        ("DISABLED(1)", "ENABLED(0)", "bad", "DPU mode is set for the next power cycle"),
    ],
)
def test_bluefield_mode_is_what_mlxconfig_says(chroot, bluefield, current, then, level, said):
    roots.programs(bluefield)
    default = "DISABLED(1)" if current == "ENABLED(0)" else "ENABLED(0)"
    answer = roots.MLXCONFIG.format(default=default, current=current, then=then)
    roots.put(bluefield, "/usr/bin/mlxconfig", answer, 0o755)
    done = host(bluefield, "check", "--cores", "4-15", "--json")
    (found,) = [f for f in json.loads(done.stdout) if "mode" in f["what"]]
    assert (found["stage"], found["level"]) == ("bluefield", level)
    assert said in found["what"]
    assert ("mlxconfig -d DEVICE set" in found["remedy"]) == (then == "DISABLED(1)")


@pytest.mark.parametrize(("mask", "clash"), [("0x3", False), ("0x13", True)])
def test_cores_that_open_vswitch_polls_on_are_no_workers(chroot, bluefield, mask, clash):
    roots.programs(bluefield)
    script = f"#!/bin/busybox sh\n/bin/busybox echo '\"{mask}\"'\n"
    roots.put(bluefield, "/usr/bin/ovs-vsctl", script, 0o755)
    said = host(bluefield, "check", "--cores", "4-15").stdout
    assert ("Open vSwitch polls on CPU 4" in said) == clash


def test_no_program_of_another_root_is_run_to_look(chroot, bluefield):
    roots.programs(bluefield)
    for name in ("usr/bin/mlxconfig", "usr/bin/ovs-vsctl", "usr/sbin/doca-hugepages"):
        roots.put(bluefield, name, '#!/bin/busybox sh\necho "$0" >>/ran\n', 0o755)
    program = Path(__file__).parents[3] / "config/tokd-host"
    ask = ["--cores", "4-15", "--hugepages", "512x2M", "--root", bluefield]
    for do in (["check"], ["verify"], ["apply", "--dry-run"], ["apply"], ["revert"]):
        done = ended(program, *do, *ask)
        assert done.returncode in (0, 1), done.stderr
    assert not (bluefield / "ran").exists()
    assert (
        Live(str(bluefield)).ask("mlxconfig") == "" and (bluefield / "ran").exists()
    )  # it would have said so


def test_cores_stay_for_open_vswitch(bluefield):
    assert "CPU 0 alone is left" in host(bluefield, "check", "--cores", "1-15").stdout
    assert "alone is left" not in host(bluefield, "check", "--cores", "2-15").stdout


def test_two_sizes_stand_in_the_order_the_kernel_reads(debian):
    good(debian, "apply", "--hugepages", "512x2M,4x1G@0,2x1G@1")
    assert command_line(debian) == (
        "default_hugepagesz=1G hugepagesz=1G hugepages=0:4,1:2 hugepagesz=2M hugepages=512 quiet"
    )


def test_interrupts_and_governors(debian):
    good(debian, "apply", *ASK)
    assert (debian / "proc/irq/24/smp_affinity_list").read_text() == "0,5-7\n"
    assert (debian / "proc/irq/default_smp_affinity").read_text() == "e1\n"
    governor = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    assert (debian / governor.format(2)).read_text() == "performance\n"
    assert (debian / governor.format(5)).read_text() == "schedutil\n"


def test_interrupts_that_nobody_can_move_are_no_fault(debian):
    good(debian, "apply", *ASK)
    booted(debian, WORDS)
    for irq in ("24", "25"):
        (debian / f"proc/irq/{irq}/smp_affinity_list").write_text("0-7\n")
    assert "2 interrupts may be handled on isolated cores: 24, 25" in host(debian, "verify").stdout
    (debian / "proc/irq/25/x-errno").write_text(f"{errno.EIO}")
    assert "the kernel manages this one" in good(debian, "apply")
    done = host(debian, "verify")
    assert "no interrupt that can be moved" in done.stdout
    assert (
        "1 interrupts are the kernel's to place, isolcpus=managed_irq keeps them on the other cores: 25"
        in done.stdout
    )
    assert "nothing to change" in good(debian, "apply")
    # A mask of isolated cores alone is one that managed_irq leaves as it is.
    (debian / "proc/irq/25/smp_affinity_list").write_text("2\n")
    assert "have isolated cores alone: 25" in good(debian, "verify")
    # Numbers of an earlier apply do not excuse today's.
    (debian / "proc/irq/25/x-errno").unlink()
    good(debian, "apply")
    assert (debian / "run/tokd-host-irq").read_text() == "\n"
    assert (debian / "proc/irq/25/smp_affinity_list").read_text() == "0,5-7\n"


def test_an_interrupt_that_fails_otherwise_is_a_failure_and_undone(ubuntu):
    before = roots.snapshot(ubuntu)
    roots.put(ubuntu, "/proc/irq/25/x-errno", f"{errno.ENOSPC}")
    done = host(ubuntu, "apply", "--cores", "1-3,9-11")
    assert (
        done.returncode == 3 and "irq: /proc/irq/25/smp_affinity_list: cannot write" in done.stderr
    )
    for name in (
        "proc/irq/24/smp_affinity_list",
        "proc/irq/default_smp_affinity",
        "etc/default/irqbalance",
    ):
        assert (ubuntu / name).read_bytes() == before[name][2]
    assert not (ubuntu / "run/tokd-host-irq").exists()


def test_what_an_undo_gives_back_is_ours_to_revert(debian):
    before = roots.snapshot(debian)
    good(debian, "apply", "--cores", "1-2")
    roots.put(debian, "/proc/irq/25/x-errno", f"{errno.ENOSPC}")
    assert host(debian, "apply", *ASK).returncode == 3
    assert (debian / "proc/irq/24/smp_affinity_list").read_text() == "0,3-7\n"
    (debian / "proc/irq/25/x-errno").unlink()
    good(debian, "revert")
    assert roots.snapshot(debian) == before


def test_an_undo_that_fails_is_told_and_the_rest_is_undone(debian):
    # 24 is moved, 25 is not, and in the undo 24's file is gone.
    roots.put(debian, "/proc/irq/25/x-errno", f"{errno.ENOSPC}")
    roots.put(debian, "/proc/irq/24/x-once", "")
    done = host(debian, "apply", *ASK)
    assert done.returncode == 3 and "not undone: /proc/irq/24/smp_affinity_list" in done.stderr
    assert (debian / "proc/irq/9/smp_affinity_list").read_text() == "0-7\n"


def test_the_administrator_s_banned_cpus_stay_banned(chroot, ubuntu):
    good(ubuntu, "apply", "--cores", "1-3")
    good(ubuntu, "apply", "--cores", "2-3")
    assert 'IRQBALANCE_BANNED_CPULIST="2-3,9"' in (ubuntu / "etc/default/irqbalance").read_text()
    red_hat = ubuntu / "rhel"
    red_hat.mkdir()
    roots.rhel(red_hat)
    good(red_hat, "apply", *ASK)
    assert (
        'IRQBALANCE_BANNED_CPULIST="1-4,6-7"' in (red_hat / "etc/sysconfig/irqbalance").read_text()
    )


@pytest.mark.slow
def test_what_a_second_plan_leaves_out_is_put_back(machine):
    before = roots.snapshot(machine)
    name = roots.nic(machine)
    sizes = "64x2M" if (machine / "usr/sbin/grubby").exists() else "8x1G,64x2M"
    good(machine, "apply", "--cores", "1-4", "--hugepages", sizes, "--nic", name)
    good(machine, "apply", "--cores", "2-3", "--hugepages", "4x1G")
    small = roots.snapshot(machine)
    assert bound(machine, name) == "ice"
    good(machine, "revert")
    shutil.rmtree(machine / "sys/bus")
    shutil.rmtree(machine / "sys/module")
    assert roots.snapshot(machine) == before
    good(machine, "apply", "--cores", "2-3", "--hugepages", "4x1G")
    at_once = roots.snapshot(machine)
    assert {n: w for n, w in at_once.items() if "journal" not in n} == {
        n: w
        for n, w in small.items()
        if "journal" not in n and not n.startswith(("sys/bus", "sys/module"))
    }


def test_a_second_plan_without_cores_takes_their_words_away(chroot, rhel):
    good(rhel, "apply", *ASK)
    good(rhel, "apply", "--hugepages", "8x1G")
    for entry in (rhel / "boot/loader/entries").iterdir():
        assert "isolcpus=5 default_hugepagesz=1G" in entry.read_text()
        assert "nohz_full" not in entry.read_text()


def test_rhel_kernels_that_come_and_go_between_apply_and_revert(chroot, rhel):
    entries = rhel / "boot/loader/entries"
    good(rhel, "apply", *ASK)
    old, kept = sorted(entries.iterdir())
    new = entries / "abc-5.14.0-503.el9.x86_64.conf"
    new.write_text(kept.read_text().replace("427", "503"))
    held = kept.read_text()
    kept.write_text(held.replace("rhgb quiet", "rhgb"))
    old.unlink()
    (rhel / "boot/grub2").mkdir()
    (rhel / "boot/grub2/grubenv").write_text("saved_entry=503\n")
    said = good(rhel, "revert")
    assert sorted(p.name for p in entries.iterdir()) == [kept.name, new.name]
    assert "made or changed since" in said
    for entry in (kept, new):
        assert not any(word in entry.read_text() for word in WORDS.split())
    assert "192M rhgb\n" in kept.read_text()
    assert (rhel / "boot/grub2/grubenv").read_text() == "saved_entry=503\n"
    assert (rhel / "etc/kernel/cmdline").read_text() == "root=/dev/mapper/rhel-root ro rhgb quiet\n"


def test_what_the_administrator_changed_since_stays(ubuntu):
    good(ubuntu, "apply", "--cores", "1-3,9-11")
    balance, conf = ubuntu / "etc/default/irqbalance", ubuntu / "etc/dpdk-tokd/host.conf"
    balance.write_text(balance.read_text().replace("#IRQBALANCE_ARGS=", "IRQBALANCE_ARGS=--debug"))
    conf.write_text("# mine\n" + conf.read_text())
    governor = ubuntu / "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
    governor.write_text("powersave\n")
    said = good(ubuntu, "revert")
    assert balance.read_text() == 'IRQBALANCE_ARGS=--debug\nIRQBALANCE_BANNED_CPULIST="9"\n'
    assert conf.with_name("host.conf.edited").read_text().startswith("# mine\n")
    assert governor.read_text() == "powersave\n"
    assert "mend  /etc/default/irqbalance" in said and "leave /sys/devices/system/cpu/cpu1" in said


def test_a_link_stays_a_link(ubuntu):
    (ubuntu / "etc/default/irqbalance").rename(ubuntu / "etc/balance")
    (ubuntu / "etc/default/irqbalance").symlink_to("/etc/balance")
    before = roots.snapshot(ubuntu)
    good(ubuntu, "apply", "--cores", "1-3")
    assert (ubuntu / "etc/default/irqbalance").is_symlink()
    assert "1-3,9" in (ubuntu / "etc/balance").read_text()
    good(ubuntu, "revert")
    assert roots.snapshot(ubuntu) == before


def test_a_unit_that_is_masked_is_refused_and_dev_null_stays(debian):
    roots.put(debian, "/etc/systemd/system/x", "")
    (debian / "dev/null").mkdir(parents=True)  # no file: a device takes a privilege to make
    (debian / "etc/systemd/system/dev-hugepages\\x2d1G.mount").symlink_to("/dev/null")
    done = host(debian, "apply", *ASK)
    assert done.returncode == 3 and "/dev/null: is no regular file" in done.stderr


def test_what_an_earlier_boot_held_is_not_written_into_this_one(debian):
    good(debian, "apply", *ASK)
    roots.put(debian, "/proc/sys/kernel/random/boot_id", "another\n")
    assert "/proc/irq" not in good(debian, "revert")


def test_grub_is_asked_again_until_it_has_done_it(debian):
    before = roots.snapshot(debian)
    good(debian, "apply", *ASK)
    roots.put(debian, "/x-fails", "grub-mkconfig\n")
    done = host(debian, "revert")
    assert done.returncode == 3 and "grub-mkconfig" in done.stderr
    assert not (debian / DROP_IN).exists()
    assert host(debian, "revert").returncode == 3
    (debian / "x-fails").unlink()
    assert "grub-mkconfig" in good(debian, "revert")
    assert roots.snapshot(debian) == before


def test_grub_is_asked_also_where_something_else_cannot_be_restored(debian):
    good(debian, "apply", *ASK)
    roots.put(debian, "/proc/irq/24/x-errno", f"{errno.ENOSPC}")
    done = host(debian, "revert")
    assert done.returncode == 3 and "/proc/irq/24" in done.stderr
    assert "grub-mkconfig" in done.stdout


def test_irqbalance_is_started_anew_after_a_revert(ubuntu):
    roots.put(ubuntu, "/run/systemd/system/x", "")
    good(ubuntu, "apply", "--cores", "1-3")
    assert "systemctl try-restart irqbalance" in good(ubuntu, "revert")


@pytest.mark.parametrize(
    ("release", "at_boot"), [("5.15.0-91-generic", False), ("5.16.0", True), ("6.1.0-9", True)]
)
def test_counts_per_node_are_for_kernels_that_read_them(debian, release, at_boot):
    roots.put(debian, "/proc/sys/kernel/osrelease", release + "\n")
    said = good(debian, "apply", "--hugepages", "4x1G@0,2x1G@1")
    assert ("hugepages=0:4,1:2" in command_line(debian)) == at_boot
    assert ("takes no counts per node" in said) != at_boot
    count = "sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages"
    assert (debian / count).read_text() == "2\n"


@pytest.mark.parametrize(
    ("release", "takes"), [("4.18.0-553.el8", False), ("5.5.19", False), ("5.6.0", True)]
)
def test_managed_irq_is_for_kernels_that_know_it(debian, release, takes):
    roots.put(debian, "/proc/sys/kernel/osrelease", release + "\n")
    said = good(debian, "apply", "--cores", "1-4")
    assert f"isolcpus={'managed_irq,' if takes else ''}domain,1-4" in command_line(debian).split()
    assert ("knows no isolcpus=managed_irq" in said) == (not takes)


def test_words_of_others_that_are_taken_out_are_named(hand_edited):
    said = good(hand_edited, "apply", *ASK)
    for word in ("isolcpus=2,3", "hugepages=1024", "nohz_full=2-3"):
        assert f"{word} (/etc/default/grub)" in said
    assert "hugepagesz=2M (/etc/default/grub.d/10-local.cfg)" in said
    assert "hugepages=9" not in said


def test_words_that_are_set_behind_ours_are_not_said_to_be_taken_out(debian):
    late = "/etc/default/grub.d/zzz.cfg"
    roots.put(debian, late, 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX hugepages=5"\n')
    said = good(debian, "apply", *ASK)
    assert (
        f"which cannot remove it: hugepages=5 ({late})" in said
        and "removed from the boot line" not in said
    )
    assert command_line(debian) == WORDS + " hugepages=5 quiet"
    (debian / late[1:]).rename(debian / late[1:].replace("zzz", "yy"))
    said = good(debian, "apply", *ASK)
    assert (
        "removed from the boot line, set there by others: hugepages=5" in said
        and "cannot remove" not in said
    )
    assert command_line(debian) == WORDS + " quiet"


def test_a_grub_that_reads_no_folder_is_refused_before_anything_is_written(debian):
    roots.put(debian, "/usr/sbin/grub-mkconfig", "#!/bin/sh\n. ${sysconfdir}/default/grub\n", 0o755)
    before = roots.snapshot(debian)
    assert "add these words to the kernel's command line" in refused(debian, "apply", *ASK)
    assert roots.snapshot(debian) == before


def test_an_image_is_told_how_many_cpus_the_machine_will_have(debian):
    shutil.rmtree(debian / "sys")
    shutil.rmtree(debian / "proc")
    assert "--cpus N" in refused(debian, "apply", *ASK)
    assert "CPU 4 is not there" in refused(debian, "apply", *ASK, "--cpus", "4", "--memory", "32G")
    good(debian, "apply", *ASK, "--cpus", "8", "--memory", "32G")
    assert command_line(debian) == WORDS + " quiet"


def test_an_image_is_told_how_much_memory_the_machine_will_have(debian):
    shutil.rmtree(debian / "sys")
    shutil.rmtree(debian / "proc")
    before = roots.snapshot(debian)
    assert "--memory SIZE" in refused(debian, "apply", *ASK, "--cpus", "8")
    assert "--memory SIZE" in host(debian, "check", *ASK, "--cpus", "8").stdout
    assert "the machine has 8.0 GiB" in refused(
        debian, "apply", *ASK, "--cpus", "8", "--memory", "8G"
    )
    assert "expected a size like 64G" in refused(
        debian, "apply", *ASK, "--cpus", "8", "--memory", "8"
    )
    assert roots.snapshot(debian) == before


@pytest.mark.parametrize("make_root", [roots.debian, roots.bluefield])
@pytest.mark.parametrize("pages", ["60x1G", "60x1G,1x2M", "30720x2M"])
def test_huge_pages_leave_a_sixteenth_of_memory(tmp_path, make_root, pages):
    make_root(tmp_path)
    fits = pages != "60x1G,1x2M"
    said = host(tmp_path, "check", "--hugepages", pages).stdout
    assert ("stay ordinary memory" in said) != fits
    done = host(tmp_path, "apply", "--hugepages", pages)
    assert done.returncode == (0 if fits else 2), done.stderr
    assert fits == (tmp_path / DROP_IN).exists() or make_root is roots.bluefield


def test_a_small_machine_keeps_a_gibibyte(debian):
    roots.put(debian, "/proc/meminfo", "MemTotal:        4000000 kB\n")
    assert "of which 1.0 GiB stay" in refused(debian, "apply", "--hugepages", "3x1G")
    good(debian, "apply", "--hugepages", "2x1G")


def test_the_newest_kernel_of_an_image_is_found_by_its_number(debian):
    (debian / "proc/sys/kernel/osrelease").unlink()
    (debian / "boot/config-6.1.0-test").unlink()
    roots.put(debian, "/boot/config-6.1.0-9-amd64", "")
    roots.put(debian, "/boot/config-6.1.0-10-amd64", roots.CONFIG)
    assert "no CONFIG_NO_HZ_FULL" not in host(debian, "check", *ASK).stdout


def test_the_journal_is_root_s_alone_and_a_broken_one_is_one_line(debian):
    good(debian, "apply", *ASK)
    journal = debian / "var/lib/dpdk-tokd/host/journal.json"
    assert journal.stat().st_mode & 0o777 == 0o600
    assert journal.parent.stat().st_mode & 0o777 == 0o700
    for text in ("[{", "[1]", '{"a": 1}', '[{"name": "/x"}]'):
        journal.write_text(text)
        done = host(debian, "revert")
        assert (
            done.returncode == 3 and done.stderr.count("\n") == 1 and "is no journal" in done.stderr
        )


def test_who_cannot_read_the_journal_can_look():
    """A user that is nobody's, on what root has applied."""
    if os.geteuid() != 0:
        pytest.skip("not root: cannot run as somebody else")

    def as_nobody(*args: str) -> tuple[int, str, str]:
        done = ended("/usr/bin/python3", PROGRAM, *args, user=65534, group=65534, extra_groups=[])
        return done.returncode, done.stdout, done.stderr

    if as_nobody("--help")[0] != 0:
        pytest.skip("the sources lie where nobody but root can read")
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        Path(name).chmod(0o755)
        looked(Path(name), as_nobody)


def looked(root: Path, as_nobody: Callable[..., tuple[int, str, str]]) -> None:
    roots.debian(root)
    good(root, "apply", *ASK)
    booted(root, WORDS)
    before = roots.snapshot(root)
    where = ("--root", root)
    assert as_nobody("verify", *where) == (0, host(root, "verify").stdout, "")
    assert as_nobody("check", *ASK, *where)[0] == 0
    status, said, wrong = as_nobody("apply", *ASK, "--dry-run", *where)
    assert (status, wrong) == (0, "") and "shown as if nothing had been applied" in said
    for args in (("apply", *ASK), ("revert",), ("revert", "--dry-run")):
        status, _, wrong = as_nobody(*args, *where)
        assert status == 2 and "only root can read" in wrong and wrong.count("\n") == 1
    assert roots.snapshot(root) == before


def test_owner_and_mode_of_a_file_stay(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not root: cannot give a file to somebody else")
    roots.ubuntu(tmp_path)
    balance = tmp_path / "etc/default/irqbalance"
    balance.chmod(0o640)
    os.chown(balance, 7, 8)
    good(tmp_path, "apply", "--cores", "1-3")
    held = balance.stat()
    assert (held.st_uid, held.st_gid, held.st_mode & 0o777) == (7, 8, 0o640)


def booted(root: Path, words: str, isolated: str = "1-4") -> None:
    """As the machine looks after it has booted with these words."""
    roots.put(root, "/proc/cmdline", f"BOOT_IMAGE=/vmlinuz ro quiet {words}\n")
    roots.put(root, "/sys/devices/system/cpu/isolated", isolated + "\n")
    roots.put(root, "/sys/devices/system/cpu/nohz_full", isolated + "\n")
    roots.put(root, "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "8\n")
    # As the kernel prints it: in K or M, never in G.
    roots.put(
        root,
        "/proc/mounts",
        "none /dev/hugepages-1G hugetlbfs rw,relatime,mode=770,pagesize=1024M 0 0\n",
    )


def test_verify_passes_after_the_boot(debian):
    good(debian, "apply", *ASK)
    assert host(debian, "verify").returncode == 1
    booted(debian, WORDS)
    good(debian, "verify")


@pytest.mark.parametrize(("said", "good"), [("1024M", True), ("2M", False), ("16384M", False)])
def test_a_mount_is_known_by_the_page_size_that_the_kernel_prints(debian, said, good):
    roots.put(debian, "/proc/mounts", f"none /huge hugetlbfs rw,relatime,pagesize={said} 0 0\n")
    missing = "no hugetlbfs mount with pages of 1G" in host(debian, "check", *ASK).stdout
    assert missing != good


@pytest.mark.parametrize("word", WORDS.split())
def test_verify_fails_for_each_word_that_is_missing(debian, word):
    good(debian, "apply", *ASK)
    booted(debian, " ".join(w for w in WORDS.split() if w != word))
    done = host(debian, "verify", "--json")
    assert done.returncode == 1
    bad = [f for f in json.loads(done.stdout) if f["level"] == "bad"]
    assert any(word in f["what"] and f["reboot"] and f["remedy"] for f in bad)


def test_verify_fails_where_the_kernel_dropped_what_it_was_told(debian):
    good(debian, "apply", *ASK)
    booted(debian, WORDS, isolated="1-3")
    assert "isolated is 1-3, asked: 1-4" in host(debian, "verify").stdout


def test_verify_asks_the_kernel_where_new_interrupts_go(debian):
    good(debian, "apply", *ASK)
    booted(debian, WORDS)
    roots.put(debian, "/proc/irq/default_smp_affinity", "e3\n")
    done = host(debian, "verify")
    assert done.returncode == 1 and "default_smp_affinity is e3, asked: without 1" in done.stdout


def test_verify_looks_for_the_threads_that_rcu_nocbs_makes(debian):
    good(debian, "apply", *ASK)
    booted(debian, WORDS)
    for pid, name in enumerate(
        ("kthreadd", "rcuog/0", "rcuop/1", "rcuop/2", "rcuop/3", "rcuos/4"), 2
    ):
        roots.put(debian, f"/proc/{pid}/comm", name + "\n")
    good(debian, "verify")
    (debian / "proc/6/comm").write_text("kworker/3:0\n")
    done = host(debian, "verify")
    assert done.returncode == 1 and "none for CPU 3" in done.stdout


def test_check_says_cost_and_remedy_of_each_finding(debian):
    done = host(debian, "check", *ASK, "--json")
    found = [f for f in json.loads(done.stdout) if f["level"] in ("warn", "bad")]
    assert done.returncode == 1 and len(found) > 10
    assert [f["what"] for f in found if not f["remedy"]] == []
    assert [f["what"] for f in found if not f["cost"] and "hugepagesz" not in f["what"]] == []


def test_check_proposes_when_nothing_is_asked(debian):
    done = host(debian, "check")
    ask = "--cores 2-7 --hugepages 7x1G"
    assert done.returncode == 1
    assert done.stdout.startswith(f"note  plan      nothing is asked; proposed: {ask}\n")
    assert done.stdout.endswith(f"stands for: tokd-host apply {ask}\n")
    assert "nothing to do: give" in refused(debian, "verify")
    good(debian, "apply", *ask.split())
    assert "nothing is asked" not in host(debian, "check").stdout


def test_check_does_not_say_apply_where_apply_refuses(debian):
    (debian / "usr/sbin/grub-mkconfig").unlink()
    why = "found neither grubby"
    assert why in refused(debian, "apply", *ASK)
    done = host(debian, "check", *ASK)
    assert done.returncode == 1 and done.stdout.count(why) == 1
    assert "tokd-host apply" not in done.stdout


def test_where_the_words_were_set_by_hand_the_rest_is_applied(debian):
    """As a boot loader that tokd-host does not know needs it."""
    (debian / "usr/sbin/grub-mkconfig").unlink()
    assert f"reboot, and apply again for the rest: {WORDS}\n" in refused(debian, "apply", *ASK)
    booted(debian, WORDS.replace("nohz_full=1-4 ", ""))
    assert "apply again for the rest" in refused(debian, "apply", *ASK)
    booted(debian, WORDS)
    before = roots.snapshot(debian)
    assert "set by hand" in good(debian, "apply", *ASK)
    assert not (debian / DROP_IN).exists()
    assert (debian / "proc/irq/24/smp_affinity_list").read_text() == "0,5-7\n"
    assert host(debian, "verify").returncode == 0
    good(debian, "revert")
    assert roots.snapshot(debian) == before


def test_once_applied_the_remedy_is_a_reboot(machine):
    def remedies() -> set[str]:
        found = json.loads(host(machine, "check", *ASK, "--json").stdout)
        return {f["remedy"] for f in found if "the kernel was booted with" in f["what"]}

    assert remedies() == {"tokd-host apply"}
    good(machine, "apply", *ASK)
    (remedy,) = remedies()
    assert remedy.startswith("reboot; ")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--cores", "0-3"), "core 0 cannot be isolated"),
        (("--cores", "1-9"), "CPU 8-9 is not there"),
        (("--cores", "1-x"), "--cores '1-x': expected CPUs like 1-4 or 1,3-5\n"),
        (("--cores", "4-1"), "no range"),
        (("--hugepages", "8x3G"), "COUNTxSIZE"),
        (("--hugepages", "8x1G,4x1G@0"), "one count for each size and node"),
        (("--hugepages", "8x1G@7"), "no pages of 1G on node 7"),
        (("--hugepages", "8x16G"), "no pages of 16G"),
        (("--hugepages", "64x1G"), "the machine has 64.0 GiB"),
        (("--hugepages", "31x1G@0"), "node 0 has 32.0 GiB, of which 2.0 GiB stay ordinary memory"),
        (("--hugepages", "30x1G@0,31x1G@1"), "the machine has 64.0 GiB"),
        (("--hugepages", "4x1G@0,31x1G@1"), "node 1 has"),
        (("--nic", "eth0"), "no PCI address"),
        (("--nic", "0000:99:00.0"), "no such device"),
        ((), "nothing to do: give"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(debian, args, said):
    before = roots.snapshot(debian)
    assert said in refused(debian, "apply", *args)
    assert roots.snapshot(debian) == before


def test_a_cpu_that_is_offline_is_none_to_count_on(debian):
    roots.put(debian, "/sys/devices/system/cpu/online", "0-3,5-7\n")
    assert "CPU 4 is offline, 0-3,5-7 run" in refused(debian, "apply", *ASK)
    roots.put(debian, "/sys/devices/system/cpu/online", "1-4\n")
    assert "none is left for the system" in refused(debian, "apply", *ASK)
    roots.put(debian, "/sys/devices/system/cpu/online", "0-4\n")
    good(debian, "apply", *ASK)
    assert command_line(debian) == WORDS + " quiet"  # those that are offline may be started


def test_siblings_and_too_few_cores_are_warned_of(ubuntu):
    said = host(ubuntu, "check", "--cores", "1-7").stdout
    assert "CPU 1 shares its core with CPU 9" in said
    assert "isolate 1-7,9" in said
    roots.put(ubuntu, "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n")
    assert "leave CPU 1 out" in host(ubuntu, "check", "--cores", "1-7").stdout
    roots.kernel(ubuntu)
    assert "0 alone is left" in host(ubuntu, "check", "--cores", "1-7").stdout


def test_a_kernel_that_drops_nohz_full_in_silence_is_named(debian):
    roots.put(debian, "/boot/config-6.1.0-test", roots.CONFIG.replace("CONFIG_NO_HZ_FULL=y", ""))
    assert "no CONFIG_NO_HZ_FULL" in host(debian, "check", *ASK).stdout
    assert "no CONFIG_NO_HZ_FULL" in good(debian, "apply", *ASK)


def test_the_options_of_a_kernel_are_its_own(debian):
    """Not another's that is installed; and as it says itself, where nothing else does."""
    without = roots.CONFIG.replace("CONFIG_NO_HZ_FULL=y", "")
    (debian / "boot/config-6.1.0-test").unlink()
    roots.put(debian, "/boot/config-6.1.0-9-other", without)
    assert "no CONFIG_NO_HZ_FULL" not in host(debian, "check", *ASK).stdout
    (debian / "proc/config.gz").write_bytes(gzip.compress(without.encode()))
    assert "no CONFIG_NO_HZ_FULL" in host(debian, "check", *ASK).stdout


def test_a_governor_that_is_not_offered_is_not_promised(debian):
    offered = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors"
    roots.put(debian, offered, "powersave schedutil\n")
    found = json.loads(host(debian, "check", *ASK, "--json").stdout)
    remedies = {f["what"]: f["remedy"] for f in found if f["stage"] == "governor"}
    assert remedies["CPU 1,3-4: governor schedutil"] == "tokd-host apply"
    assert "offers no governor performance" in remedies["CPU 2: governor schedutil"]


def test_secure_boot_is_said(debian):
    name = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    roots.put(debian, name, "\x06\0\0\0\x01")
    assert "note  boot      Secure Boot is on" in host(debian, "check", *ASK).stdout
    assert "note  boot      Secure Boot is on" in good(debian, "apply", *ASK)
    name = roots.nic(debian)
    assert "note  boot      Secure Boot is on" in good(debian, "apply", "--dry-run", "--nic", name)
    shutil.rmtree(debian / "sys/bus/pci/drivers/vfio-pci")
    said = good(debian, "apply", "--dry-run", "--nic", name)
    assert "warn  boot      Secure Boot is on, and vfio-pci not loaded" in said
    (debian / "usr/src/gdrdrv-2.4.1").mkdir(parents=True)
    assert "Secure Boot is on, and gdrdrv not loaded" in host(debian, "check", *ASK).stdout


def tuned_params(root: Path) -> str:
    """What tuned adds to the command line that GRUB's settings make."""
    return (root / "etc/tuned/bootcmdline").read_text().partition('"')[2].partition('"')[0]


def test_tuned_is_told_where_the_stage_is_undone(tmp_path, chroot):
    roots.tuned(tmp_path)
    subprocess.run(
        ["chroot", tmp_path, "/usr/sbin/tuned-adm", "profile", "cpu-partitioning"], check=True
    )
    before = tuned_params(tmp_path)
    root = Live(str(tmp_path))
    mark = root.mark()
    tuned.apply(root, frozenset({1}))
    assert "nohz_full=1 " in tuned_params(tmp_path)
    assert root.undo_to(mark) == []
    assert tuned_params(tmp_path) == before


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
    assert (
        "no_balance_cores=5-10 has tuned give isolcpus a second time"
        in host(tmp_path, "check", *ASK).stdout
    )


def test_tuned_is_told_once_and_again_when_its_variables_are_as_before(tmp_path, chroot):
    roots.tuned(tmp_path)
    subprocess.run(
        ["chroot", tmp_path, "/usr/sbin/tuned-adm", "profile", "cpu-partitioning"], check=True
    )
    before = tuned_params(tmp_path)
    plan = make("1-4", "", "", False)
    for _ in range(2):
        boot.apply(Live(str(tmp_path)), plan)
    assert "nohz_full=1-4" in tuned_params(tmp_path)
    assert len((tmp_path / "tuned-adm.log").read_text().splitlines()) == 2
    revert(Live(str(tmp_path)))
    assert tuned_params(tmp_path) == before
    assert (
        tmp_path / "etc/tuned/cpu-partitioning-variables.conf"
    ).read_text() == roots.TUNED_VARIABLES


def bound(root: Path, name: str) -> str:
    link = root / f"sys/bus/pci/devices/{name}/driver"
    return os.path.basename(os.readlink(link)) if link.is_symlink() else ""


@pytest.mark.parametrize("virtio", [False, True])
def test_a_nic_goes_to_vfio_and_back(debian, virtio):
    driver = "virtio-pci" if virtio else "ice"
    name = roots.nic(debian, driver=driver, virtio=virtio)
    before = roots.snapshot(debian)
    good(debian, "apply", "--nic", name)
    assert bound(debian, name) == "vfio-pci"
    assert "nothing to change" in good(debian, "apply", "--nic", name)
    good(debian, "revert")
    assert bound(debian, name) == driver
    assert roots.snapshot(debian) == before


def reboot(root: Path, name: str, driver: str) -> None:
    """Of a port: another boot, in which this driver has it; "" while none has come yet."""
    roots.put(root, "/proc/sys/kernel/random/boot_id", "another\n")
    device = root / f"sys/bus/pci/devices/{name}"
    (device / "driver_override").write_text("(null)\n")
    (device / "x-override").unlink(missing_ok=True)
    (device / "driver").unlink(missing_ok=True)
    if driver:
        (device / "driver").symlink_to(f"../../drivers/{driver}")


def test_a_nic_that_had_no_driver_yet_at_boot_goes_back_to_the_first(debian):
    name = roots.nic(debian)
    good(debian, "apply", "--nic", name)
    reboot(debian, name, "")
    good(debian, "apply", "--at-boot")
    assert bound(debian, name) == "vfio-pci"
    (ice := debian / "sys/bus/pci/drivers/ice").rename(ice.with_name("x"))
    assert "had ice: modprobe ice" in host(debian, "revert").stderr
    ice.with_name("x").rename(ice)
    good(debian, "revert")
    assert bound(debian, name) == "ice"


def test_a_nic_that_never_had_a_driver_is_offered_to_all(debian):
    """The one that was late takes it."""
    name = roots.nic(debian)
    reboot(debian, name, "")
    good(debian, "apply", "--nic", name)
    good(debian, "revert")
    assert bound(debian, name) == "ice"


def test_a_nic_that_an_earlier_boot_bound_is_left_where_it_is_now(debian):
    name = roots.nic(debian)
    good(debian, "apply", "--nic", name)
    reboot(debian, name, "vfio-pci")
    good(debian, "revert")
    assert bound(debian, name) == "vfio-pci"


def test_a_nic_that_vfio_does_not_take_keeps_its_driver(debian):
    name = roots.nic(debian, fails=True)
    done = host(debian, "apply", "--nic", name)
    assert done.returncode == 3 and "vfio-pci did not take it" in done.stderr
    assert bound(debian, name) == "ice"
    assert (debian / f"sys/bus/pci/devices/{name}/driver_override").read_text() == "(null)\n"


def test_a_nic_without_its_driver_is_told_and_tried_again(debian):
    name = roots.nic(debian)
    good(debian, "apply", "--nic", name)
    (debian / "sys/bus/pci/drivers/ice").rename(debian / "sys/bus/pci/drivers/x")
    done = host(debian, "revert")
    assert done.returncode == 3 and "had ice: modprobe ice" in done.stderr
    (debian / "sys/bus/pci/drivers/x").rename(debian / "sys/bus/pci/drivers/ice")
    good(debian, "revert")
    assert bound(debian, name) == "ice"


def test_without_an_iommu_it_is_said_also_after_vfio_has_made_up_a_group(debian):
    name = roots.nic(debian, iommu=False)
    good(debian, "apply", "--nic", name, "--unsafe-noiommu")
    assert bound(debian, name) == "vfio-pci"
    assert "no IOMMU group" in host(debian, "check", "--nic", name).stdout
    assert host(debian, "check", "--nic", name).returncode == 1
    assert "as --unsafe-noiommu accepts" in good(debian, "check", "--nic", name, "--unsafe-noiommu")
    assert "give both" in refused(debian, "apply", "--unsafe-noiommu")


def test_a_group_that_another_driver_holds_a_part_of_is_refused(debian):
    name, other = roots.nic(debian), roots.nic(debian, name="0000:3b:00.1")
    roots.put(debian, f"{roots.PCI}/devices/{name}/iommu_group/devices/{other}", "")
    assert f"shares its IOMMU group with {other} (ice)" in refused(debian, "apply", "--nic", name)
    good(debian, "apply", "--nic", f"{name},{other}")


def test_mlx5_stays_on_its_kernel_driver(debian):
    name = roots.nic(debian, "0x15b3", "mlx5_core")
    good(debian, "apply", "--nic", name)
    assert (debian / f"sys/bus/pci/devices/{name}/driver_override").read_text() == "(null)\n"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"up": True}, "eth0 is up"),
        ({"up": True, "virtio": True, "driver": "virtio-pci"}, "ens3 is up"),
        ({"iommu": False}, "--unsafe-noiommu"),
    ],
)
def test_binding_that_cuts_off_or_is_unsafe_is_refused(debian, how, said):
    name = roots.nic(debian, **how)
    before = roots.snapshot(debian)
    assert said in refused(debian, "apply", *ASK, "--nic", name)
    assert roots.snapshot(debian) == before


def test_a_stage_that_fails_is_undone_and_those_before_it_stand(debian):
    roots.put(debian, "/etc/systemd/system/sysinit.target.wants", "a file where a folder must be")
    before = roots.snapshot(debian)
    done = host(debian, "apply", *ASK)
    assert done.returncode == 3 and "hugepages: " in done.stderr
    assert "write /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages" in done.stdout
    count = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
    assert (debian / count).read_text() == "0\n"
    assert [p.name for p in (debian / "etc/systemd/system").iterdir()] == ["sysinit.target.wants"]
    assert (debian / DROP_IN).exists()
    good(debian, "revert")
    assert roots.snapshot(debian) == before


def test_at_boot_applies_only_what_a_boot_undoes(debian):
    good(debian, "apply", *ASK)
    for cpu in range(8):
        roots.put(
            debian, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "schedutil\n"
        )
    (debian / DROP_IN).unlink()
    conf = debian / "etc/dpdk-tokd/host.conf"
    conf.write_text("# mine\n" + conf.read_text())
    good(debian, "apply", "--at-boot")
    assert conf.read_text().startswith("# mine\n")
    governor = debian / "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
    assert governor.read_text() == "performance\n"
    assert not (debian / DROP_IN).exists()
