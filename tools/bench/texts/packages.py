# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages, which are downloaded but not installed. PyPI's: dpdk_tokd.fetch.packages."""

import json
import shutil
import subprocess
from pathlib import Path

from dpdk_tokd.fetch.packages import FetchError, last_line, write_atomically


def write_json(path: Path, what: object) -> None:
    write_atomically(path, (json.dumps(what, indent=2) + "\n").encode())


def unpack_debian(package: str, folder: Path) -> Path:
    """Download a Debian package and unpack it below `folder`."""
    if shutil.which("apt-get") is None:
        raise FetchError(f"package {package}: needs apt-get, which this system does not have")
    place = folder / package
    place.mkdir()
    # Otherwise apt drops its privileges and cannot write into this user's folder.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package]
    run = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise FetchError(
            f"apt-get could not download {package}: {last_line(run.stderr)}; run apt-get update; is "
            "a Debian mirror reachable?"
        )
    (deb,) = place.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(deb), str(place / "files")], check=True)
    return place / "files"
