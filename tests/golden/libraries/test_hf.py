# SPDX-License-Identifier: BSD-3-Clause
"""`dpdk_tokd.hf.HFTokenizer` does what `tokenizers.Tokenizer` does: every field of every encoding,
for texts and pairs, split by the caller or not, truncated, padded, with template or without."""

import asyncio
import copy
import lzma
import pickle
import random

import numpy as np
import pytest
import texts
from test_families import FETCHED, REPOSITORY, SHARED, tokenizers

hf = pytest.importorskip("dpdk_tokd.hf", reason="pip install ./python")
import dpdk_tokd
from dpdk_tokd.hf.arrays import ArrayEncoder
from dpdk_tokd.hf.patch import Backend

FAMILIES = ["gpt2", "cl100k", "llama3", "qwen3", "deepseek", "gemma3", "bert", "t5", "umt5", "xlmr"]
FIELDS = [
    "ids", "type_ids", "tokens", "offsets", "word_ids", "special_tokens_mask", "attention_mask",
    "sequence_ids", "n_sequences"
]  # fmt: skip


def loaded(family: str):
    path, packed = FETCHED / f"{family}.json", SHARED / f"{family}.json.xz"
    if not path.exists() and not packed.exists():
        pytest.skip(f"no {family}.json in {FETCHED}, and no {packed}")
    text = path.read_text() if path.exists() else lzma.decompress(packed.read_bytes()).decode()
    return tokenizers.Tokenizer.from_str(text), hf.HFTokenizer.from_str(text)


@pytest.fixture(scope="module", params=FAMILIES)
def both(request):
    return loaded(request.param)


def equal(theirs, ours, spelled: frozenset[int] = frozenset()) -> None:
    """`spelled`: ids whose token is the normalized text there, and not here."""
    for name in FIELDS:
        a, b = getattr(theirs, name), getattr(ours, name)
        if name == "tokens" and not spelled.isdisjoint(theirs.ids):
            a, b = (
                [t for t, id in zip(x, theirs.ids, strict=True) if id not in spelled]
                for x in (a, b)
            )
        assert b == a, name
    assert len(ours.overflowing) == len(theirs.overflowing)
    for a, b in zip(theirs.overflowing[:20], ours.overflowing[:20], strict=True):
        equal(a, b, spelled)


def set_lengths(rng: random.Random, tokenizer) -> None:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if rng.random() < 0.5:
        tokenizer.enable_truncation(
            rng.randrange(6, 60),
            stride=rng.randrange(3),
            strategy=rng.choice(("longest_first", "only_first", "only_second")),
            direction=rng.choice(("left", "right")),
        )
    if rng.random() < 0.5:
        tokenizer.enable_padding(
            direction=rng.choice(("left", "right")),
            pad_id=rng.randrange(9),
            pad_type_id=rng.randrange(3),
            pad_token="<nothing>",
            length=rng.choice((None, 20, 100)),
            pad_to_multiple_of=rng.choice((None, 8)),
        )


def compare_encodings(both, batches: int) -> int:
    """Batches of three texts. Returns how many both refuse."""
    theirs, ours = both
    tokens = theirs.get_added_tokens_decoder()
    added = [t.content for t in tokens.values()][:50]
    normalized = {id for id, t in tokens.items() if t.normalized and theirs.normalizer}
    unigram = isinstance(theirs.model, tokenizers.models.Unigram)
    unknown = {id for id, t in tokens.items() if unigram and "unk" in t.content.lower()}
    refused = 0
    for seed in range(batches):
        rng = random.Random(seed)
        for tokenizer in both:
            set_lengths(random.Random(seed), tokenizer)
        assert (ours.truncation, ours.padding) == (theirs.truncation, theirs.padding)
        words, special = rng.random() < 0.3, rng.random() < 0.6
        theirs.encode_special_tokens = ours.encode_special_tokens = rng.random() < 0.3

        def one(rng=rng, words=words):
            by_code_point = rng.random() < 0.2
            text = texts.random_unicode(rng) if by_code_point else texts.from_pieces(rng, 40, added)
            return text.split() if words else text

        batch = [(one(), one()) if rng.random() < 0.4 else one() for _ in range(3)]
        try:
            expected = theirs.encode_batch(batch, words, special)
        except BaseException:  # theirs panics where a stride is too long
            with pytest.raises(ValueError, match=r"truncation|stride"):
                ours.encode_batch(batch, words, special)
            refused += 1
            continue
        for a, b in zip(expected, ours.encode_batch(batch, words, special), strict=True):
            equal(a, b, frozenset(normalized | unknown))
            for skip in (False, True) if normalized.isdisjoint(a.ids) else ():
                assert ours.decode(b.ids, skip) == theirs.decode(a.ids, skip)
    return refused


