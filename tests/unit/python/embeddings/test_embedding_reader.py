# SPDX-License-Identifier: BSD-3-Clause
"""EmbeddingReader on a real tokd-gpu --device cpu, fed by the transport that dpdk-tokd uses."""

import fcntl
import gc
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dpdk_tokd import (
    Embedding,
    EmbeddingReader,
    EmbeddingStatus,
    RingDropped,
    RingError,
    RingRefused,
)
from dpdk_tokd.embeddings import attach as embedding_attach
from dpdk_tokd.embeddings import layout
from dpdk_tokd.embeddings import reader as embedding_reader
from dpdk_tokd.embeddings.cuda import LEGACY_STREAM
from dpdk_tokd.embeddings.request import map_whole
from dpdk_tokd.embeddings.table import random_table
from ended import ended
from gpu_agent import AGENT, Agent, Poster

WORD = random_table(1000, 64, 7)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path) as a:
        yield a


def reader_of(agent: Agent) -> EmbeddingReader:
    return EmbeddingReader(agent.subscribers, timeout=10)


def take(reader: EmbeddingReader, n: int) -> list[Embedding]:
    return [next(reader).hold() for _ in range(n)]


def test_rows_are_those_of_the_table_in_the_order_of_posting(agent: Agent) -> None:
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, 1000, rng.integers(1, 200)).tolist() for _ in range(50)]
    with reader_of(agent) as reader, Poster(agent) as poster:
        for i, ids in enumerate(texts):
            poster.post(i, ids)
            e = next(reader)
            assert (e.request, e.worker, e.instance, e.first) == (i, 0, 99, 0)
            assert e.starts and e.last and not e.aborted and e.status == EmbeddingStatus.OK
            assert e.array.dtype == np.float32
            np.testing.assert_array_equal(e.array, WORD[ids])
            assert e.intact and e.embedded_ns >= e.visible_ns
        assert set(poster.wait()) == {EmbeddingStatus.OK}


