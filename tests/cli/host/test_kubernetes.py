# SPDX-License-Identifier: BSD-3-Clause
"""The manifests of config/kubernetes: as Kubernetes reads them, and as our programs do."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.programs import DPDK_TOKD, ROOT
from dpdk_tokd.gateway import cli as gateway
from dpdk_tokd.ops import exporter
from dpdk_tokd.wire import PORT
from ended import ended

yaml = pytest.importorskip("yaml")
FOLDER = ROOT / "config/kubernetes"
LEAST = "1.30"  # preStop's sleep
IMAGE = "registry.example/dpdk-tokd:"
PATHS = {8000: {"/health", "/ready"}, 9477: {"/health", "/ready", "/"}}
Doc = dict[str, Any]


def documents(name: str) -> list[Doc]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def merged(to: Any, patch: Any) -> Any:
    """A strategic merge, as far as our patches need it: lists of what has names by these."""
    if isinstance(to, dict):
        return to | {key: merged(to.get(key), value) for key, value in patch.items()}
    if isinstance(to, list) and isinstance(patch[0], dict):
        named = {one["name"]: one for one in to}
        for one in patch:
            named[one["name"]] = merged(named.get(one["name"]), one)
        return list(named.values())
    return patch


def one(name: str, kind: str) -> Doc:
    (found,) = (d for d in documents(name) if d["kind"] == kind)
    return found


def picker() -> Doc:
    """As little of llm-d's as a patch needs."""
    labels = {"app": "epp"}
    pod = {"containers": [{"name": "epp", "image": "epp", "volumeMounts": []}], "volumes": []}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "epp"},
        "spec": spec,
    }


def patched(name: str) -> Doc:
    (patch,) = documents(name)
    return merged(one("appliance", "DaemonSet") if name == "sriov" else picker(), patch)


def every() -> list[Doc]:
    whole = [doc for name in ("appliance", "gateway", "vllm") for doc in documents(name)]
    return [*whole, patched("sriov"), patched("llm-d")]


def workloads() -> list[Doc]:
    return [doc for doc in every() if "template" in doc.get("spec", {})]


def ours() -> Iterator[tuple[Doc, Doc]]:
    """Pods, and their containers of our image."""
    for doc in workloads():
        pod = doc["spec"]["template"]["spec"]
        for of in pod.get("initContainers", []) + pod["containers"]:
            if of["image"].startswith(IMAGE):
                yield pod, of


def container(doc: Doc, name: str) -> Doc:
    return next(c for c in doc["spec"]["template"]["spec"]["containers"] if c["name"] == name)


def probes(of: Doc) -> list[Doc]:
    return [of[name] for name in ("startupProbe", "livenessProbe", "readinessProbe") if name in of]


def settings() -> Doc:
    return one("gateway", "ConfigMap")["data"]


def command(of: Doc, values: dict[str, str]) -> list[str]:
    """With $(NAME) replaced, as Kubernetes does."""
    words = of["command"] + of.get("args", [])
    return [re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], word) for word in words]


def test_kubernetes_reads_them() -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="tools/requirements-tests.txt")
    for version in (LEAST, schemas.latest_version()):
        for doc in every():
            schemas.validate(doc, version, strict=True)
    assert LEAST in (ROOT / "doc/user/kubernetes.md").read_text()