def test_encodings(both):
    assert compare_encodings(both, texts.some(15_000)) > 0


def test_arrays(both):
    theirs, ours = both
    for tokenizer in both:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = False
    encoder = ArrayEncoder(ours)
    added = [t.content for t in theirs.get_added_tokens_decoder().values()][:50]
    for seed in range(texts.some(15_000)):
        rng = random.Random(seed)
        by_code_point = rng.random() < 0.2
        text = texts.random_unicode(rng) if by_code_point else texts.from_pieces(rng, 40, added)
        want = theirs.encode(text, add_special_tokens=seed % 2 == 0)
        ids, offsets = encoder.encode(text, add_special_tokens=seed % 2 == 0)
        assert ids.tolist() == want.ids
        assert [*map(tuple, offsets.tolist())] == want.offsets, text


def steps(stream, tokenizer, ids):
    """Texts of ids, in ones and twos; an exception ends them."""
    try:
        for at in range(0, len(ids), 3):
            yield stream.step(tokenizer, ids[at])
            if rest := ids[at + 1 : at + 3]:
                yield stream.step(tokenizer, rest)
    except Exception:  # tokenizers has no type of its own
        yield "failed"


def test_decoding_step_by_step(both):
    theirs, ours = both
    for tokenizer in both:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    known = sorted(theirs.get_vocab().values())
    for seed in range(texts.some(30_000)):
        rng = random.Random(seed)
        ids = theirs.encode(texts.from_pieces(rng, 60), add_special_tokens=rng.random() < 0.5).ids
        if rng.random() < 0.5:
            ids = rng.choices(known, k=40)
        before, skip = ids[: rng.choice((0, 0, 5))], rng.random() < 0.5
        a = tokenizers.decoders.DecodeStream(before, skip)
        b = hf.DecodeStream(before, skip)
        assert list(steps(b, ours, ids)) == list(steps(a, theirs, ids))


def test_decoding_steps_with_ids_of_numpy_and_copies(both):
    theirs, ours = both
    ids = np.array(theirs.encode("Hello world, naïve 😀").ids, np.uint32)
    a, b = tokenizers.decoders.DecodeStream(), hf.DecodeStream(ids[:0])
    want = [a.step(theirs, id) for id in ids.tolist()]
    assert [b.step(ours, id) for id in ids[:3]] == want[:3]
    twin = copy.copy(b)
    for stream in (b, twin):
        assert [stream.step(ours, id) for id in ids[3:]] == want[3:]
    assert hf.DecodeStream().step(ours, ids) == tokenizers.decoders.DecodeStream().step(
        theirs, ids.tolist()
    )


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
def test_an_id_that_is_none_does_not_stay(both):
    theirs, _ = both
    a, b = tokenizers.decoders.DecodeStream(), hf.DecodeStream()
    for id in (15496, -1, 2**32, "x", 995):
        want = list(steps(a, theirs, [id]))
        assert list(steps(b, theirs, [id])) == want


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
def test_what_libtok_refuses_is_decoded(both):
    ours = copy.deepcopy(both[1])
    text = "naïve 😀"
    ids = ours.encode(text).ids
    ours.pre_tokenizer = tokenizers.pre_tokenizers.CharDelimiterSplit("x")
    with pytest.raises(ValueError, match="CharDelimiterSplit"):
        ours.encode(text)
    assert ours.decode(ids) == text


