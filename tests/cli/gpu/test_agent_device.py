# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gpu on the device under test: posted to rows in a subscriber's hand, deaths, ends.

TOKD_GPU_DEVICE=cuda:0 with TOKD_GPU_RING=host runs the same on a GPU: posted is by stores into the
ring, which a ring in GPU memory does not have. Without them the consumer runs as threads.
"""

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dpdk_tokd import Embedding, EmbeddingReader, RingError
from dpdk_tokd.embeddings.table import random_table
from ended import ended
from gpu_agent import AGENT, Agent, Poster

DEVICE = os.environ.get("TOKD_GPU_DEVICE", "cpu")
RING = os.environ.get("TOKD_GPU_RING", "gpu" if DEVICE.startswith("cuda") else "host")
WORD = random_table(1000, 64, 7)
OK = 1
FROM_GPU = 2  # cudaMemcpyDeviceToHost

posts = pytest.mark.skipif(
    DEVICE.startswith("cuda") and RING != "host", reason="posts by stores: needs TOKD_GPU_RING=host"
)


@pytest.fixture
def started(tmp_path: Path) -> Callable[[], Agent]:
    """Another tokd-gpu at the same sockets each time."""
    options = ["--device", DEVICE] + (["--ring", "host"] if DEVICE.startswith("cuda") else [])
    return lambda: Agent(tmp_path, *options)


def rows(reader: EmbeddingReader, e: Embedding) -> np.ndarray:
    """A copy in host memory."""
    if reader.cuda_device is None:
        return e.array.copy()
    copy = np.empty((len(e), reader.dim), np.float32)
    runtime = reader._cuda._cuda  # type: ignore[union-attr]
    runtime.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert runtime.cudaMemcpy(copy.ctypes.data, e._address(), copy.nbytes, FROM_GPU) == 0
    return copy


@posts
def test_a_subscriber_has_the_rows_of_what_was_posted(started: Callable[[], Agent]) -> None:
    rng = np.random.default_rng(3)
    with started() as agent:
        try:
            reader = EmbeddingReader(agent.subscribers, timeout=10)
        except RingError as no_way:
            if "libcudart" not in str(no_way):
                raise
            pytest.skip(str(no_way))
        with reader, Poster(agent) as poster:
            for i in range(40):
                ids = rng.integers(0, 1000, rng.integers(1, 500)).tolist()
                poster.post(i, ids)
                e = next(reader)
                assert e.request == i
                np.testing.assert_array_equal(rows(reader, e), WORD[ids])
            assert set(poster.wait()) == {OK}


@posts
def test_producers_that_die_leave_their_places_to_others(started: Callable[[], Agent]) -> None:
    with started() as agent:
        for instance in range(6):
            with Poster(agent, worker=0, instance=instance) as poster:
                for i in range(8):
                    poster.post(i, [i, i + 1, i + 2])
                if instance % 2:
                    assert poster.wait() == [OK] * 8
                    assert poster.released(8, 5000) == 8
        assert agent.stop() == 0
        assert "consumer: 0 restarts" in agent.log.read_text()


@posts
def test_after_its_death_another_one_serves_at_the_same_place(started: Callable[[], Agent]) -> None:
    for _ in range(3):
        with started() as agent, Poster(agent) as poster:
            for i in range(8):
                poster.post(i, list(range(100)))
            assert poster.wait() == [OK] * 8
            agent.stop(signal.SIGKILL)


@posts
def test_a_signal_ends_it_within_the_drain(started: Callable[[], Agent]) -> None:
    with started() as agent, Poster(agent) as poster:
        poster.post(1, [1, 2, 3])
        assert agent.stop(signal.SIGTERM, timeout=20) == 0
        said = agent.log.read_text()
        assert "embedded: 1 entries, 3 rows; slots ok 1" in said


def test_graphs_have_the_relay_of_an_external_engine(tmp_path: Path) -> None:
    options = ["--launch", "graph", "--lanes", "4", "--engine", "external"]
    if DEVICE.startswith("cuda"):
        with Agent(tmp_path, "--device", DEVICE, "--ring", RING, *options) as agent:
            assert agent.stop() == 0
        return
    if Path("/dev/nvidiactl").exists():
        pytest.skip("needs TOKD_GPU_DEVICE=cuda:0")
    # Either the GPU is missing, or the build has no CUDA: then trying again cannot help.
    command = [AGENT, "--table", "random:5x4", "--device", "cuda:0", *options]
    command += ["--subscribers-socket", tmp_path / "subscribers", "--listen", f"unix:{tmp_path}/r"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOKD_")}
    end = ended(*command, env=environment)
    assert end.returncode == (2 if "built without CUDA" in end.stderr else 1), end.stderr
    assert "or use the device cpu" in end.stderr, end.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ring", "gpu"], "--ring gpu: needs --device cuda:N"),
        (["--launch", "graph"], "--launch graph: needs --device cuda:N"),
        (["--ring", "disk"], "--ring disk: give gpu or host"),
        (["--ring", "disk", "--device", "cuda:0"], "--ring disk: give gpu or host"),
    ],
)
def test_a_ring_that_cannot_be_is_refused_by_name(
    options: list[str], words: str, tmp_path: Path
) -> None:
    command = [AGENT, "--table", "random:5x4", "--subscribers-socket", tmp_path / "subscribers"]
    command += ["--listen", f"unix:{tmp_path}/ring", *options]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOKD_")}
    end = ended(*command, env=environment)
    assert end.returncode == 2 and words in end.stderr, end.stderr


@pytest.mark.parametrize(
    ("table", "vocab", "words"),
    [
        ("random:50257x4", "/no/such.json", '--text-vocab: vocab "/no/such.json": '),
        ("random:5x4", "gpt2", "--text-vocab: it has 50257 ids, the word table 5 rows"),
    ],
)
def test_a_vocabulary_for_texts_that_cannot_be_is_refused_by_name(
    table: str, vocab: str, words: str, gpt2_file: Path, tmp_path: Path
) -> None:
    command = [AGENT, "--table", table, "--subscribers-socket", tmp_path / "subscribers"]
    command += ["--listen", f"unix:{tmp_path}/ring", "--text-vocab"]
    command += [str(gpt2_file) if vocab == "gpt2" else vocab]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOKD_")}
    end = ended(*command, env=environment)
    assert end.returncode == 2 and words in end.stderr, end.stderr
