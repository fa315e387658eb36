# SPDX-License-Identifier: BSD-3-Clause
"""BPE of SentencePiece's models: ids equal the reference's, whole and however the text is cut.

The reference of a .model is the package sentencepiece, that of a tokenizer.json Hugging Face's
tokenizers. Small models are trained here, so that something is compared on any machine; Mistral's
come by tools/fetch-vocab, Gemma 3's lies in ../shared/vocab beside the repository where it is.
"""

import json
import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest
import texts
from render_models import llama_document
from test_families import reference_of, unpacked
from texts import DATA, FETCHED, some

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


@pytest.mark.parametrize("name", ["mistral-v1", "mistral"])
def test_mistral_as_mistral_common_has_it(name):
    module = pytest.importorskip(
        "mistral_common.tokens.tokenizers.sentencepiece", reason="pip install mistral-common"
    )
    path = fetched(name)
    reference = module.SentencePieceTokenizer(str(path))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, lambda text: reference.encode(text, bos=False, eos=False), OWN)


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
    vocab = {text: i for text, (i, _) in pieces.items()}
    document = llama_document(vocab, [[left, right] for *_, left, right in merges])
    document["post_processor"] = None
    document["model"]["ignore_merges"] = False
    for token in document["added_tokens"]:
        token["normalized"] = style == "prepend"
    if style == "none":
        document["normalizer"] = document["normalizer"]["normalizers"][1]
    elif style != "prepend":
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": style}
        document |= {"normalizer": None, "pre_tokenizer": metaspace | {"split": False}}
    return document


@pytest.mark.parametrize("policy", ["not-special", "all"])
@pytest.mark.parametrize("style", ["prepend", "none", "first", "always", "never"])
def test_a_tokenizer_json_as_llama_2_has_it(style, policy, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document_of(fetched("mistral-v1"), style)))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, reference_of(path, policy), OWN, tokens_in_text=policy)


@pytest.mark.parametrize("policy", ["not-special", "all"])
def test_gemma_3(policy, tmp_path):
    path = unpacked("gemma3.json", tmp_path)
    added = [*OWN, "<table>", "<start_of_turn>", "<unused7>", ">▁</", "> </", "<bos>", "SSSR"]
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, reference_of(path, policy), added, tokens_in_text=policy)


def test_gemma_3_without_its_added_tokens(tmp_path):
    """What an appliance does with them: they are text, and runs of line ends are merged."""
    path = unpacked("gemma3.json", tmp_path)
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    document = json.loads(path.read_text())
    document["added_tokens"] = []
    path.write_text(json.dumps(document))
    texts.compare(tokenizer, reference_of(path), OWN, tokens_in_text="none")


@pytest.mark.parametrize("style", ["prepend", "first"])
def test_ids_are_decoded_to_the_reference_s_text(style, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document_of(fetched("mistral-v1"), style)))
    reference = tokenizers.Tokenizer.from_file(str(path))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    rng = texts.Comparison(tokenizer, model_reference(fetched("mistral-v1"))).rng
    for text in texts.lines(rng, 60):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == reference.decode(ids.tolist())
        stream = tokenizer.decode_stream()
        parts = [*(stream.feed([i]) for i in ids), stream.finish()]
        assert "".join(parts) == tokenizer.decode(ids)
    for _ in range(500):
        ids = [rng.randrange(3, 32000) for _ in range(rng.randint(1, 8))]
        want = reference.decode(ids)
        if "\ufffd" not in want:  # the reference puts one for each byte of what is no character
            assert tokenizer.decode(ids) == want


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
        ids, ranges = tokenizer.encode(text, tokens_in_text="not-special", return_offsets=True)
        want = reference.encode(text)
        assert ids.tolist() == want.ids
        for (begin, end), (first, last) in zip(ranges.tolist(), want.offsets, strict=True):
            # Of a character in bytes each has its own; the reference gives each the character.
            whole = (begin, end) == (starts[first], starts[last])
            part = last - first == 1 and starts[first] <= begin < end <= starts[last]
            assert whole or part, (text, begin, end)
        # A blank that was put before the text, alone, has the place of the first character.
        assert all(a[1] <= b[0] or a[0] == b[0] for a, b in pairwise(ranges.tolist()))


def random_document(rng: random.Random) -> dict:
    """Few characters and many merges, in an order in which parts may come behind the whole."""
    pieces = list("▁abé")[: rng.randint(2, 4)]
    characters = len(pieces)
    merges: dict[tuple[str, str], float] = {}
    for _ in range(rng.randint(1, 12)):
        left, right = rng.choice(pieces), rng.choice(pieces)
        if rng.random() < 0.4:  # runs
            left = right = rng.choice(pieces[:characters])
            left *= rng.randint(1, 4)
        text = left + right
        if left not in pieces or len(text) > 8:
            continue
        if text not in pieces:
            pieces.append(text)
        for at in range(1, len(text)):
            if text[:at] in pieces and text[at:] in pieces:
                merges.setdefault((text[:at], text[at:]), len(merges))
    order = sorted(merges, key=merges.get)
    if rng.random() < 0.5:  # as converters do: the longest of equal scores first
        order.sort(key=lambda pair: -len(pair[0] + pair[1]))
    for _ in range(rng.choice([0, 0, 1, 3])):
        a, b = rng.randrange(len(order) or 1), rng.randrange(len(order) or 1)
        if order:
            order[a], order[b] = order[b], order[a]
    vocab = [f"<0x{byte:02X}>" for byte in range(256)] + pieces
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "byte_fallback": True,
            "vocab": {text: i for i, text in enumerate(vocab)},
            "merges": [list(pair) for pair in order],
        },
    }