def test_vocabulary(both):
    theirs, ours = both
    for added in (False, True):
        assert ours.get_vocab(added) == theirs.get_vocab(added)
        assert ours.get_vocab_size(added) == theirs.get_vocab_size(added)
    assert ours.get_added_tokens_decoder() == theirs.get_added_tokens_decoder()
    for pair in (False, True):
        assert ours.num_special_tokens_to_add(pair) == theirs.num_special_tokens_to_add(pair)
    assert ours.token_to_id("no such token") is theirs.token_to_id("no such token") is None
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        assert str(getattr(ours, name)) == str(getattr(theirs, name))


def test_an_unknown_piece_is_spelled_as_in_the_text(both):
    for tokenizer in both:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    text = "Hello, naïve world 😀 \U0001fae8"  # which no normalizer changes
    assert both[1].encode(text).tokens == both[0].encode(text).tokens


def test_questions(both):
    theirs, ours = (t.encode("Hello world, naïve café", "and a second one") for t in both)
    for sequence in (0, 1, 5):  # the last is none: all tokens
        for at in range(12):
            for ask in ("word_to_tokens", "word_to_chars", "char_to_token", "char_to_word"):
                assert getattr(ours, ask)(at, sequence) == getattr(theirs, ask)(at, sequence), ask
    for at in range(len(theirs) + 2):
        for ask in ("token_to_sequence", "token_to_chars", "token_to_word"):
            assert getattr(ours, ask)(at) == getattr(theirs, ask)(at), (ask, at)
    for growing in (True, False):  # words fall in the middle; offsets, too
        merged = [e.merge([e, e], growing) for e in (theirs, ours)]
        for ask in ("word_to_tokens", "char_to_token"):
            for at in range(40):
                assert getattr(merged[1], ask)(at) == getattr(merged[0], ask)(at), ask


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
def test_encodings_stay_as_they_were(both):
    """Also what of them is made only when it is asked for."""
    theirs, ours = map(copy.deepcopy, both)
    words = ["hello", "world", "naïve"]
    made = [
        (t.encode("naïve foobarbaz"), t.encode(words, is_pretokenized=True)) for t in (theirs, ours)
    ]
    words[0] = "others"
    words.append("x")
    for tokenizer in theirs, ours:
        tokenizer.add_tokens(["foobarbaz"])
        tokenizer.normalizer = tokenizers.normalizers.Lowercase()
        assert len(tokenizer.encode("FOOBARBAZ")) == 1
    for a, b in zip(*made, strict=True):
        equal(a, b)


