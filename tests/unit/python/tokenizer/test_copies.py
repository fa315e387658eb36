# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizers that are equal, copied, pickled, and given to other processes."""

import copy
import multiprocessing
import pickle
import shutil
from pathlib import Path

import dpdk_tokd
import pytest

TEXT = "one two three"


def test_equal_are_those_that_do_the_same(gpt2, gpt2_file: Path, tmp_path: Path) -> None:
    again = dpdk_tokd.Tokenizer.load(gpt2_file)
    assert again == gpt2 and hash(again) == hash(gpt2) and len({again, gpt2}) == 1
    (tmp_path / "vocab.txt").write_text("[UNK]\nhello\n")
    for other in (
        dpdk_tokd.Tokenizer.load(tmp_path / "vocab.txt"),
        dpdk_tokd.Tokenizer.load(gpt2_file, strict_utf8=True),
        dpdk_tokd.Tokenizer.load(gpt2_file, algo="greedy"),
        "gpt2",
    ):
        assert other != gpt2
    assert len(gpt2) == gpt2.vocab_size == 50257 and f"{len(gpt2)} ids" in repr(gpt2)


def test_copies_are_the_tokenizer_itself(gpt2) -> None:
    assert copy.copy(gpt2) is gpt2 and copy.deepcopy([gpt2])[0] is gpt2


@pytest.mark.parametrize("how", [{}, {"strict_utf8": True}, {"algo": "greedy"}])
def test_a_pickle_is_loaded_again(gpt2_file: Path, how: dict, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(gpt2_file.parent)
    tok = dpdk_tokd.Tokenizer.load(Path(gpt2_file.name), **how)
    monkeypatch.chdir(tmp_path)  # the pickle's path does not depend on it
    data = pickle.dumps(tok)
    assert len(data) < 1000
    assert pickle.loads(data) == tok
    assert pickle.loads(data).encode(TEXT).tolist() == tok.encode(TEXT).tolist()


def test_a_pickle_remembers_the_pretokenizer(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\nHe\n")
    tok = dpdk_tokd.Tokenizer.load(tmp_path / "vocab.txt", pretokenizer="bert-cased")
    assert pickle.loads(pickle.dumps(tok)).encode("He").tolist() == [1]


def test_a_pickle_whose_file_is_gone_or_another(gpt2_file: Path, tmp_path: Path) -> None:
    path = tmp_path / f"mine{gpt2_file.suffix}"
    shutil.copy(gpt2_file, path)
    data = pickle.dumps(dpdk_tokd.Tokenizer.load(path))
    path.unlink()
    with pytest.raises(ValueError, match=f"{path}.*: a pickled Tokenizer needs the file it was"):
        pickle.loads(data)
    (tmp_path / "vocab.txt").write_text("[UNK]\nhello\n")
    other = pickle.dumps(dpdk_tokd.Tokenizer.load(tmp_path / "vocab.txt"))
    (tmp_path / "vocab.txt").write_text("[UNK]\nhallo\n")
    with pytest.raises(ValueError, match=r"vocab.txt is not the vocabulary that was pickled.*0x"):
        pickle.loads(other)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes_take_it(gpt2, method: str) -> None:
    gpt2.encode_batch([TEXT * 1000] * 50, threads=2)  # threads, which a child does not have
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(gpt2.encode, [TEXT, "a"])
        assert [ids.tolist() for ids in found] == [gpt2.encode(TEXT).tolist(), [64]]
        assert pool.apply(gpt2.encode_batch, ([TEXT, "a"],)).tolist()[1] == [64]
