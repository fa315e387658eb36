# SPDX-License-Identifier: BSD-3-Clause
"""The results of the demo, as text and as JSON."""

import platform
import textwrap
from typing import Any

from bench.demo.measure import Times, percentiles
from bench.lab import machine as lab
from bench.texts.slices import SIZES, Slice

BUSY = 1.0  # load average before the demo above which ratios do not count
P99_LEAST = 1000  # requests; with fewer, p99 rests on fewer than ten


def machine() -> dict[str, str | int]:
    cpu = lab.cpu()
    return {"cpu": cpu["model"], "cores": cpu["cpus"], "kernel": platform.release()}


def by_size(times: Times) -> dict[str, dict[str, float | int]]:
    return {size: percentiles(times.by_size[size]) for size in SIZES if times.by_size[size]}


def by_corpus(times: Times) -> dict[str, dict[str, dict[str, float | int]]]:
    found: dict[str, dict[str, dict[str, float | int]]] = {}
    for (corpus, size), ns in times.by_corpus.items():
        found.setdefault(corpus, {})[size] = percentiles(ns)
    return found


def _row(cells: list[str]) -> str:
    return f"  {cells[0]:19}" + "".join(f"{cell:>12}" for cell in cells[1:])


def _cell(found: dict[str, float | int] | None, key: str) -> str:
    if found is None or (key == "p99" and found["samples"] < P99_LEAST):
        return "-"
    return f"{found[key]:,.1f}"


def _lines(name: str, what: dict[str, dict[str, float | int]]) -> list[str]:
    """p50 and p99, without a line that has no figure."""
    found = []
    for key in ("p50", "p99"):
        cells = [_cell(what.get(size), key) for size in SIZES]
        if set(cells) != {"-"}:
            found.append(_row([f"{name} {key}", *cells]))
    return found


def _counts(what: dict[str, dict[str, float | int]]) -> list[str]:
    return [f"{what[size]['samples']}" if size in what else "-" for size in SIZES]


def verdict(result: dict[str, Any]) -> str:
    """The first line: are all ids right?"""
    ids, read = result["ids"], result["ring"]["ids"]
    equal = "yes, all" if result["ids_equal"] else "NO"
    return (
        f"ids equal the reference's: {equal} ({ids:,} ids of {result['text_bytes']:,} bytes of text; "
        f"{read:,}, repeats included, read from the token ring without a copy)"
    )


def is_busy(result: dict[str, Any]) -> bool:
    return result["load_average_before"] > BUSY


def _ratios(result: dict[str, Any]) -> dict[str, str]:
    """By size; marked with ? if the machine was too busy."""
    ours, baseline = result["rtt_us"], result["baseline_us"]
    mark = " ?" if is_busy(result) else ""
    return {
        size: f"{baseline[size]['p50'] / ours[size]['p50']:.0f} x{mark}"
        for size in SIZES
        if size in ours and size in baseline
    }


def table(result: dict[str, Any]) -> str:
    ours, again, baseline = result["rtt_us"], result["repeated_us"], result["baseline_us"]
    ratios = _ratios(result)
    heads = [size if size.endswith("KB") else f"{size} tokens" for size in SIZES]
    lines = [
        "Round trip in us, client in another network namespace; text never seen before",
        _row(["", *heads]),
        *_lines("dpdk-tokd", ours),
        *_lines("wire alone", result["echo_us"]),
        *_lines("tokenizer alone", result["tokenizer_us"]),
        *_lines("baseline", baseline),
        _row(["baseline/dpdk-tokd", *(ratios.get(size, "-") for size in SIZES)]),
    ]
    if is_busy(result):
        lines.append(
            "  ? these ratios do not count: the machine was already busy (load average "
            f"{result['load_average_before']:.1f}); run it again on an idle machine"
        )
    lines += [
        _row(["requests, each", *_counts(ours)]),
        "The same text a second time",
        *_lines("dpdk-tokd", again),
        _row(["requests", *_counts(again)]),
    ]
    if any(found["samples"] < P99_LEAST for found in (*ours.values(), *baseline.values())):
        lines.append(f"p99 is not shown below {P99_LEAST} requests: run without --quick")
    return "\n".join(lines)


def meaning(result: dict[str, Any]) -> str:
    """The table in two sentences, wrapped."""
    ours, ratios = result["rtt_us"], _ratios(result)
    if not ratios:
        return "No request was answered by both servers: nothing to compare."
    size = next(iter(ratios))
    what = size if size.endswith("KB") else f"{size} tokens"
    return textwrap.fill(
        f"What it means: a client that sends a text of {what} has all its ids after "
        f"{ours[size]['p50']:,.0f} us (median). The baseline, Hugging Face tokenizers behind a kernel "
        f"UDP socket on the same core, takes {ratios[size]} as long"
        + (" (busy machine: does not count)." if is_busy(result) else "."),
        100,
    )


def sample(piece: Slice, characters: int = 72, n_ids: int = 16) -> str:
    text = " ".join(piece.text[: 4 * characters].split())[:characters]
    shown = " ".join(str(i) for i in piece.ids[:n_ids])
    return f"  {piece.corpus}: {text}...\n    ids: {shown} ..."
