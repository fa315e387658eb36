# SPDX-License-Identifier: BSD-3-Clause
"""Ids of BERT's vocabularies equal the reference's: uncased and cased, whole and streamed."""

from __future__ import annotations

import json
import lzma
import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from bert_texts import (
    ODD,
    code_points,
    corpus_lines,
    long_words,
    named,
    pieces,
    random_unicode,
    streamed,
)
from texts import share, shrink, some

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

DATA = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "dpdk-tokd"
VOCAB = DATA / "vocab/bert-base-uncased.txt"
JSON = Path(__file__).resolve().parents[3] / "shared/vocab/bert.json.xz"

# clean_text, handle_chinese_chars, strip_accents, lowercase
UNCASED, CASED = (True, True, None, True), (True, True, None, False)
OTHERS = [(c, h, s, lo) for c in (0, 1) for h in (0, 1) for s in (None, 0, 1) for lo in (0, 1)]


def reference_of(options: tuple) -> tokenizers.Tokenizer:
    """A tokenizer of vocab.txt, made of the reference's own parts."""
    if not VOCAB.is_file():
        pytest.skip(f"{VOCAB} is missing: run tools/fetch-vocab bert-base-uncased")
    names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece.from_file(str(VOCAB), unk_token="[UNK]")
    )
    values = (value if value is None else bool(value) for value in options)
    made.normalizer = tokenizers.normalizers.BertNormalizer(**dict(zip(names, values, strict=True)))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    made.encode_special_tokens = True
    return made


class Pair:
    """libtok's tokenizer and the reference's, which must agree."""

    def __init__(self, tok, reference) -> None:
        self.tok, self.reference, self.equal = tok, reference, 0
        self.rng = random.Random(1)

    def want(self, text: str) -> list[int]:
        return self.reference.encode(text, add_special_tokens=False).ids

    def ids(self, data: bytes) -> list[int]:
        return self.tok.encode(
            data, add_special_tokens=False, tokens_in_text="not-special"
        ).tolist()

    def differs(self, text: str) -> bool:
        want, data = self.want(text), text.encode()
        if self.ids(data) != want:
            return True
        return streamed(self.tok, [bytes([b]) for b in data]) != want

    def check(self, texts: Iterable[str]) -> None:
        """Whole, and in random pieces."""
        for text in texts:
            want, data = self.want(text), text.encode()
            parts = pieces(data, self.rng)
            if self.ids(data) != want or streamed(self.tok, parts) != want:
                least = shrink(text, self.differs) if self.differs(text) else text
                got = self.ids(least.encode())
                sizes = [len(part) for part in parts]
                pytest.fail(f"{named(least)}: {got}, not {self.want(least)} (pieces: {sizes})")
            self.equal += 1


@pytest.fixture(scope="module")
def uncased() -> Pair:
    return Pair(dpdk_tokd.Tokenizer.load(str(VOCAB)), reference_of(UNCASED))


@pytest.fixture(scope="module")
def cased() -> Pair:
    reference = reference_of(CASED)
    return Pair(dpdk_tokd.Tokenizer.load(str(VOCAB), pretokenizer="bert-cased"), reference)


@pytest.fixture(scope="module", params=["uncased", "cased"])
def pair(request, uncased, cased) -> Pair:
    return uncased if request.param == "uncased" else cased


@pytest.mark.parametrize("name", ["english", "code", "multi"])
def test_lines_of_the_corpora(pair: Pair, name: str) -> None:
    lines = corpus_lines(name, some(10_000))
    if not lines:
        pytest.skip(f"the corpus {name} is missing: run tools/fetch-corpus")
    pair.check(lines)


def test_every_code_point(pair: Pair) -> None:
    pair.check(text for text in code_points() if pair.rng.random() < share())


def test_random_unicode(pair: Pair) -> None:
    pair.check(random_unicode(some(15_000)))


def test_words_about_as_long_as_may_be(pair: Pair) -> None:
    pair.check(long_words())


def test_every_split_of_short_texts(pair: Pair) -> None:
    texts = ["", " ", "unaffable", "naïve 中文!", "한글", "a\U0001d165\u1b44b", "[CLS] ##ing İx"]
    texts += ["".join(random.Random(i).sample(ODD, 5)) for i in range(150)]
    for text in texts:
        data, want = text.encode(), pair.want(text)
        for cut in range(len(data) + 1):
            assert streamed(pair.tok, [data[:cut], data[cut:]]) == want, named(text)
        for mask in range(1 << min(7, len(data))):
            ends = [i + 1 for i in range(7) if mask >> i & 1]
            parts = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
            assert streamed(pair.tok, parts) == want, named(text)


