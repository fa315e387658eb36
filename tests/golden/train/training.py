# SPDX-License-Identifier: BSD-3-Clause
"""Training by `tok train` and by Hugging Face tokenizers, with the same settings."""

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
from tokenizers import (
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TOKD_BUILD", REPOSITORY / "build"))
TOK = BUILD / "app/tok"
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Settings:
    vocab_size: int = 30000
    min_frequency: int = 2
    special: tuple[str, ...] = ()
    max_token_length: int | None = None
    pretokenizer: str = "gpt2"


@dataclass(frozen=True)
class BertSettings:
    vocab_size: int = 30000
    min_frequency: int = 2
    special: tuple[str, ...] = BERT
    limit_alphabet: int | None = 1000
    initial_alphabet: str = ""
    lowercase: bool = True
    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None

    def normalizer(self) -> normalizers.BertNormalizer:
        names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        return normalizers.BertNormalizer(**{name: getattr(self, name) for name in names})


def characters(path: Path, settings: BertSettings) -> Counter[str]:
    """How often each is in the words that the reference trains on."""
    lines = path.read_bytes().decode().split("\n")
    normalizer = settings.normalizer()
    count: Counter[str] = Counter()
    for line in lines:
        count.update(normalizer.normalize_str(line))
    return Counter({c: n for c, n in count.items() if not c.isspace()})


def pinned(path: Path, settings: BertSettings) -> tuple[str, ...]:
    """
    ## and each character, as special tokens: the reference gives those their ids in the order in
    which it comes upon them in a hash table, which is another in each run.
    """
    return tuple("##" + c for c in sorted(characters(path, settings)))


def split_of(name: str) -> pre_tokenizers.PreTokenizer:
    """What the reference has of a pretokenizer that a tokenizer.json names by its expressions."""
    if name == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    word = {
        "llama3": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
        "qwen2": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    }[name]
    expression = (
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|{word}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    split = pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, last])


def reference_bpe(files: list[Path], settings: Settings) -> str:
    """The tokenizer.json of the reference."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = split_of(settings.pretokenizer)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        min_frequency=settings.min_frequency,
        special_tokens=list(settings.special),
        max_token_length=settings.max_token_length,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train([str(path) for path in files], trainer)
    return made.to_str(pretty=True)


def reference_bert(files: list[Path], settings: BertSettings) -> dict[str, int]:
    """The vocabulary of the reference."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = settings.normalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    limit = settings.limit_alphabet
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.vocab_size,
        min_frequency=settings.min_frequency,
        special_tokens=list(settings.special),
        initial_alphabet=list(settings.initial_alphabet),
        show_progress=False,
        **({} if limit is None else {"limit_alphabet": limit}),
    )
    made.train([str(path) for path in files], trainer)
    return made.get_vocab()


def run(*args: str | Path, data: bytes | None = None, **more) -> subprocess.CompletedProcess[bytes]:
    if not TOK.is_file():
        pytest.skip(f"{TOK} is not built: run tools/setup")
    return subprocess.run(
        [TOK, "train", *args], input=data, capture_output=True, timeout=120, check=False, **more
    )


def options_of(settings: Settings | BertSettings) -> list[str]:
    options = ["--vocab-size", str(settings.vocab_size)]
    options += ["--min-frequency", str(settings.min_frequency)]
    for token in settings.special:
        options += ["--special", token]
    if isinstance(settings, Settings):
        options += ["--model", "bpe", "--pretokenizer", settings.pretokenizer]
        if settings.max_token_length is not None:
            options += ["--max-token-length", str(settings.max_token_length)]
        return options
    options += ["--model", "wordpiece", "--limit-alphabet", str(settings.limit_alphabet or 0)]
    options += [] if settings.lowercase else ["--cased"]
    options += [] if settings.clean_text else ["--keep-controls"]
    options += [] if settings.handle_chinese_chars else ["--join-chinese"]
    if settings.strip_accents is not None:
        options.append("--strip-accents" if settings.strip_accents else "--keep-accents")
    if settings.initial_alphabet:
        options += ["--initial-alphabet", settings.initial_alphabet]
    return options


def train(files: list[Path], settings: Settings | BertSettings, out: Path) -> Path:
    done = run(*options_of(settings), "-o", out, *files)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return out


def vocab_of(path: Path) -> dict[str, int]:
    return json.loads(path.read_text())["model"]["vocab"]
