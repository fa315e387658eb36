#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that encoding takes, a byte of text, as valgrind counts them.

    build/venv/bin/python tests/golden/instructions/counted.py     # writes counts.json

Needs build/ (tools/setup) and the vocabularies; what is not here keeps the counts it has. The texts
are made from a fixed seed, the hash has a fixed key (key.c), and no clock is read: a
change of a count is a change of the code or of the compiler.
"""

import json
import lzma
import os
import random
import re
import subprocess
import tempfile
from pathlib import Path

from dpdk_tokd.fetch.packages import data_home

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = Path(os.environ.get("TOKD_BUILD", ROOT / "build"))
TOK, PROGRAM = BUILD / "app/tok", BUILD / "tests/golden/instructions/encode_twice"
COLLIDING = BUILD / "tests/golden/instructions/colliding"
RECORDED = HERE / "counts.json"
FETCHED = data_home() / "vocab"
SHARED = ROOT.parent / "shared/vocab"  # of models whose licence goes with them

VOCABULARIES = {
    "gpt2": "gpt2.tiktoken",
    "cl100k": "cl100k_base.tiktoken",
    "o200k": "o200k_base.tiktoken",
    "llama3": "llama3.json",
    "qwen3": "qwen3.json",
    "tekken": "tekken.json",
    "deepseek": "deepseek.json",
    "bert": "bert-base-uncased.txt",
    "mistral": "mistral.model",
    "gemma3": "gemma3.json",
    "t5": "t5.json",
}
ISAS = ("portable", "avx2")
PASSES = ("first", "again")
TEXT_BYTES = 8192
COMMON = """
the of and to in is that it was for on are as with his they at be this from have or one had by
word but not what all were we when your can said there use an each which she do how their if will
up other about out many then them these so some her would make like him into time has look two
more write go see number no way could people my than first water been call who its now find long
down day did get come made may part over new sound take only little work know place year live me
back give most very after thing our just name good sentence man think
"""
WORDS = COMMON.split()
ALPHABETS = ("абвгдежзиклмнопрстуфхцчшыьэюя", "αβγδεζηθικλμνοπρστυφχψω", "ابتثجحدرزسشصطعفقكلمنهوي",
             "अआइकखगचजटडतदनपबमयरलवसह", "äöüßéèêñçåøæ" + "aeiounrst" * 2)  # fmt: skip


def _rare(rng: random.Random) -> str:
    """A word that no vocabulary has."""
    return "".join(
        rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 5))
    )


def _english(rng: random.Random) -> str:
    words = [
        _rare(rng) if rng.random() < 0.12 else rng.choice(WORDS) for _ in range(rng.randint(4, 18))
    ]
    words[0] = words[0].capitalize()
    if rng.random() < 0.2:
        words.insert(2, rng.choice(("don't", "we'll", f"({rng.randint(2, 1999)})", '"so"')))
    return " ".join(words) + rng.choice((". ", ". ", "? ", ", and:\n\n"))


def _code(rng: random.Random) -> str:
    name, other = f"{rng.choice(WORDS)}_{_rare(rng)}", rng.choice(WORDS)
    indent = "    " * rng.randint(0, 3)
    line = rng.choice((
        f"{name} = {other}[{rng.randint(0, 4096)}] + 0x{rng.randint(0, 65535):04x};",
        f"if ({name} != NULL && {other} <= {rng.random():.3f}) {{",
        f"def {name}(self, {other}: int = {rng.randint(0, 9)}) -> str:",
        f"// {rng.choice(WORDS)} {rng.choice(WORDS)} {'-' * rng.randint(1, 40)}",
        f'return {other}.{name}("%s\\n", &{_rare(rng).title()});',
    ))  # fmt: skip
    return f"{indent}{line}\n"


def _multilingual(rng: random.Random) -> str:
    if rng.random() < 0.4:  # scripts without blanks: Chinese, kana, Hangul
        low, high = rng.choice(((0x4E00, 0x6E00), (0x3041, 0x3096), (0xAC00, 0xC000)))
        made = [chr(rng.randint(low, high)) for _ in range(rng.randint(4, 30))]
        return "".join(made) + rng.choice("。、！")
    letters = rng.choice(ALPHABETS)
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(rng.randint(3, 9))]
    return " ".join(words) + ". "


def texts() -> dict[str, bytes]:
    made = {}
    for seed, sentence in enumerate((_english, _code, _multilingual)):
        rng, text = random.Random(seed), b""
        while len(text) < TEXT_BYTES:
            text += sentence(rng).encode()
        made[sentence.__name__[1:]] = text
    return made


def cases() -> dict[str, tuple[int, bytes]]:
    """Texts, and the bytes of the packets that they come in; 0: whole."""
    made = {name: (0, text) for name, text in texts().items()}
    english = made["english"][1]
    return made | {
        "1 KB of dashes": (0, b"-" * 1024),
        "dashes in packets of 100": (100, b"-" * 1024),
        "english in packets of 1400": (1400, english),
        "english in single bytes": (1, english[:1024]),
    }


def words(vocab: Path, n: int, letters: int, *, colliding: bool) -> bytes:
    """Words that no cache has seen; `colliding`: made to fall into one set of it."""
    command = [COLLIDING, vocab, str(n), str(letters), str(int(colliding))]
    return subprocess.run(command, check=True, capture_output=True).stdout


def file_of(name: str, folder: Path) -> Path | None:
    """A vocabulary's, unpacked into `folder` if need be; None: not here."""
    path = FETCHED / VOCABULARIES[name]
    packed = SHARED / f"{VOCABULARIES[name]}.xz"
    if path.is_file() or not packed.is_file():
        return path if path.is_file() else None
    unpacked = folder / VOCABULARIES[name]
    unpacked.write_bytes(lzma.decompress(packed.read_bytes()))
    return unpacked


