# SPDX-License-Identifier: BSD-3-Clause
"""Time and memory to train a vocabulary: tok train and Hugging Face tokenizers, on one core."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.baseline import train
from bench.lab.cpus import WORKER_CPU
from bench.process import ENDS_WITH_US
from bench.programs import ROOT, TOK
from bench.task import Choice, Context, Number, Report, Value, WrongIds, need
from bench.texts import fetch_corpus
from dpdk_tokd.fetch.packages import data_home
from tokenizers import normalizers

HELP = (
    "A process that trains on one core: wall time, CPU time, peak memory. Text: the three corpora, "
    "then Python and C files of this machine without duplicates. Each vocabulary is compared with "
    "one that tokenizers trained before: for BPE the whole file, for WordPiece tokens and ids."
)
PARAMETERS = {
    "model": Choice(("bpe", "wordpiece")),
    "trainer": Choice(("tok", "tokenizers"), "tok train; Hugging Face tokenizers"),
    "vocab-size": Number(1000, 1_000_000, "ids"),
    "megabytes": Number(1, 2000, "of text"),
}
METRICS = {"cpu": Value("s"), "wall": Value("s"), "peak": Value("MiB")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# More text, which a machine with the project's packages has.
MORE = (("build/venv/lib", "*.py"), ("/usr/lib/python3.11", "*.py"), ("/usr/include", "*.h"))
# Linux counts memory before exec into the peak, so a small process starts them.
STARTER = """
import os, sys, time
begin = time.monotonic()
child = os.fork()
if child == 0:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
cpu = usage.ru_utime + usage.ru_stime
print(status, time.monotonic() - begin, cpu, usage.ru_maxrss / 1024)
"""
Kind = tuple[str, int, int]  # model, size of the vocabulary, megabytes


@dataclass(frozen=True)
class State:
    folder: Path
    texts: dict[int, Path]  # by megabytes
    notes: dict[int, str]
    special: dict[tuple[str, int], list[str]]  # by model and megabytes
    right: dict[Kind, Path]


@dataclass(frozen=True)
class Raw:
    cpu: float  # s
    wall: float  # s
    peak: float  # MiB
    ids: int  # that were compared


def _files_of_machine() -> Iterator[bytes]:
    for folder, pattern in MORE:
        for path in sorted((ROOT / folder).rglob(pattern)):
            if path.is_file() and not path.is_symlink():
                yield path.read_bytes()


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return bool(data)


def make_text(to: Path, wanted: int) -> str:
    """Write `wanted` bytes of text or a little more; returns a description."""
    seen: set[bytes] = set()
    with to.open("wb") as out:
        for path in fetch_corpus.fetch(data_home() / "corpus").values():
            out.write(path.read_bytes()[: wanted - out.tell()].decode("utf-8", "ignore").encode())
        corpora = out.tell()
        for data in _files_of_machine():
            if out.tell() >= wanted:
                break
            digest = hashlib.sha256(data).digest()
            if digest not in seen and _is_text(data):
                seen.add(digest)
                out.write(data if data.endswith(b"\n") else data + b"\n")
        total = out.tell()
    return (
        f"{total / 1e6:.1f} MB: the three corpora ({corpora / 1e6:.1f} MB) and {len(seen):,} "
        "Python and C files of this machine, no duplicates"
    )


def special_tokens(model: str, text: Path) -> list[str]:
    """For wordpiece also ## with each character: the reference's order of these is random."""
    if model == "bpe":
        return ["<|endoftext|>"]
    normalizer, found = normalizers.BertNormalizer(), set()
    with text.open(newline="\n") as lines:
        for line in lines:
            found |= set(normalizer.normalize_str(line))
    return BERT + ["##" + c for c in sorted(found) if not c.isspace()]


def _command(state: State, trainer: str, kind: Kind, out: Path) -> list[str]:
    model, size, megabytes = kind
    special, text = state.special[model, megabytes], state.texts[megabytes]
    if trainer == "tokenizers":
        settings = state.folder / "settings.json"
        settings.write_text(json.dumps([model, size, special, str(text), str(out)]))
        return [sys.executable, train.__file__, str(settings)]
    command = [str(TOK), "train", "--model", model, "--vocab-size", str(size), "-o", str(out)]
    command += ["--limit-alphabet", "0"] if model == "wordpiece" else []
    return [*command, *(word for token in special for word in ("--special", token)), str(text)]


def _train(state: State, trainer: str, kind: Kind, out: Path) -> list[float]:
    """Wall and CPU time in s, and the peak in MiB."""
    starter = [sys.executable, "-I", "-S", "-c", STARTER, str(WORKER_CPU)]
    done = subprocess.run(
        [*starter, *ENDS_WITH_US, *_command(state, trainer, kind, out)],
        env=os.environ | {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    status, *numbers = done.stdout.split()
    if status != "0":
        raise OSError(f"{trainer} ended with {status}: {done.stderr.strip()[-500:]}")
    return [float(number) for number in numbers]


def _kind(parameters: dict[str, Any]) -> Kind:
    return parameters["model"], parameters["vocab-size"], parameters["megabytes"]


def prepare(context: Context) -> State:
    """Text, and the vocabulary that tokenizers make of it, for each kind."""
    need(TOK)
    state = State(context.folder, {}, {}, {}, {})
    for kind in dict.fromkeys(map(_kind, context.tests)):
        model, size, megabytes = kind
        if megabytes not in state.texts:
            path = state.texts[megabytes] = context.folder / f"{megabytes}.txt"
            state.notes[megabytes] = make_text(path, megabytes * 1_000_000)
        state.special[model, megabytes] = special_tokens(model, state.texts[megabytes])
        context.log(f"train: the reference's vocabulary: {model}, {size:,} ids")
        state.right[kind] = context.folder / f"{model}-{size}-{megabytes}.json"
        _train(state, "tokenizers", kind, state.right[kind])
    return state


def _vocabulary(path: Path) -> dict[str, int]:
    return json.loads(path.read_text())["model"]["vocab"]


def run(state: State, parameters: dict[str, Any]) -> Raw:
    kind, out = _kind(parameters), state.folder / "made.json"
    out.unlink(missing_ok=True)
    wall, cpu, peak = _train(state, parameters["trainer"], kind, out)
    made, right = _vocabulary(out), state.right[kind]
    same = (
        out.read_bytes() == right.read_bytes() if kind[0] == "bpe" else made == _vocabulary(right)
    )
    if not same:
        raise WrongIds(f"{parameters['trainer']}: the vocabulary differs from the reference's")
    return Raw(cpu, wall, peak, len(made))


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    return Report(
        values={"cpu": raw.cpu, "wall": raw.wall, "peak": raw.peak},
        ids_checked=raw.ids,
        notes=[state.notes[parameters["megabytes"]]],
    )