def started(doc: Doc, folder: Path, cpus: str, **env: str) -> list[str]:
    """What the pod's shell starts where the container has these CPUs."""
    (folder / "status").write_text(f"Name:\tsh\nCpus_allowed_list:\t{cpus}\n")
    stub = folder / "dpdk-tokd"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    of = container(doc, "dpdk-tokd")
    env = {"CPUS": "2"} | env | {e["name"]: e["value"] for e in of["env"] if "value" in e}
    shell, dash_c, script = command(of, {})
    script = script.replace("/proc/self/status", str(folder / "status"))
    done = subprocess.run(
        [shell, dash_c, script], env={"PATH": f"{folder}:/usr/bin:/bin", **env},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("cpus", "limit", "workers"),
    [
        ("2-3", 2, "3"),
        ("0,2-3", 3, "2,3"),
        ("4,36", 2, "36"),
        ("2-3,34-35", 4, "3,34,35"),
        ("0-63", 2, "1"),
    ],
)
def test_workers_take_all_cpus_but_one(tmp_path: Path, cpus: str, limit: int, workers: str) -> None:
    words = started(one("appliance", "DaemonSet"), tmp_path, cpus, CPUS=str(limit))
    assert words[:2] == ["-l", workers]


def test_the_appliance_takes_its_options(tmp_path: Path, gpt2_file: Path) -> None:
    words = started(one("appliance", "DaemonSet"), tmp_path, "2-3")
    eal, own = words[: words.index("--")], words[words.index("--") + 1 :]
    printed = ended(DPDK_TOKD, "-h").stdout
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", printed))
    assert {word for word in eal if word.startswith("-")} <= known
    conf = one("appliance", "ConfigMap")["data"]["dpdk-tokd.conf"]
    (tmp_path / "dpdk-tokd.conf").write_text(conf.replace("/vocab/gpt2.tiktoken", str(gpt2_file)))
    own = [word.replace("/etc/dpdk-tokd", str(tmp_path)) for word in own]
    done = ended(DPDK_TOKD, "--check-config", "--", *own)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_virtual_function_is_the_one_that_the_plugin_gave(tmp_path: Path) -> None:
    doc = patched("sriov")
    (resource,) = (n for n in container(doc, "dpdk-tokd")["resources"]["limits"] if "/" in n)
    variable = f"PCIDEVICE_{re.sub('[./]', '_', resource).upper()}"
    words = started(doc, tmp_path, "2-3", **{variable: "0000:03:00.2"})
    assert words[2:5] == ["-a", "0000:03:00.2", "--"]


