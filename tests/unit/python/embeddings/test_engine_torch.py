# SPDX-License-Identifier: BSD-3-Clause
"""doc/user/engine_torch.py: ids that come back are those of the model, one text at a time."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dpdk_tokd.embeddings import LaneEnd
from gpu_agent import ROOT, Agent, Generator

torch = pytest.importorskip("torch", reason="tools/setup --ecosystem installs PyTorch")
EXAMPLE = ROOT / "doc/user/engine_torch.py"
N_IDS = 1000


def example() -> Any:
    spec = importlib.util.spec_from_file_location("engine_torch", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def greedy(model: Any, prompt: list[int], n: int) -> list[int]:
    made: list[int] = []
    with torch.inference_mode():
        following, state = model(torch.tensor([prompt]), model.begin())
        for _ in range(n):
            made.append(int(following))
            following, state = model(following[:, None], state)
    return made


def test_ids_of_a_batch_are_those_of_each_text_alone(tmp_path: Path) -> None:
    model = example().Model(N_IDS)
    rng = np.random.default_rng(7)
    prompts = [rng.integers(0, N_IDS, rng.integers(1, 40)).tolist() for _ in range(6)]
    wanted = [greedy(model, p, 12) for p in prompts]
    stop = wanted[0][5]  # at the latest there the first text ends
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "subscribers"), "--stop", str(stop)]
    with Agent(tmp_path, "--lanes", "8", "--engine", "external") as agent:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            agent.wait_for("engine of pid", 120.0)
            with Generator(agent) as generator:
                serials = [generator.prompt(p, limit=12, grant=12) for p in prompts]
                got: dict[int, list[int]] = {s: [] for s in serials}
                ends: dict[int, int] = {}
                while len(ends) < len(serials):
                    word, serial, *rest = generator.hear()
                    if word == "ended":
                        ends[int(serial)] = int(rest[0])
                    else:
                        got[int(serial)].append(int(rest[1]))
            agent.stop()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.communicate()
    for serial, ids in zip(serials, wanted, strict=True):
        stops = stop in ids
        assert got[serial] == (ids[: ids.index(stop)] if stops else ids)
        assert ends[serial] == (LaneEnd.STOP if stops else LaneEnd.LENGTH)
    assert LaneEnd.STOP in ends.values()
