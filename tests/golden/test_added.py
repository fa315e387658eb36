# SPDX-License-Identifier: BSD-3-Clause
"""Added tokens in text: ids equal the reference's, whatever the tokens' flags, however it is cut.

Files are made of GPT-2's first merges, so that hundreds of them load in no time, and of BERT's
vocabulary. Special tokens have texts that no merges make: libtok refuses others.
"""

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from texts import CODE_POINTS, PIECES, Comparison, Unanswered, share, some

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

MERGES = 3_000
FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")

# What stands around tokens: white space, word characters of all sorts and none, marks, Hangul that
# form C composes, characters that it changes, beginnings of tokens.
AROUND = [
    *["a", "foo", "bar", "1", "_", "Hello", " world", "'s", "中", "é", "K", "\u212a", "½"],
    *[" ", "  ", "\n", " \n", "\t", "\u3000", "\u00a0", "\u2028", "\u200b"],
    *["e\u0301", "\u0301", "\u0323", "\u1161", "\u1100", "\u200d", "\u20dd", "🚀", "-", "<", "|>"],
]
# Of them only those that merges do not make may be special.
TOKENS = ["zq", " xq", "xq ", "<|x|>", "<|x", "q\n", "Éz", "E\u0301z", "\u212aq", "中zq"]
MADE = [" ", "  ", "\n", "foo", "foobar", "oo", "b", "é", "e\u0301", "中", "\u212a", " x", "\u0301"]


def first_merges(gpt2_reference) -> str:
    """A tokenizer.json of the first of GPT-2's merges, with no added token."""
    document = json.loads(gpt2_reference.to_str())
    model = document["model"]
    model["vocab"] = {t: i for t, i in model["vocab"].items() if i < 256 + MERGES}
    model["merges"] = model["merges"][:MERGES]
    document["added_tokens"] = []
    return json.dumps(document)


@pytest.fixture(scope="module")
def gpt2_base(gpt2_reference) -> str:
    return first_merges(gpt2_reference)


@pytest.fixture(scope="module")
def bert_base() -> str:
    from test_bert import UNCASED, reference_of

    return reference_of(UNCASED).to_str()


def with_form_c(base: str) -> str:
    return json.dumps(json.loads(base) | {"normalizer": {"type": "NFC"}})


def token_of(text: str, flags: Iterable[str]):
    chosen = {flag: flag in flags for flag in FLAGS}
    return tokenizers.AddedToken(text, **chosen)


def some_flags(rng: random.Random, text: str, normalized: bool = True) -> list[str]:
    flags = [flag for flag in FLAGS if rng.random() < 0.4]
    return [
        flag
        for flag in flags
        if (flag != "special" or text in TOKENS) and (flag != "normalized" or normalized)
    ]


def answers(reference):
    """Ids of a text, or Unanswered."""

    def encode(text: str) -> list[int]:
        try:
            return reference.encode(text, add_special_tokens=False).ids
        except BaseException as error:
            # White space that takes white space, behind a token that has taken it: it panics.
            if type(error).__name__ != "PanicException":
                raise
            raise Unanswered(text) from None

    return encode


class Policies:
    """A file under each policy beside the reference, which is asked as that policy means."""

    def __init__(self, base: str, tokens: list, path: Path) -> None:
        self.unanswered = self.compared = 0
        reference = tokenizers.Tokenizer.from_str(base)
        for token in tokens:
            add = reference.add_special_tokens if token.special else reference.add_tokens
            add([token])
        reference.save(str(path))
        tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        plain = tokenizers.Tokenizer.from_str(reference.to_str())
        plain.encode_special_tokens = True
        without = tokenizers.Tokenizer.from_str(base)
        references = {"not-special": plain, "all": reference, "none": without}
        self.comparisons = {
            policy: Comparison(tokenizer, answers(one), tokens_in_text=policy)
            for policy, one in references.items()
        }

    def hold(self, texts: list[str], everywhere: list[str]) -> None:
        """Whole, in random pieces, in a batch; some in two at every byte."""
        for policy, comparison in self.comparisons.items():
            answered = []
            for text, how in [
                *((t, comparison.randomly) for t in texts),
                *((t, comparison.everywhere) for t in everywhere),
            ]:
                try:
                    how(text)
                    answered.append(text)
                except Unanswered:
                    self.unanswered += 1
            self.compared += len(answered)
            batch = comparison.tokenizer.encode_batch(
                answered, add_special_tokens=False, tokens_in_text=policy
            )
            for text, ids in zip(answered, batch, strict=True):
                assert ids.tolist() == comparison.whole_of(text).tolist(), text


