# SPDX-License-Identifier: BSD-3-Clause
"""The examples of doc/user/bulk.md for Ray Data and `datasets`, on processes of this machine."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpdk_tokd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import documents

ROWS = 4000


class Encode:
    """As in doc/user/bulk.md; and one process is killed, once, if a file says so."""

    def __init__(self, vocab: str, kill: str = "") -> None:
        self.tok = dpdk_tokd.Tokenizer.load(vocab)
        self.kill = kill

    def __call__(self, table: pa.Table) -> pa.Table:
        if self.kill and os.path.exists(self.kill) and table["id"][0].as_py() > ROWS // 2:
            os.unlink(self.kill)
            os.kill(os.getpid(), signal.SIGKILL)
        batch = self.tok.encode_batch(table["text"].to_pylist(), threads=1)
        return table.append_column("input_ids", batch.to_arrow())


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(
        num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20
    )
    # The processes of Ray find this file by its code, not by its name.
    ray.cloudpickle.register_pickle_by_value(__import__(__name__))
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def texts() -> list[str]:
    text = documents().decode()
    return [text[i % 90_000 : i % 90_000 + 2000] + str(i) for i in range(0, ROWS * 700, 700)]


@pytest.fixture
def parquet(tmp_path: Path, texts: list[str]) -> str:
    table = pa.table({"id": range(ROWS), "text": texts})
    folder = tmp_path / "rows"
    folder.mkdir()
    for i in range(8):
        pq.write_table(table.slice(i * ROWS // 8, ROWS // 8), folder / f"{i}.parquet")
    return str(folder)


def encoded(ray: Any, folder: str, actors: int, *arguments: str) -> list[dict[str, Any]]:
    rows = (
        ray.data.read_parquet(folder)
        .map_batches(
            Encode,
            fn_constructor_args=arguments,
            batch_format="pyarrow",
            batch_size=100,
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=1,
        )
        .take_all()
    )
    return sorted(rows, key=lambda row: row["id"])


def test_a_killed_actor_loses_nothing(ray, parquet, texts, gpt2, gpt2_file, tmp_path):
    kill = tmp_path / "kill"
    kill.touch()
    rows = encoded(ray, parquet, 2, str(gpt2_file), str(kill))
    assert not kill.exists()
    assert [row["id"] for row in rows] == list(range(ROWS))
    assert [list(row["input_ids"]) for row in rows] == gpt2.encode_batch(texts).tolist()


def test_actors_share_the_work(ray, parquet, gpt2_file, record_property):
    """How they scale is recorded; a loaded machine would not pass a bound."""
    for actors in (1, 2):
        begin = time.monotonic()
        assert len(encoded(ray, parquet, actors, str(gpt2_file))) == ROWS
        record_property(f"seconds with {actors} actors", time.monotonic() - begin)


def map_dataset(folder: str, vocab: str, kill: str, processes: int) -> Any:
    import datasets

    tok = None

    def encode(rows: dict[str, list[Any]]) -> dict[str, Any]:
        nonlocal tok
        tok = tok or dpdk_tokd.Tokenizer.load(vocab)
        if kill and os.path.exists(kill) and rows["id"][0] > ROWS // 2:
            os.unlink(kill)
            os.kill(os.getpid(), signal.SIGKILL)
        return {"input_ids": tok.encode_batch(rows["text"], threads=1).tolist()}

    cache = f"{folder}-cache"
    given = datasets.load_dataset("parquet", data_dir=folder, split="train", cache_dir=cache)
    return given.map(encode, batched=True, batch_size=100, num_proc=processes)


def test_datasets_map_in_processes(parquet, texts, gpt2, gpt2_file, tmp_path):
    """After a killed process the map fails; run again, nothing is missing."""
    pytest.importorskip("datasets")
    kill = tmp_path / "kill"
    kill.touch()
    with pytest.raises(RuntimeError, match="subprocesses has abruptly died"):
        map_dataset(parquet, str(gpt2_file), str(kill), 2)
    assert not kill.exists()
    got = map_dataset(parquet, str(gpt2_file), str(kill), 2)
    assert got["id"][:] == list(range(ROWS))
    assert got["input_ids"][:] == gpt2.encode_batch(texts).tolist()
