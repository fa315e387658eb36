# SPDX-License-Identifier: BSD-3-Clause
"""Ids that a block of threads makes of text, against libtok's, with published vocabularies.

Vocabularies are those of tools/fetch-vocab, and others in a folder ../shared/vocab beside the
repository (xz-compressed). The block is one thread of the CPU; with TOKD_GPU_DEVICE=cuda:0 a GPU is
asked. Then it is 256 fibers, in each order. More texts:
gpu_check_texts [--greedy] VOCABULARY COUNT SEED [FILE]...
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from bench.gpu_check.vocabularies import REFUSED, WAYS, file_of
from dpdk_tokd.fetch.packages import data_home

PROGRAMS = Path(os.environ["TOKD_BUILD"]) / "tests/unit/gpu/tokenize"
CORPUS = data_home() / "corpus"
TEXTS = 2_000 if os.environ.get("TESTS_SANITIZED") else 20_000


def checked(
    name: str, options: tuple[str, ...], folder: Path, count: int, fibers: str = ""
) -> subprocess.CompletedProcess[str]:
    vocabulary = file_of(name, folder)
    if vocabulary is None:
        pytest.skip(f"no vocabulary {name}: run tools/fetch-vocab; or ../shared/vocab has it")
    program = PROGRAMS / ("gpu_check_fibers" if fibers else "gpu_check_texts")
    command = [program, *options, vocabulary, str(count), "1", *sorted(CORPUS.glob("*.txt"))]
    environment = {**os.environ, "TOKD_GPU_DEVICE": fibers} if fibers else None
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=environment
    )


def is_equal(done: subprocess.CompletedProcess[str], count: int) -> bool:
    assert done.returncode == 0, done.stderr
    encoded = re.search(r"(\d+) texts: ok", done.stdout)
    return encoded is not None and int(encoded[1]) > count / 4


@pytest.mark.parametrize("way", WAYS)
def test_ids_are_libtoks(way, tmp_path):
    assert is_equal(checked(*WAYS[way], tmp_path, TEXTS), TEXTS)


@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("way", WAYS)
def test_ids_of_many_threads_are_libtoks(way, order, tmp_path):
    done = checked(*WAYS[way], tmp_path, TEXTS // 20, f"fibers:256:{order}")
    assert is_equal(done, TEXTS // 20)


@pytest.mark.parametrize("name", REFUSED)
def test_a_vocabulary_that_is_not_covered_is_refused(name, tmp_path):
    done = checked(name, (), tmp_path, 1)
    assert done.returncode == 77
    assert "a device cannot encode with it" in done.stderr
