# SPDX-License-Identifier: BSD-3-Clause
"""An external engine that attaches to tokd-gpu, and a producer of prompts, as processes."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import subprocess
import time
from typing import Any

from .agent import Agent, Process, group_env
from .run import NotRun, Run, Wrong
from .subscriber import NO_IPC as REFUSED
from .subscriber import module

NO_IPC = "outputs cannot be opened by CUDA IPC"  # of gpu_measure engine
LANES = 4
OPTIONS = ("--lanes", str(LANES), "--engine", "external")
PLACE = struct.Struct("<III4x5QIIiii4xQ64s")  # struct host_engine_place
PROMPT = struct.Struct("<QQII")  # struct engine_prompt
MADE_BYTES = 16  # struct tokd_lane_made
IDS_MOST = 1024  # of a slot of tokd-gpu here
WAIT_S = 30


class Engine(Process):
    """gpu_measure engine, which makes ids by a rule; what it is to know this process reads."""

    def __init__(self, run: Run, agent: Agent) -> None:
        self.layout = module("layout")
        self.attached = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.attached.settimeout(WAIT_S)
        self.attached.connect(str(agent.subscribers))
        place = self._attach(int(run.device[5:]) if run.on_gpu else 0)
        self.prompts, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.prompts.settimeout(WAIT_S)
        words = [run.build.program("gpu_measure"), "engine", run.device]
        super().__init__(run, "engine", words, group_env(run, {}), its_end.fileno(), fds=self.fds)
        its_end.close()
        self.prompts.send(place)
        if not self.prompts.recv(1):
            self.process.wait(WAIT_S)
            raise (NotRun if NO_IPC in self.said() else Wrong)(f"the engine:\n{self.said()}")

    def _attach(self, gpu: int) -> bytes:
        """Returns the engine's place."""
        layout = self.layout
        flags = layout.SUBSCRIBE_ENGINE
        self.attached.send(layout.REQ.pack(layout.HOLD_MAGIC, layout.VERSION, flags, 0))
        size = layout.REP.size + layout.ENGINE_REP.size
        data, fds, _, _ = socket.recv_fds(self.attached, size, 4)
        reply = layout.Reply._make(layout.REP.unpack_from(data))
        if reply.outputs == 0:
            raise (NotRun if REFUSED in reply.reason else Wrong)(f"refused: {reply.reason}")
        e = layout.EngineReply._make(layout.ENGINE_REP.unpack_from(data, layout.REP.size))
        self.cursor = mmap.mmap(fds[0], layout.CURSOR_BYTES)
        self.ring = mmap.mmap(fds[1], 0, prot=mmap.PROT_READ)
        self.at, self.fds = reply.start, fds[2:]
        outputs, made = self.fds or (-1, -1)
        ends = (os.fstat(outputs).st_size, os.fstat(made).st_size) if self.fds else (e.made_off, 0)
        area = (e.lanes, e.room, 0, e.ids_off, e.shown_off, *ends, e.lanes * MADE_BYTES)
        return PLACE.pack(*area, e.n_ids, IDS_MOST, outputs, made, gpu, 0, reply.ipc)

    def _next(self) -> Any:
        """The next entry of tokd-gpu's ring. Raises Wrong if none comes."""
        layout, until = self.layout, time.monotonic() + WAIT_S
        while struct.unpack_from("<Q", self.ring, layout.HEAD_OFFSET)[0] == self.at:
            if time.monotonic() > until:
                raise Wrong(f"no prompt came to the engine in {WAIT_S} s")
            time.sleep(0.001)
        entries = layout.HDR.unpack_from(self.ring)[2]
        where = layout.DATA_OFFSET + (self.at & (entries - 1)) * layout.ENTRY.size
        entry = layout.Entry._make(layout.ENTRY.unpack_from(self.ring, where))
        self.at += 1
        return entry

    def give(self, stops: dict[int, int]) -> None:
        """The next prompt. By serial: after how many ids the engine ends it; 0: the consumer
        does."""
        entry = self._next()
        if entry.status != 1 or not entry.flags & self.layout.GENERATE:
            raise Wrong(f"not a prompt: {entry}")
        lane = entry.use << 32 | entry.lane
        stop = stops[entry.request]
        self.prompts.send(PROMPT.pack(lane, entry.ids, entry.tokens, stop))

    def release(self) -> None:
        """The rows of all prompts so far."""
        struct.pack_into("<Q", self.cursor, 0, self.at)


class Generator(Process):
    """tests/unit/gpu/sink/generator.c."""

    def __init__(self, run: Run, agent: Agent) -> None:
        words = [run.build.program("generator"), agent.ring]
        super().__init__(run, "generator", words, group_env(run, {}), subprocess.PIPE)
        granted = self.read_line()
        if not granted.startswith("granted"):
            raise Wrong(f"generator: {granted}")

    def prompt(self, ids: list[int], made: int) -> int:
        """Asks for `made` ids. Its serial; nothing comes of others meanwhile."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"prompt {made} {made} {' '.join(map(str, ids))}\n")
        word, *serial = self.read_line().split()
        if word != "serial":
            raise Wrong(f"generator: {word} {' '.join(serial)}")
        return int(serial[0])

    def answers(self, n: int) -> dict[int, tuple[list[int], int]]:
        """Ids and how it ended of the next n texts, by serial."""
        ids: dict[int, list[int]] = {}
        ended: dict[int, int] = {}
        while len(ended) < n:
            line = self.read_line()
            word, *numbers = line.split()
            if word not in ("token", "ended"):
                raise Wrong(f"generator: {line}")
            serial, n_or_how, *id = map(int, numbers)
            if word == "ended":
                ended[serial] = n_or_how
            elif n_or_how == len(ids.setdefault(serial, [])):
                ids[serial] += id
            else:
                raise Wrong(f"generator: {line}")
        return {serial: (ids.get(serial, []), how) for serial, how in ended.items()}
