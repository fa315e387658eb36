# SPDX-License-Identifier: BSD-3-Clause
"""`as_tiktoken` does what `tiktoken.Encoding` does, and so do encodings after `patch_tiktoken`."""

import logging
import pickle
import random

import numpy as np
import pytest
import texts
from bench.texts import reference
from test_families import FETCHED

tiktoken = pytest.importorskip("tiktoken", reason="pip install tiktoken")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

FILES = {"gpt2": "gpt2", "cl100k": "cl100k_base", "o200k": "o200k_base"}
SURROGATES = ["\ud83d\ude00", "\ud83d", "\ude00"]


@pytest.fixture(scope="module", params=FILES)
def both(request):
    name = FILES[request.param]
    path = FETCHED / f"{name}.tiktoken"
    if not path.exists():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab {request.param}")
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    theirs = tiktoken.Encoding(
        name,
        pat_str=reference.PATTERNS[name],
        mergeable_ranks=reference.read_ranks(path),
        special_tokens=tokenizer.special_tokens,
    )
    return theirs, tokenizer.as_tiktoken()


def of(encoding, ask: str, *arguments, **named):
    """What a method returns, or the type of its exception."""
    try:
        return getattr(encoding, ask)(*arguments, **named)
    except (ValueError, KeyError, TypeError, OverflowError) as e:
        return type(e)


def test_texts(both):
    theirs, ours = both
    special = sorted(theirs.special_tokens_set)
    refused = 0
    for seed in range(texts.some(30_000)):
        rng = random.Random(seed)
        pieces = [*special, special[0][:-1], special[-1][1:], *SURROGATES]
        batch = [texts.from_pieces(rng, 40, pieces[: rng.choice((0, 0, None))]) for _ in range(3)]
        some = set(rng.sample(special, rng.randint(0, len(special))))
        named = {}
        if rng.random() < 0.8:
            named["allowed_special"] = rng.choice(("all", some, set()))
        if rng.random() < 0.7:
            named["disallowed_special"] = rng.choice(((), (), "all", some, {"the"}))
        expected = of(theirs, "encode_batch", batch, **named)
        assert of(ours, "encode_batch", batch, **named) == expected
        refused += expected is ValueError
        for text in batch:
            ids = of(theirs, "encode", text, **named)
            assert of(ours, "encode", text, **named) == ids
            if ids is ValueError:
                continue
            if any("\ud800" <= c <= "\udfff" for c in text):
                arrays = [of(e, "encode_to_numpy", text, **named) for e in both]
                assert arrays == [UnicodeEncodeError] * 2
            else:
                assert ours.encode_to_numpy(text, **named).tolist() == ids
            for ask in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
                cut = ids[rng.randrange(3) :]
                assert of(ours, ask, cut) == of(theirs, ask, cut), ask
        ordinary = theirs.encode_ordinary_batch(batch)
        assert ours.encode_ordinary_batch(batch) == ordinary
        assert [ours.encode_ordinary(text) for text in batch] == ordinary
        assert ours.decode_batch(ordinary) == theirs.decode_batch(ordinary)
        assert ours.decode_bytes_batch(ordinary) == theirs.decode_bytes_batch(ordinary)
    assert refused > 0


