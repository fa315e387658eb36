# SPDX-License-Identifier: BSD-3-Clause
"""Stage bluefield: the card's mode, cores for Open vSwitch, what a reflash loses. It changes
nothing: the mode belongs to the firmware, and changing it takes the host down.
"""

from __future__ import annotations

import re

from host import cpus
from host.plan import CONF, Plan, online
from host.report import Finding, Level
from host.root import Root

NAME = "bluefield"
RELEASE = "/etc/mlnx-release"
OVS_CORES = 2  # for OVS's threads and the rest of the system


def is_here(root: Root) -> bool:
    return root.exists(RELEASE)


def modes(said: str) -> tuple[str, str]:
    """The card's mode, DPU or NIC, now and after the next power cycle; "" if unknown. `said`: the
    output of `mlxconfig -e query`, with columns Default, Current and Next Boot. BlueField-3 is
    in DPU mode if INTERNAL_CPU_MODEL is EMBEDDED_CPU and the offload engine is enabled."""
    columns = r"\s+\w+(?:\(\d+\))?\s+(\w+)(?:\(\d+\))?\s+(\w+)"
    model = re.search("INTERNAL_CPU_MODEL" + columns, said)
    engine = re.search("INTERNAL_CPU_OFFLOAD_ENGINE" + columns, said)

    def one(column: int) -> str:
        if not model:
            return ""
        dpu = model[column] == "EMBEDDED_CPU" and (not engine or engine[column] == "ENABLED")
        return "DPU" if dpu else "NIC"

    return one(1), one(2)


def _mode(root: Root) -> Finding:
    said = root.ask("mlxconfig", "-e", "query", "INTERNAL_CPU_MODEL", "INTERNAL_CPU_OFFLOAD_ENGINE")
    now, then = modes(said)
    if now == "DPU" and then == "NIC":
        return Finding(
            NAME,
            Level.WARN,
            "the card is in DPU mode, and set to NIC mode from the next power cycle on",
            "dpdk-tokd on the card sees nothing at all after it",
            "mlxconfig -d DEVICE set INTERNAL_CPU_MODEL=1 INTERNAL_CPU_OFFLOAD_ENGINE=0",
        )
    if now == "DPU":
        return Finding(NAME, Level.OK, "the card is in DPU mode: packets come by its ARM cores")
    if not now:
        return Finding(
            NAME,
            Level.NOTE,
            "mlxconfig does not say the card's mode",
            remedy="mst start; mlxconfig -e query INTERNAL_CPU_OFFLOAD_ENGINE",
        )
    set_it = "mlxconfig -d DEVICE set INTERNAL_CPU_MODEL=1 INTERNAL_CPU_OFFLOAD_ENGINE=0, then "
    return Finding(
        NAME,
        Level.BAD,
        "the card is in NIC mode: no packet comes to its ARM cores"
        + ("; DPU mode is set for the next power cycle" if then == "DPU" else ""),
        "dpdk-tokd on the card sees nothing at all",
        ("" if then == "DPU" else set_it)
        + "power the host off and on (a warm reboot is not enough)",
        reboot=True,
    )


def _ovs(root: Root, plan: Plan) -> list[Finding]:
    found = []
    left = online(root) - plan.cores
    if plan.cores and len(left) < OVS_CORES:
        found.append(
            Finding(
                NAME,
                Level.WARN,
                f"CPU {cpus.show(left)} alone is left beside the workers",
                "Open vSwitch sets up flows more slowly than they come: first packets wait for milliseconds",
                f"leave at least {OVS_CORES}",
            )
        )
    mask = root.ask(
        "ovs-vsctl", "--if-exists", "get", "Open_vSwitch", ".", "other_config:pmd-cpu-mask"
    )
    text = mask.strip().strip('"')
    if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,64}", text):
        value = int(text, 16)
        both = {cpu for cpu in plan.cores if value >> cpu & 1}
        if both:
            found.append(
                Finding(
                    NAME,
                    Level.BAD,
                    f"Open vSwitch polls on CPU {cpus.show(both)}, which is a worker's",
                    "two programs that poll on one core: each waits for the other for milliseconds",
                    "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=MASK without it",
                )
            )
    return found


def check(root: Root, plan: Plan) -> list[Finding]:
    if not is_here(root):
        return []
    return [
        _mode(root),
        *_ovs(root, plan),
        Finding(
            NAME,
            Level.NOTE,
            f"{root.read(RELEASE).strip()}: a BFB reflash loses all of this",
            remedy=f"keep {CONF} outside the card, and apply again from bf.cfg (config/bluefield/bf.cfg)",
        ),
    ]


def apply(root: Root, plan: Plan) -> None:
    """Changes nothing."""


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
