# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the suite `net`: the real appliance at the end of a veth pair. Needs root."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from netlab import NO_HUGE, SANITIZED, NetAppliance, NetLab, free_huge_bytes, huge_pages, why_not

KINDS = ("af_xdp",) if SANITIZED else ("af_xdp", "af_packet", "no-huge")

Start = Callable[..., NetAppliance]


def pytest_report_header() -> str:
    memory = f"{free_huge_bytes() >> 20} MiB of huge pages are free"
    return f"dpdk-tokd over veth: {why_not() or 'yes'}; {memory}"


@pytest.fixture(scope="session")
def lab() -> Iterator[NetLab]:
    if reason := why_not():
        pytest.skip(reason)
    pytest.importorskip("dpdk_tokd", reason="pip install ./python")
    with NetLab() as lab:
        yield lab


@pytest.fixture(scope="session")
def huge(lab: NetLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str] | None]:
    """EAL options for huge pages, or None where there are not enough."""
    with huge_pages(tmp_path_factory.mktemp("huge")) as options:
        yield options


@pytest.fixture
def start(lab: NetLab, huge: list[str] | None, gpt2_file: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts an appliance with application options, for one test. Not for modules that use
    `appliance`, which would answer as well."""
    memory = NO_HUGE if huge is None else huge
    with ExitStack() as stack:

        def start(*args: str) -> NetAppliance:
            appliance = NetAppliance(
                lab, gpt2_file, tmp_path, driver="net_af_packet", memory=memory, args=args
            )
            return stack.enter_context(appliance)

        yield start


@pytest.fixture(scope="module", params=KINDS)
def appliance(
    request: pytest.FixtureRequest,
    lab: NetLab,
    huge: list[str] | None,
    gpt2_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NetAppliance]:
    """One appliance for all tests of a module, on each driver; the last without huge pages."""
    if request.param == "no-huge" and huge is None:
        pytest.skip("not enough huge pages are free: the other runs are without them already")
    memory = NO_HUGE if huge is None or request.param == "no-huge" else huge
    driver = "net_af_packet" if request.param == "af_packet" else "net_af_xdp"
    folder = tmp_path_factory.mktemp("tokd")
    with NetAppliance(lab, gpt2_file, folder, driver=driver, memory=memory, args=()) as appliance:
        yield appliance