def compiled(source: Path, folder: Path) -> Path:
    """Mapped instead of built: under valgrind that is a second instead of a minute."""
    out = folder / f"{source.stem}.tokv"
    subprocess.run([TOK, "vocab", "compile", source, "-o", out], check=True, capture_output=True)
    return out


def build() -> str:
    """The compiler and its options."""
    return subprocess.run(
        [PROGRAM], capture_output=True, text=True, check=False
    ).stdout.strip()  # it also says that it was given no text


def count(
    vocab: Path, isa: str, folder: Path, made: dict[str, tuple[int, bytes]]
) -> dict[str, dict[str, float]]:
    """By text: instructions a byte, the first time and again."""
    files = []
    for i, (packet, text) in enumerate(made.values()):
        file = folder / f"text-{i}"
        file.write_bytes(text)
        files.append(f"{packet}:{file}")
    out = folder / "callgrind.out"
    valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
    valgrind += ["--combine-dumps=yes", "--toggle-collect=encode_counted"]
    valgrind += ["--dump-before=encode_counted"]
    done = subprocess.run(
        [*valgrind, PROGRAM, vocab, *files],
        env=os.environ | {"TOK_ISA": isa}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise OSError(f"encode_twice {vocab.name}, TOK_ISA={isa}: {done.stderr[-500:]}")
    # Before the first call, which is nothing; then of each call.
    totals = [int(n) for n in re.findall(r"^totals: (\d+)", out.read_text(), re.MULTILINE)]
    out.unlink()
    _, *calls = totals
    if len(calls) != len(PASSES) * len(files) or 0 in calls:
        raise OSError(f"encode_twice {vocab.name}: counted {totals}")
    return {
        name: {which: round(calls[2 * i + j] / len(text), 2) for j, which in enumerate(PASSES)}
        for i, (name, (_, text)) in enumerate(made.items())
    }


def written(recorded: dict[str, object]) -> str:
    """As JSON, a line a text."""
    text = json.dumps(recorded, indent=1) + "\n"
    return re.sub(r'\{\s*("first": [\d.]+),\s*("again": [\d.]+)\s*\}', r"{\1, \2}", text)


def main() -> None:
    recorded = json.loads(RECORDED.read_text()) if RECORDED.is_file() else {}
    kept = recorded.get("counts", {}) if recorded.get("build") == build() else {}
    counts = {}
    with tempfile.TemporaryDirectory(prefix="tokd-instructions-") as name:
        folder = Path(name)
        for vocabulary, file in VOCABULARIES.items():
            source = file_of(vocabulary, folder)
            if source is None:
                print(f"{vocabulary}: {file} is not here: its counts stay")
                counts[vocabulary] = kept[vocabulary]
                continue
            vocab = compiled(source, folder)
            counts[vocabulary] = {isa: count(vocab, isa, folder, cases()) for isa in ISAS}
            print(vocabulary, json.dumps(counts[vocabulary]), flush=True)
    RECORDED.write_text(written({"build": build(), "counts": counts}))


if __name__ == "__main__":
    main()