def test_the_other_programs_take_their_options() -> None:
    others = set()
    for _, of in ours():
        if of["command"][0] == "tokd-gateway":
            values = settings() | {e["name"]: e.get("value", "") for e in of["env"]}
            options = gateway.parser().parse_args(command(of, values)[1:])
            assert options.port in [port["containerPort"] for port in of["ports"]]
        elif of["command"][0] != "sh":
            others.add(tuple(of["command"]))
    for program, *words in others:
        module = words[:2] if program == "python3" else []
        shown = subprocess.run(
            [ROOT / "build/venv/bin" / program, *module, "--help"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert {w.split("=")[0] for w in words if w.startswith("--")} <= set(
            re.findall(r"--[a-z-]+", shown)
        )


def test_several_appliances_are_a_list() -> None:
    listed = settings() | {"APPLIANCES": "192.0.2.1,192.0.2.2:9000"}
    words = command(container(one("gateway", "Deployment"), "tokd-gateway"), listed)
    assert gateway.parser().parse_args(words[1:]).appliance == listed["APPLIANCES"]


def test_probes_and_services_reach_what_is_served() -> None:
    assert exporter.LISTEN.endswith(":9477")
    for doc in workloads():
        template = doc["spec"]["template"]
        containers = template["spec"]["containers"]
        ports = {p["name"]: p["containerPort"] for of in containers for p in of.get("ports", ())}
        scraped = template["metadata"].get("annotations", {}).get("prometheus.io/port", "8000")
        assert int(scraped) in ports.values()
        for asked in (value["httpGet"] for of in containers for value in probes(of)):
            port = ports.get(asked["port"], asked["port"])
            assert port in ports.values() and asked["path"] in PATHS[port]
    tokd = {"name": "tokd", "containerPort": PORT, "hostPort": PORT, "protocol": "UDP"}
    assert container(one("appliance", "DaemonSet"), "dpdk-tokd")["ports"] == [tokd]
    for name, kind in (
        ("appliance", "DaemonSet"),
        ("gateway", "Deployment"),
        ("vllm", "Deployment"),
    ):
        service, template = one(name, "Service"), one(name, kind)["spec"]["template"]
        assert service["spec"]["selector"] == template["metadata"]["labels"]
        names = {port["name"] for of in template["spec"]["containers"] for port in of["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    assert settings()["APPLIANCES"] == one("appliance", "Service")["metadata"]["name"]


def test_the_appliances_pod_has_cpus_and_pages_of_its_own() -> None:
    """Guaranteed: limits of CPU and memory for every container, and requests that do not differ."""
    doc = one("appliance", "DaemonSet")
    pod = doc["spec"]["template"]["spec"]
    for of in pod["initContainers"] + pod["containers"]:
        assert of["resources"].keys() == {"limits"}
        assert {"cpu", "memory"} <= of["resources"]["limits"].keys()
    limits = container(doc, "dpdk-tokd")["resources"]["limits"]
    assert limits["cpu"].isdecimal() and int(limits["cpu"]) >= 2
    (pages,) = (name for name in limits if name.startswith("hugepages-"))
    (volume,) = (v for v in pod["volumes"] if v["name"] == "hugepages")
    assert volume["emptyDir"]["medium"] == pages.replace("hugepages", "HugePages")


def test_containers_may_do_no_more_than_they_need() -> None:
    page = (ROOT / "doc/user/security.md").read_text().partition("## What set-up may do")[2]
    needed = re.search(r"\| `net_af_packet` \| (.*) \|", page)[1].split(", ")
    for pod, of in ours():
        may = of["securityContext"]
        assert may["allowPrivilegeEscalation"] is False and may["readOnlyRootFilesystem"] is True
        assert may["capabilities"]["drop"] == ["ALL"]
        asked = may["capabilities"].get("add", [])
        sriov = "IPC_LOCK" in asked
        assert asked == ([*needed, "IPC_LOCK"] * sriov or needed * (of["name"] == "dpdk-tokd"))
        profile = may.get("seccompProfile") or pod["securityContext"]["seccompProfile"]
        assert profile == {"type": "RuntimeDefault"}
        root = of["name"] in ("dpdk-tokd", "exporter")
        no_root = may.get("runAsNonRoot") or pod["securityContext"].get("runAsNonRoot")
        assert may.get("runAsUser") == 0 if root else no_root


def test_what_is_open_may_end() -> None:
    (drain,) = re.findall(
        r"^drain = (\d+)$", one("appliance", "ConfigMap")["data"]["dpdk-tokd.conf"], re.M
    )
    for doc, name, seconds in (
        (one("appliance", "DaemonSet"), "dpdk-tokd", int(drain) / 1000),
        (one("gateway", "Deployment"), "tokd-gateway", gateway.DRAIN_S),
    ):
        pod = doc["spec"]["template"]["spec"]
        sleep = container(doc, name)["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod["terminationGracePeriodSeconds"] > sleep + seconds


def test_services_are_not_taken_for_options() -> None:
    """Of TOKD_GATEWAY_PORT, which links of services set, dpdk-tokd knows nothing."""
    done = ended(
        DPDK_TOKD, "--check-config", env=os.environ | {"TOKD_GATEWAY_PORT": "tcp://192.0.2.1:8000"}
    )
    assert done.returncode == 2 and "TOKD_GATEWAY_PORT" in done.stderr
    assert one("appliance", "DaemonSet")["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_the_image_is_of_this_version_and_has_the_programs() -> None:
    version = subprocess.run([DPDK_TOKD, "--version"], capture_output=True, text=True, check=True)
    script = (ROOT / "tools/image").read_text()
    for _, of in ours():
        assert of["image"] == IMAGE + version.stdout.split()[1].rstrip(",")
        assert of["command"][0] in ("sh", "python3") or of["command"][0] in script
