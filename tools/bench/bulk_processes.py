#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ray Data and datasets.map with 1 and 2 processes, beside a loop in one: Parquet to Parquet.

    PYTHONPATH=tools build/ecosystem/bin/python -m bench.bulk_processes [--mb 100] [--repeats 3]

Writes the last section of doc/results/bulk.md. The text is that of bench.bulk. The ways run
interleaved, each run in a process of its own, with a Ray of its own; the clock runs from the first
file that is opened to the last one that is written, after libraries and actors have been started.
All must write the same ids.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import dpdk_tokd
import pyarrow as pa
import pyarrow.parquet as pq

from bench.bulk import DATA, make_texts, spread
from bench.lab import machine

FILES = 8
ROWS = 1000  # of a batch
TITLE = "## Ray Data and datasets"


class Encode:
    """As in doc/user/bulk.md."""

    def __init__(self, vocab: str) -> None:
        self.tok = dpdk_tokd.Tokenizer.load(vocab)

    def __call__(self, table: pa.Table) -> pa.Table:
        batch = self.tok.encode_batch(table["text"].to_pylist(), threads=1)
        return table.append_column("input_ids", batch.to_arrow())


def run_loop(source: Path, out: Path, vocab: str, _: int) -> Callable[[], None]:
    encode = Encode(vocab)

    def run() -> None:
        for path in sorted(source.iterdir()):
            with pq.ParquetFile(path) as file:
                done = [encode(pa.table(batch)) for batch in file.iter_batches(ROWS)]
            pq.write_table(pa.concat_tables(done), out / path.name)

    return run


