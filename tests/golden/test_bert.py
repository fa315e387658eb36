# SPDX-License-Identifier: BSD-3-Clause
"""Ids of BERT's vocabularies equal the reference's: uncased and cased, whole and streamed."""

import itertools
import json
import lzma
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from texts import CODE_POINTS, FETCHED, Comparison, corpus_lines, share, some

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

VOCAB = FETCHED / "bert-base-uncased.txt"
JSON = Path(__file__).resolve().parents[3] / "shared/vocab/bert.json.xz"

# clean_text, handle_chinese_chars, strip_accents, lowercase
UNCASED, CASED = (True, True, None, True), (True, True, None, False)
OTHERS = [(c, h, s, lo) for c in (0, 1) for h in (0, 1) for s in (None, 0, 1) for lo in (0, 1)]

# Marks that stay and move (U+1D165, U+1B44, U+302E, U+11442), go (U+0301, U+0345), or are starters
# that go (U+034F); letters that become two or three; white space and control characters of each
# kind.
ODD = [
    *"\U0001d165\u1b44\u302e\U00011442\u0301\u0345\u034f\u0bca\u0cca\U0001d15e\u0130\u212b\u1e9e"
]
ODD += [
    *"\u3000\u00a0\u2028\u0085\x0b\0\ufffd\u200b\u200d\ufeff\t\r\n한글가ㄱ中豈\uf900ßΣςﬁ'-.#[]¿§"
]


def code_points() -> Iterator[str]:
    """Each of CODE_POINTS alone and between letters, many to a text: a blank keeps them apart."""
    for form in (" {} ", " a{}b ", " a{}"):
        for at in range(0, len(CODE_POINTS), 48):
            yield "x".join(form.format(chr(cp)) for cp in CODE_POINTS[at : at + 48])


def random_unicode(n: int) -> Iterator[str]:
    rng = random.Random(16)
    blocks = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700)]
    blocks += [(0x900, 0xE00), (0x1100, 0x1200), (0x1E00, 0x2070), (0x3000, 0x3100)]
    blocks += [(0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0x11000, 0x11A00), (0x1D100, 0x1D200)]
    blocks += [(0x10000, 0x110000), (0, 0xD800)]
    for _ in range(n):
        mine = rng.sample(blocks, rng.randint(1, 3))
        text = []
        for _ in range(rng.randint(1, 40)):
            odd = rng.random() < 0.25
            text.append(rng.choice(ODD) if odd else chr(rng.randrange(*rng.choice(mine))))
        yield "".join(text)


def long_words() -> Iterator[str]:
    """About as long as the longest word that is not unknown."""
    rng = random.Random(100)
    for n in (99, 100, 101, 102):
        for letters in ("a", "ab", "etaoin", "éa", "가b", "\U0001d165a", "İi", "\u0301a", "中a"):
            word = "".join(rng.choice(letters) for _ in range(n))
            yield from (word, f"so {word} on", f"{word}.{word}", f"{word}\u0301 {word}\u1b44x")


def reference_of(options: tuple, vocab: Path = VOCAB) -> tokenizers.Tokenizer:
    """A tokenizer of vocab.txt, made of the reference's own parts."""
    if not vocab.is_file():
        pytest.skip(f"{vocab} is missing: run tools/fetch-vocab bert-base-uncased")
    names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece.from_file(str(vocab), unk_token="[UNK]")
    )
    values = (value if value is None else bool(value) for value in options)
    made.normalizer = tokenizers.normalizers.BertNormalizer(**dict(zip(names, values, strict=True)))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    made.encode_special_tokens = True
    return made


def beside(tok, reference) -> Comparison:
    return Comparison(tok, lambda text: reference.encode(text, add_special_tokens=False).ids)


def check(pair: Comparison, texts: Iterable[str]) -> None:
    for text in texts:
        pair.randomly(text)


@pytest.fixture(scope="module")
def uncased() -> Comparison:
    return beside(dpdk_tokd.Tokenizer.load(str(VOCAB)), reference_of(UNCASED))


@pytest.fixture(scope="module")
def cased() -> Comparison:
    reference = reference_of(CASED)
    return beside(dpdk_tokd.Tokenizer.load(str(VOCAB), pretokenizer="bert-cased"), reference)


@pytest.fixture(scope="module", params=["uncased", "cased"])
def pair(request, uncased, cased) -> Comparison:
    return uncased if request.param == "uncased" else cased


@pytest.mark.parametrize("name", ["english", "code", "multi"])
def test_lines_of_the_corpora(pair: Comparison, name: str) -> None:
    lines = corpus_lines(name, some(10_000))
    if not lines:
        pytest.skip(f"the corpus {name} is missing: run tools/fetch-corpus")
    check(pair, lines)


def test_every_code_point(pair: Comparison) -> None:
    check(pair, (text for text in code_points() if pair.rng.random() < share()))


def test_random_unicode(pair: Comparison) -> None:
    check(pair, random_unicode(some(15_000)))


