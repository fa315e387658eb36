# SPDX-License-Identifier: BSD-3-Clause
"""`python -m dpdk_tokd encode`: options, progress on a terminal, errors in one line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .errors import BulkError
from .run import JOBS_MAX, Totals, encode_files

ABOUT = """\
Encodes files of text to files of ids, with several threads. If it is interrupted or killed, run
the same command again: it continues, and the result is the same.

Input is JSON lines (.jsonl, .json, .ndjson: a document on each line), Parquet (a document in each
row), or text (each file is a document, or see --separator). All but Parquet may be packed: .gz, and
with pyarrow .zst, .bz2, .lz4.

Output: OUT.bin and OUT.idx, an indexed dataset as Megatron-LM and NeMo read it; the .bin alone is a
plain array of uint16, or of int32 from 65,500 ids on. Or a folder OUT of Parquet or Arrow files
with a column input_ids. OUT.manifest.json says how far it is complete.
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m dpdk_tokd")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    p = commands.add_parser(
        "encode",
        help="files of text to files of ids",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("vocab", metavar="VOCAB", help="a name, or the path of a vocabulary")
    p.add_argument("inputs", metavar="INPUT", nargs="+", help="a file")
    p.add_argument("-o", "--out", required=True, help="where the result goes, without ending")
    p.add_argument(
        "--to", choices=["bin", "parquet", "arrow"], default="bin", help="default: %(default)s"
    )
    p.add_argument(
        "--from",
        dest="kind",
        choices=["text", "json", "parquet"],
        help="what the files are; default: by the ending of each name",
    )
    p.add_argument(
        "--field",
        metavar="NAME",
        help="of JSON lines, or column of Parquet; default: text",
    )
    p.add_argument(
        "--separator",
        metavar="TEXT",
        type=_unescape,
        help=r"ends a document of a text file, as '\n' or '<|endoftext|>'; default: the file's end",
    )
    p.add_argument(
        "--append-eos",
        metavar="TOKEN",
        help="put this special token, or id, after each document that is not empty",
    )
    p.add_argument(
        "--no-special", action="store_true", help="without the vocabulary's template ([CLS], <bos>)"
    )
    p.add_argument(
        "--added-tokens",
        choices=["none", "not-special", "all"],
        default="not-special",
        help="which added tokens are recognised in the text: none, those that are not special, "
        "or all; default: %(default)s",
    )
    p.add_argument(
        "-j",
        "--jobs",
        metavar="N",
        type=_count,
        help="threads; default: one per CPU that this process may use",
    )
    return top


def _unescape(text: str) -> str:
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.reason}; \\\\ is a backslash") from None


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= JOBS_MAX:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 1 to {JOBS_MAX}")
    return int(text)


@dataclass(slots=True)
class Progress:
    """A line on standard error, changed twice a second."""

    begun: float = field(default_factory=time.monotonic)
    next: float = 0
    first: Totals | None = None
    open: bool = False  # the cursor is within the line

    def show(self, now: Totals) -> None:
        at = time.monotonic()
        self.first = first = self.first or now
        if at < self.next and not now.done:
            return
        self.next = at + 0.5
        self.open = not now.done
        seconds = max(at - self.begun, 1e-9)
        speed = (now.size - first.size) / seconds
        left = (now.total - now.size) / speed if speed > 0 else 0
        print(
            f"\r\033[K{now.documents:,} documents, {now.size / 1e6:,.0f} of "
            f"{now.total / 1e6:,.0f} MB, {speed / 1e6:.1f} MB/s, "
            f"{(now.ids - first.ids) / seconds / 1e6:.2f} M ids/s, "
            + (f"{seconds:.0f} s\n" if now.done else f"{left:.0f} s left"),
            end="",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        if self.open:
            print(file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    o = parser().parse_args(argv)
    terminal, progress = sys.stderr.isatty(), Progress()
    try:
        totals = encode_files(
            o.vocab,
            o.inputs,
            o.out,
            to=o.to,
            kind=o.kind,
            field=o.field,
            separator=o.separator,
            append=int(o.append_eos) if (o.append_eos or "").isdecimal() else o.append_eos,
            add_special_tokens=not o.no_special,
            tokens_in_text=o.added_tokens,
            jobs=o.jobs,
            progress=progress.show if terminal else None,
        )
    except (BulkError, ValueError) as error:
        progress.end()
        print(f"dpdk_tokd: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.end()
        print("dpdk_tokd: interrupted: run the same command to continue", file=sys.stderr)
        return 130
    if terminal and progress.first is None:
        print(
            f"dpdk_tokd: {o.out}: complete; remove {o.out}.manifest.json to begin again",
            file=sys.stderr,
        )
    return 0 if totals.done else 1