def run_ray(source: Path, out: Path, vocab: str, processes: int) -> Callable[[], None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    import ray

    ray.init(num_cpus=processes + 1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def encoded(rows: Any) -> Any:
        actors = ray.data.ActorPoolStrategy(size=processes)
        return rows.map_batches(
            Encode,
            fn_constructor_args=[vocab],
            batch_format="pyarrow",
            batch_size=ROWS,
            compute=actors,
            num_cpus=1,
        )

    ray.get([ray.remote(lambda: __import__("dpdk_tokd").__name__).remote()] * processes)

    def run() -> None:  # unless told, Ray reads small files as one block, for one actor
        rows = ray.data.read_parquet(str(source), override_num_blocks=FILES)
        encoded(rows).write_parquet(str(out))

    return run


def run_datasets(source: Path, out: Path, vocab: str, processes: int) -> Callable[[], None]:
    import datasets

    datasets.disable_progress_bars()
    tok = None

    def encode(rows: dict[str, list[Any]]) -> dict[str, Any]:
        nonlocal tok
        tok = tok or dpdk_tokd.Tokenizer.load(vocab)
        return {"input_ids": tok.encode_batch(rows["text"], threads=1).tolist()}

    given = datasets.load_dataset(
        "parquet", data_dir=str(source), split="train", cache_dir=str(out / "cache")
    )

    def run() -> None:
        done = given.map(
            encode, batched=True, batch_size=ROWS, num_proc=processes if processes > 1 else None
        )
        done.to_parquet(out / "0.parquet")

    return run


WAYS = {
    "one process, a loop": (run_loop, (1,)),
    "Ray Data": (run_ray, (1, 2)),
    "datasets.map": (run_datasets, (1, 2)),
}


class Run(NamedTuple):
    wall: float  # s
    cpu: float


def tree_seconds(pid: int) -> float:
    """Processor time of a process, of those that come from it, and of those that have ended."""
    stats, children, before = [], {pid}, 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue  # it has ended
            stats.append((int(entry.name), int(stat[1]), sum(map(int, stat[11:15]))))
    while before < len(children):
        before = len(children)
        children |= {child for child, parent, _ in stats if parent in children}
    ticks = sum(ticks for child, _, ticks in stats if child in children)
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(way: str, processes: int, source: Path, out: Path, vocab: str) -> Run:
    run = WAYS[way][0](source, out, vocab, processes)
    cpu, begin = tree_seconds(os.getpid()), time.monotonic()
    run()
    return Run(time.monotonic() - begin, tree_seconds(os.getpid()) - cpu)


def make_parquet(folder: Path, corpora: Path, mb: int) -> Path:
    make_texts(folder, corpora, mb * 1_000_000)
    with open(folder / "text.jsonl") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    source = folder / "rows"
    source.mkdir()
    table = pa.table({"id": range(len(texts)), "text": texts})
    for i in range(FILES):
        begin, end = (len(texts) * k // FILES for k in (i, i + 1))
        pq.write_table(
            table.slice(begin, end - begin), source / f"{i}.parquet", row_group_size=ROWS
        )
    return source


def ids_of(out: Path) -> pa.ChunkedArray:
    tables = [pq.read_table(path, columns=["id", "input_ids"]) for path in out.glob("*.parquet")]
    return pa.concat_tables(tables, promote_options="permissive").sort_by("id")["input_ids"]


def section(rows: list[str], mb: int, repeats: int, loads: list[float]) -> str:
    versions = " and ".join(f"{n} {metadata.version(n)}" for n in ("ray", "datasets"))
    table, cpu = "\n".join(rows), machine.cpu()
    return f"""{TITLE}

<!-- Written by tools/bench/bulk_processes.py. -->

{mb} MB of the same text, in {FILES} Parquet files, to Parquet files of text and ids, by the
examples of [bulk.md](../user/bulk.md): {versions}.
Median of {repeats} runs (least-most), interleaved. All wrote the same ids. CPU time is that of all
processes, including Ray's own.

    PYTHONPATH=tools build/ecosystem/bin/python -m bench.bulk_processes --mb {mb} --repeats {repeats}

{len(cpu["usable"])} CPUs ({cpu["model"]}), shared; load average {min(loads):.1f} to {max(loads):.1f} from other work. Two
processes cannot be twice as fast here.

| | processes | s | MB/s | CPU time, s |
|---|---|---|---|---|
{table}
"""


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mb", type=int, default=100)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--vocab", type=Path, default=DATA / "vocab/gpt2.tiktoken")
    p.add_argument("--corpora", type=Path, default=DATA / "corpus")
    p.add_argument("--page", type=Path, default=Path("doc/results/bulk.md"))
    p.add_argument("--run", nargs=4, help=argparse.SUPPRESS)  # WAY PROCESSES SOURCE OUT
    o = p.parse_args()
    if o.run:
        way, processes, source, out = o.run
        print(json.dumps(measured(way, int(processes), Path(source), Path(out), str(o.vocab))))
        return
    with tempfile.TemporaryDirectory() as name:
        source = make_parquet(Path(name), o.corpora, o.mb)
        runs: dict[tuple[str, int], list[Run]] = {}
        loads, first = [], None
        order = [(way, n) for way, (_, counts) in WAYS.items() for n in counts]
        for way, n in order * o.repeats:
            with tempfile.TemporaryDirectory(dir=name) as out:
                command = [sys.executable, "-m", "bench.bulk_processes", "--vocab", str(o.vocab)]
                command += ["--run", way, str(n), str(source), out]
                printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                run = Run(*json.loads(printed.stdout.splitlines()[-1]))
                ids = ids_of(Path(out))
            first = ids if first is None else first
            if ids.to_pylist() != first.to_pylist():
                raise SystemExit(f"{way}, {n}: other ids than {order[0][0]}")
            loads.append(os.getloadavg()[0])
            print(way, n, run, loads[-1], flush=True)
            runs.setdefault((way, n), []).append(run)
    rows = [
        f"| {way} | {n} | {spread([r.wall for r in runs[way, n]])} "
        f"| {spread([o.mb / r.wall for r in runs[way, n]])} "
        f"| {spread([r.cpu for r in runs[way, n]])} |"
        for way, n in order
    ]
    page = o.page.read_text().partition("\n" + TITLE)[0].rstrip("\n")
    o.page.write_text(f"{page}\n\n{section(rows, o.mb, o.repeats, loads)}")


if __name__ == "__main__":
    main()
