# SPDX-License-Identifier: BSD-3-Clause
"""Processor time of a call of a tokenizer, all threads together, patched and not

Medians of interleaved calls, each with text that is new to both.
"""

import itertools
import statistics
import time
from collections.abc import Iterator

import pytest
import transformers
from dpdk_tokd import hf
from models import FETCHED

# Tokens of a text, texts of a call, calls of each.
CALLS = [(128, 1, 200), (2048, 1, 60), (128, 1000, 5)]


def pieces(ids: list[int], decode, size: int) -> Iterator[str]:
    for begin in itertools.count(0, size):
        assert begin + size <= len(ids), "the corpus is used up"
        yield decode(ids[begin : begin + size])


@pytest.mark.parametrize("family", ["gpt2", "bert", "llama3"])
def test_calls(family, model, record_property):
    corpus = FETCHED.parent / "corpus/english.txt"
    if not corpus.exists():
        pytest.skip(f"no {corpus}: run tools/fetch-corpus")
    folder = model(family, model_max_length=10**9)
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    hf.patch_transformers()
    ours = transformers.AutoTokenizer.from_pretrained(folder)
    hf.unpatch_transformers()
    hf.fallbacks.clear()
    ids = plain(corpus.read_text()[:4_000_000], add_special_tokens=False).input_ids
    ours("the first call loads")
    rows = []
    for size, n, calls in CALLS:
        texts = pieces(ids, plain.decode, size)
        times: dict[str, list[float]] = {"plain": [], "ours": []}
        for i in range(calls):
            given = list(itertools.islice(texts, n))
            order = [("plain", plain), ("ours", ours)]
            found = {}
            for name, tokenizer in order if i % 2 else reversed(order):
                begin = time.process_time()
                found[name] = tokenizer(given if n > 1 else given[0])
                times[name].append(time.process_time() - begin)
            assert found["plain"].data == found["ours"].data
        a, b = (statistics.median(times[name]) * 1e6 for name in ("plain", "ours"))
        rows.append(f"| {family} | {n:,} x {size:,} tokens | {a:,.0f} | {b:,.0f} | {a / b:.1f} |")
    assert not hf.fallbacks
    head = "| | a call of | µs | patched, µs | ratio |\n|---|---|---|---|---|\n"
    record_property("text", head + "\n".join(rows))
