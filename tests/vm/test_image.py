# SPDX-License-Identifier: BSD-3-Clause
"""The image of tools/image: its programs run as the manifests of config/kubernetes run them, with
the same capabilities and a container's system calls, in buildah's chroot."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from appliance import until
from bench.process import Process
from bench.programs import ROOT
from dpdk_tokd import Client
from netlab import NO_HUGE, SERVER_IP, NetLab, why_not

EXPORTER, GATEWAY = "127.0.0.1:19477", "127.0.0.1:18000"
BUILD_S = 900


def run(*command: str | Path) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=BUILD_S, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    reason = why_not()
    for program in ("buildah", "mmdebstrap"):
        if shutil.which(program) is None:
            reason = f"needs {program}: apt-get install {program}"
    if reason:
        pytest.skip(reason)
    run("tools/image")
    name = run("buildah", "from", "oci-archive:build-image/dpdk-tokd.tar")
    image = run("buildah", "inspect", "--type=container", "--format={{.FromImageID}}", name)
    yield name
    run("buildah", "rm", name)
    run("buildah", "rmi", image)


@pytest.fixture
def in_container(container: str, gpt2_file: Path, tmp_path: Path):
    (tmp_path / "run").mkdir()

    def make(user: int, capabilities: tuple[str, ...], *command: str) -> Process:
        mounts = ["--volume", f"{gpt2_file.parent}:/vocab:ro", "--volume", f"{tmp_path}/run:/run"]
        words = ["buildah", "run", "--isolation", "chroot", "--user", str(user), *mounts]
        for name in capabilities:
            words += ["--cap-add", f"CAP_{name}"]
        may = ["setpriv", "--no-new-privs"]
        if user == 0:
            may.append(",".join(["--bounding-set=-all", *(f"+{c.lower()}" for c in capabilities)]))
        return Process(command[0], [*words, container, "--", *may, *command], tmp_path / command[0])

    return make


def get(url: str, body: dict[str, object] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return answer.read()


def ended(process: Process) -> int | None:
    """The exit code after SIGTERM, of which buildah would make SIGKILL: its last child gets it."""
    pid = str(process.pid)
    while children := [
        w for p in Path("/proc", pid, "task").glob("*/children") for w in p.read_text().split()
    ]:
        pid = children[0]
    os.kill(int(pid), signal.SIGTERM)
    return process.wait(30)


def answers(url: str) -> bool:
    try:
        get(url)
        return True
    except OSError:
        return False


def test_its_programs_serve(in_container, gpt2, gpt2_file: Path) -> None:
    vocab = f"/vocab/{gpt2_file.name}"
    text = "Hello, container"
    cpu = str(max(os.sched_getaffinity(0)))
    with NetLab() as lab:
        eal = ["-l", cpu, "--no-pci", *NO_HUGE, "--vdev", f"net_af_packet0,iface={lab.server_if}"]
        own = ["--ip", SERVER_IP, "--vocab", vocab]
        caps = ("NET_RAW", "NET_ADMIN")
        with in_container(0, caps, "dpdk-tokd", *eal, "--", *own) as appliance:
            appliance.wait_ready(60)
            with lab.call(lambda: Client(SERVER_IP)) as client:
                assert client.tokenize(text).tolist() == gpt2.encode(text).tolist()
            with in_container(0, (), "tokd-exporter", f"--listen={EXPORTER}") as exporter:
                until(lambda: answers(f"http://{EXPORTER}/ready"), said=exporter.said)
            assert ended(appliance) == 0
        assert "denied" not in appliance.said()
    host, port = GATEWAY.split(":")
    words = ["tokd-gateway", f"--host={host}", f"--port={port}", f"--model=gpt2={vocab}"]
    words.append("--grpc=unix:/tmp/tokenizer.socket")
    with in_container(65532, (), *words) as gateway:
        until(lambda: answers(f"http://{GATEWAY}/ready"), said=gateway.said)
        made = json.loads(get(f"http://{GATEWAY}/tokenize", {"prompt": text}))
        assert made["tokens"] == gpt2.encode(text).tolist()
        assert ended(gateway) == 0
