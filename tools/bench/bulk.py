#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files of text to a file of ids: `python -m dpdk_tokd encode` beside gigatoken and tokenizers.

    PYTHONPATH=tools PYTHON -m bench.bulk [--mb 1000] [--repeats 3] [--out doc/results/bulk.md]

PYTHON has dpdk_tokd, gigatoken with awkward, and tokenizers. The text is cut from the corpora of
tools/fetch-corpus into documents of 0.5 to 8 KB, in random order and over again, each with a
random number at its end. The ways run interleaved, each run in a process of its own; all must write
the same ids.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from dpdk_tokd.fetch.packages import data_home

from bench.lab import machine

DATA = data_home()

SMALL = 100  # tokenizers encodes this share of the text: it takes long enough

GIGATOKEN = """
import sys, awkward as ak, gigatoken as gt, numpy as np
source = {".txt": lambda p: gt.TextFileSource([p], separator="<|endoftext|>"),
          ".jsonl": lambda p: gt.JsonlFileSource([p])}[sys.argv[2][sys.argv[2].rindex("."):]]
tok = gt.Tokenizer.from_tiktoken(sys.argv[1], pretokenizer="gpt2")
ids = tok.encode_files(source(sys.argv[2]), parallel=sys.argv[4] != "1")
ak.to_numpy(ak.flatten(ids)).astype(np.uint16).tofile(sys.argv[3])
"""
TOKENIZERS = """
import itertools, json, sys, numpy as np
from bench.texts.reference import load_gpt2
from pathlib import Path
tok = load_gpt2(Path(sys.argv[1]))
with open(sys.argv[2], "rb") as lines, open(sys.argv[3], "wb") as out:
    while batch := [json.loads(line)["text"] for line in itertools.islice(lines, 1000)]:
        for e in tok.encode_batch_fast(batch, add_special_tokens=False):
            out.write(np.array(e.ids, np.uint16).data)
"""


class Way(NamedTuple):
    name: str
    kind: str  # ending of the input
    command: list[str]
    small: bool = False


class Run(NamedTuple):
    wall: float  # s
    cpu: float
    rss: float  # MB, the most at a time
    anonymous: float


def make_texts(folder: Path, corpora: Path, size: int) -> None:
    """text.jsonl and text.txt, and a tenth of the former."""
    rng = random.Random(1)
    pieces = []
    for name in ("english", "code", "multi"):
        text = (corpora / f"{name}.txt").read_text(errors="replace")
        at = 0
        while at < len(text):
            n = rng.choice([500, 1000, 2000, 4000, 8000])
            pieces.append(text[at : at + n])
            at += n
    done = 0
    with (
        open(folder / "text.jsonl", "w") as lines,
        open(folder / "text.txt", "w") as plain,
        open(folder / "small.jsonl", "w") as small,
    ):
        while done < size:
            rng.shuffle(pieces)
            for piece in pieces:
                text = f"{piece}\n{rng.getrandbits(40):x}"
                line = json.dumps({"id": done, "text": text}, ensure_ascii=False) + "\n"
                lines.write(line)
                plain.write(text + "<|endoftext|>")
                if done < size / SMALL:
                    small.write(line)
                done += len(text.encode())
                if done >= size:
                    break


