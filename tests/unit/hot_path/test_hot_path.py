# SPDX-License-Identifier: BSD-3-Clause
"""The hot path calls no allocator, no lock, no clock and not the kernel: in the object code.

Direct calls are followed from the roots in rules.py; every name outside of our code that they reach
is on a list there with a reason, and so is every function that calls what a pointer says. It is the
compiler's output that is read, not the source: a run shows only the calls that it happens to make,
and an allocation in a case that no test reaches would stop a worker where it matters.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("elftools", reason="pyelftools is missing: run tools/setup")

from call_graph import CallGraph, binutils, members
from rules import ByPointer, Rules, findings, forbidden

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / os.environ.get("TOKD_BUILD", "build")
ARCHIVES = (
    "app/libtokd.a",
    "lib/block_keys/libtokd-block-keys.a",
    "lib/gpu_sink/libtokd-gpu-sink.a",
    "lib/tokenizer/libtok.a",
)

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "objdump", "readelf", "addr2line", "ar"))),
    reason="needs a C compiler and binutils",
)


@pytest.fixture(scope="session")
def objects() -> list[Path]:
    """Those of the programs of this build."""
    for archive in ARCHIVES:
        if not (BUILD / archive).is_file():
            pytest.skip(f"{BUILD / archive} is not built")
    files = [file for archive in ARCHIVES for file in members(BUILD / archive)]
    if re.search(r"__(a|ub|t)san_", "".join(binutils("readelf", "-Ws", file) for file in files)):
        pytest.skip(f"{BUILD} is built with sanitizers, whose calls are everywhere")
    if ".debug_line" not in binutils("objdump", "-h", files[0]):
        pytest.skip(f"{BUILD} is built without -g: what is inline has no name")
    if "clang" in binutils("readelf", "-p", ".comment", files[0]):
        pytest.skip(f"{BUILD} is built by clang, whose inline functions addr2line does not know")
    return files


@pytest.fixture(scope="session")
def graph(objects: list[Path]) -> CallGraph:
    return CallGraph(objects)


def test_the_hot_path_calls_only_what_is_listed(graph: CallGraph) -> None:
    found = findings(graph, Rules())
    assert not found, "\n" + "\n".join(found)


def test_the_hot_path_is_reached(graph: CallGraph) -> None:
    """A graph that lost its calls would find nothing."""
    names = {node.name for node in Rules().reach(graph)}
    stages = "net_ether net_ipv4 net_ipv6 net_udp stream_rx stream_feed tx_flush housekeeping"
    assert {f"tokd_{stage}" for stage in stages.split()} <= names
    assert "tokb_feed" in names
    assert {"tok_encode_whole", "tok_bpe_push", "tok_bpe_release", "tok_pretok_feed"} <= names
    assert {"rte_eth_fp_ops", "rte_mempool_ops_table"} <= names


def test_set_up_would_be_found(graph: CallGraph) -> None:
    """The same rules, from a function that allocates, locks and calls the kernel."""
    found = findings(graph, Rules(roots=("tokd_ring_create", "tok_vocab_load")))
    assert any(re.match(r"tokd_ring_create -> .*mmap(64)?: an allocator", one) for one in found)
    assert any(re.match(r"tok_vocab_load -> .* -> free: an allocator", one) for one in found)
    assert any(re.match(r"tokd_ring_create -> .*close: a system call", one) for one in found)


def test_thread_variables_are_found_without_a_call(objects: list[Path]) -> None:
    """Objects call __tls_get_addr, which may allocate; of the linked program nothing does."""
    program = binutils("objdump", "-d", BUILD / "app/dpdk-tokd")
    assert re.findall(r"\t(?:\S+ )*(?:call|bl) .*__tls_get_addr", program) == []


def test_no_list_allows_what_is_forbidden() -> None:
    assert [name for name in Rules().external if forbidden(name)] == []


# ---- the check itself, on code that goes against the rules ----

NAMES = """
typedef unsigned long size_t;
void *malloc(size_t), *memcpy(void *, const void *, size_t);
void die(void) __attribute__((cold)), free(void *);
int clock_gettime(int, void *) __attribute__((cold));
#define APART static __attribute__((noinline))
int feed(int n, int *p, int (*given)(int));
"""
FEED_ALONE = Rules(("feed",), by_pointer={})
FEED = "int feed(int n, int *p, int (*given)(int)) "

# What is found, and in which code. GCC's names of parts are allowed for: helper.constprop.0.
BAD = {
    "static helper": (
        r"feed -> helper(\.\w+)* -> malloc: an allocator \[helper bad\.c:\d+",
        "APART void *helper(int n) { void *p = malloc(n); *(volatile int *)p = n; return p; }"
        + FEED
        + "{ int *q = helper(n); return *q + *p; }",
    ),
    "tail call": (
        r"feed -> last(\.\w+)* -> helper(\.\w+)* -> free: an allocator",
        "APART void helper(void *p) { *(volatile int *)p = 1; free(p); }"
        "APART int last(int *p) { helper(p); return *p; }" + FEED + "{ return last(p); }",
    ),
    "inline helper": (
        r"feed -> malloc: an allocator \[helper bad\.c:\d+, in feed bad\.c:\d+\]",
        "static inline void *helper(int n) {\n return malloc(n); }\n"
        + FEED
        + "{\n return *(int *)helper(n) + *p; }",
    ),
    "cold part": (
        r"feed -> feed\.cold -> clock_gettime: a clock",
        FEED + "{ if (n < 0) { clock_gettime(n, p); return *p; } return n + *p; }",
    ),
    "unknown name": (
        r"feed -> somewhere: on no list",
        "int somewhere(int);" + FEED + "{ return somewhere(n) + *p; }",
    ),
    "table of functions": (
        r"feed -> \.data\.rel\.ro\S* of bad\.o -> grow -> malloc: an allocator",
        "APART int grow(int n) { return *(int *)malloc(n); }"
        "APART int keep(int n) { return n; }"
        "static int (*const table[])(int) = {grow, keep};"
        + FEED
        + "{ return table[n & 1](n) + 1; }",
    ),
    "address of a function": (
        r"feed -> grow: its address is taken",
        "APART int grow(int n) { return n; }" + FEED + "{ *(void **)p = grow; return n; }",
    ),
    "address of an allocator": (
        r"feed -> malloc: an allocator",
        FEED + "{ *(void **)p = malloc; return n; }",
    ),
    "pointer that is given": (
        r"feed: a call through a pointer in a function that is not in BY_POINTER \[feed ",
        FEED + "{ return given(n) + *p; }",
    ),
    "pointer that ends the function": (
        r"feed: a call through a pointer in a function that is not in BY_POINTER \[feed ",
        FEED + "{ return given(n); }",
    ),
    "system call instruction": (
        r"feed: a system call \[feed ",
        '#ifdef __x86_64__\n#define TRAP "syscall"\n#else\n#define TRAP "svc #0"\n#endif\n'
        + FEED
        + "{ __asm__ volatile(TRAP); return n; }",
    ),
    "inline lock": (
        r"feed: a lock \[rte_spinlock_lock ",
        "static inline void rte_spinlock_lock(int *l) {"
        " while (__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE)); }"
        + FEED
        + "{ rte_spinlock_lock(p); return n; }",
    ),
}


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., list[str]]:
    """What is found in C sources, compiled as ours are."""

    def check(*sources: str, flags: tuple[str, ...] = (), rules: Rules | None = None) -> list[str]:
        files = []
        for name, text in zip(("bad", "other"), sources, strict=False):
            path = tmp_path / f"{name}.c"
            path.write_text(NAMES + text + "\n")
            files.append(path.with_suffix(".o"))
            command = ["cc", "-c", "-g", "-O3", "-fPIC", *flags, "-o", files[-1], path]
            subprocess.run(command, check=True)
        return findings(CallGraph(files), rules or FEED_ALONE)

    return check


@pytest.mark.parametrize("what", BAD)
def test_a_call_against_the_rules_is_found(checked: Callable[..., list[str]], what: str) -> None:
    wanted, text = BAD[what]
    found = checked(text)
    assert any(re.match(wanted, one) for one in found), found


def test_what_a_pointer_may_call_is_part_of_the_hot_path(checked: Callable[..., list[str]]) -> None:
    text = "int grow(int n) { return *(int *)malloc(n); }" + FEED + "{ return given(n) + 1; }"
    listed = {"feed": ByPointer("a test", ("grow",))}
    (found,) = checked(text, rules=replace(FEED_ALONE, by_pointer=listed))
    assert found.startswith("grow -> malloc: an allocator")


def test_a_function_that_a_pointer_may_call_is_on_a_list(checked: Callable[..., list[str]]) -> None:
    """Wherever the pointer is set: the hot path could be what calls it."""
    text = (
        "static int grow(int n) { return n; }"
        "void set_up(int (**p)(int)) { *p = grow; }" + FEED + "{ return n; }"
    )
    assert checked(text) == ["set_up -> grow: its address is taken, on no list"]
    assert checked(text, rules=replace(FEED_ALONE, not_hot={"grow": "a test"})) == []
