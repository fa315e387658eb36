# SPDX-License-Identifier: BSD-3-Clause
"""Templates, truncation and padding are the reference's: text by text, in batches, in pieces."""

import itertools
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from texts import Comparison, corpus_lines, from_pieces, random_unicode, some

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")
from tokenizers import processors

END = "<|endoftext|>"
AROUND = {"single": f"{END} $A hi", "pair": f"{END} $A hi $B"}
SPECIAL = [(END, 50256), ("hi", 5303)]
PROCESSORS = {
    "none": None,
    "bytes": processors.ByteLevel(),
    "template": processors.TemplateProcessing(**AROUND, special_tokens=SPECIAL),
    "behind": processors.TemplateProcessing(
        single=f"$A {END} {END}", pair=f"$A $B {END}", special_tokens=SPECIAL
    ),
    "bert": processors.BertProcessing((END, 50256), ("hi", 5303)),
    "roberta": processors.RobertaProcessing((END, 50256), ("hi", 5303)),
    "sequence": processors.Sequence(
        [
            processors.ByteLevel(),
            processors.TemplateProcessing(**AROUND, special_tokens=SPECIAL),
            processors.ByteLevel(trim_offsets=False),
        ]
    ),
}


@cache
def texts_of(n: int) -> list[str]:
    rng = random.Random(n)
    lines = [line for name in ("english", "code", "multi") for line in corpus_lines(name, n // 2)]
    odd = [from_pieces(rng, 30) for _ in range(n // 4)]
    odd += [random_unicode(rng) for _ in range(n // 4)]
    texts = ["", " ", END, *lines, *odd]
    rng.shuffle(texts)
    return texts


@pytest.fixture(scope="module", params=PROCESSORS)
def pair(request, gpt2_reference, tmp_path_factory):
    """The package's tokenizer and the reference, of a file with that post_processor."""
    reference = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    if PROCESSORS[request.param] is not None:
        reference.post_processor = PROCESSORS[request.param]
    return load(reference, tmp_path_factory.mktemp("gpt2")), reference


def load(reference, folder: Path):
    path = folder / "tokenizer.json"
    reference.save(str(path))
    return dpdk_tokd.Tokenizer.load(str(path))


def test_the_template_is_the_references(pair) -> None:
    tok, reference = pair
    template = tok.template
    assert len(template.before + template.after) == reference.num_special_tokens_to_add(False)
    asked = {"add_special_tokens": True, "tokens_in_text": "all"}
    c = Comparison(tok, lambda text: reference.encode(text).ids, **asked)
    for text in texts_of(some(20_000)):
        c.randomly(text)
        plain = reference.encode(text, add_special_tokens=False).ids
        assert tok.encode(text, add_special_tokens=False).tolist() == plain, text


def cases(reference) -> list[tuple[dict, dict]]:
    """enable_truncation's and enable_padding's arguments: some of each with each."""
    added = reference.num_special_tokens_to_add(False)
    truncations = [
        {"max_length": length, "direction": side}
        for length, side in itertools.product((added, added + 1, 7, 64), ("left", "right"))
    ]
    paddings = [
        {"length": length, "direction": side, "pad_to_multiple_of": multiple, "pad_id": 11}
        for length, side, multiple in itertools.product(
            (None, 64, 100), ("left", "right"), (None, 8, 7)
        )
    ]
    all_cases = [*itertools.product(truncations, paddings)]
    return random.Random(added).sample(all_cases, min(len(all_cases), some(1_200)))


def expected(encodings) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([e.ids for e in encodings], np.uint32)
    return ids, np.array([e.attention_mask for e in encodings], np.uint8)


@pytest.mark.parametrize("special", [True, False], ids=["template", "plain"])
def test_batches_are_the_references(pair, special: bool, tmp_path: Path) -> None:
    tok, reference = pair
    reference = tokenizers.Tokenizer.from_str(reference.to_str())
    for number, (truncation, padding) in enumerate(cases(reference)):
        texts = texts_of(max(100, some(2_000)))
        reference.enable_truncation(**truncation)
        reference.enable_padding(**padding)
        encodings = reference.encode_batch(texts, add_special_tokens=special)
        got = tok.encode_batch(
            texts,
            add_special_tokens=special,
            truncation=truncation["max_length"],
            truncation_side=truncation["direction"],
            padding=padding["length"] or "longest",
            padding_side=padding["direction"],
            pad_to_multiple_of=padding["pad_to_multiple_of"],
            pad_id=padding["pad_id"],
            threads=number % 4 + 1,
        )
        ids, mask = expected(encodings)
        assert np.array_equal(got.ids, ids), (truncation, padding)
        assert np.array_equal(got.mask, mask), (truncation, padding)
        one = tok.encode(
            texts[0],
            add_special_tokens=special,
            truncation=truncation["max_length"],
            truncation_side=truncation["direction"],
        )
        assert one.tolist() == ids[0][mask[0] == 1].tolist()
        if number % 12 == 5:
            saved = load(reference, tmp_path)
            asked = saved.encode_batch(
                texts, add_special_tokens=special, truncation=True, padding=True
            )
            assert np.array_equal(asked.ids, ids), (truncation, padding)
            assert np.array_equal(asked.mask, mask), (truncation, padding)
            assert saved.checksum == tok.checksum


def test_a_large_batch_by_many_threads(pair) -> None:
    tok, reference = pair
    texts = texts_of(max(3_000, some(100_000)))
    assert sum(map(len, texts)) > 250_000 or not corpus_lines("english", 1)
    want = [e.ids for e in reference.encode_batch(texts)]
    for threads in (1, 2, 7, None):
        batch = tok.encode_batch(texts, threads=threads)
        assert [ids.tolist() for ids in batch] == want
        assert batch.ids.tolist() == [*itertools.chain.from_iterable(want)]


def test_bert(tmp_path: Path) -> None:
    """Whose vocab.txt has the template of BertTokenizer."""
    from test_bert import UNCASED, VOCAB, reference_of

    reference = reference_of(UNCASED)
    ids = {token: reference.token_to_id(token) for token in ("[CLS]", "[SEP]", "[PAD]")}
    reference.add_special_tokens(["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"])
    reference.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, ids[t]) for t in ("[CLS]", "[SEP]")],
    )
    reference.enable_truncation(16)
    reference.enable_padding(pad_id=ids["[PAD]"])
    texts = texts_of(some(20_000))
    want, mask = expected(reference.encode_batch(texts))
    from_text = dpdk_tokd.Tokenizer.load(str(VOCAB))
    assert from_text.special_tokens["[PAD]"] == ids["[PAD]"]
    for tok in (from_text, load(reference, tmp_path)):
        got = tok.encode_batch(texts, truncation=16, padding=True)
        assert np.array_equal(got.ids, want)
        assert np.array_equal(got.mask, mask)
        for text, row in zip(texts[:200], want, strict=True):
            plain = reference.decode(row, skip_special_tokens=True)
            assert tok.decode(row, skip_special_tokens=True) == plain, text
