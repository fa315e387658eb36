# SPDX-License-Identifier: BSD-3-Clause
"""Inclusions and imports between folders run one way, as these tables say."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from ended import ended

ROOT = Path(__file__).resolve().parents[3]
SOURCES = (".c", ".h", ".cpp", ".cu", ".cuh")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
# Where the compiler looks, beside the folder of the file itself.
SEARCHED = ("include", "app/dpdk-tokd", "lib/tokenizer", "lib/gpu_sink", "lib/gpu_sink/kernel")
SEARCHED += ("lib/block_keys", "lib/client", "lib/reader", "lib/train", "lib/notify", "lib/options")
SEARCHED += ("lib/mix", "lib/monotonic", "lib/sandbox")

# Files that are lower than what else their folder holds.
APART = {
    "lib/tokenizer/tok.h": "tok.h",
    "lib/tokenizer/vocab.h": "lib/tokenizer/tables",
    "app/dpdk-tokd/log.c": "log",
    "app/dpdk-tokd/log.h": "log",
}

TOK = "lib/tokenizer/"
APP = "app/dpdk-tokd/"
HOT = {"include/tokd", "tok.h", TOK + "unicode", TOK + "tables", TOK + "normalize", TOK + "encode"}
HOT |= {TOK + "isa"}
SET_UP = HOT | {TOK + "pretokenize", TOK + "pretokenize/regex", TOK + "build"}
DATA_PATH = {APP + "datapath" + part for part in ("", "/source", "/net", "/stream", "/loop")}
SINK = {"include/tokd", "lib/gpu_sink/ring"}

# A folder, and those that its files may include.
MAY_INCLUDE: dict[str, set[str]] = {
    "include/tokd": set(),
    "lib/mix": set(),
    "lib/monotonic": set(),
    "lib/notify": set(),
    "lib/options": set(),
    "lib/sandbox": set(),
    "lib/block_keys": {"include/tokd"},
    "lib/client": {"include/tokd", "lib/mix", "lib/monotonic"},
    "lib/reader": {"include/tokd", "lib/monotonic"},
    # libtok: each stage knows those below it, and the tables
    "tok.h": set(),
    TOK + "unicode": {"tok.h"},
    TOK + "isa": {"tok.h", TOK + "tables"},
    TOK + "tables": {"tok.h", TOK + "unicode"},
    TOK + "normalize": {"tok.h", TOK + "unicode", TOK + "tables"},
    TOK + "encode": HOT,
    TOK + "encode/merge": HOT,
    TOK + "pretokenize": HOT,
    TOK + "pretokenize/regex": HOT | {TOK + "pretokenize"},
    "lib/tokenizer": HOT | {TOK + "pretokenize", TOK + "offsets"},
    TOK + "offsets": HOT | {TOK + "pretokenize"},
    TOK + "build": HOT | {TOK + "pretokenize", TOK + "pretokenize/regex"},
    TOK + "build/normalize": HOT | {TOK + "build"},
    TOK + "compiled": SET_UP,
    TOK + "load": SET_UP | {TOK + "compiled"},
    TOK + "load/huggingface": SET_UP | {TOK + "load"},
    TOK + "load/sentencepiece": SET_UP | {TOK + "load"},
    "lib/train": SET_UP,
    # the GPU ring's two ends
    "lib/gpu_sink/ring": {"include/tokd"},
    "lib/gpu_sink/handshake": {"lib/gpu_sink/ring", "lib/monotonic"},
    "lib/gpu_sink/transport": {"lib/gpu_sink/ring", "lib/gpu_sink/handshake", "lib/monotonic"},
    "lib/gpu_sink/sink": {f"lib/gpu_sink/{room}" for room in ("ring", "handshake", "transport")}
    | {"lib/monotonic"},
    "lib/gpu_sink/block": {"lib/gpu_sink/ring"},
    "lib/gpu_sink/kernel": SINK
    | {f"lib/gpu_sink/{room}" for room in ("block", "handshake", "tokenize")},
    "lib/gpu_sink/tokenize": SINK
    | {"lib/gpu_sink/block", "tok.h"}
    | {TOK + room for room in ("unicode", "tables", "normalize", "pretokenize", "build")},
    # the appliance: the data path knows nothing of what sets it up
    "log": {"lib/notify"},
    "app": set(),
    APP + "options": {"app", "include/tokd", "tok.h", "lib/options", "lib/gpu_sink/handshake"},
    APP + "datapath": {"include/tokd", "tok.h", APP + "options"},
    APP + "datapath/source": {"lib/mix", APP + "datapath"},
    APP + "datapath/stream": {"include/tokd", "tok.h", "lib/gpu_sink/ring", "lib/gpu_sink/sink"}
    | {"lib/mix", APP + "datapath", APP + "datapath/source"},
    APP + "datapath/net": {"include/tokd", APP + "datapath", APP + "datapath/stream"},
    APP + "datapath/loop": {
        "include/tokd",
        "lib/gpu_sink/sink",
        APP + "datapath",
        APP + "datapath/stream",
    },
    APP + "readers": {"include/tokd", "log", "lib/monotonic", APP + "datapath"},
    APP + "sandbox": {"log", "lib/sandbox", APP + "options", APP + "control/port"},
    APP + "control": {"include/tokd", "tok.h", "log", "lib/notify", "lib/gpu_sink/sink"}
    | {"lib/monotonic"}
    | {APP + "options", APP + "readers", APP + "sandbox"}
    | {APP + "control/" + part for part in ("port", "tables", "vocabs")}
    | DATA_PATH,
    APP + "control/tables": {"include/tokd", "log", "lib/gpu_sink/ring"} | DATA_PATH,
    APP + "control/vocabs": {"include/tokd", "tok.h", "log", APP + "options", APP + "datapath"},
    APP + "control/port": {"include/tokd", "log", APP + "options", APP + "datapath"},
    APP + "telemetry": {"log", "lib/sandbox", APP + "control", APP + "control/port"} | DATA_PATH,
    "app/dpdk-tokd": {"log", "lib/notify"}
    | {APP + room for room in ("options", "control", "sandbox", "telemetry")}
    | {APP + "control/port", APP + "control/tables"}
    | DATA_PATH,
    # the other programs
    "app/tok": {
        "app",
        "include/tokd",
        "lib/mix",
        "lib/monotonic",
        "lib/options",
        "tok.h",
        "lib/train",
        TOK + "pretokenize",
        "app/tokd-load",
    },
    "app/tokd-client": {"lib/options", "include/tokd"},
    "app/tokd-tail": {"lib/options", "include/tokd"},
    "app/tokd-load": {"lib/mix", "lib/options", "include/tokd"},
    "app/tokd-load-dpdk": {"lib/mix", "lib/options", "include/tokd", "app/tokd-load"},
    "app/tokd-gpu": SINK
    | {"app", "tok.h", TOK + "load", "lib/mix", "lib/monotonic", "lib/notify", "lib/options"}
    | {"lib/sandbox"}
    | {f"lib/gpu_sink/{r}" for r in ("transport", "handshake", "kernel")},
}

# Python, below a folder: packages and modules, lowest first. Each imports those of lines above its
# own.
LAYERS = {
    "tools": [
        {"bench.samples", "bench.log", "bench.programs", "bench.process"},
        {"bench.task"},
        {"bench.texts"},
        {"bench.lab"},
        {"bench"},
        {"bench.baseline"},
        {"bench.demo", "bench.gpu_check", "bench.sweep", "bench.tasks"},
    ],
    "python": [
        {"dpdk_tokd._native"},
        {"dpdk_tokd._arguments", "dpdk_tokd._closing", "dpdk_tokd._cpus", "dpdk_tokd.wire"},
        {"dpdk_tokd._polling"},
        {"dpdk_tokd.tokenizer"},
        {"dpdk_tokd.ring"},
        {"dpdk_tokd.client", "dpdk_tokd.embedder", "dpdk_tokd.embeddings"},
        {"dpdk_tokd"},
        {"dpdk_tokd.fetch", "dpdk_tokd.gateway", "dpdk_tokd.ops"},
    ],
}


def room_of(path: str) -> str:
    return APART.get(path, str(Path(path).parent))


def included(path: str, sources: set[str]) -> Iterator[str]:
    """What of the repository a file includes."""
    for name in INCLUDE.findall((ROOT / path).read_text()):
        for folder in (str(Path(path).parent), *SEARCHED):
            found = (
                str((ROOT / folder / name).resolve().relative_to(ROOT))
                if (ROOT / folder / name).is_file()
                else ""
            )
            if found in sources:
                yield found
                break


def tracked(*folders: str) -> list[str]:
    listed = ended("git", "-C", ROOT, "ls-files", *folders)
    if not listed.stdout:
        pytest.skip("not a git checkout: the list of sources is git's")
    return [path for path in listed.stdout.split() if (ROOT / path).is_file()]


def imported(path: Path, package: str) -> Iterator[str]:
    """Names that a module of `package` imports, wherever in it, but not for types alone."""
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            start = [*above, *filter(None, [node.module])] if node.level else [node.module or ""]
            yield from (".".join([*start, alias.name]) for alias in node.names)


def test_imports_run_down_the_layers() -> None:
    wrong = []
    for folder, layers in LAYERS.items():
        level = {name: n for n, layer in enumerate(layers) for name in layer}

        def room(name: str, level: dict[str, int] = level) -> str | None:
            """The longest beginning of a module's name that has a layer."""
            while name and name not in level:
                name = name.rpartition(".")[0]
            return name or None

        tops = {name.split(".")[0] for name in level}
        for path in tracked(*(f"{folder}/{top}/*.py" for top in tops)):
            parts = Path(path).relative_to(folder).with_suffix("").parts
            own = room(".".join(parts).removesuffix(".__init__"))
            assert own is not None, path
            for name in imported(ROOT / path, ".".join(parts[:-1])):
                other = room(name)
                if other not in (None, own) and level[other] >= level[own]:
                    wrong.append(f"{path} -> {name}")
    assert not wrong, "against LAYERS: " + "; ".join(wrong)


