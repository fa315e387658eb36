# SPDX-License-Identifier: BSD-3-Clause
"""No id waits longer than the rule of doc/internals/streaming.md allows, and none is taken back.

The rule is computed here a second time, slowly, from nothing but the reference's encodings of
prefixes and the list of tokens.
"""

import base64
import bisect
import random

import pytest

RNG = random.Random(11)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXTS = {
    "word": "internationalization",
    "blank and word": " uncharacteristically",
    "no blanks": "thequickbrownfoxjumpsoverthelazydogandrunsaway",
    "repeated": "a" * 150,
    "pairs": "ab" * 70,
    "random letters": "".join(RNG.choice(LETTERS) for _ in range(120)),
    "base64 letters": "".join(
        c for c in base64.b64encode(RNG.randbytes(160)).decode() if c.isalpha()
    ),
    "dashes": "-" * 200,
    "equals and stars": "=*" * 60,
    "numbers": "31415926535897932384626433832795028841971693993751058209749445923",
    "symbols": "!!!???...---___===+++***///\\\\\\|||",
}


@pytest.fixture(scope="module")
def tokens(gpt2):
    return sorted(gpt2.decode_bytes([i]) for i in range(gpt2.vocab_size) if i != 50256)


def grows(tokens, reference, text, p, n):
    """Is there a continuation of text[:n] with a token that begins at p and goes on beyond n?"""
    head = text[p:n].encode()
    before = ids_of(reference, text[:p])
    at = bisect.bisect_right(tokens, head)
    while at < len(tokens) and tokens[at].startswith(head):
        if (with_token := tokens[at].decode(errors="ignore")).encode() == tokens[at]:
            ids = ids_of(reference, text[:p] + with_token)
            if len(ids) == len(before) + 1 and ids[:-1] == before:
                return True
        at += 1
    return False


def ids_of(reference, text):
    return reference.encode(text, add_special_tokens=False).ids


def certain(tokens, reference, text, n):
    """How many ids of text[:n] no later byte can change."""
    live = [n]
    live += [p for p in range(max(0, n - 128), n) if grows(tokens, reference, text, p, n)]
    paths = [ids_of(reference, text[:p]) for p in live]
    common = 0
    while all(len(p) > common for p in paths) and len({p[common] for p in paths}) == 1:
        common += 1
    return common


@pytest.mark.parametrize("name", TEXTS)
def test_ids_come_exactly_when_the_rule_allows(name, gpt2, gpt2_reference, tokens):
    text = TEXTS[name]
    whole = gpt2_reference.encode(text, add_special_tokens=False).ids
    stream = gpt2.stream(tokens_in_text="not-special")
    out = []
    for n in range(1, len(text) + 1):
        out += stream.feed(text[n - 1].encode()).tolist()
        assert out == whole[: len(out)]
        assert len(out) == certain(tokens, gpt2_reference, text, n), text[:n]
    out += stream.finish().tolist()
    assert out == whole


def test_waiting_bytes_are_counted(gpt2):
    """What waits is what was fed less what the ids released stand for."""
    text = "The 漢字 word's   \n\n end, isn't it? 3.14159 ".encode() * 3
    stream, given = gpt2.stream(tokens_in_text="not-special"), 0
    for n, byte in enumerate(text, 1):
        given += len(gpt2.decode_bytes(stream.feed(bytes([byte]))))
        assert stream.waiting == n - given
    stream.finish()
    assert stream.waiting == 0
