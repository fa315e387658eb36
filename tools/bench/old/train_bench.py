# SPDX-License-Identifier: BSD-3-Clause
"""tools/train-bench: tok train beside Hugging Face tokenizers, equal vocabularies, one core."""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from bench.programs import ROOT, TOK
from bench.texts.packages import data_home
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# After the corpora: text that a machine with the project's packages has, each file once.
MORE = (("build/venv/lib", "*.py"), ("/usr/lib/python3.11", "*.py"), ("/usr/include", "*.h"))


def files_of_machine() -> Iterator[bytes]:
    for folder, pattern in MORE:
        for path in sorted((ROOT / folder).rglob(pattern)):
            if path.is_file() and not path.is_symlink():
                yield path.read_bytes()


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return bool(data)


def make_text(to: Path, wanted: int) -> str:
    """The three corpora, then other files, each content once; says what there is of it."""
    seen: set[bytes] = set()
    with to.open("wb") as out:
        for name in ("english", "code", "multi"):
            out.write((data_home() / "corpus" / f"{name}.txt").read_bytes())
        corpora = out.tell()
        for data in files_of_machine():
            if out.tell() >= wanted:
                break
            digest = hashlib.sha256(data).digest()
            if digest not in seen and is_text(data):
                seen.add(digest)
                out.write(data if data.endswith(b"\n") else data + b"\n")
        total = out.tell()
    return (
        f"{total / 1e6:.1f} MB: the three corpora ({corpora / 1e6:.1f} MB) and {len(seen):,} "
        "Python and C files of this machine, no content twice"
    )


def special_tokens(model: str, text: Path) -> list[str]:
    """With wordpiece ## and each character, for the reference leaves their order to chance."""
    if model == "bpe":
        return ["<|endoftext|>"]
    normalizer, found = normalizers.BertNormalizer(), set()
    with text.open(newline="\n") as lines:
        for line in lines:
            found |= set(normalizer.normalize_str(line))
    return BERT + ["##" + c for c in sorted(found) if not c.isspace()]


def train_reference(model: str, size: int, special: list[str], text: str, out: str) -> None:
    common = {"vocab_size": size, "min_frequency": 2, "special_tokens": special}
    if model == "bpe":
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        made.post_processor = processors.ByteLevel(trim_offsets=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False, **common)
    else:
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(show_progress=False, **common)
    made.train([text], trainer)
    made.save(out)


@dataclass
class Run:
    wall: float  # s
    cpu: float  # s
    peak: float  # MiB


# Linux counts what a process had before exec into its peak: the one that starts them is small.
STARTER = """
import os, sys, time
begin = time.monotonic()
child = os.fork()
if child == 0:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
cpu = usage.ru_utime + usage.ru_stime
print(status, time.monotonic() - begin, cpu, usage.ru_maxrss / 1024)
"""


def measure(command: list[str | Path], core: int) -> Run:
    start = [sys.executable, "-I", "-S", "-c", STARTER, str(core), *command]
    one = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        start, env=os.environ | one, stdout=subprocess.PIPE, text=True, check=True
    )
    status, *numbers = done.stdout.split()
    if status != "0":
        sys.exit(f"train-bench: {command[0]} failed")
    return Run(*map(float, numbers))


def same(model: str, ours: Path, theirs: Path) -> bool:
    if model == "bpe":
        return ours.read_bytes() == theirs.read_bytes()
    a, b = (json.loads(path.read_text())["model"]["vocab"] for path in (ours, theirs))
    return a == b


def show(name: str, runs: list[Run]) -> None:
    wall = statistics.median(r.wall for r in runs)
    cpu = statistics.median(r.cpu for r in runs)
    print(f"  {name:12} {wall:8.1f} s   {cpu:8.1f} s of CPU   {runs[0].peak:8.0f} MiB at most")


def compare(options: argparse.Namespace, model: str, text: Path, folder: Path) -> bool:
    special = special_tokens(model, text)
    ours, theirs = folder / "ours.json", folder / "theirs.json"
    size = str(options.vocab_size)
    tok = [TOK, "train", "--model", model, "--vocab-size", size, "-o", ours]
    tok += ["--limit-alphabet", "0"] if model == "wordpiece" else []
    for token in special:
        tok += ["--special", token]
    told = json.dumps([model, options.vocab_size, special, str(text), str(theirs)])
    (folder / "told.json").write_text(told)
    reference = [sys.executable, "-m", "bench.old.train_bench", "--reference", folder / "told.json"]
    mine, others = [], []
    for _ in range(options.runs):
        mine.append(measure([*tok, text], options.core))
        others.append(measure(reference, options.core))
    equal = same(model, ours, theirs)
    what = "the same file" if model == "bpe" else "the same vocabulary"
    print(f"{model}, {options.vocab_size:,} ids: {what if equal else 'DIFFERENT'}")
    show("tok train", mine)
    show("tokenizers", others)
    ratio = statistics.median(b.cpu / a.cpu for a, b in zip(mine, others, strict=True))
    runs = f"median of {options.runs}; alternating, core {options.core}"
    print(f"  {ratio:.1f} times less CPU time, {runs}")
    return equal


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="train-bench",
        description="Train on the same text with tok train and with tokenizers, on one core, and "
        "compare what they give, the time and the peak of memory.",
    )
    parser.add_argument("--megabytes", type=int, default=100, help="of text (%(default)s)")
    parser.add_argument("--vocab-size", type=int, default=32000, help="ids (%(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="of each (%(default)s)")
    parser.add_argument("--core", type=int, default=0, help="that both run on (%(default)s)")
    parser.add_argument("--model", choices=("bpe", "wordpiece", "both"), default="both")
    parser.add_argument("--reference", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reference:
        train_reference(*json.loads(Path(options.reference).read_text()))
        return 0
    chosen = ("bpe", "wordpiece") if options.model == "both" else (options.model,)
    with tempfile.TemporaryDirectory() as name:
        text = Path(name) / "text.txt"
        print(make_text(text, options.megabytes * 1_000_000))
        print(f"tokenizers {tokenizers.__version__}")
        results = [compare(options, model, text, Path(name)) for model in chosen]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
