# SPDX-License-Identifier: BSD-3-Clause
"""Calls that mean something else than they say are refused; paths are paths."""

import shutil
import subprocess
import sys
from pathlib import Path

import dpdk_tokd
import numpy as np
import pytest
from dpdk_tokd._native import block_keys


@pytest.fixture
def folder(gpt2_file: Path, tmp_path: Path, monkeypatch) -> Path:
    """The folder we are in, with a vocabulary that would be found by its name as well."""
    for name in ("gpt2", "mine"):
        shutil.copy(gpt2_file, tmp_path / f"{name}{gpt2_file.suffix}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_path_object_is_a_path(gpt2, gpt2_file: Path, folder: Path) -> None:
    mine = Path(f"mine{gpt2_file.suffix}")
    for path in (gpt2_file, folder / mine, mine):
        assert dpdk_tokd.Tokenizer.load(path).checksum == gpt2.checksum
    with pytest.raises(ValueError, match=r"\./gpt2.*No such file"):
        dpdk_tokd.Tokenizer.load(Path("gpt2"))
    with pytest.raises(ValueError, match=r"^search_path: .*gpt2.* is a path, not a name"):
        dpdk_tokd.Tokenizer.load(Path("gpt2"), search_path=folder)


def test_folders_to_search_are_paths(gpt2, folder: Path) -> None:
    for where in (folder, str(folder)):
        tok = dpdk_tokd.Tokenizer.load("gpt2", search_path=where)
        assert Path(tok.info.path).parent == folder and tok.checksum == gpt2.checksum


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("openai-community/gpt2", "No such file.*: for a repository .* use Tokenizer.from_pretr"),
        ("~/gpt2.json", "No such file.*: ~ is not expanded: use os.path.expanduser"),
        ("./a/b.json", "No such file or directory$"),
    ],
)
def test_a_missing_file_says_what_may_be_meant(name: str, hint: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=hint):
        dpdk_tokd.Tokenizer.load(name)


def test_a_file_that_is_there_gets_no_hint(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "b").write_text("no vocabulary")
    with pytest.raises(ValueError, match="a/b") as error:
        dpdk_tokd.Tokenizer.load("a/b")
    assert "from_pretrained" not in str(error.value)


@pytest.mark.parametrize("texts", [{"a": 1}, {"a"}, frozenset("a")])
def test_texts_without_an_order_are_refused(gpt2, texts) -> None:
    for call in (gpt2, gpt2.encode_batch):
        name = type(texts).__name__
        with pytest.raises(TypeError, match=f"^texts: expected a list of texts, got {name}$"):
            call(texts)


def test_ids_may_be_an_array_of_objects(gpt2) -> None:
    assert gpt2.decode(np.array([15496, 11], dtype=object)) == "Hello,"


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([2**64], "^ids: 18446744073709551616 is not an unsigned 32-bit number"),
        ([1, -(2**70)], "^ids: -1180591620717411303424 is not an unsigned"),
        ([1, "a", None], "^ids: expected a flat sequence of integers"),
    ],
)
def test_numbers_that_are_no_ids_are_named(gpt2, ids, says: str) -> None:
    for call in (gpt2.decode, gpt2.decode_bytes, gpt2.decode_stream().feed):
        with pytest.raises(ValueError, match=says):
            call(ids)


@pytest.mark.parametrize("ids", [bytes(6), memoryview(bytes(16))[1:9]], ids=["odd", "unaligned"])
def test_bytes_that_are_no_ids_are_refused(gpt2, ids) -> None:
    calls = [
        gpt2._decode,
        lambda ids: gpt2._decode_stream().feed(ids, False),
        lambda ids: gpt2._spans("text", ids, True),
        lambda ids: block_keys.keys(ids, "llm-d", 1, "", None, None),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="^ids: not an aligned array of 4-byte integers"):
            call(ids)


def test_a_folder_takes_no_arguments_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\nhello\n")
    assert dpdk_tokd.Tokenizer.from_pretrained(tmp_path).encode("hello").tolist() == [1]
    for name in ("revision", "token", "cache_dir"):
        with pytest.raises(ValueError, match=f"{name}: {tmp_path} is a folder"):
            dpdk_tokd.Tokenizer.from_pretrained(tmp_path, **{name: "main"})


@pytest.mark.parametrize("path", [5, None, b"gpt2", ["gpt2"]])
def test_what_is_no_path_is_refused_with_its_type(path) -> None:
    with pytest.raises(TypeError, match=type(path).__name__):
        dpdk_tokd.Tokenizer.load(path)


@pytest.mark.parametrize(
    "argument", [{"padding_side": "left"}, {"pad_to_multiple_of": 8}, {"pad_id": 0}]
)
def test_padding_is_not_ignored(gpt2, argument: dict) -> None:
    name = next(iter(argument))
    with pytest.raises(ValueError, match=f"^{name}: nothing is padded: give padding"):
        gpt2.encode_batch(["a"], **argument)
    gpt2.encode_batch(["a"], padding=True, **{"pad_id": 1} | argument)


@pytest.mark.parametrize("truncation", [{}, {"truncation": None}, {"truncation": False}])
def test_the_side_of_truncation_is_not_ignored(gpt2, truncation: dict) -> None:
    for call in (gpt2.encode, lambda text, **how: gpt2.encode_batch([text], **how)):
        with pytest.raises(ValueError, match=r"^truncation_side: nothing is truncated: give tr"):
            call("a", truncation_side="left", **truncation)
        call("a", truncation_side=None, **truncation)
        call("a", truncation_side="left", truncation=1)


def test_an_id_of_numpy_has_its_token(gpt2) -> None:
    """What `encode` gives; and what is no id has none."""
    for id in (15496, np.uint32(15496), np.int64(15496)):
        assert gpt2.id_to_token(id) == gpt2.token(id) == b"Hello"
    for id in (-1, len(gpt2), 2**32 + 15496, 2**70, -(2**70)):
        assert gpt2.id_to_token(id) is None
        with pytest.raises(KeyError):
            gpt2.token(id)
    with pytest.raises(TypeError, match="^id: expected a number, got float$"):
        gpt2.id_to_token(1.0)


def test_a_tokenizer_is_made_by_load() -> None:
    with pytest.raises(TypeError, match=r"^use Tokenizer.load\(name_or_path\)$"):
        dpdk_tokd.Tokenizer("gpt2")


def test_a_view_with_gaps_in_a_batch_is_named(gpt2) -> None:
    with pytest.raises(BufferError, match="contiguous") as error:
        gpt2.encode_batch(["a", memoryview(b"abcd")[::2]])
    assert error.value.__notes__ == ["text 1 of the batch"]


def test_what_is_no_token_or_no_ids_is_refused_with_its_type(gpt2) -> None:
    with pytest.raises(TypeError, match="^token: expected str or bytes, got int"):
        gpt2.token_to_id(5)
    for ids in (5, "ab", None):
        with pytest.raises(ValueError, match=f"integers, got {type(ids).__name__}$"):
            gpt2.decode(ids)


def test_names_that_are_imported_later_are_listed() -> None:
    assert {*dpdk_tokd.__all__, "__version__", "bulk", "hf"} <= {*dir(dpdk_tokd)}


def test_modules_that_documents_name_need_no_import_of_their_own() -> None:
    program = "import dpdk_tokd; dpdk_tokd.hf.HFTokenizer, dpdk_tokd.bulk.encode_files"
    subprocess.run([sys.executable, "-c", program], check=True)
