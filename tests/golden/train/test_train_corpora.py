# SPDX-License-Identifier: BSD-3-Clause
"""Vocabularies learned from slices of the corpora: the reference's, and the ids they give too."""

from pathlib import Path

import pytest
from texts import CORPORA, DATA
from training import (
    BERT,
    BertSettings,
    Settings,
    pinned,
    reference_bert,
    reference_bpe,
    tokenizers,
    train,
    vocab_of,
)

dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

SLICE = 1_000_000  # bytes


@pytest.fixture(scope="module", params=CORPORA)
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slice of a corpus, cut between lines."""
    path = DATA / f"{request.param}.txt"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-corpus")
    with path.open("rb") as corpus:
        data = corpus.read(SLICE)
    out = tmp_path_factory.mktemp("corpus") / path.name
    out.write_bytes(data[: data.rindex(b"\n") + 1])
    return out


def encodes_as_the_reference(made: Path, text: Path) -> None:
    ours, theirs = dpdk_tokd.Tokenizer.load(str(made)), tokenizers.Tokenizer.from_file(str(made))
    for line in text.read_bytes().decode().split("\n")[::20]:
        assert ours.encode(line).tolist() == theirs.encode(line).ids
    assert ours.encode("").tolist() == theirs.encode("").ids


def test_bpe(text: Path, tmp_path: Path) -> None:
    pretokenizer = "llama3" if text.stem == "multi" else "gpt2"
    settings = Settings(12000, special=("<|endoftext|>",), pretokenizer=pretokenizer)
    made = train([text], settings, tmp_path / "tokenizer.json")
    assert made.read_text() == reference_bpe([text], settings)
    encodes_as_the_reference(made, text)


def test_wordpiece(text: Path, tmp_path: Path) -> None:
    lowercase = text.stem != "code"
    special = BERT + pinned(text, BertSettings(lowercase=lowercase))
    settings = BertSettings(12000, special=special, limit_alphabet=None, lowercase=lowercase)
    made = train([text], settings, tmp_path / "tokenizer.json")
    assert vocab_of(made) == reference_bert([text], settings)
    made = train([text], BertSettings(12000, lowercase=lowercase), tmp_path / "again.json")
    encodes_as_the_reference(made, text)