def test_words_about_as_long_as_may_be(pair: Comparison) -> None:
    check(pair, long_words())


def test_every_split_of_short_texts(pair: Comparison) -> None:
    texts = ["", " ", "unaffable", "naïve 中文!", "한글", "a\U0001d165\u1b44b", "[CLS] ##ing İx"]
    texts += ["".join(random.Random(i).sample(ODD, 5)) for i in range(150)]
    for text in texts:
        data, want = text.encode(), pair.reference(text)
        ways = [[at] for at in range(len(data) + 1)]
        for mask in range(1 << min(7, len(data))):
            ways.append([i + 1 for i in range(7) if mask >> i & 1])
        for cuts in ways:
            assert pair.streamed(data, cuts).tolist() == want, (text, cuts)


def test_long_texts_in_random_pieces(pair: Comparison) -> None:
    lines = corpus_lines("multi", some(8_000)) + corpus_lines("english", some(4_000))
    check(pair, ("\n".join(lines[at : at + 500]) for at in range(0, len(lines), 500)))


def test_bytes_that_are_not_utf8_are_replaced(pair: Comparison) -> None:
    rng = random.Random(8)
    for _ in range(2_000):
        data = bytes(rng.choice(b"ab \xe4\xb8\xad\xff\xc3\xa9\xf0\x9f.") for _ in range(12))
        want = pair.reference(data.decode("utf-8", "replace"))
        assert pair.whole_of(data).tolist() == want, data
        assert pair.streamed(data, pair.random_cuts(len(data))).tolist() == want, data


@pytest.mark.parametrize("cleanup", [True, False])
def test_ids_decode_as_the_references(cleanup: bool, tmp_path: Path) -> None:
    reference = reference_of(UNCASED)
    reference.decoder = tokenizers.decoders.WordPiece(cleanup=cleanup)
    tok = load_json(reference, tmp_path)
    rng = random.Random(4)
    for _ in range(4_000):
        ids = [rng.randrange(tok.vocab_size) for _ in range(rng.randint(1, 12))]
        want = reference.decode(ids, skip_special_tokens=False)
        assert tok.decode(ids) == want, ids
        stream = tok.decode_stream()
        parts = [stream.feed([i]) for i in ids] + [stream.finish()]
        assert "".join(parts) == want, ids
    for i in range(tok.vocab_size):
        for ids in ([i], [2000, i]):
            want = reference.decode(ids, skip_special_tokens=False)
            assert tok.decode(ids) == want, ids


def load_json(reference, folder: Path):
    path = folder / "tokenizer.json"
    reference.save(str(path))
    return dpdk_tokd.Tokenizer.load(str(path))


@pytest.mark.parametrize("options", OTHERS, ids=lambda o: "-".join(map(str, o)))
def test_every_set_of_options(options: tuple, tmp_path: Path) -> None:
    reference = reference_of(options)
    pair = beside(load_json(reference, tmp_path), reference)
    check(pair, random_unicode(some(2_000)))
    check(pair, long_words())
    check(pair, itertools.islice(code_points(), 0, None, 200))


def test_a_vocabulary_of_marks_and_jamo(tmp_path: Path) -> None:
    """BERT's has hardly a mark, so that their order could not be seen."""
    tokens = ["[UNK]", *"ab", "ab", *(c for c in ODD if c.strip())]
    tokens += ["##" + t for t in (*"ab", "ba", "\u1b44\U0001d165", *tokens[4:])]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(dict.fromkeys(tokens)) + "\n")
    pair = beside(dpdk_tokd.Tokenizer.load(str(path)), reference_of(UNCASED, path))
    rng = random.Random(5)
    marks = "\U0001d165\u1b44\u302e\U00011442\u0301\u034f\U0001d16e"
    check(pair, ("".join(rng.choices("ab" + marks * 2 + " ", k=20)) for _ in range(5_000)))
    check(pair, ("ab" + "".join(rng.choices(marks, k=n)) for n in range(95, 140)))
    check(pair, random_unicode(3_000))


def test_a_tokenizer_json_is_the_same_vocabulary(uncased: Comparison, tmp_path: Path) -> None:
    if not JSON.is_file():
        pytest.skip("bert.json.xz is missing beside the repository")
    document = json.loads(lzma.decompress(JSON.read_bytes()))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    tok = dpdk_tokd.Tokenizer.load(str(path))
    assert tok.info.checksum == uncased.tokenizer.info.checksum
    reference = tokenizers.Tokenizer.from_file(str(path))
    reference.encode_special_tokens = True
    pair = beside(tok, reference)
    check(pair, corpus_lines("multi", 1_000))
    check(pair, random_unicode(1_000))


def test_enough_texts_were_compared(uncased: Comparison, cased: Comparison) -> None:
    print(f"equal: {uncased.texts} uncased, {cased.texts} cased")
    if not corpus_lines("multi", 1):
        pytest.skip("without the corpora there are fewer texts: run tools/fetch-corpus")
    assert min(uncased.texts, cased.texts) >= some(100_000)