def made_of(rng: random.Random, tokens: list[str], most: int = 13) -> str:
    cut = [token[:-1] for token in tokens] + [token.upper() for token in tokens]
    kinds = [AROUND, AROUND, tokens, tokens, tokens, cut, PIECES]
    return "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randint(1, most)))


def few(unanswered: int, compared: int) -> None:
    print(f"{compared} texts equal, {unanswered} that the reference panics at")
    assert unanswered * 10 < compared


@pytest.mark.parametrize("form_c", [False, True], ids=["plain", "nfc"])
@pytest.mark.parametrize("on", itertools.product([False, True], repeat=5), ids=lambda on: "".join(
    flag[0] if is_on else "-" for flag, is_on in zip(FLAGS, on, strict=True)
))  # fmt: skip
def test_one_token_with_each_set_of_flags(on, form_c, gpt2_base, tmp_path) -> None:
    flags = [flag for flag, is_on in zip(FLAGS, on, strict=True) if is_on]
    rng = random.Random(str((on, form_c)))
    contents = TOKENS if "special" in flags else [*TOKENS, *MADE]
    unanswered = compared = 0
    for content in contents if share() > 0.1 else rng.sample(contents, 5):
        base = with_form_c(gpt2_base) if form_c else gpt2_base
        policies = Policies(base, [token_of(content, flags)], tmp_path / "tokenizer.json")
        texts = [made_of(rng, [content]) for _ in range(max(20, some(400)))]
        short = [made_of(rng, [content], 5) for _ in range(max(5, some(40)))]
        policies.hold(texts, short)
        unanswered += policies.unanswered
        compared += policies.compared
    few(unanswered, compared)


@pytest.mark.parametrize("form_c", [False, True], ids=["plain", "nfc"])
def test_random_tokens_with_random_flags(form_c, gpt2_base, tmp_path) -> None:
    rng = random.Random(form_c)
    unanswered = compared = 0
    for _ in range(max(30, some(2_000))):
        base = with_form_c(gpt2_base) if form_c else gpt2_base
        contents = rng.sample([*TOKENS, *MADE], rng.randint(1, 12))
        tokens = [token_of(text, some_flags(rng, text)) for text in contents]
        policies = Policies(base, tokens, tmp_path / "tokenizer.json")
        texts = [made_of(rng, contents) for _ in range(50)]
        policies.hold(texts, [made_of(rng, contents, 5) for _ in range(5)])
        unanswered += policies.unanswered
        compared += policies.compared
    few(unanswered, compared)


def test_bert_with_random_tokens(bert_base, tmp_path) -> None:
    """None of them is normalized: libtok refuses those of BERT's normalizer."""
    rng = random.Random(3)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    own = [token_of(name, ["special"]) for name in names]
    unanswered = compared = 0
    for _ in range(max(8, some(200))):
        contents = rng.sample([*TOKENS, *MADE], rng.randint(1, 12))
        tokens = [token_of(text, some_flags(rng, text, normalized=False)) for text in contents]
        policies = Policies(bert_base, [*own, *tokens], tmp_path / "tokenizer.json")
        texts = [made_of(rng, [*contents, *names, "run", "ning"]) for _ in range(80)]
        policies.hold(texts, [made_of(rng, [*contents, *names], 5) for _ in range(5)])
        unanswered += policies.unanswered
        compared += policies.compared
    few(unanswered, compared)


@pytest.mark.parametrize("normalized", [False, True])
def test_which_code_points_are_of_a_word(normalized, gpt2_base, tmp_path) -> None:
    """Before a token that is a single word, and behind it: every one, or a share behind form C."""
    flags = ["single_word", *["normalized"] * normalized]
    base = with_form_c(gpt2_base) if normalized else gpt2_base
    policies = Policies(base, [token_of("zq", flags)], tmp_path / "tokenizer.json")
    comparison = policies.comparisons["not-special"]
    step = 1 if not normalized or share() == 1 else 16
    for number, at in enumerate(range(0, len(CODE_POINTS), 64)):
        chars = [chr(c) for c in CODE_POINTS[at : at + 64]]
        if number % step == 0 or at < 0x3000:
            comparison.whole(" ".join(f"{c}zq" for c in chars))
            comparison.whole(" ".join(f"zq{c}" for c in chars))
        if number % 16 == 1:
            comparison.randomly("zq".join(chars))
    print(f"{comparison.texts} texts equal")
