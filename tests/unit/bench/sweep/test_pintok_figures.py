# SPDX-License-Identifier: BSD-3-Clause
"""PinTok's published figures equal those quoted in their source, and there are no others."""

from pathlib import Path

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.sweep import box as boxes

ROOT = Path(__file__).resolve().parents[4]
PERCENTILES = ("p50", "p90", "p99")
# Its tables 4 to 9, in us; by corpus and tokens, p50 / p90 / p99. english: its OpenWebText, code:
# its GitHub code, multi: its mC4.
TABLE = {
    ("english", 128): {
        "tokd": (36, 117, 325),
        "rust-udp": (509, 769, 1121),
        "python-udp": (1135, 1888, 2412),
    },
    ("english", 512): {
        "tokd": (216, 366, 1650),
        "rust-udp": (846, 1182, 1664),
        "python-udp": (2596, 6077, 7836),
    },
    ("english", 2048): {
        "tokd": (462, 926, 2664),
        "rust-udp": (899, 1309, 3170),
        "python-udp": (2936, 18269, 22073),
    },
    ("code", 128): {"tokd": (28, 106, 473)},
    ("code", 2048): {"tokd": (606, 841, 1950)},
    ("multi", 128): {"tokd": (47, 140, 612)},
    ("multi", 2048): {"tokd": (876, 1187, 2386)},
}


@pytest.fixture(scope="module")
def published():
    (entry,) = boxes.load(ROOT / "boxes" / "pintok.json", quick=False).entries
    return entry.published


def test_every_value_is_the_sources_and_there_is_no_other(published):
    wanted = {
        (corpus, tokens, system, f"round-trip {name}"): value
        for (corpus, tokens), systems in TABLE.items()
        for system, values in systems.items()
        for name, value in zip(PERCENTILES, values, strict=True)
    }
    found = {}
    for figure in published.figures:
        where = tuple(figure.parameters[name] for name in ("corpus", "tokens", "system"))
        assert len(figure.parameters) == 3 and not figure.times
        for metric, value in figure.values.items():
            assert (*where, metric) not in found  # only the first of two would be seen
            found[*where, metric] = value
    assert found == wanted


@pytest.mark.parametrize(
    ("tokens", "metric", "times"),
    [
        (128, "round-trip p50", "14.1"),
        (2048, "round-trip p50", "1.95"),
        (128, "round-trip p99", "3.45"),
        (2048, "round-trip p99", "1.19"),
    ],
)
def test_its_gain_over_its_own_baseline(published, tokens, metric, times):
    where = {"corpus": "english", "tokens": tokens}
    ours, base = (
        published.value(where | {"system": system}, metric) for system in ("tokd", "rust-udp")
    )
    assert f"{base / ours:.3g}" == times
