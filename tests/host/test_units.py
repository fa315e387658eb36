# SPDX-License-Identifier: BSD-3-Clause
"""The systemd units and what is installed: as systemd itself reads them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
BUILD = Path(os.environ.get("TOKD_BUILD", SOURCE / "build"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """As packages install: below a folder."""
    to = tmp_path_factory.mktemp("install")
    subprocess.run(
        ["/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", to], check=True
    )
    return to


def one(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


def test_units_are_read_by_systemd_without_a_word(installed, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing (package systemd)")
    for name in ("dpdk-tokd.service", "tokd-gpu.service", "tokd-host.service"):
        text = one(installed, name).read_text()
        # Where the programs will be: here they lie below another folder.
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
        text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.glob("*.service"))],
        capture_output=True, text=True, check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_units_start_what_is_installed(installed):
    for unit in ("dpdk-tokd", "tokd-host"):
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


def test_tokd_host_runs_from_where_it_is_installed(installed, tmp_path):
    program = one(installed, "tokd-host")
    done = subprocess.run(
        [program, "check", "--cores", "1", "--root", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no list of CPUs" in done.stderr


def test_variables_of_the_unit_are_not_taken_for_options(installed):
    """dpdk-tokd refuses what begins with TOKD_ and is none of its options."""
    unit = one(installed, "dpdk-tokd.service").read_text()
    given = re.findall(r"\$(\w+)", re.search(r"^ExecStart=.*$", unit, re.MULTILINE)[0])
    assert given and not [name for name in given if name.startswith("TOKD_")]
