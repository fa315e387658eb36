# SPDX-License-Identifier: BSD-3-Clause
"""tokd-load-dpdk against the real appliance over net_memif, and over net_af_xdp at both ends: right
ids pass, wrong ones do not."""

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from bench.programs import TOKD_LOAD_DPDK
from netlab import NO_HUGE, SERVER_IP, NetAppliance, NetLab, why_not

CPUS = sorted(os.sched_getaffinity(0))
TEXTS = [
    "One packet.",
    "",
    "naïve café, 東京 🙂, don't; 123456 " * 30,
    "Several packets of text, the ids of which take several replies as well. " * 200,
    " " * 2000,
    "x" * 1376,  # a packet exactly
]

pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="two processes that poll need two CPUs")


@dataclass
class Ended:
    code: int
    said: str
    report: dict
    rows: list[dict[str, str]]


Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("load")


@pytest.fixture(scope="module")
def lab() -> Iterator[NetLab]:
    with NetLab() as lab:
        yield lab


@pytest.fixture(scope="module", params=["many streams"])
def appliance(
    request: pytest.FixtureRequest, gpt2_file: Path, folder: Path
) -> Iterator[NetAppliance]:
    """With room for many texts, or for one: then each new one makes it forget the one before. Over
    net_memif, or a veth pair."""
    if reason := why_not():
        pytest.skip(reason)
    xdp = request.param == "af_xdp"
    with NetAppliance(
        request.getfixturevalue("lab") if xdp else None,
        gpt2_file,
        folder,
        driver="net_af_xdp" if xdp else "net_memif",
        memory=NO_HUGE,
        args=(
            *("--stream-timeout", "60000"),
            *(("--streams", "1") if request.param == "one stream" else ()),
        ),
        devargs=None if xdp else f"role=server,socket={folder / 'memif.sock'},socket-abstract=no",
    ) as appliance:
        yield appliance