def test_vocabulary(both):
    theirs, ours = both
    for name in ("name", "n_vocab", "max_token_value", "eot_token", "special_tokens_set"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert repr(ours) == repr(theirs)
    assert pickle.loads(pickle.dumps(ours)).encode("a text") == ours.encode("a text")
    assert ours.token_byte_values() == theirs.token_byte_values()
    for id in [*range(300), *range(theirs.n_vocab - 300, theirs.n_vocab + 2), 2**32 - 1]:
        token = of(theirs, "decode_single_token_bytes", id)
        assert of(ours, "decode_single_token_bytes", id) == token
        assert of(ours, "decode", [id]) == of(theirs, "decode", [id])
        assert ours.is_special_token(id) == theirs.is_special_token(id)
        if token is not KeyError:
            assert ours.encode_single_token(token) == theirs.encode_single_token(token) == id
    for token in (" the", b" the", "no such token", b"\xff\xff\xff"):
        assert of(ours, "encode_single_token", token) == of(theirs, "encode_single_token", token)
    for text in (5, None, b"bytes"):
        assert [of(e, "encode", text) for e in both] == [TypeError] * 2
        assert [of(e, "encode_batch", ["a", text]) for e in both] == [TypeError] * 2
        with pytest.raises(TypeError, match="^text: expected a str, got"):
            ours.encode(text)
    for ids in (5, None, "ab", [1.0], ["a"], [[1]], [True, None], {1: 2}, np.array([True])):
        assert [of(e, "decode", ids) for e in both] == [TypeError] * 2
    for ids in (b"abc", bytearray(b"abc"), [True], [True, 5], (False,), np.array([1, 2])):
        for ask, given in (("decode", ids), ("decode_bytes", ids), ("decode_batch", [ids])):
            got = of(ours, ask, given)
            assert got == of(theirs, ask, given) and not isinstance(got, type)


def test_misuses(both):
    for ids in ([-1], [2**40], [2**70], [1, 2**70]):
        for ask in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
            assert [of(e, ask, ids) for e in both] == [OverflowError] * 2
        assert [of(e, "decode_single_token_bytes", ids[-1]) for e in both] == [OverflowError] * 2
    for text in ("\ud800", "a\ud83d\ude00"):
        assert [of(e, "encode_to_numpy", text) for e in both] == [UnicodeEncodeError] * 2
    for text in ("", "Hello"):
        assert [of(e, "encode", text, disallowed_special={""}) for e in both] == [ValueError] * 2
    ours, theirs = (of(e, "encode", "a<|endoftext|>", disallowed_special=None) for e in both)
    assert ours == theirs and isinstance(ours, list)
    for allowed in ([], (), "x", None, ["<|endoftext|>"]):
        for more in ({}, {"disallowed_special": ()}):
            named = {"allowed_special": allowed} | more
            for ask, text in (("encode", "a"), ("encode_to_numpy", "a"), ("encode_batch", ["a"])):
                assert [of(e, ask, text, **named) for e in both] == [TypeError] * 2


# ---- patch_tiktoken ----

PUBLIC = {"gpt2": "gpt2", "r50k_base": "gpt2", "o200k_harmony": "o200k_base"}
PUBLIC |= {name: name for name in ("cl100k_base", "o200k_base")}


@pytest.fixture
def public(monkeypatch):
    """tiktoken has its encodings from files of tools/fetch-vocab, and is not patched afterwards."""
    module = pytest.importorskip("tiktoken_ext.openai_public")

    def ranks(url: str, *_: object, **__: object) -> dict[bytes, int]:
        name = url.rpartition("/")[2].removesuffix(".tiktoken")
        path = FETCHED / f"{PUBLIC.get(name, 'gpt2')}.tiktoken"
        if not path.exists():
            pytest.skip(f"{path} is missing: run tools/fetch-vocab {path.stem}")
        return reference.read_ranks(path)

    monkeypatch.setattr(module, "load_tiktoken_bpe", ranks)
    monkeypatch.setattr(
        module, "data_gym_to_mergeable_bpe_ranks", lambda vocab_bpe_file, **_: ranks(vocab_bpe_file)
    )
    tiktoken.registry.ENCODINGS.clear()
    dpdk_tokd.hf.fallbacks.clear()
    yield
    dpdk_tokd.unpatch_tiktoken()
    tiktoken.registry.ENCODINGS.clear()


def by_libtok(encoding) -> bool:
    return isinstance(encoding._core_bpe, dpdk_tokd.tiktoken._Core)


@pytest.mark.parametrize("name", PUBLIC)
def test_an_encoding_of_the_patched_package(public, name):
    early = tiktoken.get_encoding(name)
    for _ in range(2):
        dpdk_tokd.patch_tiktoken()
    ours = tiktoken.get_encoding(name)
    assert type(ours) is tiktoken.Encoding and by_libtok(ours) and not by_libtok(early)
    special = sorted(early.special_tokens_set)
    for seed in range(texts.some(3000)):
        rng = random.Random(seed)
        pieces = [*special[:5], special[-1], special[0][:-1], *SURROGATES, "12345", "\r\n \n"]
        batch = [texts.from_pieces(rng, 40, pieces[: rng.choice((0, None))]) for _ in range(3)]
        some = set(rng.sample(special, rng.randint(0, min(len(special), 4))))
        named = {"allowed_special": rng.choice(("all", some)), "disallowed_special": ()}
        assert of(ours, "encode_batch", batch, **named) == of(early, "encode_batch", batch, **named)
        assert ours.encode_ordinary_batch(batch) == early.encode_ordinary_batch(batch)
        arrays = [np.asarray(of(e, "encode_to_numpy", batch[0], **named)) for e in (ours, early)]
        assert (arrays[0] == arrays[1]).all()
        assert of(ours, "encode", batch[1]) == of(early, "encode", batch[1])
    assert not dpdk_tokd.hf.fallbacks
    for text in (5, None):
        assert of(ours, "encode_ordinary", text) is TypeError
    ids = ours.encode("a text")
    assert ours.decode(ids) == "a text" and ours.encode_with_unstable("a t") is not None
    assert pickle.loads(pickle.dumps(ours)).encode("a text") == ids
    dpdk_tokd.unpatch_tiktoken()
    assert not by_libtok(tiktoken.get_encoding(name)) and by_libtok(ours)


def test_models_and_encodings_of_one_s_own(public):
    dpdk_tokd.patch_tiktoken()
    base = tiktoken.encoding_for_model("gpt-4")
    assert base.name == "cl100k_base" and by_libtok(base)
    own = tiktoken.Encoding(
        "own",
        pat_str=base._pat_str,
        mergeable_ranks=base._mergeable_ranks,
        special_tokens=base._special_tokens | {"<|im_start|>": 100264},
    )
    assert own.encode("<|im_start|>a", allowed_special="all") == [100264, 64]
    assert not dpdk_tokd.hf.fallbacks


def test_threads_load_the_ranks_once(public, monkeypatch):
    dpdk_tokd.patch_tiktoken()
    own, loaded = tiktoken.get_encoding("gpt2"), []
    load = dpdk_tokd.tiktoken._Core._load
    monkeypatch.setattr(
        dpdk_tokd.tiktoken._Core, "_load", lambda core: [loaded.append(core), load(core)][1]
    )
    assert own.encode_batch(["a", "b"] * 8, num_threads=4) == [[64], [65]] * 8
    assert len(loaded) == 1


def test_what_libtok_refuses_is_tiktoken_s(public, caplog):
    dpdk_tokd.patch_tiktoken()
    base = tiktoken.get_encoding("gpt2")
    with caplog.at_level(logging.WARNING, "dpdk_tokd"):
        for more in (
            {"pat_str": r"\w+|\W"},
            {"mergeable_ranks": base._mergeable_ranks | {b"behind a gap": 60000}},
        ):
            given = {"pat_str": base._pat_str, "mergeable_ranks": base._mergeable_ranks} | more
            own = tiktoken.Encoding("own", special_tokens={"<|end|>": 70000}, **given)
            ids = own.encode("a b<|end|>", allowed_special="all")
            assert ids[-1] == 70000 and own.decode(ids) == "a b<|end|>"
            assert own.encode_ordinary("a b") == ids[:-1]
            assert own.encode_to_numpy("a b").tolist() == ids[:-1]
    assert sorted(dpdk_tokd.hf.fallbacks.values()) == [3, 3]
    assert [r.message.partition(":")[0] for r in caplog.records] == [
        "tiktoken encodes what libtok refuses"
    ] * 2


def test_an_empty_special_token_is_refused(public, both):
    with pytest.raises(ValueError, match="own: special token '': expected at least one character"):
        type(both[1])(both[1]._tokenizer, "own", {"": 70000})
    dpdk_tokd.patch_tiktoken()
    base = tiktoken.get_encoding("gpt2")
    given = {"pat_str": base._pat_str, "mergeable_ranks": base._mergeable_ranks}
    own = tiktoken.Encoding("own", special_tokens={"": 70000}, **given)
    assert own.encode_ordinary("a b") == base.encode_ordinary("a b")
    assert sum(dpdk_tokd.hf.fallbacks.values()) == 1


def test_a_refused_text_names_the_token(both):
    with pytest.raises(ValueError, match=r"special token '<\|endoftext\|>'.*disallowed_special="):
        both[1].encode("a <|endoftext|>")


def test_vocabularies_with_a_normalizer_are_refused():
    path = FETCHED / "bert-base-uncased.txt"
    if not path.exists():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab bert")
    with pytest.raises(ValueError, match="expected a vocabulary of byte-level BPE"):
        dpdk_tokd.Tokenizer.load(str(path)).as_tiktoken()
