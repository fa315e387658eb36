# SPDX-License-Identifier: BSD-3-Clause
"""The wire alone: DPDK's testpmd sends each packet back, with dpdk-tokd's driver and CPU."""

import shutil
import subprocess
from pathlib import Path

from bench.appliance import HUGE, Appliance, on_veth
from bench.lab.net import Veth
from bench.log import log
from bench.process import ENDS_WITH_US, NotReady, Process

READY_S = 30.0
MEMORY, MBUFS = 96, 16384  # MB, and what fits


def start(link: Veth, client: str, appliance: Appliance, folder: Path, cpu: int) -> Process | None:
    """None, with the reason logged, if it cannot be started."""
    program = shutil.which("dpdk-testpmd")
    if program is None:
        log("no wire alone: dpdk-testpmd is not installed (package dpdk)")
        return None
    # It answers no ARP request.
    address = Path(f"/sys/class/net/{link.near}/address").read_text().strip()
    subprocess.run(
        ["ip", "-n", client, "neigh", "replace", link.server, "lladdr", address, "dev", link.far],
        check=True,
    )
    memory = HUGE if appliance.huge_pages else ["--no-shconf", "--no-huge"]
    command = [*ENDS_WITH_US, "stdbuf", "-oL", program, "--no-pci", "--no-telemetry"]
    command += ["--lcores", f"0@{cpu},1@{cpu}", "-m", str(MEMORY), *memory]
    command += [f"--vdev={on_veth(appliance.driver, link)}", "--", "--forward-mode=5tswap"]
    command += ["--auto-start", "--stats-period=3600", f"--total-num-mbufs={MBUFS}"]
    server = Process("testpmd", command, folder / "testpmd.log")
    try:
        server.wait_for("packet forwarding - ports", READY_S)
    except NotReady as error:
        server.stop()
        log(f"no wire alone: {error}")
        return None
    return server