def test_long_texts_in_random_pieces(pair: Pair) -> None:
    lines = corpus_lines("multi", some(8_000)) + corpus_lines("english", some(4_000))
    pair.check("\n".join(lines[at : at + 500]) for at in range(0, len(lines), 500))


def test_bytes_that_are_not_utf8_are_replaced(pair: Pair) -> None:
    rng = random.Random(8)
    for _ in range(2_000):
        data = bytes(rng.choice(b"ab \xe4\xb8\xad\xff\xc3\xa9\xf0\x9f.") for _ in range(12))
        want = pair.want(data.decode("utf-8", "replace"))
        assert pair.ids(data) == want, data
        assert streamed(pair.tok, pieces(data, rng)) == want, data


@pytest.mark.parametrize("cleanup", [True, False])
def test_ids_decode_as_the_references(uncased: Pair, cleanup: bool, tmp_path: Path) -> None:
    uncased.reference.decoder = tokenizers.decoders.WordPiece(cleanup=cleanup)
    tok = load_json(uncased.reference, tmp_path)
    rng = random.Random(4)
    for _ in range(4_000):
        ids = [rng.randrange(tok.vocab_size) for _ in range(rng.randint(1, 12))]
        want = uncased.reference.decode(ids, skip_special_tokens=False)
        assert tok.decode(ids) == want, ids
        stream = tok.decode_stream()
        parts = [stream.feed([i]) for i in ids] + [stream.finish()]
        assert "".join(parts) == want, ids
    for i in range(tok.vocab_size):
        for ids in ([i], [2000, i]):
            want = uncased.reference.decode(ids, skip_special_tokens=False)
            assert tok.decode(ids) == want, ids


def load_json(reference, folder: Path):
    path = folder / "tokenizer.json"
    reference.save(str(path))
    return dpdk_tokd.Tokenizer.load(str(path))


@pytest.mark.parametrize("options", OTHERS, ids=lambda o: "-".join(map(str, o)))
def test_every_set_of_options(options: tuple, tmp_path: Path) -> None:
    reference = reference_of(options)
    pair = Pair(load_json(reference, tmp_path), reference)
    pair.check(random_unicode(some(2_000)))
    pair.check(long_words())
    pair.check(text for i, text in enumerate(code_points()) if i % 200 == 0)


def test_a_vocabulary_of_marks_and_jamo(tmp_path: Path) -> None:
    """BERT's has hardly a mark, so that their order could not be seen."""
    tokens = ["[UNK]", *"ab", "ab", *(c for c in ODD if c.strip())]
    tokens += ["##" + t for t in (*"ab", "ba", "\u1b44\U0001d165", *tokens[4:])]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(dict.fromkeys(tokens)) + "\n")
    reference = reference_of(UNCASED)
    reference.model = tokenizers.models.WordPiece.from_file(str(path), unk_token="[UNK]")
    pair = Pair(dpdk_tokd.Tokenizer.load(str(path)), reference)
    rng = random.Random(5)
    marks = "\U0001d165\u1b44\u302e\U00011442\u0301\u034f\U0001d16e"
    pair.check("".join(rng.choice("ab" + marks * 2 + " ") for _ in range(20)) for _ in range(5_000))
    pair.check("ab" + "".join(rng.choice(marks) for _ in range(n)) for n in range(95, 140))
    pair.check(random_unicode(3_000))


def test_a_tokenizer_json_is_the_same_vocabulary(uncased: Pair, tmp_path: Path) -> None:
    if not JSON.is_file():
        pytest.skip("bert.json.xz is missing beside the repository")
    document = json.loads(lzma.decompress(JSON.read_bytes()))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    tok = dpdk_tokd.Tokenizer.load(str(path))
    assert tok.info.checksum == uncased.tok.info.checksum
    reference = tokenizers.Tokenizer.from_file(str(path))
    reference.encode_special_tokens = True
    pair = Pair(tok, reference)
    pair.check(corpus_lines("multi", 1_000))
    pair.check(random_unicode(1_000))


def test_enough_texts_were_compared(uncased: Pair, cased: Pair) -> None:
    print(f"equal: {uncased.equal} uncased, {cased.equal} cased")
    if not corpus_lines("multi", 1):
        pytest.skip("without the corpora there are fewer texts: run tools/fetch-corpus")
    assert min(uncased.equal, cased.equal) >= some(100_000)
