# SPDX-License-Identifier: BSD-3-Clause
"""BPE of SentencePiece's models: ids equal the reference's, whole and however the text is cut.

The reference of a .model is the package sentencepiece, that of a tokenizer.json Hugging Face's
tokenizers. Small models are trained here, so that something is compared on any machine; Mistral's
come by tools/fetch-vocab, Gemma 3's lies in ../shared/vocab beside the repository where it is.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import texts
from test_families import FETCHED, reference_of, unpacked
from texts import DATA

sentencepiece = pytest.importorskip("sentencepiece", reason="pip install sentencepiece")
tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

# Runs of blanks and of line ends, U+2581 itself, controls, and what a model may have as its own.
OWN = [*(" " * n for n in (2, 3, 7, 14, 15, 16, 17, 31, 32, 40, 70)), "▁", "▁▁", " ▁ ", "a▁b"]
OWN += ["\n" * 3, "\n" * 40, "\t" * 5, "=" * 12, "</s>", "<0x41>", "[INST]", "[REFERENCE_DOC_0]"]


def model_reference(path: Path):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return processor.encode


def fetched(name: str) -> Path:
    path = FETCHED / f"{name}.model"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab {name}")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """1,500 pieces of the corpora, with runs of blanks and a symbol of its own among them."""
    path = DATA / "multi.txt"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-corpus")
    folder = tmp_path_factory.mktemp("trained")
    lines = path.read_text("utf-8", "replace")[:2_000_000].splitlines()
    code = (DATA / "code.txt").read_text("utf-8", "replace")[:300_000].splitlines()
    (folder / "corpus.txt").write_text("\n".join([*lines[::7], *code]), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"),
        model_prefix=str(folder / "small"),
        model_type="bpe",
        vocab_size=2500,
        character_coverage=0.98,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        user_defined_symbols=["[INST]", "▁▁▁", "==", "<a>"],
        num_threads=1,
        minloglevel=2,
    )
    return folder / "small.model"


def test_a_model_that_was_trained(trained):
    tokenizer = dpdk_tokd.Tokenizer.load(str(trained))
    assert tokenizer.info.format == "sentencepiece"
    assert tokenizer.info.n_added == 4
    texts.compare(tokenizer, model_reference(trained), OWN)


@pytest.mark.parametrize("name", ["mistral-v1", "mistral"])
def test_mistral(name):
    path = fetched(name)
    texts.compare(dpdk_tokd.Tokenizer.load(str(path)), model_reference(path), OWN)


def pieces_of(path: Path) -> dict[str, tuple[int, float]]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ids = range(processor.get_piece_size())
    return {processor.id_to_piece(i): (i, processor.get_score(i)) for i in ids}


def document_of(path: Path, style: str) -> dict:
    """A tokenizer.json of the model, its merges as transformers' converter has them."""
    pieces = pieces_of(path)
    merges = [
        (score, len(left), len(right), left, right)
        for text, (_, score) in pieces.items()
        for left, right in ((text[:i], text[i:]) for i in range(1, len(text)))
        if left in pieces and right in pieces
    ]
    merges.sort(key=lambda merge: (-merge[0], -merge[1], -merge[2]))
    blanks = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    normalizers = {
        "prepend": {
            "type": "Sequence",
            "normalizers": [{"type": "Prepend", "prepend": "▁"}, blanks],
        },
        "none": blanks,
    }
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": style, "split": False}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": text, "normalized": style == "prepend", **special}
            for i, text in enumerate(("<unk>", "<s>", "</s>"))
        ],
        "normalizer": normalizers.get(style),
        "pre_tokenizer": None if style in normalizers else metaspace,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {text: i for text, (i, _) in pieces.items()},
            "merges": [[left, right] for *_, left, right in merges],
        },
    }


@pytest.mark.parametrize("policy", ["plain", "all"])
@pytest.mark.parametrize("style", ["prepend", "none", "first", "always", "never"])
def test_a_tokenizer_json_as_llama_2_has_it(style, policy, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document_of(fetched("mistral-v1"), style)))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, reference_of(path, policy), OWN, added_tokens=policy)


@pytest.mark.parametrize("policy", ["plain", "all"])
def test_gemma_3(policy, tmp_path):
    path = unpacked("gemma3.json", tmp_path)
    added = [*OWN, "<table>", "<start_of_turn>", "<unused7>", ">▁</", "> </", "<bos>", "SSSR"]
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, reference_of(path, policy), added, added_tokens=policy)


def test_gemma_3_without_its_added_tokens(tmp_path):
    """What an appliance does with them: they are text, and runs of line ends are merged."""
    path = unpacked("gemma3.json", tmp_path)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    document = json.loads(path.read_text())
    document["added_tokens"] = []
    path.write_text(json.dumps(document))
    texts.compare(tokenizer, reference_of(path), OWN, added_tokens="text")


@pytest.mark.parametrize("style", ["prepend", "first"])
def test_ids_are_decoded_to_the_reference_s_text(style, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document_of(fetched("mistral-v1"), style)))
    reference = tokenizers.Tokenizer.from_file(str(path))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    rng = texts.Comparison(tokenizer, model_reference(fetched("mistral-v1"))).rng
    for text in texts.lines(rng, 60):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids).decode() == reference.decode(ids.tolist())
        stream = tokenizer.decode_stream()
        assert b"".join([*(stream.feed([i]) for i in ids), stream.finish()]) == tokenizer.decode(ids)
    for _ in range(500):
        ids = [rng.randrange(3, 32000) for _ in range(rng.randint(1, 8))]
        want = reference.decode(ids)
        if "\ufffd" not in want:  # the reference puts one for each byte of what is no character
            assert tokenizer.decode(ids).decode() == want


@pytest.mark.parametrize("style", ["prepend", "none", "always"])
def test_offsets_are_those_of_the_reference(style, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document_of(fetched("mistral-v1"), style)))
    reference = tokenizers.Tokenizer.from_file(str(path))
    reference.encode_special_tokens = True
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    rng = texts.Comparison(tokenizer, reference.encode).rng
    for _ in range(300):
        text = texts.from_pieces(rng, 12, OWN)
        starts = [0]
        for char in text:
            starts.append(starts[-1] + len(char.encode()))
        ids, ranges = tokenizer.encode(text, return_offsets=True)
        want = reference.encode(text)
        assert ids.tolist() == want.ids
        for (begin, end), (first, last) in zip(ranges.tolist(), want.offsets):
            # A blank that was put before the text has no bytes; the reference gives it the first's.
            # Of a character in bytes each has its own; the reference gives each the character.
            whole = (begin, end) == (starts[first], starts[last])
            part = last - first == 1 and starts[first] <= begin < end <= starts[last]
            assert whole or part or (begin, end) == (0, 0), (text, begin, end)
        assert all(a[1] <= b[0] for a, b in pairwise(ranges.tolist()))