def test_random_merges_in_any_order(tmp_path):
    """What loads is exact, and most does; what does not is refused for the order of its merges."""
    rng = random.Random(5)
    path = tmp_path / "tokenizer.json"
    loaded, refused = 0, 0
    for _ in range(some(40_000)):
        path.write_text(json.dumps(random_document(rng)))
        try:
            tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        except ValueError as error:
            assert "comes before those of its parts" in str(error)
            refused += 1
            continue
        loaded += 1
        comparison = texts.Comparison(tokenizer, reference_of(path), rng.randrange(1 << 30))
        for _ in range(20):
            text = "".join(
                rng.choices(["a", "b", " ", "é", "aaa", "   ", "x", "中"], k=rng.randint(1, 14))
            )
            comparison.everywhere(text * rng.choice([1, 1, 1, 7]))
    print(f"{loaded} vocabularies loaded, {refused} refused")
    assert loaded > refused


@pytest.mark.parametrize("style", ["prepend", "none", "first", "always", "never"])
def test_what_was_held_for_an_added_token_becomes_others(style, tmp_path):
    """A long one is begun, and ends otherwise: each short one in it is found, with a blank before
    what is between them or not. There is room for all of that."""
    path = tmp_path / "tokenizer.json"
    document = document_of(fetched("mistral-v1"), style)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
    for i, text in enumerate(["a", "ab" * 200 + "Z", " b", "qz foo"]):
        known = document["model"]["vocab"].get(text)
        added = {"id": 32000 + i if known is None else known, "content": text}
        document["added_tokens"].append({**added, "normalized": True, **flags})
    extra = [t for t in document["added_tokens"] if t["content"] not in document["model"]["vocab"]]
    for i, token in enumerate(extra):
        token["id"] = 32000 + i
    path.write_text(json.dumps(document))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    comparison = texts.Comparison(tokenizer, reference_of(path))
    for text in [
        "ab" * 199,
        "ab" * 200 + "Y",
        "x" + "ab" * 150,
        "qz ",
        "qz fo",
        "qz foo b",
        "ab" * 200 + "Z",
    ]:
        comparison.whole(text)
        ids = tokenizer.encode(text, add_special_tokens=False)
        for cut in range(0, len(text) + 1, 7):
            assert comparison.streamed(text.encode(), [cut]).tolist() == ids.tolist()


def random_model(rng: random.Random) -> bytes:
    """A .model of few characters; runs may have equal scores, user-defined pieces may be among
    others."""

    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    def piece(text: str, score: float, kind: int = 1) -> bytes:
        tail = b"\x15" + struct.pack("<f", score) + bytes([0x18, kind])
        return field(1, field(1, text.encode()) + tail)

    characters = list("▁abé")[: rng.randint(2, 4)]
    pieces = list(characters)
    for _ in range(rng.randint(1, 12)):
        text = rng.choice(pieces) + rng.choice(pieces)
        if rng.random() < 0.4:
            text = rng.choice(characters) * rng.randint(2, 8)
        if text not in pieces and len(text) <= 8:
            pieces.append(text)
    scores = {text: -1.0 - rng.randrange(100) - i / 64 for i, text in enumerate(pieces)}
    if rng.random() < 0.5:
        run = rng.choice(characters)
        scores.update({text: -200.0 for text in pieces if set(text) == {run}})
    own = rng.sample(["[A]", "ab", "▁▁", "éé", "b", "<", "a b"], rng.randint(0, 2))
    prefix = rng.choice([b"\x18\x01", b"\x18\x00", b""])
    return b"".join(
        [
            piece("<unk>", 0, 2),
            piece("<s>", 0, 3),
            *(piece(text, 0, 4) for text in own),
            *(piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)),
            *(piece(text, scores[text]) for text in pieces if text not in own),
            field(2, b"\x18\x02\x98\x02\x01"),
            field(3, prefix + b"\x20\x00"),
        ]
    )


def test_random_models(tmp_path):
    rng = random.Random(6)
    path = tmp_path / "random.model"
    loaded, refused = 0, 0
    for _ in range(some(40_000)):
        path.write_bytes(random_model(rng))
        try:
            tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        except ValueError as error:
            assert (
                "with the same score" in str(error)
                or "no piece" in str(error)
                or ("comes before those of its parts" in str(error))
            )
            refused += 1
            continue
        loaded += 1
        comparison = texts.Comparison(tokenizer, model_reference(path), rng.randrange(1 << 30))
        parts = ["a", "b", " ", "é", "aaa", "   ", "x", "中", "[A]", "▁", "ab", "<s>", "<", "a b"]
        for _ in range(20):
            text = "".join(rng.choices(parts, k=rng.randint(1, 14)))
            comparison.everywhere(text * rng.choice([1, 1, 1, 7]))
    print(f"{loaded} models loaded, {refused} refused")
    assert loaded > refused
