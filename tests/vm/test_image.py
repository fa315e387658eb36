# SPDX-License-Identifier: BSD-3-Clause
"""The image of tools/image: its programs, started as config/kubernetes starts them, in buildah's
chroot, with the pod's capabilities and a container's system calls."""

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

yaml = pytest.importorskip("yaml")
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

    def make(user: int, capabilities: list[str], *command: str, **env: str) -> Process:
        words = ["buildah", "run", "--isolation=chroot", f"--user={user}"]
        words += [f"--cap-add=CAP_{name}" for name in capabilities]
        words += [f"--env={name}={value}" for name, value in env.items()]
        for at in (
            f"{gpt2_file.parent}:/vocab:ro",
            f"{tmp_path}/run:/run",
            f"{tmp_path}:/etc/dpdk-tokd:ro",
        ):
            words += ["--volume", at]
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


def test_its_programs_serve(in_container, gpt2, gpt2_file: Path, tmp_path: Path) -> None:
    text = "Hello, container"
    documents = yaml.safe_load_all((ROOT / "config/kubernetes/appliance.yaml").read_text())
    kinds = {doc["kind"]: doc for doc in documents}
    conf = kinds["ConfigMap"]["data"]["dpdk-tokd.conf"]
    (tmp_path / "dpdk-tokd.conf").write_text(conf.replace("gpt2.tiktoken", gpt2_file.name))
    pod = kinds["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]
    start, may = [*pod["command"], *pod["args"]], pod["securityContext"]["capabilities"]["add"]
    with NetLab() as lab:
        port = f"--no-pci {' '.join(NO_HUGE)} --vdev net_af_packet0,iface={lab.server_if}"
        env = {"CPUS": pod["resources"]["limits"]["cpu"], "PORT": port, "TOKD_IP": SERVER_IP}
        with in_container(0, may, *start, **env) as appliance:
            appliance.wait_ready(60)
            with lab.call(lambda: Client(SERVER_IP)) as client:
                assert client.tokenize(text).tolist() == gpt2.encode(text).tolist()
            with in_container(0, [], "tokd-exporter", f"--listen={EXPORTER}") as exporter:
                until(lambda: answers(f"http://{EXPORTER}/ready"), said=exporter.said)
            assert ended(appliance) == 0
        assert "denied" not in appliance.said()
    host, port = GATEWAY.split(":")
    words = [
        "tokd-gateway",
        f"--host={host}",
        f"--port={port}",
        f"--model=m=/vocab/{gpt2_file.name}",
    ]
    words.append("--grpc=unix:/tmp/tokenizer.socket")
    with in_container(65532, [], *words) as gateway:
        until(lambda: answers(f"http://{GATEWAY}/ready"), said=gateway.said)
        made = json.loads(get(f"http://{GATEWAY}/tokenize", {"prompt": text}))
        assert made["tokens"] == gpt2.encode(text).tolist()
        assert ended(gateway) == 0