@pytest.fixture
def load(
    request: pytest.FixtureRequest, appliance: NetAppliance, folder: Path, gpt2_reference
) -> Run:
    from bench.texts.slices import Slice, write

    device, inside = f"net_memif0,role=client,socket={folder / 'memif.sock'},socket-abstract=no", []
    if appliance.driver == "net_af_xdp":
        lab = request.getfixturevalue("lab")
        device, inside = (
            f"net_af_xdp0,iface={lab.client_if}",
            ["ip", "netns", "exec", lab.namespace],
        )

    def run(*options: str, texts: list[str] = TEXTS, spoil: int | None = None) -> Ended:
        """`spoil`: the index of the text whose expected ids are made wrong."""
        pieces = []
        for i, text in enumerate(texts):
            ids = np.array(gpt2_reference.encode(text, add_special_tokens=False).ids, np.uint32)
            if i == spoil:
                ids[-1] += 1
            pieces.append(Slice("", "", text, ids))
        write(folder / "texts.bin", pieces)
        out, report = folder / "out.csv", folder / "report.json"
        prefix = f"{appliance.prefix}load"
        eal = ["-l", str(CPUS[0]), "--no-pci", "--no-huge", "-m", "128", "--file-prefix", prefix]
        own = ["--connect", f"{SERVER_IP}:9000", "--source", "10.99.0.2:20000"]
        own += ["--slices", str(folder / "texts.bin"), "--ring", appliance.socket]
        own += ["--out", str(out), "--report", str(report)]
        done = subprocess.run(
            [*inside, str(TOKD_LOAD_DPDK), *eal, "--no-telemetry", "--vdev", device, "--", *own, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)
        with out.open() as file:
            rows = list(csv.DictReader(file))
        said = "\n".join(s for s in done.stderr.splitlines() if s.startswith("tokd-load-dpdk: "))
        return Ended(done.returncode, said, json.loads(report.read_text()), rows)

    return run


def test_all_ids_are_right_and_times_are_told(load):
    ended = load("--warmup", "1")
    assert (ended.code, ended.said) == (0, "")
    report = ended.report
    assert report["requests"] == report["right"] == report["ring"]["texts"] == len(TEXTS)
    assert report["ids"] == report["ring"]["ids"]
    assert 0 <= report["off_cpu_seconds"] <= report["seconds"]
    assert report["retransmits"] == report["other_frames"] == report["bad_replies"] == 0
    assert [row["index"] for row in ended.rows] == ["1", "2", "3", "4", "5"]
    assert [row["ok"] for row in ended.rows] == ["1"] * 5
    for row in ended.rows:
        inside, records = int(row["text_to_last_id_ns"]), row["wire_to_ring_ns"].split()
        assert 0 < inside < int(row["ns"])
        assert all(0 < int(ns) <= inside for ns in records)
    assert [bool(row["wire_to_ring_ns"]) for row in ended.rows] == [False, *[True] * 4]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_faulty_wire_loses_no_text_and_doubles_none(load, appliance, seed):
    before = appliance.counters()
    faults = ("--loss", "5%", "--reorder", "10.5%", "--duplicate", "5%", "--seed", seed)
    # A packet that is lost five times in a row takes 6 s: one in some 50 of these runs has one.
    faults += ("--timeout", "60000")
    ended = load("--requests", "1500", "--clients", "16", "--in-flight", "4", *faults)
    assert (ended.code, ended.said) == (0, "")
    report = ended.report
    for way in ("to_appliance", "from_appliance"):
        assert report[way]["lost"] / report[way]["packets"] == pytest.approx(0.05, abs=0.02)
        assert report[way]["reordered"] / report[way]["packets"] == pytest.approx(0.105, abs=0.03)
        assert report[way]["duplicated"] / report[way]["packets"] == pytest.approx(0.05, abs=0.02)
    assert report["retransmits"] > 0 and report["asks"] > 0
    assert report["requests"] == report["right"] == report["ring"]["texts"] == 1500
    assert report["ring"]["lost"] == report["ring"]["wrong"] == report["ring"]["doubled"] == 0
    after = appliance.counters()
    assert after["streams_done"] - before["streams_done"] == 1500
    assert after["streams_failed"] == before["streams_failed"]
    assert after["rx_duplicate"] > before["rx_duplicate"]
    assert after["rx_reordered"] > before["rx_reordered"]


def test_wrong_ids_are_found_by_the_client_and_in_the_ring(load):
    ended = load(spoil=3)
    assert ended.code == 1
    assert "request 3 " in ended.said and "wrong ids" in ended.said
    assert "1 of 6 requests failed" in ended.said
    assert [row["index"] for row in ended.rows if row["ok"] == "0"] == ["3"]
    assert ended.report["right"] == 5 and ended.report["ring"]["wrong"] == 1


@pytest.mark.parametrize("appliance", ["many streams", "af_xdp"], indirect=True)
def test_an_open_loop_has_the_schedule_of_its_seed_and_times_from_it(load):
    # Slow enough that all are sent though a process stands still for half a second.
    options = ("--rate", "200", "--requests", "100", "--clients", "4", "--in-flight", "32")
    one, again, other = (load(*options, "--seed", seed) for seed in ("1", "1", "2"))
    for ended in (one, again, other):
        assert (ended.code, ended.said, ended.report["not_sent"]) == (0, "", 0)
        assert [row["failure"] for row in ended.rows] == [""] * 100
        for row in ended.rows:
            intended, sent = int(row["intended_ns"]), int(row["sent_ns"])
            assert intended <= sent < intended + int(row["ns"])

    def schedule(ended: Ended) -> list[int]:
        return sorted(int(row["intended_ns"]) for row in ended.rows)

    assert schedule(one) == schedule(again) != schedule(other)
    fixed = load("--rate", "2000", "--arrivals", "fixed", "--requests", "100", "--in-flight", "64")
    assert schedule(fixed) == [500_000 * i for i in range(100)]


def test_what_an_open_loop_has_no_room_for_is_not_sent_and_counted(load):
    ended = load("--rate", "1000000", "--requests", "2000", "--in-flight", "1")
    report = ended.report
    assert ended.code == 1 and f"{report['not_sent']} of 2000 requests failed" in ended.said
    assert report["not_sent"] > 0 and report["right"] + report["not_sent"] == 2000
    missed = [row for row in ended.rows if row["failure"] == "not sent"]
    assert len(missed) == report["not_sent"]
    assert all(row["ok"] == "0" and row["sent_ns"] == "" for row in missed)


@pytest.mark.parametrize("appliance", ["one stream"], indirect=True)
def test_a_late_duplicate_makes_no_text_again(load, appliance):
    """An appliance that has forgotten the answer still knows the name of the text."""
    faults = ("--duplicate", "30%", "--reorder", "30%")
    ended = load("--requests", "2000", "--clients", "8", *faults, texts=TEXTS[:1])
    report = ended.report
    assert report["ring"]["doubled"] == report["ring"]["wrong"] == 0
    assert report["right"] + report["refused"] == 2000  # EXPIRED: a client would send it anew
    # Or BUSY: a worker that was off its CPU leaves the text in the one stream to its next turn.
    assert report["ring"]["texts"] >= 2000 - appliance.counters()["drop_table_full"]


NEEDED = ("--connect", "10.0.0.1:9000", "--source", "10.0.0.2:65000", "--slices", "x")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "--connect IP:PORT is missing"),
        (("--", "--connect", "10.0.0.1"), "--connect 10.0.0.1: give IP:PORT"),
        (("--", "--loss", "2"), "--loss 2: give a share from 0% to 100%"),
        (("--", "--reorder", "101%"), "--reorder 101%: give a share"),
        (("--", "--duplicate", "nan%"), "--duplicate nan%: give a share"),
        (("--", "--clients", "0"), "--clients 0: out of range; give 1 to 1024"),
        (("--", "--in-flight", "65"), "--in-flight 65: out of range; give 1 to 64"),
        (("--", *NEEDED, "--arrivals", "fixed"), "--arrivals needs an open loop: give --rate"),
        (("--", "more"), "more: not an option"),
    ],
)
def test_a_bad_option_is_named(options, complaint):
    done = subprocess.run([TOKD_LOAD_DPDK, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ports_beyond_the_last_are_refused():
    command = [TOKD_LOAD_DPDK, "--", *NEEDED, "--clients", "600"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--clients 600: their ports from 65000 on exceed 65535" in done.stderr
