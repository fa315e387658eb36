# SPDX-License-Identifier: BSD-3-Clause
"""Public headers compile by themselves, in C and C++, with include/ and nothing else."""

import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[3] / "include"
HEADERS = sorted(p.name for p in (INCLUDE / "tokd").glob("*.h"))


@pytest.mark.parametrize(
    "compiler", [("gcc", "-std=c11", "c"), ("g++", "-std=c++17", "c++")], ids=["c", "c++"]
)
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(
    header: str, compiler: tuple[str, str, str], tmp_path: Path
) -> None:
    name, standard, language = compiler
    source = tmp_path / "alone"
    source.write_text(f"#include <tokd/{header}>\n")
    command = [name, standard, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command += ["-I", INCLUDE, "-fsyntax-only", source]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_tok_h_is_one_file() -> None:
    tok = INCLUDE / "tokd" / "tok.h"
    assert tok.samefile(INCLUDE.parent / "lib" / "tokenizer" / "tok.h"), "it is a link"
