# SPDX-License-Identifier: BSD-3-Clause
"""Engine.cuda: arrays, addresses and errors. The kernels' twin runs on the CPU, and host memory
stands in for that of a GPU."""

import contextlib
import ctypes
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from dpdk_tokd import RingError
from dpdk_tokd.embeddings import Engine, LaneEnd, Prompt, engine_cuda
from dpdk_tokd.embeddings.cuda import PER_THREAD_STREAM
from dpdk_tokd.embeddings.engine_cuda import CudaLanes
from gpu_agent import BUILD, Agent, Generator, Poster

TWIN = BUILD / "tests/unit/gpu/device/engine_twin.so"


class Outputs:
    """CudaOutputs where all of it is host memory. `made` is elsewhere: made_off leads there."""

    def __init__(self, memory: npt.NDArray[np.uint8]) -> None:
        self.address = memory.ctypes.data
        self.number = np.zeros(1, np.uint64)
        self.stream = 0
        self.allocated: list[npt.NDArray[np.uint64]] = []
        self.waited: list[int] = []

    @contextlib.contextmanager
    def current_device(self) -> Iterator[None]:
        yield

    def read(self, offset: int, size: int) -> bytes:
        return ctypes.string_at(self.address + offset, size)

    def zeros(self, size: int) -> int:
        self.allocated.append(np.zeros(-(-size // 8), np.uint64))
        return self.allocated[-1].ctypes.data

    def wait(self, streams: Iterable[int]) -> None:
        self.waited += streams

    def close(self) -> None:
        pass

    def upload(self, number: int) -> int:
        self.number[0] = number
        return self.number.ctypes.data


class OnGpu:
    """An array of a GPU, as other libraries show it."""

    def __init__(self, values: Any, kind: str) -> None:
        self.host = np.array(values, kind)
        self.strides: tuple[int, ...] | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.host
        data = (a.ctypes.data, False)
        return {
            "shape": a.shape,
            "typestr": a.dtype.str,
            "data": data,
            "strides": self.strides,
            "version": 3,
        }


@pytest.fixture
def on_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Agent, Engine]]:
    """An engine whose memory is that of the device cpu, through what a GPU's engine has."""
    if not TWIN.is_file():
        pytest.skip(f"{TWIN} is missing: ninja -C build")
    monkeypatch.setattr(engine_cuda, "LIBRARY", str(TWIN))
    options = ("--lanes", "4", "--engine", "external")
    with Agent(tmp_path, *options) as agent, Engine(agent.subscribers) as engine:
        a = engine._reader._a
        assert a is not None and a.outputs is not None and a.made is not None and a.engine
        outputs = Outputs(np.frombuffer(a.outputs, np.uint8))
        made = np.frombuffer(a.made, np.uint8).ctypes.data
        reply = a.engine._replace(made_off=made - outputs.address)
        engine._reader._cuda = outputs  # type: ignore[assignment]
        engine.cuda = CudaLanes(outputs, reply)  # type: ignore[arg-type]
        engine._memory = None
        yield agent, engine


def one_prompt(engine: Engine) -> Prompt:
    deadline = time.monotonic() + 30
    while not (prompts := engine.poll()):
        assert time.monotonic() < deadline
    [prompt] = prompts
    return prompt


def look(engine: Engine, lanes: OnGpu, **wanted: int) -> None:
    """Until the first lane looks like that."""
    assert engine.cuda is not None
    looks = OnGpu(np.zeros((len(lanes.host), 3)), "<u4")
    deadline = time.monotonic() + 30
    while True:
        engine.cuda.look(lanes, looks)
        found = dict(zip(("made", "granted", "end"), looks.host[0].tolist(), strict=True))
        if found.items() >= wanted.items():
            return
        assert time.monotonic() < deadline, found


def test_ids_of_an_array_in_gpu_memory_come_back(on_gpu: tuple[Agent, Engine]) -> None:
    agent, engine = on_gpu
    assert engine.cuda is not None
    with Generator(agent) as generator:
        serial = generator.prompt([4, 5, 6], limit=9, grant=9)
        prompt = one_prompt(engine)
        assert prompt.ids.tolist() == [4, 5, 6] and not prompt.in_place
        lanes, taken = OnGpu([prompt.lane, 999], "<i8"), OnGpu([7, 7], "u1")
        look(engine, lanes, granted=9)
        engine.cuda.put(lanes, OnGpu([8, 9], "<i4"), taken)
        assert taken.host.tolist() == [1, 0]
        assert generator.hear() == ["token", str(serial), "0", "8"]
        engine.cuda.end(lanes)
        assert generator.hear() == ["ended", str(serial), str(int(LaneEnd.STOP))]
        look(engine, lanes, made=1, end=LaneEnd.STOP)


def test_a_prompt_whose_begin_is_missing_is_cut(on_gpu: tuple[Agent, Engine]) -> None:
    agent, engine = on_gpu
    with Generator(agent) as generator:
        take = engine._take
        engine._take = lambda e: take(e._replace(first=5))  # type: ignore[method-assign]
        serial = generator.prompt([4, 5, 6], limit=9, grant=9)
        deadline = time.monotonic() + 30
        while not (heard := generator.heard()):
            assert engine.poll() == []
            assert time.monotonic() < deadline
        assert heard == [["ended", str(serial), str(int(LaneEnd.CUT))]]


def test_a_prompt_that_was_cut_is_looked_at_until_the_consumer_has_it(
    on_gpu: tuple[Agent, Engine],
) -> None:
    agent, engine = on_gpu
    cuda = engine.cuda
    assert cuda is not None and cuda._memory is not None
    with Generator(agent) as generator:
        take = engine._take
        engine._take = lambda e: take(e._replace(first=5))  # type: ignore[method-assign]
        # As if late stores overwrote all that `end` stores.
        made, lost = cuda._memory.made, np.zeros(16 * engine.lanes_max, np.uint8)
        cuda._memory.made = lost.ctypes.data
        serial = generator.prompt([4, 5, 6], limit=9, grant=9)
        deadline = time.monotonic() + 30
        while not lost.any():
            assert engine.poll() == []
            assert time.monotonic() < deadline
        cuda._memory.made = made
        while engine._cut:
            assert engine.poll() == []
            assert time.monotonic() < deadline
        assert generator.hear() == ["ended", str(serial), str(int(LaneEnd.CUT))]


def test_without_an_agent_no_cut_prompt_is_looked_at(on_gpu: tuple[Agent, Engine]) -> None:
    agent, engine = on_gpu
    assert engine.cuda is not None
    looked: list[int] = []
    engine.cuda.open_one = lambda lane: looked.append(lane) or True  # type: ignore
    engine._cut = [1 << 32]
    assert engine.poll() == [] and looked == [1 << 32]
    agent.stop()
    deadline = time.monotonic() + 30
    while not engine.closed:
        engine.poll()
        assert time.monotonic() < deadline
    looked.clear()
    assert engine.poll() == [] and looked == []


def test_arrays_that_do_not_fit_are_refused(on_gpu: tuple[Agent, Engine]) -> None:
    cuda = on_gpu[1].cuda
    assert cuda is not None
    lanes, ids, taken = OnGpu([1, 2], "<u8"), OnGpu([1, 2], "<u4"), OnGpu([0, 0], "?")
    cuda.end(lanes)
    with pytest.raises(TypeError, match="lanes: not an array in GPU memory: ndarray"):
        cuda.put(lanes.host, ids, taken)
    with pytest.raises(TypeError, match="ids: not an array in GPU memory: ndarray"):
        cuda.put(lanes, ids.host, taken)
    with pytest.raises(ValueError, match="ids: 2 elements of int64: must be 2 integers of 4 bytes"):
        cuda.put(lanes, lanes_as_ids := OnGpu([1, 2], "<i8"), taken)
    assert lanes_as_ids.host.tolist() == [1, 2]
    with pytest.raises(ValueError, match="ids: 2 elements of float32"):
        cuda.put(lanes, OnGpu([1, 2], "<f4"), taken)
    with pytest.raises(ValueError, match="looks: 2 elements of uint32: must be 6"):
        cuda.look(lanes, ids)
    ids.strides = (8,)
    with pytest.raises(ValueError, match="without gaps"):
        cuda.put(lanes, ids, taken)


def test_errors_of_a_launch_are_raised(on_gpu: tuple[Agent, Engine]) -> None:
    cuda = on_gpu[1].cuda
    assert cuda is not None
    with pytest.raises(RingError, match="tokd_engine_look_cuda: CUDA error 400"):
        cuda.look(OnGpu([1], "<u8"), OnGpu([0, 0, 0], "<u4"), stream=1)


def test_after_close_nothing_is_launched(on_gpu: tuple[Agent, Engine]) -> None:
    _, engine = on_gpu
    assert engine.cuda is not None
    outputs: Any = engine.cuda._outputs
    engine.close()
    assert outputs.waited == [PER_THREAD_STREAM]  # the whole GPU, once
    engine.close()
    assert len(outputs.waited) == 1
    lanes, taken = OnGpu([1 << 32], "<u8"), OnGpu([7], "u1")
    for call in (
        lambda: engine.cuda.put(lanes, OnGpu([1], "<u4"), taken),
        lambda: engine.cuda.look(lanes, OnGpu([0, 0, 0], "<u4")),
        lambda: engine.cuda.end(lanes),
    ):
        with pytest.raises(RingError, match="the engine is closed"):
            call()
    assert taken.host.tolist() == [7]


def test_ids_are_read_for_prompts_alone(on_gpu: tuple[Agent, Engine]) -> None:
    agent, engine = on_gpu
    assert engine.cuda is not None
    outputs: Any = engine.cuda._outputs
    reads: list[int] = []
    read = outputs.read
    outputs.read = lambda offset, size: reads.append(size) or read(offset, size)
    with Poster(agent) as poster, Generator(agent) as generator:
        poster.post(1, [1, 2])
        generator.prompt([4, 5, 6], limit=9, grant=9)
        assert one_prompt(engine).ids.tolist() == [4, 5, 6]
        deadline = time.monotonic() + 30
        while engine._reader._position < 2:  # the text has been handed out, too
            engine.poll()
            assert time.monotonic() < deadline
    assert reads == [12]


def test_calls_of_host_memory_say_where_the_lanes_are(on_gpu: tuple[Agent, Engine]) -> None:
    with pytest.raises(RingError, match=r"the lanes are in GPU memory: use Engine\.cuda"):
        on_gpu[1].look([1])


def test_without_the_library_it_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_cuda, "LIBRARY", "libtokd-engine-none.so.0")
    with pytest.raises(RingError, match="libtokd-engine-none.so.0 cannot be loaded"):
        engine_cuda._library()
