# SPDX-License-Identifier: BSD-3-Clause
"""The network: veth pairs whose far end, the client's, is in a network namespace.

The conventional server is in a namespace too, so the host gets no address. dpdk-tokd's end of a
pair has no address and stays in the host's namespace, as an operator would have it.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.task import Missing

NAMESPACE_PREFIX = "tokd-demo-"


@dataclass(frozen=True)
class Veth:
    near: str  # the server's interface
    far: str  # the client's
    server: str  # IPv4 address of the server
    client: str
    port: int = 9000  # the server's, UDP or TCP

    @property
    def address(self) -> str:
        return f"{self.server}:{self.port}"


def _run(*command: str) -> None:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise OSError(f"{' '.join(command)}: {run.stderr.strip() or run.stdout.strip()}")


def inside(namespace: str | None, *command: str) -> list[str]:
    """The command, run in a network namespace unless that is None."""
    return ["ip", "netns", "exec", namespace, *command] if namespace else [*command]


def _remove_stale() -> None:
    """Remove namespaces of killed processes, whose pid is in the name."""
    folder = Path("/run/netns")
    for path in folder.glob(f"{NAMESPACE_PREFIX}*") if folder.is_dir() else ():
        pid, _, _ = path.name.removeprefix(NAMESPACE_PREFIX).partition("-")
        if pid.isdigit() and not Path("/proc", pid).exists():
            _run("ip", "netns", "del", path.name)


@contextmanager
def namespace(role: str) -> Iterator[str]:
    _remove_stale()
    name = f"{NAMESPACE_PREFIX}{os.getpid()}-{role}"
    _run("ip", "netns", "add", name)
    try:
        yield name
    finally:
        _run("ip", "netns", "del", name)


def _prepare(interface: str, prefix: list[str]) -> None:
    """No IPv6 chatter and no offloads: packets travel as they are sent."""
    switch = f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"
    _run(*prefix, "sh", "-c", f"[ ! -e {switch} ] || echo 1 > {switch}")
    for feature in ("tx", "rx", "sg", "gro", "gso", "tso"):
        # Some kernels do not allow to switch all of them.
        subprocess.run(
            [*prefix, "ethtool", "-K", interface, feature, "off"], capture_output=True, check=False
        )
    _run(*prefix, "ip", "link", "set", interface, "up")


@contextmanager
def veth(index: int, client: str, server: str | None) -> Iterator[Veth]:
    """A pair from namespace `client` to namespace `server`; None: this one, without an address."""
    name = f"tokd{os.getpid() % 100_000}"
    link = Veth(
        near=f"{name}{'ace'[index]}",
        far=f"{name}{'bdf'[index]}",
        server=f"10.99.{index}.1",
        client=f"10.99.{index}.2",
    )
    near = inside(server)
    _run(
        *(*near, "ip", "link", "add", link.near, "type", "veth"),
        *("peer", "name", link.far, "netns", client),
    )
    try:
        _prepare(link.near, near)
        _prepare(link.far, inside(client))
        _run("ip", "-n", client, "addr", "add", f"{link.client}/24", "dev", link.far)
        if server:
            _run("ip", "-n", server, "addr", "add", f"{link.server}/24", "dev", link.near)
        yield link
    finally:
        _run(*near, "ip", "link", "del", link.near)


def client_link(stack: ExitStack, role: str, index: int = 0) -> tuple[str, Veth]:
    """A namespace for the client, and its pair to this one. Missing: without root."""
    try:
        client = stack.enter_context(namespace(role))
        return client, stack.enter_context(veth(index, client, None))
    except OSError as error:
        raise Missing(f"cannot make a veth pair (needs root): {error}") from error