@pytest.fixture(scope="module")
def inclusions() -> dict[tuple[str, str], list[str]]:
    """By folder and folder included: the files, as "a.c -> b.h"."""
    sources = {f for f in tracked("app", "include", "lib") if f.endswith(SOURCES)}
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(sources):
        for other in included(path, sources):
            pair = room_of(path), room_of(other)
            if pair[0] != pair[1]:
                found.setdefault(pair, []).append(f"{path} -> {other}")
    return found


def test_inclusions_are_those_of_the_table(inclusions: dict[tuple[str, str], list[str]]) -> None:
    wrong = [
        line
        for (room, other), lines in inclusions.items()
        if other not in MAY_INCLUDE.get(room, set())
        for line in lines
    ]
    assert not wrong, "against MAY_INCLUDE: " + "; ".join(wrong)


def test_no_folder_includes_what_includes_it(inclusions: dict[tuple[str, str], list[str]]) -> None:
    graph: dict[str, set[str]] = {}
    for room, other in inclusions:
        graph.setdefault(room, set()).add(other)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_folders_have_at_most_25_sources() -> None:
    count: dict[str, int] = {}
    for path in tracked("app", "include", "lib"):
        count[str(Path(path).parent)] = count.get(str(Path(path).parent), 0) + 1
    assert {room: n for room, n in count.items() if n > 25} == {}
