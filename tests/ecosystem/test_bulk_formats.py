# SPDX-License-Identifier: BSD-3-Clause
"""What `python -m dpdk_tokd encode` reads and writes, by the libraries that own the formats."""

import signal
import subprocess
import sys
from pathlib import Path

import dpdk_tokd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dpdk_tokd import bulk
from dpdk_tokd.bulk import sinks, sources
from samples import documents


@pytest.fixture
def texts() -> list[str]:
    text = documents().decode()
    return ["", *(text[i : i + 700] for i in range(0, len(text), 700)), ""]


@pytest.fixture
def parquet(tmp_path: Path, texts: list[str]) -> str:
    """In several groups of rows, with a column before the text."""
    table = pa.table({"id": range(len(texts)), "text": texts})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=37)
    return str(tmp_path / "in.parquet")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 5000)
    monkeypatch.setattr(sinks, "PART_IDS", 4000)


@pytest.mark.parametrize("dtype", ["uint32", "int32", "int64"])
def test_a_column_of_arrow_has_the_ids(gpt2, texts, dtype) -> None:
    batch = gpt2.encode_batch(texts, dtype=dtype)
    for part in (batch, batch[1:], batch[::2], batch[:0]):
        column = part.to_arrow()
        assert column.to_pylist() == part.tolist()
        assert column.type == pa.list_(pa.int64() if dtype == "int64" else pa.int32())
    assert batch.to_arrow().values.buffers()[1].address == batch.ids.ctypes.data


@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_parts_have_a_row_for_each_document(gpt2, gpt2_file, parquet, texts, tmp_path, small, to):
    datasets = pytest.importorskip("datasets")
    bulk.encode_files(str(gpt2_file), [parquet], tmp_path / "out", to=to)
    parts = sorted(map(str, (tmp_path / "out").iterdir()))
    assert len(parts) > 3 and all(part.endswith(f".{to}") for part in parts)
    cache = str(tmp_path / "cache")
    got = datasets.load_dataset(to, data_files=parts, split="train", cache_dir=cache)
    assert got["input_ids"][:] == gpt2.encode_batch(texts).tolist()
    assert got.features["input_ids"].feature.dtype == "int32"


def test_json_lines_packed_by_zstd(gpt2, gpt2_file, tmp_path):
    with pa.CompressedOutputStream(str(tmp_path / "in.jsonl.zst"), "zstd") as file:
        file.write(b'{"text": "Hello"}\n' * 1000)
    bulk.encode_files(str(gpt2_file), [tmp_path / "in.jsonl.zst"], tmp_path / "out")
    assert np.fromfile(tmp_path / "out.bin", np.uint16).tolist() == [15496] * 1000


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"body": ["a"]}, "no column 'text' (there are: 'body'): give --field"),
        ({"text": [1]}, "column 'text' is int64, not string"),
        ({"text": ["a", None]}, "row 1: no text (null)"),
    ],
)
def test_an_error_names_column_or_row(gpt2_file, tmp_path, table, message):
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    with pytest.raises(bulk.BulkError) as e:
        bulk.encode_files(str(gpt2_file), [tmp_path / "in.parquet"], tmp_path / "out")
    assert f"in.parquet: {message}" in str(e.value)


def test_what_is_no_parquet_is_refused(gpt2_file, tmp_path):
    (tmp_path / "in.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(bulk.BulkError, match=r"in\.parquet: "):
        bulk.encode_files(str(gpt2_file), [tmp_path / "in.parquet"], tmp_path / "out")


SLOW = """
import sys, time
from dpdk_tokd.bulk import cli, run, sinks, sources
sources.BLOCK, sinks.PART_IDS = 5000, 4000
encode = run._encode
run._encode = lambda *a: (time.sleep(0.02), encode(*a))[1]
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_killed_at_any_time_and_run_again_gives_the_same_parts(gpt2_file, parquet, tmp_path, to):
    command = [
        sys.executable,
        "-c",
        SLOW,
        "encode",
        str(gpt2_file),
        *[parquet] * 4,
        "--to",
        to,
        "-o",
    ]
    subprocess.run([*command, tmp_path / "whole"], check=True)
    at, kills = 0.6, 0
    while True:
        process = subprocess.Popen([*command, tmp_path / "cut"])
        try:
            assert process.wait(at) == 0
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            at += 0.1
    assert kills >= 2
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "cut").iterdir()} == files
    tok = dpdk_tokd.Tokenizer.load(str(gpt2_file))
    column = pq.read_table(parquet)["text"].to_pylist() * 4
    if to == "parquet":
        got = pq.read_table(tmp_path / "cut")["input_ids"].to_pylist()
        assert got == tok.encode_batch(column).tolist()
