# SPDX-License-Identifier: BSD-3-Clause
"""--sink: from texts to embeddings, with the agent of this build."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Telemetry = pytest.importorskip("dpdk_tokd.ops.telemetry", reason="tools/setup").Telemetry

TEXTS = 300
START_S = 20.0


def test_a_sink_without_an_agent_is_an_error_at_start(start, gpt2_file, tmp_path: Path) -> None:
    appliance = start("--vocab", str(gpt2_file), "--sink", f"gpu=shm:{tmp_path}/none")
    appliance.wait_for(f"--sink gpu=shm:{tmp_path}/none: ")
    assert appliance.wait(30) != 0


def test_an_agent_that_does_not_tokenize_is_an_error_at_start(
    agent, start, gpt2_file, tmp_path: Path
) -> None:
    agent()
    appliance = start(
        *("--vocab", str(gpt2_file), "--sink", f"gpu=shm:{tmp_path}/gpu", "--pipeline", "gpu")
    )
    appliance.wait_for("it tokenizes no text, vocabulary 0x")
    assert appliance.wait(30) != 0


def test_the_subscribers_socket_is_no_sink(agent, start, gpt2_file, tmp_path: Path) -> None:
    agent()
    appliance = start("--vocab", str(gpt2_file), "--sink", f"gpu=shm:{tmp_path}/subscribers")
    appliance.wait_for("that is the subscribers' socket, use that of --listen: connect: ")
    assert appliance.wait(30) == 1


@pytest.fixture
def agent(binary: Path, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen]]:
    """Start a tokd-gpu of huge outputs that nobody holds."""
    program = binary.parents[1] / "app/tokd-gpu"
    if not program.is_file():
        pytest.skip(f"{program} is not built")
    running: list[subprocess.Popen] = []

    def make() -> subprocess.Popen:
        path = tmp_path / "gpu"
        path.unlink(missing_ok=True)
        command = [program, "--listen", f"unix:{path}", "--table", "random:50257x16"]
        command += ["--subscribers-socket", str(tmp_path / "subscribers"), "--kind", "word"]
        with open(tmp_path / "agent.log", "a") as log:
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
        end = time.monotonic() + START_S
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)
        assert path.exists(), (tmp_path / "agent.log").read_text()
        return running[-1]

    yield make
    for process in running:
        process.kill()
        process.wait()


def test_texts_are_embedded_and_agents_may_die(agent, start, gpt2_file, tmp_path: Path) -> None:
    frames = pytest.importorskip("bench.texts.frames", reason="pip install ./python")
    capture = tmp_path / "texts.pcap"
    text = b"The quick brown fox jumps over the lazy dog."
    frames.write_pcap(capture, [frames.text_frame(i, text * (1 + i % 20)) for i in range(TEXTS)])
    first = agent()
    appliance = start(
        "--vocab",
        str(gpt2_file),
        "--streams",
        str(2 * TEXTS),
        "--sink",
        f"gpu=shm:{tmp_path}/gpu",
        eal=[f"--vdev=net_pcap0,rx_pcap={capture},tx_pcap={tmp_path / 'replies.pcap'}"],
    )

    appliance.wait_for("ready:")

    def sink() -> dict:
        return appliance.telemetry("/tokd/sink")["0"]

    def counters() -> dict[str, int]:
        return appliance.telemetry("/tokd/counters")

    appliance.wait_until(lambda: counters()["streams_done"] == TEXTS)
    appliance.wait_until(lambda: sink()["lag_bytes"] == 0)
    appliance.wait_until(lambda: counters()["sink_records"] == TEXTS)
    now = counters()
    assert now["sink_tokens"] == now["ids"]
    assert now["sink_done"] == now["sink_slots"] == sink()["slots_done"]
    assert now["sink_failed"] == now["sink_badsum"] == 0
    assert appliance.telemetry("/tokd/histograms")["posted_to_done"]["count"] == now["sink_done"]

    with Telemetry(appliance.prefix) as asked:
        assert asked.sinks(1) == ["running"]
        first.kill()
        appliance.wait_until(lambda: sink()["state"] == "no agent")
        assert asked.sinks(1) == ["no agent"]
    agent()
    appliance.wait_until(lambda: sink()["state"] == "running")
    assert appliance.stop() == 0
    assert "GPU sink: no agent: " in appliance.said()
    assert "sink_slots" in appliance.said()