class Number:
    """As one of a tensor: an index that is equal to no int."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
def test_special_ids_of_any_type_are_skipped(both):
    _, ours = both
    assert ours.decode([Number(31373), Number(50256)]) == "hello"


def test_a_file_that_was_changed_is_refused(tmp_path, monkeypatch):
    _, ours = loaded("gpt2")
    ours.save(str(tmp_path / "tokenizer.json"))
    monkeypatch.chdir(tmp_path)
    tokenizer = dpdk_tokd.Tokenizer.load("./tokenizer.json")
    monkeypatch.chdir("/")
    assert tokenizer.as_hf().encode("hello").ids == [31373]
    ours.add_tokens(["hello"])
    ours.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"tokenizer\.json was changed since it was loaded"):
        tokenizer.as_hf()


@pytest.mark.parametrize("both", ["gpt2", "bert", "t5"], indirect=True)
def test_copies(both):
    theirs, ours = map(copy.deepcopy, both)
    for tokenizer in theirs, ours:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    text = "It's a text. <new>"
    token = tokenizers.AddedToken("<new>", normalized=False)
    for tokens in (
        ["<new>", token],
        [token],
        [tokenizers.AddedToken("<other>", normalized=False, special=True)],
    ):
        assert ours.add_tokens(tokens) == theirs.add_tokens(tokens)
    assert ours.get_added_tokens_decoder() == theirs.get_added_tokens_decoder()
    for made in (pickle.loads(pickle.dumps(ours)), hf.HFTokenizer.from_str(json=ours.to_str())):
        assert made.encode(text).ids == ours.encode(text).ids
        assert made.token_to_id("<new>") in ours.encode(text).ids
    reference = tokenizers.Tokenizer.from_str(ours.to_str())
    equal(reference.encode(text), ours.encode(text))
    equal(reference.encode(text), pickle.loads(pickle.dumps(ours.encode(text))))
    equal(reference.encode(text), asyncio.run(ours.async_encode(text)))
    ids = [ours.encode(text).ids]
    assert asyncio.run(ours.async_decode_batch(ids)) == reference.decode_batch(ids)


def test_arrays_of_texts(both):
    """As lists of them; `tokenizers` reads beyond short texts of a row."""
    pairs = [["a b", "c"], ["d", "e f"]]
    for batch, is_words in ((pairs[0], False), (pairs, False), (pairs, True)):
        of_lists, of_arrays = (both[1].encode_batch(t, is_words) for t in (batch, np.array(batch)))
        for a, b in zip(of_lists, of_arrays, strict=True):
            equal(a, b)


@pytest.mark.parametrize("input", [5, b"bytes", ["a"], [("a", 5)], None])
def test_input_that_is_no_text_is_refused(both, input):
    with pytest.raises(TypeError, match="input 1: expected a str"):
        both[1].encode_batch(["good", input])


MISUSES = [
    lambda tokenizer: tokenizer.encode(["a", "b"]),
    lambda tokenizer: tokenizer.encode(("a", "b")),
    lambda tokenizer: tokenizer.encode("a b", is_pretokenized=True),
    lambda tokenizer: tokenizer.encode_batch("ab"),
    lambda tokenizer: tokenizer.token_to_id(5),
    lambda tokenizer: tokenizer.id_to_token("a"),
    lambda tokenizer: tokenizer.add_tokens("ab"),
    lambda tokenizer: tokenizer.add_tokens([5]),
    lambda tokenizer: tokenizer.add_tokens([{"content": "a"}]),
    lambda tokenizer: tokenizer.enable_truncation("a"),
    lambda tokenizer: tokenizer.enable_padding(length="a"),
]


@pytest.mark.parametrize("both", ["bert"], indirect=True)
@pytest.mark.parametrize("misuse", MISUSES)
def test_what_tokenizers_refuses_is_refused(both, misuse):
    for tokenizer in both:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            misuse(tokenizer)


OUT_OF_RANGE = [
    lambda tokenizer: tokenizer.decode([15496, -100, 995]),
    lambda tokenizer: tokenizer.decode([2**32]),
    lambda tokenizer: tokenizer.decode_batch([[-100]]),
    lambda tokenizer: tokenizer.id_to_token(-1),
    lambda tokenizer: tokenizer.id_to_token(2**32),
    lambda tokenizer: tokenizer.encode("a").token_to_sequence(-1),
    lambda tokenizer: tokenizer.encode("a").token_to_chars(-1),
    lambda tokenizer: tokenizer.encode("a").token_to_word(-1),
    lambda tokenizer: tokenizer.encode("a").word_to_tokens(-1),
    lambda tokenizer: tokenizer.encode("a").word_to_tokens(2**32),
    lambda tokenizer: tokenizer.encode("a").word_to_chars(0, -1),
    lambda tokenizer: tokenizer.encode("a").char_to_token(-1),
    lambda tokenizer: tokenizer.encode("a").char_to_word(2**64),
    lambda tokenizer: tokenizer.encode("a").pad(-1),
    lambda tokenizer: tokenizer.enable_truncation(-1),
    lambda tokenizer: tokenizer.enable_truncation(2**64),
    lambda tokenizer: tokenizer.enable_truncation(8, stride=-1),
    lambda tokenizer: tokenizer.enable_padding(length=-1),
    lambda tokenizer: tokenizer.enable_padding(pad_id=-1),
    lambda tokenizer: tokenizer.enable_padding(pad_type_id=2**32),
    lambda tokenizer: tokenizer.enable_padding(pad_to_multiple_of=-1),
]


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
@pytest.mark.parametrize("call", OUT_OF_RANGE)
def test_numbers_out_of_range(both, call):
    for tokenizer in both:
        with pytest.raises(OverflowError):
            call(tokenizer)


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
def test_what_is_no_text_is_named(both):
    theirs, ours = both
    for named, encode in {
        "input: .*surrogates": lambda t: t.encode("\ud800"),
        "input 1: .*surrogates": lambda t: t.encode_batch(["ok", "x\ud800"]),
        "input 2: .*surrogates": lambda t: t.encode_batch([["a", "b"], ["c"], ["\ud800"]], True),
        "input, word 1: expected a str, got NoneType": lambda t: t.encode(["a", None], None, True),
        "input 1, word 0: expected a str, got int": lambda t: t.encode_batch([["a"], [5]], True),
        "input: expected a list of words, got int": lambda t: t.encode(5, None, True),
        "input: expected a str, or a pair of them, got int": lambda t: t.encode(5),
    }.items():
        with pytest.raises(TypeError):
            encode(theirs)
        with pytest.raises(TypeError, match=f"^{named}"):
            encode(ours)


@pytest.mark.parametrize("both", ["gpt2"], indirect=True)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD", "NFC, Lowercase"])
@pytest.mark.parametrize(
    "text",
    [
        "  \u0345\u0301",  # an added token found in form C, whose last character has marks
        "\u081c\u07fd",  # another order in the Unicode of newer Pythons
        "\u08f4\u08f0\u08d2",
        "e\u0344",  # a mark that becomes two, one of which is composed
        "a\u0344\u0344b\u0344",
        "e\u0301NEWe\u0301o\u0301",  # an added token that is not in ASCII
        "\u0301\u0344",
        "Ⅷ\u0323x",  # the last of several characters is composed
        "É\u0d4d",
        "\u1100\u1161\u11a8가\u11a8",
    ],
)
def test_offsets_where_a_form_has_other_characters(both, form, text):
    theirs, made = copy.deepcopy(both[0]), tokenizers.normalizers
    theirs.normalizer = made.Sequence([getattr(made, name)() for name in form.split(", ")])
    theirs.add_tokens([tokenizers.AddedToken("  ", normalized=True)])
    if form == "NFC":  # a token that the normalizer changes has another string, see below
        theirs.add_tokens([tokenizers.AddedToken("NEW\u00e9", normalized=True)])
    ours = hf.HFTokenizer.from_str(theirs.to_str())
    equal(theirs.encode(text), ours.encode(text))
    for blank in True, False:
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=blank)
        ours.pre_tokenizer = theirs.pre_tokenizer
        equal(theirs.encode(text), ours.encode(text))


def unknown_piece() -> None:
    theirs, ours = (t.encode("\U0001f200", add_special_tokens=False) for t in loaded("t5"))
    assert ours.ids == theirs.ids
    assert (theirs.tokens, ours.tokens) == (["▁", "ほか"], ["▁", "\U0001f200"])


def marks_in_another_order() -> None:
    theirs, ours = (t.encode("\u0323\u1bf3", add_special_tokens=False) for t in loaded("bert"))
    assert ours.ids == theirs.ids
    assert (theirs.offsets, ours.offsets) == ([(0, 1)], [(1, 2)])


def added_in_normalized_text() -> None:
    theirs, ours = loaded("bert")
    for tokenizer in theirs, ours:
        tokenizer.add_tokens([tokenizers.AddedToken("NEW", normalized=True)])
    a, b = (t.encode("a New one", add_special_tokens=False) for t in (theirs, ours))
    assert (b.ids, b.offsets) == (a.ids, a.offsets)
    assert (a.tokens[1], b.tokens[1]) == ("new", "NEW")
    assert Backend(theirs).encode("a New one", add_special_tokens=False).tokens == a.tokens
    assert (theirs.decode(a.ids), ours.decode(b.ids)) == ("a new one", "a NEW one")


def white_space_of_two() -> None:
    theirs, ours = loaded("bert")
    for tokenizer in theirs, ours:
        tokenizer.add_tokens(
            [tokenizers.AddedToken("<a>", rstrip=True), tokenizers.AddedToken("  ")]
        )
    a, b = (t.encode("<a>  ", add_special_tokens=False) for t in (theirs, ours))
    assert b.ids == a.ids
    assert (a.offsets, b.offsets) == ([(0, 5), (3, 5)], [(0, 3), (3, 5)])
    assert (a.tokens, b.tokens) == (["<a>  ", "  "], ["<a>", "  "])


def no_room() -> None:
    for tokenizer in loaded("bert"):
        tokenizer.no_padding()
        tokenizer.enable_truncation(5, stride=2)
        panic = tokenizer.__class__ is tokenizers.Tokenizer
        with pytest.raises(BaseException, match="stride") as error:
            tokenizer.encode("one two three", "four five six")
        assert isinstance(error.value, ValueError) is not panic


def no_room_beside_the_template() -> None:
    theirs, ours = loaded("bert")
    for tokenizer in theirs, ours:
        tokenizer.no_padding()
        tokenizer.enable_truncation(1, stride=3)
    assert len(theirs.encode("one two")) == 4
    with pytest.raises(ValueError, match="max_length 1 is below the 2 tokens that the template"):
        ours.encode("one two")
    for tokenizer in theirs, ours:
        tokenizer.enable_truncation(1)
    a, b = (t.encode("one two", add_special_tokens=False) for t in (theirs, ours))
    assert (len(a), b.ids) == (1, a.ids)


def parts_are_copies() -> None:
    theirs, ours = loaded("gpt2")
    ids = ours.encode("a").ids
    for tokenizer in theirs, ours:
        part = tokenizer.pre_tokenizer
        part.add_prefix_space = True
    assert theirs.encode("a").ids != ids and ours.encode("a").ids == ids
    ours.pre_tokenizer = part
    assert ours.encode("a").ids == theirs.encode("a").ids
    with pytest.raises(AttributeError):
        ours.model = theirs.model


def refused() -> None:
    theirs, ours = loaded("gpt2")
    for tokenizer in theirs, ours:
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.CharDelimiterSplit("x")
    assert theirs.encode("axb").ids
    with pytest.raises(ValueError, match="CharDelimiterSplit"):
        ours.encode("axb")


DIFFERS = {
    "Unigram: the token string of an unknown piece": unknown_piece,
    "an added token found in normalized text: its token string; its decoded text": added_in_normalized_text,
    "BERT: offset of a mark that the normalizer moves past another": marks_in_another_order,
    "two added tokens that may both have the white space between them: string and offsets": white_space_of_two,
    "a stride that leaves no room": no_room,
    "a template with more than `max_length` tokens": no_room_beside_the_template,
    "a part that is changed in place (`pre_tokenizer.add_prefix_space = True`, `model.dropout = 1`)": parts_are_copies,
    "what libtok refuses": refused,
}


@pytest.mark.parametrize("row", DIFFERS)
def test_what_differs(row):
    DIFFERS[row]()


def test_the_table_of_what_differs_is_whole():
    page = (REPOSITORY / "doc/user/python.md").read_text()
    table = page.partition("the differences from `tokenizers`")[2].partition("\n\n| ")[2]
    rows = table.partition("\n\n")[0].splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(DIFFERS)
