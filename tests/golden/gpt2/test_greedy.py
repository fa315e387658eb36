# SPDX-License-Identifier: BSD-3-Clause
"""Longest match within pretokens, against its definition, slowly: whole and however it is cut.

The pretokens are Hugging Face's; doc/internals/streaming.md has the definition.
"""

import pytest
import texts

dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")


@pytest.fixture(scope="module")
def reference(gpt2, gpt2_reference):
    ids = {gpt2.decode_bytes([i]): i for i in range(gpt2.vocab_size) if i != 50256}
    longest = max(map(len, ids))
    letters = {c: b for b, c in byte_letters()}

    def encode(text):
        out = []
        for pretoken, _ in gpt2_reference.pre_tokenizer.pre_tokenize_str(text):
            data = bytes(letters[c] for c in pretoken)
            while data:
                n = next(n for n in range(min(longest, len(data)), 0, -1) if data[:n] in ids)
                out.append(ids[data[:n]])
                data = data[n:]
        return out

    return encode


def byte_letters():
    """What byte-level vocabularies write for each byte, as GPT-2's encoder.py numbers them."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [(b, chr(b if b in printable else next(others))) for b in range(256)]


def test_ids_are_those_of_the_definition(gpt2_file, reference):
    greedy = dpdk_tokd.Tokenizer.load(str(gpt2_file), algo="greedy")
    assert greedy.info.algo == "greedy"
    texts.compare(greedy, reference)


def test_it_differs_from_merging_and_decodes_the_same(gpt2, gpt2_file):
    greedy = dpdk_tokd.Tokenizer.load(str(gpt2_file), algo="greedy")
    assert greedy.info.checksum != gpt2.info.checksum
    text = b"the ambiguities of undesirable antidisestablishmentarianism"
    assert greedy.encode(text).tolist() != gpt2.encode(text).tolist()
    assert greedy.decode_bytes(greedy.encode(text)) == text


def test_an_id_waits_only_while_a_longer_token_may_come(gpt2_file):
    stream = dpdk_tokd.Tokenizer.load(str(gpt2_file), algo="greedy").stream()
    text = b"x" * 3000
    given = [len(stream.feed(text[i : i + 1])) for i in range(len(text))]
    assert sum(given) > 0.9 * (sum(given) + len(stream.finish()))
