# SPDX-License-Identifier: BSD-3-Clause
"""Text to ids and to rows: those of libtok on this host, and times by the device's clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import figures
from ..build import ROOT
from ..parts import part
from ..run import NO_GPU, NotRun, Run, Wrong
from ..vocabularies import WAYS, file_of
from .a_times import SERIES

ROWS_WAYS = ("gpt2", "gpt2 greedy", "bert")
TEXT_BYTES = 8192
AT_ONCE = 1024  # texts
RATE_NOTE = "text bytes over the time from the producers' beginning to their end; rows compared"


def sample(run: Run) -> Path:
    """A file of text: this repository's documents and sources."""
    path = run.work / "text"
    sources = [*sorted((ROOT / "doc").rglob("*.md")), *sorted((ROOT / "lib").rglob("*.c"))]
    path.write_bytes(b"".join(source.read_bytes() for source in sources))
    return path


def ways(run: Run) -> dict[str, list[Any]]:
    """Options and vocabulary, by name; of those whose vocabulary is here."""
    here: dict[str, list[Any]] = {}
    for name, (vocabulary, options) in WAYS.items():
        path = file_of(vocabulary, run.work)
        if path is None:
            run.skipped(f"{name}: no vocabulary: run tools/fetch-vocab, or set TOK_VOCAB_PATH")
        else:
            here[name] = [*options, path]
    if not here:
        raise NotRun("no vocabulary: run tools/fetch-vocab, or set TOK_VOCAB_PATH")
    return here


def called(run: Run, program: str, *words: Any) -> str:
    status, output, errors = run.call([run.build.program(program), *map(str, words)], 60)
    if status == NO_GPU:
        raise Wrong(errors.strip())
    if status != 0:
        run.failed(program, status, output, errors)
    return output


@part("D", 10, "ids of texts against libtok's", 150)
def exact(run: Run) -> None:
    count, text = (20_000 if run.on_gpu else 500), sample(run)
    for name, way in ways(run).items():
        with run.apart(name):
            said = called(run, "gpu_check_texts", *way, count, run.seed, text)
            run.right(f"{name}: {'; '.join(said.split(chr(10))).strip('; ')}")


def timed(run: Run, name: str, way: list[Any], text: Path) -> None:
    runs = 1000 if run.on_gpu else 20
    said = json.loads(called(run, "gpu_time_texts", *way, TEXT_BYTES, 1, runs, text))
    numbers = figures.microseconds(said["text_ns"], 1)
    note = f"{said['ids']} ids, equal to libtok's; one block"
    what = f"{name}: a text of {TEXT_BYTES} bytes"
    run.figure(what=what, ring="-", clock=said["clock"], **numbers, note=note)


def rate(run: Run, name: str, way: list[Any], text: Path) -> None:
    texts, runs = (AT_ONCE, 20) if run.on_gpu else (16, 3)
    said = json.loads(called(run, "gpu_time_texts", *way, TEXT_BYTES, texts, runs, text))
    rates = sorted(said["bytes"] / ns for ns in said["run_ns"])
    note = f"median of {runs}, {rates[0]:.3g} to {rates[-1]:.3g}; ids equal to libtok's"
    what = f"{name}: {texts} texts of {TEXT_BYTES} bytes at once"
    run.figure(what=what, ring="-", value=rates[runs // 2], unit="GB/s", note=note)


@part("D", 20, "times of texts to ids", 150)
def times(run: Run) -> None:
    text = sample(run)
    for name, way in ways(run).items():
        with run.apart(name):
            timed(run, name, way, text)
            rate(run, name, way, text)


def posted(run: Run, ring: str, name: str, way: list[Any], text: Path, **numbers: int) -> Any:
    """Texts that producers on the device post until their rows are done; rows compared."""
    *options, vocabulary = way
    numbers |= {"greedy": int("--greedy" in options), "bytes": TEXT_BYTES}
    if not run.on_gpu:
        numbers["dim"] = 64
    said = run.measured("produce", ring, vocab=vocabulary, text=text, **numbers)
    run.right(
        f"{name}, ring {said['ring']}: rows of {said['texts_compared']} texts are those of "
        f"libtok's ids, after {said['done']:,} posts"
    )
    return said


def rows_of(run: Run, ring: str, name: str, way: list[Any], text: Path) -> None:
    many = {"producers": 16, "slots": 64, "in_flight": 64, "n": 256}
    if not run.on_gpu:
        many = {"slots": 16, "in_flight": 16, "n": 32}
    said = posted(run, ring, name, way, text, n=1000 if run.on_gpu else 20, slots=2)
    what = f"a text of {TEXT_BYTES} bytes, 1 in flight: {name}"
    run.timed(said, {key: f"{word}, {what}" for key, word in SERIES.items()})
    said = posted(run, ring, name, way, text, **many)
    what = f"{name}: {many.get('producers', 1) * many['slots']} texts in flight, to rows"
    value = said["text_bytes"] / said["ns"]
    run.figure(what=what, ring=said["ring"], value=value, unit="GB/s", note=RATE_NOTE)


@part("D", 30, "texts posted to rows done", 240)
def rows(run: Run) -> None:
    text, here = sample(run), ways(run)
    for ring in run.rings:
        with run.at_ring(ring):
            for name in (name for name in ROWS_WAYS if name in here):
                with run.apart(f"{name}, ring {ring}"):
                    rows_of(run, ring, name, here[name], text)
