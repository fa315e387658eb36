# SPDX-License-Identifier: BSD-3-Clause
"""tools/waiting: a column a vocabulary; one that there is no file of is said to be left out."""

import subprocess
from pathlib import Path

import pytest
from bench.texts.packages import data_home

ROOT = Path(__file__).resolve().parents[2]


def rows(out: str) -> dict[str, list[str]]:
    lines = [line for line in out.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells}


def test_a_table_of_what_there_is():
    if not (data_home() / "vocab" / "bert-base-uncased.txt").is_file():
        pytest.skip("no bert-base-uncased: run tools/fetch-vocab bert-base-uncased")
    if not (data_home() / "corpus").is_dir():
        pytest.skip("no corpora: run tools/fetch-corpus")
    run = subprocess.run(
        [ROOT / "tools/waiting", "--bytes", "4000", "bert-base-uncased", "no-such-name"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    table = rows(run.stdout)
    assert table["text"] == ["bert-base-uncased", "no-such-name"]
    assert table["`-` repeated"] == ["0 / 0 / 0", "-"]  # each is a word, and ends at once
    assert table["words of 1 to 120 letters"][0].endswith("/ 100")  # longer ones are unknown
    assert "no-such-name: not measured: no file of it in" in run.stdout