def test_pieces_of_texts_of_several_producers_keep_their_order(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent, 0) as a, Poster(agent, 1) as b:
        for i in range(20):
            for poster in (a, b):
                flags = (poster.FIRST if i == 0 else 0) | (poster.LAST if i == 19 else 0)
                poster.post(5, [i, i + 1, i + 2], first=3 * i, flags=flags)
        seen: dict[int, list[int]] = {0: [], 1: []}
        for _ in range(40):
            e = next(reader)
            np.testing.assert_array_equal(e.array, WORD[e.first // 3 :][:3])
            seen[e.worker].append(e.first)
        assert seen[0] == seen[1] == [3 * i for i in range(20)]


def test_an_empty_text_and_one_that_failed_have_no_rows(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [])
        poster.post(2, [], first=7, flags=poster.ABORT)
        empty, aborted = take(reader, 2)
        assert len(empty) == 0 and empty.array.shape == (0, 64) and not empty.aborted
        assert len(aborted) == 0 and aborted.aborted and aborted.last


def test_an_id_beyond_the_table_is_a_status_and_a_row_of_zeros(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [5, 1000, 6])
        e = next(reader)
        assert e.status == EmbeddingStatus.BADID
        np.testing.assert_array_equal(e.array, [WORD[5], np.zeros(64), WORD[6]])
        assert poster.wait() == [EmbeddingStatus.BADID]


@pytest.mark.parametrize(
    ("options", "threads"),
    [((), 1), (("--workers", "-1"), 1), (("--workers", "0"), 0), (("--workers", "3"), 3)],
)
def test_workers_of_the_cpu_are_one_unless_given(
    tmp_path: Path, options: tuple[str, ...], threads: int
) -> None:
    with Agent(tmp_path, *options) as agent, reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [1, 2])
        assert len(next(reader)) == 2  # they all run
        main_and_scanner = 2
        tasks = Path(f"/proc/{agent.process.pid}/task")
        assert len(list(tasks.iterdir())) == main_and_scanner + threads


def test_a_child_neither_releases_rows_nor_stays_attached(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [1, 2, 3])
        held = next(reader).hold()
        assert reader._a is not None
        cursor = reader._a.cursor[:8]
        said, say = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                held.release()
                os.write(say, b"closed" if reader.closed else b"open")
                signal.pause()
            finally:
                os._exit(1)
        try:
            os.close(say)
            assert os.read(said, 8) == b"closed"
            assert reader._a.cursor[:8] == cursor
            np.testing.assert_array_equal(held.array, WORD[[1, 2, 3]])
            reader.close()
            agent.wait_for(f"subscriber of pid {os.getpid()} detached")
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(said)


def test_views_are_the_outputs_and_cannot_be_written(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [1, 2, 3])
        e = next(reader)
        assert not e.array.flags.writeable and not e.array.flags.owndata
        with pytest.raises(ValueError, match="WRITEABLE"):
            e.array.flags.writeable = True
        e.release()
        with pytest.raises(RingError, match="released"):
            _ = e.array


class HostAsGpu:
    """In place of CudaOutputs, which needs a GPU: the same memory, and says what was waited for."""

    device = 3

    def __init__(self, reader: EmbeddingReader) -> None:
        self.address = reader._memory_address
        self.waited: list[set[int]] = []

    def wait(self, streams: set[int]) -> None:
        self.waited.append(streams)

    def close(self) -> None:
        pass


def test_cuda_array_interface_holds_the_rows_until_released(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [1, 2])
        poster.post(2, [3])
        reader._cuda = gpu = HostAsGpu(reader)  # type: ignore[assignment]
        first = next(reader)
        interface = first.__cuda_array_interface__
        assert interface["shape"] == (2, 64) and interface["data"] == (first._address(), True)
        next(reader).release()
        poster.wait()
        assert poster.released(1, 100) == 0 and gpu.waited == []  # a kernel may read it
        first.release()
        assert gpu.waited == [{LEGACY_STREAM}]
        assert poster.released(2, 5000) == 2
        with pytest.raises(RingError, match="released"):
            _ = first.__cuda_array_interface__


def test_release_waits_for_the_streams_that_took_the_rows(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        for request in range(4):
            poster.post(request, [1, 2])
        poster.wait()
        reader._cuda = gpu = HostAsGpu(reader)  # type: ignore[assignment]
        next(reader).release()
        assert gpu.waited == [set()]  # nobody took them
        e = next(reader)
        capsule = e.__dlpack__(stream=0x5000)
        e.release()
        assert gpu.waited == [set()]
        del capsule
        assert gpu.waited == [set(), {0x5000}]
        e = next(reader).hold()
        e.release(stream=7)
        assert gpu.waited[2:] == [{7}]
        e = next(reader).hold()
        capsule = e.__dlpack__()  # of a library that names no stream
        del capsule
        e.release()
        assert gpu.waited[3:] == [{LEGACY_STREAM}]


@pytest.mark.parametrize(
    ("variable", "value"), [("CUDA_LAUNCH_BLOCKING", "1"), ("CUDA_DEVICE_MAX_CONNECTIONS", "1")]
)
def test_variables_with_which_the_kernel_would_hang_are_refused(
    tmp_path: Path, variable: str, value: str
) -> None:
    if not AGENT.is_file():
        pytest.skip(f"{AGENT} is missing: ninja -C build")
    command = [AGENT, "--table", "random:5x4", "--device", "cuda:0"]
    command += [
        "--listen",
        f"unix:{tmp_path}/ring",
        "--subscribers-socket",
        f"{tmp_path}/subscribers",
    ]
    environment = {**os.environ, variable: value}
    end = ended(*command, env=environment)
    if "built without CUDA" in end.stderr:
        pytest.skip("tokd-gpu was built without CUDA")
    assert end.returncode == 1 and f"{variable}={value}" in end.stderr, end.stderr


def test_who_cannot_open_the_rows_does_not_stay_a_subscriber(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached = []

    def attach(path: str, timeout: float, as_engine: bool) -> embedding_attach.Attached:
        a = embedding_attach.attach(path, timeout, as_engine)
        a.reply = a.reply._replace(outputs=layout.Outputs.CUDA_IPC)
        attached.append(a)
        return a

    def no_runtime(*_: object) -> None:
        raise RingError("there is no libcudart")

    monkeypatch.setattr(embedding_reader, "attach", attach)
    monkeypatch.setattr(embedding_reader, "CudaOutputs", no_runtime)
    with pytest.raises(RingError, match="no libcudart"):
        reader_of(agent)
    (a,) = attached
    assert a.socket.fileno() == -1
    assert a.ring.closed and a.cursor.closed


def test_outputs_are_given_back_when_the_subscriber_lets_go(agent: Agent) -> None:
    with Poster(agent) as poster:
        poster.post(1, [1])
        assert poster.released(1, 5000) == 1  # no subscriber: at once
        with reader_of(agent) as reader:
            for i in range(3):
                poster.post(i, [i])
            a, b, c = take(reader, 3)
            poster.wait()
            b.release()
            assert poster.released(2, 100) == 1  # the older one is still held
            a.release()
            assert poster.released(3, 5000) == 3
            with c:
                pass
            assert poster.released(4, 5000) == 4


def test_all_is_given_back_when_the_subscriber_goes(agent: Agent) -> None:
    with Poster(agent) as poster:
        reader = reader_of(agent)
        poster.post(1, [1])
        take(reader, 1)
        assert poster.released(1, 100) == 0
        reader.close()
        assert poster.released(1, 5000) == 1


def test_every_subscriber_is_waited_for(agent: Agent) -> None:
    with reader_of(agent) as one, reader_of(agent) as two, Poster(agent) as poster:
        poster.post(1, [1, 2])
        a, b = next(one), next(two)
        np.testing.assert_array_equal(a.array, b.array)
        a.release()
        assert poster.released(1, 100) == 0
        b.release()
        assert poster.released(1, 5000) == 1


def test_dlpack_gives_the_same_memory_and_keeps_it(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        poster.post(1, [3, 4])
        e = next(reader)
        for versioned in ((1, 0), None):
            capsule = e.__dlpack__(max_version=versioned)
            name = "dltensor_versioned" if versioned else "dltensor"
            assert name in repr(capsule)
            del capsule  # nobody took it
        tensor = np.from_dlpack(e)
        assert tensor.ctypes.data == e.array.ctypes.data and tensor.shape == (2, 64)
        assert not tensor.flags.writeable
        np.testing.assert_array_equal(tensor, WORD[[3, 4]])
        with pytest.raises(BufferError):
            e.__dlpack__(copy=True)
        assert e.__dlpack_device__() == (1, 0)
        e.release()
        assert poster.released(1, 100) == 0  # the tensor has it
        np.testing.assert_array_equal(tensor, WORD[[3, 4]])
        del tensor
        gc.collect()
        assert poster.released(1, 5000) == 1


def test_a_tensor_outlives_its_reader(agent: Agent) -> None:
    with Poster(agent) as poster:
        reader = reader_of(agent)
        poster.post(1, [3, 4])
        tensor = np.from_dlpack(next(reader))
        reader.close()
        np.testing.assert_array_equal(tensor, WORD[[3, 4]])


LATE = """
import ctypes
from dpdk_tokd._native import libtok

capsule = libtok.dlpack(object(), 0, 1, 1, 2, 32, 1, 0, False)
api, name = ctypes.pythonapi, ctypes.py_object(b"used_dltensor")
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
tensor = api.PyCapsule_GetPointer(ctypes.py_object(capsule), b"dltensor")
api.Py_IncRef(name)  # for good, as the name is for good
assert api.PyCapsule_SetName(ctypes.py_object(capsule), name.value) == 0
deleter = ctypes.c_void_p.from_address(tensor + 56)  # behind DLTensor and the context
getattr(ctypes.CDLL(None), "__cxa_atexit")(deleter, ctypes.c_void_p(tensor), None)
"""


def test_a_tensor_outlives_the_interpreter() -> None:
    """As one in a static object of C++, which is gone when the process exits."""
    done = ended(sys.executable, "-c", LATE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_rows_of_two_bytes(tmp_path: Path, dtype: str) -> None:
    with Agent(tmp_path, "--dtype", dtype) as agent, Poster(agent) as poster:
        with reader_of(agent) as reader:
            poster.post(1, [3, 999])
            e = next(reader)
            if dtype == "f16":
                np.testing.assert_array_equal(e.array, WORD[[3, 999]].astype(np.float16))
                np.testing.assert_array_equal(np.from_dlpack(e), e.array)
            else:
                bits = WORD[[3, 999]].view(np.uint32)
                bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
                assert e.array.dtype == np.uint16
                np.testing.assert_array_equal(e.array, bits)
                assert "dltensor" in repr(e.__dlpack__())


def test_word_and_position(tmp_path: Path) -> None:
    options = ("--kind", "word+position")
    with Agent(tmp_path, *options, table="random:1000x64:7:10") as agent:
        with Poster(agent) as poster, reader_of(agent) as reader:
            position = random_table(10, 64, 7, "position")
            poster.post(1, [3, 4, 5], first=7)
            np.testing.assert_array_equal(next(reader).array, WORD[3:6] + position[7:])
            poster.post(1, [3, 4, 5], first=8)
            assert next(reader).status == EmbeddingStatus.BADPOS


def test_tables_of_files(tmp_path: Path) -> None:
    table = np.random.default_rng(0).standard_normal((1000, 64)).astype(np.float32)
    np.save(tmp_path / "table.npy", table)
    with Agent(tmp_path, table=str(tmp_path / "table.npy")) as agent, Poster(agent) as poster:
        with reader_of(agent) as reader:
            poster.post(1, [0, 999, 17])
            np.testing.assert_array_equal(next(reader).array, table[[0, 999, 17]])


def test_any_rows_of_a_random_table_can_be_made_alone() -> None:
    np.testing.assert_array_equal(random_table(3, 64, 7, first=500), WORD[500:503])
    assert random_table(2, 2, 7, "position").tolist() != WORD[:2, :2].tolist()
    assert WORD.min() >= -1 and WORD.max() < 1 and abs(WORD.mean()) < 0.01


class _DiesMeanwhile(set[int]):
    """Leases, the last of which dies while the cursor is being moved, and is counted."""

    def __init__(self, reader: EmbeddingReader) -> None:
        self.reader: EmbeddingReader | None = reader

    def __len__(self) -> int:
        reader, self.reader = self.reader, None
        if reader is not None:
            reader._advance()
        return 0


def test_a_tensor_that_dies_while_the_cursor_moves_gives_back_nothing_else(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        for i in range(2):
            poster.post(i, [i])
        a, b = take(reader, 2)
        a._leases = _DiesMeanwhile(reader)
        a.release()
        assert poster.released(2, 100) == 1
        b.release()
        assert poster.released(2, 5000) == 2


def test_tensors_that_die_in_other_threads_give_back_all_of_theirs(agent: Agent) -> None:
    with reader_of(agent) as reader, Poster(agent) as poster:
        for i in range(20):
            poster.post(i, [i])
        for _ in range(20):
            e = next(reader)
            tensors = [[np.from_dlpack(e) for _ in range(50)] for _ in range(4)]
            threads = [threading.Thread(target=mine.clear) for mine in tensors]
            for t in threads:
                t.start()
            kept = np.from_dlpack(e)
            for t in threads:
                t.join()
            assert len(e._leases) == 1
            np.testing.assert_array_equal(kept, e.array)
            del kept
        e.release()
        assert poster.released(20, 5000) == 20


def test_a_subscriber_that_keeps_outputs_full_is_dropped_and_told(tmp_path: Path) -> None:
    options = ("--subscriber-timeout", "1000", "--out-bytes", "4M")
    with Agent(tmp_path, *options) as agent, Poster(agent) as poster:
        with reader_of(agent) as reader, reader_of(agent) as good:
            poster.post(0, [1])
            held = next(reader)  # and never let go of
            for i in range(100):  # each 256 KiB of outputs
                poster.post(i + 1, [1] * 1000)
                next(good).release()  # so it never blocks, however late it is
            with pytest.raises(RingDropped, match="for more than 1000 ms"):
                for _ in range(1000):
                    e = reader.poll()
                    if e is not None:
                        e.hold()
            assert not held.intact
            assert not good.closed
        log = agent.wait_for("dropped: ")
        assert log.count("dropped: ") == 1
        poster.wait()


def test_a_subscriber_in_nobodys_way_is_not_dropped(tmp_path: Path) -> None:
    with Agent(tmp_path, "--subscriber-timeout", "50") as agent, Poster(agent) as poster:
        with reader_of(agent) as reader:
            poster.post(0, [1])
            held = next(reader)
            time.sleep(0.3)
            assert reader.poll() is None and held is not None


def test_the_end_of_the_agent_ends_iteration_after_the_last(agent: Agent) -> None:
    with Poster(agent) as poster, reader_of(agent) as reader:
        for i in range(5):
            poster.post(i, [i])
        agent.process.send_signal(signal.SIGTERM)
        assert [e.request for e in reader] == [0, 1, 2, 3, 4]
        assert reader.closed
        assert agent.process.wait(10) == 0
        assert "5 entries, 5 rows" in agent.log.read_text()


def test_two_signals_end_it_though_a_subscriber_holds(tmp_path: Path) -> None:
    with Agent(tmp_path, "--drain", "600000") as agent, Poster(agent) as poster:
        with reader_of(agent) as reader:
            poster.post(0, [1])
            next(reader).hold()
            agent.process.send_signal(signal.SIGINT)
            agent.wait_for("stopping")
            with pytest.raises(subprocess.TimeoutExpired):
                agent.process.wait(0.3)
            assert agent.stop(signal.SIGINT) == 0


def test_requests_that_are_none_are_refused_in_words(agent: Agent) -> None:
    good = layout.REQ.pack(layout.HOLD_MAGIC, layout.VERSION, 0, 0)
    for request, reason in [
        (b"x", "1 bytes: must have 16"),
        (good + b"x", "17 bytes: must have 16"),
        (layout.REQ.pack(1, layout.VERSION, 0, 0), "magic 0x00000001"),
        (
            layout.REQ.pack(layout.HOLD_MAGIC, layout.VERSION + 1, 0, 0),
            f"version {layout.VERSION + 1}",
        ),
        (layout.REQ.pack(layout.HOLD_MAGIC, layout.VERSION, 2, 0), "a field it lacks"),
        (layout.REQ.pack(layout.HOLD_MAGIC, layout.VERSION, 0, 1), "a field it lacks"),
    ]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            s.connect(str(agent.subscribers))
            s.send(request)
            reply = layout.Reply._make(layout.REP.unpack(s.recv(4096)))
            assert reply.outputs == 0 and reason in reply.reason
            assert s.recv(1) == b""
    with reader_of(agent):
        pass


def test_memory_that_shrinks_just_before_its_seal_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = fcntl.fcntl

    def late(fd: int, command: int) -> int:
        os.ftruncate(fd, 0)
        real(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return real(fd, command)

    fd = os.memfd_create("ring", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 4096)
    monkeypatch.setattr(fcntl, "fcntl", late)
    with pytest.raises(RingError, match="0 bytes, at least 4096"):
        map_whole(fd, mmap.PROT_READ, "ring", 4096)
    os.close(fd)


def test_at_most_sixteen_subscribers_attach(agent: Agent) -> None:
    readers = [reader_of(agent) for _ in range(16)]
    with pytest.raises(RingRefused, match="16 subscribers are attached"):
        reader_of(agent)
    readers.pop().close()
    agent.wait_for("detached")
    reader_of(agent).close()
    for reader in readers:
        reader.close()


def test_a_cursor_that_lies_harms_nobody_else(agent: Agent) -> None:
    with reader_of(agent) as liar, reader_of(agent) as good, Poster(agent) as poster:
        assert liar._a is not None
        poster.post(1, [1])
        e = next(good)
        for lie in (2**64 - 1, 1000, 1 << 63):
            liar._a.cursor[:8] = lie.to_bytes(8, "little")
            assert poster.released(1, 50) == 0
        liar.close()
        e.release()
        assert poster.released(1, 5000) == 1


def test_nothing_there_says_what_to_do(tmp_path: Path, agent: Agent) -> None:
    with pytest.raises(FileNotFoundError, match="is tokd-gpu running"):
        EmbeddingReader(tmp_path / "none")
    with pytest.raises(OSError, match="producers' socket"):
        EmbeddingReader(agent.socket)


def test_a_second_agent_at_the_same_sockets_is_refused(agent: Agent) -> None:
    for listen, subscribers in ((agent.socket, "x"), (str(agent.socket) + "2", agent.subscribers)):
        command = [AGENT, "--table", "random:5x5", "--listen", f"unix:{listen}"]
        command += ["--subscribers-socket", subscribers]
        again = ended(*command, timeout=10, cwd=agent.log.parent)
        assert again.returncode == 1 and "another tokd-gpu serves it" in again.stderr