def measure(command: list[str], threads: int) -> Run:
    env = os.environ | {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    begin, rss, anonymous = time.monotonic(), 0, 0
    process = subprocess.Popen(command, env=env)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        with open(f"/proc/{process.pid}/status") as lines:
            status_of = dict(line.split(":", 1) for line in lines)
        if "VmHWM" in status_of:  # not of a zombie; what fork left is forgotten by exec
            rss = max(rss, int(status_of["VmHWM"].split()[0]))
            anonymous = max(anonymous, int(status_of["RssAnon"].split()[0]))
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command}: exit code {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(time.monotonic() - begin, cpu, rss / 1e3, anonymous / 1e3)


def begins_with(path: Path, other: Path) -> bool:
    """The file with the bytes of `other`."""
    with open(path, "rb") as a, open(other, "rb") as b:
        while piece := b.read(1 << 20):
            if a.read(len(piece)) != piece:
                return False
    return True


def spread(values: list[float]) -> str:
    digits = 1 if max(values) < 10 else 0
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return f"{statistics.median(values):,.{digits}f} ({low}-{high})"


def page(rows: list[str], mb: float, repeats: int, loads: list[float]) -> str:
    versions = " and ".join(f"{n} {metadata.version(n)}" for n in ("gigatoken", "tokenizers"))
    table, cpu = "\n".join(rows), machine.cpu()
    return f"""# Files to files

<!-- Written by tools/bench/bulk.py. -->

{mb:,.0f} MB of text to a file of GPT-2 ids (uint16): `python -m dpdk_tokd encode` beside
{versions}. The text is English, code and other languages, in documents
of 0.5 to 8 KB, and is in the page cache. Median of {repeats} runs (least-most), interleaved, each in its
own process. All wrote the same ids.

    PYTHONPATH=tools python -m bench.bulk --mb {mb:.0f} --repeats {repeats}

{len(cpu["usable"])} CPUs ({cpu["model"]}); load average {min(loads):.1f} to {max(loads):.1f} during the runs. *MB/s of CPU time*: MB of text
by the CPU time of all threads.

| | threads | MB/s of CPU time | MB/s | peak memory, MB | anonymous memory, MB |
|---|---|---|---|---|---|
{table}

gigatoken keeps all ids in memory until the end; dpdk-tokd writes as it goes. tokenizers encoded
only {mb / SMALL:,.0f} MB. Memory that is not anonymous is of files, mostly mapped input, which the
kernel can drop.
"""


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mb", type=int, default=1000)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--vocab", type=Path, default=DATA / "vocab/gpt2.tiktoken")
    p.add_argument("--corpora", type=Path, default=DATA / "corpus")
    p.add_argument("--out", type=Path, default=Path("doc/results/bulk.md"))
    o = p.parse_args()
    python = sys.executable
    ours = [python, "-m", "dpdk_tokd", "encode", str(o.vocab)]
    ways = [
        Way("dpdk-tokd, text", ".txt", [*ours, "--separator", "<|endoftext|>"]),
        Way("gigatoken, text", ".txt", [python, "-c", GIGATOKEN, str(o.vocab)]),
        Way("dpdk-tokd, JSON lines", ".jsonl", ours),
        Way("gigatoken, JSON lines", ".jsonl", [python, "-c", GIGATOKEN, str(o.vocab)]),
        Way("tokenizers, JSON lines", ".jsonl", [python, "-c", TOKENIZERS, str(o.vocab)], True),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_texts(folder, o.corpora, o.mb * 1_000_000)
        runs: dict[tuple[str, int], list[Run]] = {}
        loads, first = [], folder / "first"
        order = [(way, threads) for way in ways for threads in (1, 2)] * o.repeats
        for way, threads in order:
            source = str(folder / ("small" if way.small else "text")) + way.kind
            out = folder / "out"
            if way.command[: len(ours)] == ours:
                tail = [source, "-o", str(out), "-j", str(threads)]
            else:
                tail = [source, str(out.with_suffix(".bin")), str(threads)]
            run = measure([*way.command, *tail], threads)
            print(way.name, threads, run, os.getloadavg()[0], flush=True)
            runs.setdefault((way.name, threads), []).append(run)
            loads.append(os.getloadavg()[0])
            ids = out.with_suffix(".bin")
            if not first.exists():
                ids.rename(first)
            elif ids.stat().st_size == 0 or not (
                begins_with(first, ids) and (way.small or begins_with(ids, first))
            ):
                raise SystemExit(f"{way.name}: other ids than {ways[0].name}")
            for file in folder.glob("out*"):
                file.unlink()
    rows = []
    for way in ways:
        mb = o.mb / SMALL if way.small else o.mb
        for threads in (1, 2):
            got = runs[way.name, threads]
            rows.append(
                f"| {way.name} | {threads} | {spread([mb / r.cpu for r in got])} "
                f"| {spread([mb / r.wall for r in got])} | {spread([r.rss for r in got])} "
                f"| {spread([r.anonymous for r in got])} |"
            )
    # Its last section is that of bench.bulk_processes.
    old = o.out.read_text() if o.out.exists() else ""
    o.out.write_text(page(rows, o.mb, o.repeats, loads) + "".join(old.partition("\n## ")[1:]))


if __name__ == "__main__":
    main()
