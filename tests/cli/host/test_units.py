# SPDX-License-Identifier: BSD-3-Clause
"""The systemd units and what is installed: as systemd itself reads them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ended import ended

SOURCE = Path(__file__).parents[3]
UNITS = ("dpdk-tokd", "tokd-exporter", "tokd-gpu", "tokd-host")
SERVICES = ("dpdk-tokd", "tokd-exporter", "tokd-gpu")
VERSION = re.search(r"^  version: '(.*)',$", (SOURCE / "meson.build").read_text(), re.MULTILINE)[1]
BUILD = Path(os.environ.get("TOKD_BUILD", SOURCE / "build"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """As packages install: below a folder."""
    to = tmp_path_factory.mktemp("install")
    subprocess.run(
        ["/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", to],
        check=True,
    )
    return to


def one(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


def verified(installed: Path, folder: Path, others: dict[str, str]) -> None:
    """systemd has no word to say of our units beside these others."""
    for program in ("systemd-analyze", "udevadm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing (packages systemd, udev)")
    for name in UNITS:
        text = one(installed, f"{name}.service").read_text()
        # Here the programs lie below another folder.
        (folder / f"{name}.service").write_text(
            text.replace("ExecStart=", f"ExecStart={installed}")
        )
    for name, text in others.items():
        (folder / name).write_text(text)
    done = ended("systemd-analyze", "verify", "--man=no", *sorted(folder.iterdir()))
    assert (done.returncode, done.stderr) == (0, "")


def test_units_are_read_by_systemd_without_a_word(installed, tmp_path):
    verified(installed, tmp_path, {})


def test_units_start_beside_those_of_a_cloud_image(installed, tmp_path):
    """There sysinit.target waits for cloud-init, that for the network, and what sets it up for
    network-pre.target."""
    early = "[Unit]\nDefaultDependencies=no\nConflicts=shutdown.target\nBefore=shutdown.target {}\nAfter={}\n"
    early += "[Service]\nType=oneshot\nExecStart=/bin/true\n"
    wants = "tokd-host.service dpdk-tokd.service cloud-init.service network-setup.service systemd-networkd.service"
    others = {
        "network-setup.service": early.format("network.target", "network-pre.target"),
        "cloud-init-local.service": early.format(
            "network-pre.target sysinit.target", "systemd-remount-fs.service"
        ),
        "cloud-init.service": early.format(
            "sysinit.target", "cloud-init-local.service network-setup.service"
        ),
        "cloud.target": f"[Unit]\nWants={wants}\n",
    }
    verified(installed, tmp_path, others)


def test_pages_and_completion_are_of_what_is_installed(installed):
    """But for tokd-gateway, which pip installs whole."""
    files = [path for path in installed.rglob("*") if path.is_file()]
    programs = {path.name for path in files if path.parent.name in ("bin", "sbin")}
    pages = {path.stem for path in files if path.parent.name in ("man1", "man8")}
    completed = {path.name for path in files if path.parent.name == "completions"}
    assert pages == programs == completed | {"tokd-host"}


@pytest.mark.parametrize("program", ["tokd-diag", "tokd-exporter", "tokd-top"])
def test_programs_in_python_need_no_package_of_ours(installed, program):
    done = ended(sys.executable, "-I", one(installed, f"bin/{program}"), "--version")
    assert (done.stdout, done.stderr) == (f"{program} {VERSION}\n", "")


def test_the_packages_have_the_version_of_the_programs():
    assert (SOURCE / "debian/changelog").read_text().startswith(f"dpdk-tokd ({VERSION}) ")


def test_units_start_what_is_installed(installed):
    for unit in UNITS:
        text = one(installed, f"{unit}.service").read_text()
        program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)[1]
        assert os.access(installed / program.lstrip("/"), os.X_OK), program


def test_the_environment_file_documents_every_option(installed):
    text = one(installed, "dpdk-tokd.default").read_text()
    conf = (SOURCE / "doc/dpdk-tokd.conf").read_text()
    names = re.findall(r"^#? ?([a-z0-9-]+) =", conf, re.MULTILINE)
    assert len(names) > 30
    variables = re.findall(r"^#(TOKD_[A-Z0-9_]+)=", text, re.MULTILINE)
    wanted = {f"TOKD_{name.upper().replace('-', '_')}" for name in names}
    assert wanted <= set(variables)


def test_what_the_recipe_copies_is_installed(installed):
    """doc/user/host.md, for the prefix /usr/local."""
    page = (SOURCE / "doc/user/host.md").read_text()
    recipe = re.findall(r"^    cp (?:-r )?(\S+)", page, re.MULTILINE)
    assert len(recipe) == 3
    prefix = one(installed, "dpdk-tokd.service").parents[3]
    assert [
        name for name in recipe if not (prefix / name.removeprefix("/usr/local/")).exists()
    ] == []


def test_the_agents_environment_file_has_a_table(installed):
    lines = one(installed, "tokd-gpu.default").read_text().splitlines()
    assert [line for line in lines if line.startswith("TOKD_GPU_TABLE=") and len(line) > 15]


def test_tokd_host_runs_from_where_it_is_installed(installed, tmp_path):
    program = one(installed, "tokd-host")
    done = ended(program, "check", "--cores", "1", "--root", tmp_path)
    assert done.returncode == 2
    assert "no list of CPUs" in done.stderr


def test_variables_of_the_unit_are_not_taken_for_options(installed):
    """dpdk-tokd refuses what begins with TOKD_ and is none of its options."""
    unit = one(installed, "dpdk-tokd.service").read_text()
    given = re.findall(r"\$(\w+)", re.search(r"^ExecStart=.*$", unit, re.MULTILINE)[0])
    assert given and not [name for name in given if name.startswith("TOKD_")]


def settings(installed: Path, unit: str) -> dict[str, str]:
    """What the unit sets; of what is set twice the last."""
    lines = one(installed, f"{unit}.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("unit", UNITS)
def test_who_is_waited_for_says_that_it_is_ready(installed, unit):
    """systemd ends a unit of Type=notify that tells nothing, and starts nothing behind it."""
    has = settings(installed, unit)
    program = installed / has["ExecStart"].split()[0].lstrip("/")
    tells = b"READY=1" in program.read_bytes()
    assert (has["Type"] == "notify") == tells
    assert b"WATCHDOG=1" in program.read_bytes() or "WatchdogSec" not in has


def test_ports_are_bound_before_networks_are_set_up(installed):
    """NetworkManager and networkd are ordered behind this target; it is there only if somebody
    wants it."""
    has = settings(installed, "tokd-host")
    assert (
        "network-pre.target" in has["Before"].split()
        and "network-pre.target" in has["Wants"].split()
    )


def test_ports_are_bound_when_their_drivers_had_time_to_come(installed):
    """The first driver of a port is what revert gives it back to. Not for ever: a device may never
    settle."""
    settle = settings(installed, "tokd-host")["ExecStartPre"]
    assert settle.startswith("-+/") and re.search(r"udevadm settle --timeout=\d+$", settle)
    assert "systemd-udev-trigger.service" in settings(installed, "tokd-host")["After"].split()


def test_tokd_host_sees_which_interfaces_are_up(installed):
    """A port whose interface is up is not bound; in a network of its own, /sys has no interface."""
    assert "PrivateNetwork" not in settings(installed, "tokd-host")


@pytest.mark.parametrize("unit", SERVICES)
def test_what_cannot_help_is_not_tried_again(installed, unit):
    """Of doc/user/operate.md, "Exit codes"."""
    has = settings(installed, unit)
    assert (has["Restart"], has["RestartPreventExitStatus"]) == ("on-failure", "2")
    program = installed / has["ExecStart"].split()[0].lstrip("/")
    # Of Python: this one, which has the libraries that it needs.
    python = [sys.executable] if program.read_bytes().startswith(b"#!") else []
    done = subprocess.run([*python, program, "--no-such-option"], capture_output=True, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("unit", SERVICES)
def test_what_may_help_is_tried_for_ever(installed, unit):
    """By default systemd gives a unit up that is started five times within 10 s, and these are, a
    second apart."""
    text = one(installed, f"{unit}.service").read_text()
    assert settings(installed, unit)["StartLimitIntervalSec"] == "0"
    assert text.index("StartLimitIntervalSec") < text.index(
        "[Service]"
    )  # in another section it is ignored


@pytest.mark.parametrize(
    ("unit", "devices"),
    [("dpdk-tokd", ("vfio", "infiniband*", "nvidia*")), ("tokd-gpu", ("infiniband*", "nvidia*"))],
)
def test_the_devices_of_ports_and_gpus_are_open(installed, unit, devices):
    lines = one(installed, f"{unit}.service").read_text().splitlines()
    assert not [line for line in lines if line.startswith("PrivateDevices")]
    for device in devices:
        assert f"DeviceAllow=char-{device} rw" in lines


@pytest.mark.parametrize("unit", SERVICES)
def test_no_unit_may_set_the_clock(installed, unit):
    has = settings(installed, unit)
    assert "CAP_SYS_TIME" not in has["CapabilityBoundingSet"] and has["ProtectClock"] == "yes"


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_rates_what_a_unit_may_do(installed, tmp_path, unit):
    """As `systemd-analyze security` counts: 10 is a unit without any bounds, 9.6 as a rule."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing (package systemd)")
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=25"]
    done = ended(*command, one(installed, f"{unit}.service"))
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze reads units of the running system alone")
    assert done.returncode == 0, done.stdout


def test_the_gateways_unit_starts_what_pip_installs(tmp_path):
    venv = SOURCE / "build/venv"
    unit = venv / "lib/systemd/system/tokd-gateway.service"
    text = unit.read_text()
    assert (venv / "share/man/man1/tokd-gateway.1").is_file()
    assert (venv / "share/bash-completion/completions/tokd-gateway.bash").is_file()
    assert (venv / "share/dpdk-tokd/default/tokd-gateway.default").is_file()
    has = settings(unit.parent, "tokd-gateway")
    assert (has["Type"], has["RestartPreventExitStatus"]) == ("notify", "2")
    assert has["ExecStart"].split()[0] == "tokd-gateway"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing (package systemd)")
    here = tmp_path / unit.name
    here.write_text(text.replace("ExecStart=", f"ExecStart={venv}/bin/"))
    for command in (["verify", "--man=no"], ["security", "--offline=yes", "--threshold=20"]):
        done = ended("systemd-analyze", *command, here)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
