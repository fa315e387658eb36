# SPDX-License-Identifier: BSD-3-Clause
"""Pretokenizers given by regular expressions alone: borders equal the reference's, and so do ids,
whole and however the text is cut.

The expressions are those of published models. $TOK_GOLDEN_TEXTS is how many texts each has.
"""

import os
import random
import re
import resource
import struct
import subprocess
from pathlib import Path

import pytest
import texts

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")
BUILD = Path(os.environ["TOKD_BUILD"])
DUMP = BUILD / "tests/unit/tokenizer/dump_borders"

SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
UPPERS, LOWERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}"
NOT_HAN = r"&&[^\p{Han}]]"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PUNCTUATED = " ?[^(\\s|[.,!?…。，、।۔،])]+"
SYMBOLS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""

REGEXES = {
    "starcoder, smollm, command-r": [r"\p{N}", GPT2],
    "bloom": [PUNCTUATED],
    "viking's first, poro": [PUNCTUATED.replace("[.", ".").replace("])", ")")],
    "qwen3.5": [
        CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
        + SPACES
    ],
    "seed-coder": [
        CONTRACTION
        + "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|"
        + "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
    ],
    "bailingmoe": [
        (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
            r"\s*[\r\n]|\s+(?!\S)|\s+"
        )
    ],
    "cl100k as its authors wrote it": [
        (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
            r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        )
    ],
    "tekken by look-ahead": [
        r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|"
        r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*|\p{N}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
    ],
    "o200k by look-ahead": [
        r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+(?:'[sS]|'[tT]|'[rR][eE])?|"
        r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*(?:'[sS]|'[tT]|'[rR][eE])?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
    ],
    "kimi-k2": [
        r"[\p{Han}]+|"
        f"{PREFIX}{UPPERS}{NOT_HAN}*{LOWERS}{NOT_HAN}+{CONTRACTION}?|"
        f"{PREFIX}{UPPERS}{NOT_HAN}+{LOWERS}{NOT_HAN}*{CONTRACTION}?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
    ],
    "afmoe, without its numbers": [
        "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
        SYMBOLS
        + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
        + SPACES,
    ],
    "deepseek": [
        r"\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        SYMBOLS
        + "[A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
        + "\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ],
    "falcon, without its last two": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2],
    # Constructs that none of the above has.
    "a look ahead": [r"[\r\n]", r"\p{Ps}+", r"\p{Nd}{2}\p{Lu}?|\w{1,9}(?= )|\S\S??(?!$)|.\d{2,3}+"],
    "gaps": [
        r"(?i:ab{2,}c|Kk)s?|[あ-ん]{2}|\x{4e2d}|(?>[ \t]+)|\p{^L}\P{N}(?=[\p{Lu}a-z&&[^d]]|$)"
    ],
    "words, in brackets and not": [r"[\w]+", r"\w\w|[^\w\s]+|[a[\W]]"],
    "back": [r"[A-Za-z]{2,6}[!0-9]|'\w\w|[ \t]{0,3}\n|-{2,5}>|\u4e2d?文|a?[b-d]{0,2}[x-z]"],
}


def reference_of(regexes: list[str]):
    made = tokenizers.pre_tokenizers
    return made.Sequence([made.Split(tokenizers.Regex(r), "isolated") for r in regexes])


def some_texts(rng: random.Random) -> list[str]:
    """Of random pieces, of code points, and each code point in several surroundings."""
    pieces = [texts.from_pieces(rng, 20) for _ in range(texts.some(60_000))]
    unicode = [texts.random_unicode(rng) for _ in range(texts.some(40_000))]
    return [text for text in [*pieces, *unicode, *texts.code_points(rng)] if text]


def borders(regexes: list[str], given: list[str]) -> list[list[int]]:
    """Where pretokens begin, in bytes."""
    data = [text.encode() for text in given]
    framed = b"".join(struct.pack("<I", len(d)) + d for d in data)
    done = subprocess.run([DUMP, *regexes], input=framed, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    out, at = [], 0
    for _ in data:
        (n,) = struct.unpack_from("<I", done.stdout, at)
        out.append(list(struct.unpack_from(f"<{n}I", done.stdout, at + 4)))
        at += 4 + 4 * n
    assert at == len(done.stdout)
    return out


def borders_of_reference(reference, text: str) -> list[int]:
    begins, at = [], 0
    for piece, _ in reference.pre_tokenize_str(text):
        begins.append(at)
        at += len(piece.encode())
    return begins


@pytest.mark.parametrize("name", REGEXES)
def test_borders_are_the_reference_s(name):
    reference = reference_of(REGEXES[name])
    given = some_texts(random.Random(7))
    for text, begins in zip(given, borders(REGEXES[name], given), strict=True):
        want = borders_of_reference(reference, text)
        if begins != want:

            def differs(t: str) -> bool:
                return borders(REGEXES[name], [t])[0] != borders_of_reference(reference, t)

            text = texts.shrink(text, differs)
            pytest.fail(
                f"{text!r}: {borders(REGEXES[name], [text])[0]}, "
                f"the reference {borders_of_reference(reference, text)}"
            )


def pre_tokenizer(name: str):
    """As a tokenizer.json has it."""
    made = tokenizers.pre_tokenizers
    splits = [made.Split(tokenizers.Regex(r), "isolated") for r in REGEXES[name]]
    return made.Sequence([*splits, made.ByteLevel(add_prefix_space=False, use_regex=False)])


def compare_with_gpt2_s_merges(pre_tokenizer, gpt2_reference, tmp_path) -> None:
    model = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    model.pre_tokenizer = pre_tokenizer
    path = tmp_path / "tokenizer.json"
    model.save(str(path))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    assert tokenizer.info.pretokenizer == "regex"
    texts.compare(tokenizer, lambda text: model.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(
    "name", ["bloom", "kimi-k2", "o200k by look-ahead", "gaps", "a look ahead"]
)
def test_ids_however_the_text_is_cut(name, gpt2_reference, tmp_path):
    compare_with_gpt2_s_merges(pre_tokenizer(name), gpt2_reference, tmp_path)


@pytest.mark.parametrize("individual", [True, False])
def test_digits_before_byte_level(individual, gpt2_reference, tmp_path):
    made = tokenizers.pre_tokenizers
    digits = made.Digits(individual_digits=individual)
    both = made.Sequence([digits, made.ByteLevel(add_prefix_space=False)])
    compare_with_gpt2_s_merges(both, gpt2_reference, tmp_path)


REFUSED = {
    "(?<=a)b": "look-behind is not implemented",
    "a(?=bc)": "a look-ahead of other than one character is not implemented",
    r"\bx": "this escape is not implemented",
    "a*": "it matches the empty text",
    "a*b|a": "look ahead without limit",
    r"\p{Greek}": "unknown property",
    "(?i:stop)": "ligature",
    "[[:alpha:]]": "POSIX brackets are not implemented",
    "(a": "a group has no end",
    "a)": "no group is open",
    "[a": "a class has no end",
    "[b-a]": "not a range",
    "(?:ab)++": "a possessive repeat of more than one character class",
    "(?:a{1000}){5}": "needs more than 4096 steps",
    "[ab]*a[ab]{12}c": "states",
    "(" * 40 + "a" + ")" * 40: "nested too deeply",
}


HOSTILE = {
    "states": ["x[ab]{1000}[ab]{900}y"],
    "states of several": ["x[ab]{600}y|z[bc]{600}y|w[cd]{600}y"],
    "many begin": ["[^a]{1,100}(?=a)|b"],
    "many end": ["|".join("a" * i + "b" for i in range(1, 80))],
    "all at once": [f"{c}[^{c}]{{12}}{c}" for c in "abc"],
    "in a row": ["(?:[ab]{1,9}c){1,9}"] * 8,
    "classes": ["|".join(f"\\x{{{c:x}}}" for c in range(0x4E00, 0x4E3C))],
    "steps": ["(?:a{1,60}b{1,60}){1,30}"],
}


def limits() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_too_complex_is_refused_soon(name):
    """Within half a gigabyte and ten seconds."""
    done = subprocess.run(
        [DUMP, *HOSTILE[name]], input=b"", capture_output=True, check=False, preexec_fn=limits
    )
    assert done.returncode == 1
    assert re.search("states|too complex|classes|steps", done.stderr.decode())


@pytest.mark.parametrize("regex", REFUSED)
def test_what_is_refused(regex):
    done = subprocess.run([DUMP, regex], input=b"", capture_output=True, check=False)
    assert done.returncode == 1
    assert REFUSED[regex] in done.stderr.decode()
