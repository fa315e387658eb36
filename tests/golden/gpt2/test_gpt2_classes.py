# SPDX-License-Identifier: BSD-3-Clause
"""Character classes of GPT-2's pretokenizer equal the reference's for all 1,114,112 code points."""

import os
import subprocess
from pathlib import Path

from tokenizers.pre_tokenizers import ByteLevel

BUILD = Path(os.environ.get("TOKD_BUILD", "build"))
SURROGATES = range(0xD800, 0xE000)  # no characters: UTF-8 has no form for them


def class_by_borders(split, c: str) -> str:
    """Letter, number, white space or other, by where the reference puts its borders."""
    after_letter = [span for _, span in split(f"a{c}!")]
    if after_letter == [(0, 2), (2, 3)]:
        return "L"
    if after_letter == [(0, 1), (1, 3)] and c != " ":
        return "O"
    before_number = [span for _, span in split(f"a{c}1")]
    return "N" if before_number == [(0, 1), (1, 3)] and c != " " else "W"


def test_classes_equal_the_reference_for_every_code_point(gpt2_file):
    got = subprocess.run(
        [BUILD / "tests/unit/tokenizer/dump_classes", gpt2_file], check=True, capture_output=True
    ).stdout
    assert len(got) == 0x110000
    split = ByteLevel(add_prefix_space=False).pre_tokenize_str
    wrong = [
        hex(cp)
        for cp in range(0x110000)
        if cp not in SURROGATES and class_by_borders(split, chr(cp)) != chr(got[cp])
    ]
    assert wrong == []
    assert {chr(c) for c in got} == set("LNOW")
