#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An engine of tokd-gpu in PyTorch: a small model with random weights, greedy, in batches.

tokd-gpu --table random:50257x64 --lanes 64 --engine external
python doc/user/engine_torch.py /run/tokd-gpu-subscribers.sock
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from dpdk_tokd.embeddings import Engine, LaneEnd

WIDTH = 64
NAP_S = 200e-6  # without work


class Model(torch.nn.Module):
    """A GRU: what it keeps of a text has one size, so texts of a batch need no padding."""

    def __init__(self, n_ids: int, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embed = torch.nn.Embedding(n_ids, WIDTH)
        self.gru = torch.nn.GRU(WIDTH, WIDTH, num_layers=2, batch_first=True)

    def begin(self) -> torch.Tensor:
        """The state of an empty text."""
        return torch.zeros(2, 1, WIDTH)

    def forward(self, ids: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """ids[texts, n]: the next id of each text, and its state."""
        out, state = self.gru(self.embed(ids), state)
        return (out[:, -1] @ self.embed.weight.T).argmax(-1), state


class Batch:
    """The texts that are open: the lane of each, its state, and the id that comes next."""

    def __init__(self, engine: Engine, model: Model, stop: int) -> None:
        self.engine, self.model, self.stop = engine, model, stop
        self.lanes = np.zeros(0, np.uint64)
        self.state = model.begin()[:, :0]
        self.next = torch.zeros(0, dtype=torch.int64)

    def keep(self, which: torch.Tensor) -> None:
        self.lanes = self.lanes[which.numpy()]
        self.next, self.state = self.next[which], self.state[:, which]

    def take_prompts(self) -> None:
        for prompt in self.engine.poll():
            ids = (
                torch.tensor(prompt.ids.astype(np.int64))
                if len(prompt.ids)
                else torch.zeros(1).long()
            )
            following, state = self.model(ids[None], self.model.begin())
            self.lanes = np.append(self.lanes, np.uint64(prompt.lane))
            self.next = torch.cat([self.next, following])
            self.state = torch.cat([self.state, state], 1)

    def step(self) -> bool:
        """An id for each text whose client takes one. False: there was nothing to do."""
        self.take_prompts()
        self.keep(torch.from_numpy(self.engine.look(self.lanes).end == LaneEnd.OPEN))
        for i in torch.nonzero(self.next == self.stop).flatten().tolist():
            self.engine.end(int(self.lanes[i]), LaneEnd.STOP)  # again until a look says so
        ready = torch.from_numpy(self.engine.look(self.lanes).ready)
        if not ready.any():
            return False
        self.engine.put(self.lanes[ready.numpy()], self.next[ready].numpy())
        following, state = self.model(self.next[ready, None], self.state[:, ready])
        self.next[ready], self.state[:, ready] = following, state
        return True


def serve(engine: Engine, model: Model, stop: int) -> None:
    """Until the agent ends. `stop`: the id that ends a text; -1: none."""
    batch = Batch(engine, model, stop)
    with torch.inference_mode():
        while not engine.closed:
            if not batch.step():
                time.sleep(NAP_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket", nargs="?", default="/run/tokd-gpu-subscribers.sock")
    parser.add_argument("--stop", type=int, default=-1, help="the id that ends a text")
    args = parser.parse_args()
    with Engine(args.socket) as engine:
        model = Model(engine.n_ids)
        print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {engine.n_ids} ids")
        serve(engine, model, args.stop)


if __name__ == "__main__":
    main()
