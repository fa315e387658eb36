# SPDX-License-Identifier: BSD-3-Clause
"""What the hot path may call, why, and what of a call graph goes against it."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from call_graph import CallGraph, Edge, External, Function, Node, Place, chain, frames_of, sites

# No list allows these: whatever is found of them is a mistake. What is neither here nor on a list
# is found as well; these say what it is.
FORBIDDEN = {
    "an allocator": r"""
        malloc | calloc | realloc(array)? | free | cfree | (aligned|p?v)_?alloc | memalign
        | posix_memalign | alloca | str(n)?dup | v?asprintf | getline | mmap(64)? | munmap | s?brk
        | mremap | madvise | mem_alloc | mem_free | tok_mem_.*
        | rte_([zc]|re)?(m?alloc)(_socket)? | rte_free | rte_memzone_.* | rte_mem_(un)?map
        | rte_mempool_(create|populate|free).* | rte_pktmbuf_pool_.* | numa_.*""",
    "a lock": r"""
        pthread_.* | sem_.* | mtx_.* | cnd_.* | call_once | thrd_.* | flock(file)? | lockf
        | rte_\w*lock(_\w+)? | rte_thread_.* | rte_wait_until_.* | __lll_.* | futex""",
    "a clock": r"""
        clock(_\w+)? | time | gettimeofday | times | timespec_get | (local|gm|mk)time(_r)?
        | nanosleep | u?sleep | rte_delay_.* | rte_alarm_.* | rte_timer_.*""",
    "a system call": r"""
        syscall | read | write | p?(read|write)v?(64)? | open(at)?(64)? | close | ioctl | fcntl(64)?
        | lseek | (send|recv)(to|from|msg|mmsg)? | p?poll | select | epoll_.* | eventfd.*
        | socket(pair)? | connect | accept4? | bind | listen | [gs]etsockopt | shutdown
        | sched_.* | getrandom | getpid | gettid | getcpu | kill | raise | signal | sig\w+ | fork
        | f?sync | fsync | fdatasync | ftruncate | f?stat(64)? | unlink | rename""",
    "a log": r"""
        rte_v?log | rte_hexdump | v?[sdf]?n?printf | __\w*printf_chk | puts | putchar | f\w*put[cs]
        | fwrite | fflush | fopen(64)? | fclose | perror | strerror(_r)? | rte_strerror | v?syslog
        | exit | rte_exit""",
}
FORBIDDEN_PATTERNS = {kind: re.compile(p, re.VERBOSE) for kind, p in FORBIDDEN.items()}
# DPDK's locks are inline: no name of theirs is called.
INLINE_LOCK = re.compile(r"rte_\w*lock(_\w+)?|rte_wait_until_\w+|pthread_\w+|mtx_\w+")

# Where something of the hot path begins that other parts of it do not call.
ROOTS = (
    "tok_stream_feed",
    "tok_decode",
    "tok_decode_stream_feed",
    "tokd_worker_run",
)

# What compilers put in by themselves, or for what they know. Patterns.
COMPILER = {
    r"mem(cpy|move|set|cmp|chr)|bcmp|strlen": "on memory that is there; nothing else",
    r"__aarch64_(cas|swp|ldadd|ldclr|ldeor|ldset)\d+_\w+": "an atomic instruction, by CPU (ARM)",
    r"__stack_chk_fail": "ends the program",
    r"_GLOBAL_OFFSET_TABLE_": "an address",
    r"__tls_get_addr": "to find an lcore's number; of a linked program a load, which is tested",
}

# What of other libraries is called or looked at.
EXTERNAL = {
    "rte_eth_fp_ops": "the table of the drivers' burst functions",
    "rte_eth_call_rx_callbacks": "for callbacks of RX, of which none is registered",
    "rte_eth_call_tx_callbacks": "for callbacks of TX, of which none is registered",
    "rte_eth_tx_done_cleanup": "asks the driver what it has sent, for a full ring or --wipe",
    "rte_mempool_ops_table": "the table of the pools' functions",
    "per_lcore__lcore_id": "which of a pool's caches is this lcore's",
    "__rte_panic": "a pool of a kind that DPDK does not know: memory is overwritten, all ends",
    "rte_pktmbuf_free_bulk": "back to the pools, as by rte_pktmbuf_free, which is inline",
    "rte_ipv4_frag_reassemble_packet": "a table made whole at start; mbufs are chained, not copied",
    "rte_ipv6_frag_reassemble_packet": "the same",
    "rte_ip_frag_table_del_expired_entries": "the oldest of that table, a bounded number",
    "rte_ip_frag_free_death_row": "mbufs of incomplete datagrams, back to their pools",
    "rte_acl_classify": "the sources of --allow, a burst at once: a table made at start",
    r"SHA256_(Init|Update|Final)": "OpenSSL's, on a context of ours: instructions of the CPU",
}


@dataclass(frozen=True)
class ByPointer:
    """A function of the source, inline or not, that calls what a pointer says."""

    why: str
    ours: tuple[str, ...] = ()  # functions of ours that it may call: part of the hot path


ISAS = {"x86_64": ("avx2", "avx512"), "aarch64": ("neon",)}.get(platform.machine(), ())


def kernels(name: str, *isas: str) -> tuple[str, ...]:
    """Of those instruction sets that this machine's builds have, and the portable one."""
    return tuple(f"tok_{name}_{isa}" for isa in ("portable", *(i for i in isas if i in ISAS)))


BY_POINTER = {
    "tok_pretok_scan": ByPointer(
        "the kernel for this CPU's instruction set (lib/tokenizer/isa)",
        kernels("scan", *ISAS),
    ),
    "encode_bytes": ByPointer("the same: well-formed text", kernels("utf8", *ISAS)),
    "skip_others": ByPointer("the same: where added tokens may begin", kernels("skip", *ISAS)),
    "tok_bpe_merge": ByPointer("the same: merges", kernels("merge", *ISAS)),
    "tok_block_encode": ByPointer("the same: look-ups", kernels("find", "avx2", "avx512")),
    "tok_stage_next": ByPointer(
        "the next stage of the vocabulary (lib/tokenizer/tables/stages.h)",
        (
            "feed_added_text",
            "feed_spm",
            "feed_nfc",
            "feed_metaspace",
            "feed_prefix",
            "feed_added_normal",
            "feed_bpe",
            "feed_bpe_unknown",
            "feed_wordpiece",
            "feed_unigram",
            "feed_bpe_words",
            "feed_border",
            "feed_squeeze",
            "feed_strip",
            *(f"feed_map_{n}" for n in range(3)),
            *(f"feed_literal_{n}" for n in range(4)),
        ),
    ),
    "has_room": ByPointer("more room for marks: NULL in a stream; of a whole text it allocates"),
    "tok_stream_init": ByPointer(
        "the same: begins a text",
        (
            "open_added_text",
            "open_spm",
            "open_nfc",
            "open_metaspace",
            "open_added_normal",
            "tok_pretoken_open",
            "open_bpe_unknown",
            "tok_wordpiece_open",
            "tok_unigram_init",
            "open_border",
            "open_nfd",
            "open_squeeze",
            "open_strip",
            *(f"open_literal_{n}" for n in range(4)),
        ),
    ),
    "stages_wait": ByPointer(
        "the same: what waits",
        (
            "added_text_waits",
            "spm_waits",
            "nfc_waits",
            "added_normal_waits",
            "squeeze_waits",
            "strip_waits",
            *(f"literal_{n}_waits" for n in range(4)),
        ),
    ),
    "release": ByPointer(
        "the same: the ids that are certain",
        ("tok_pretoken_release", "release_bpe_unknown", "tok_unigram_release"),
    ),
    "tokd_crc32c": ByPointer("the CPU's instruction, or a table", ("by_instruction", "by_table")),
    "rte_eth_rx_burst": ByPointer("the driver: some call the kernel, as af_xdp"),
    "rte_eth_tx_burst": ByPointer("the same, once a turn"),
    "rte_mempool_ops_dequeue_bulk": ByPointer("a pool's ring, without a lock: its cache is empty"),
    "rte_mempool_ops_enqueue_bulk": ByPointer(
        "the same: its cache is full; with --wipe ours", ("tokd_wiped_pool_put",)
    ),
    "tokd_wiped_pool_put": ByPointer("the pool's ring, as without --wipe"),
    "__rte_pktmbuf_free_extbuf": ByPointer(
        "the last user of ids in the token ring releases them", ("tokd_zero_copy_is_free",)
    ),
    "min_cursor": ByPointer(
        "which ids of the token ring are on their way", ("tokd_zero_copy_in_use",)
    ),
    "tokg_sink_poll": ByPointer(
        "a transport: its completions", ("tokg_shm_poll", "tokg_verbs_poll")
    ),
    "post_all": ByPointer(
        "the same: its doorbell", ("tokg_shm_flush", "tokg_cuda_flush", "tokg_verbs_flush")
    ),
    "read_when_due": ByPointer(
        "the same: to read done words",
        ("tokg_shm_read_back", "tokg_cuda_read_back", "tokg_verbs_read_back"),
    ),
    "tokg_sink_post": ByPointer(
        "the same: a slot", ("tokg_shm_post", "tokg_cuda_post", "tokg_verbs_post")
    ),
    "tokg_sink_post_lost": ByPointer("the same, again"),
    "tokg_sink_ask_all": ByPointer(
        "the same: what a lane may make", ("tokg_shm_ask", "tokg_verbs_ask")
    ),
    "take_token": ByPointer("whose answer it belongs to", ("tokd_generate_token",)),
    "take_end": ByPointer("how that ended", ("tokd_generate_ended",)),
    "lose": ByPointer("the same"),
    "ibv_post_send": ByPointer("the NIC's provider: writes to its doorbell, no kernel"),
    "ibv_poll_cq": ByPointer("the same: reads its completions"),
    "tokg_sink_fail": ByPointer("whose text it is", ("tokd_sink_failed",)),
    "tokg_sink_text": ByPointer("whose text it is", ("tokd_gpu_text_done",)),
    "settle_slot": ByPointer("how long a slot took", ("tokd_sink_done",)),
    "move_tail": ByPointer("ids still owed move to the side store", ("tokd_spill_before_reuse",)),
    "shed_sink": ByPointer("whether there is an agent to wait for", ("tokd_sink_shed",)),
}

# All other functions of ours whose address is taken anywhere. Patterns.
NOT_HOT = {
    r"tok_offsets_\w+|read_(text|spm|metaspace)": "where ids come from, a pass of its own",
    r"cmd_\w+": "commands of telemetry, on DPDK's telemetry thread",
    r"__tokd_log_\w+": "register log types, before main",
    r"choose_crc32c|rte_hash_crc_init_alg": "choose CRC instructions, before main",
    r"find_instructions": "the same for SHA-256",
    r"fill_table": "of a CRC, once, while loading",
    r"(mem|vocab|cache)_(alloc|free)": "struct tok_mem: used while loading and freeing",
    r"compare_\w+": "for qsort: while loading, and offsets",
    r"double_marks": "more room for marks, of a whole text",
    r"keep": "a stage that keeps an added token's normal form, while loading",
    r"tokd_check_\w+": "of an option's value, before workers start",
    r"on_(signal|denied)|drop": "of the sandbox: handlers of signals that no worker sees",
    r"exclude_from_dumps": "the same: by rte_memseg_contig_walk, before workers start",
    r"(control|reload)_thread": "threads of their own",
    r"show_usage": "by EAL, for --help",
    r"take_log": "the stream of the log",
    r"is_net_driver": "by scandir, for --version",
    r"reconnect|describe|close_(shm|verbs)": "of a transport: called by the control thread",
    r"admit|undo": "of a transport's set-up",
    r"has_(portable|avx2|avx512)": "which instruction sets this CPU has, while loading",
    r"prepare": "by rte_mempool_obj_iter, while a pool is made",
    r"on_lost": "a port's device is reset or removed, on DPDK's interrupt thread",
    r"come_round": "an alarm on DPDK's interrupt thread, once workers have ended",
    r"at_exit": "removes EAL's files, by exit()",
}


@dataclass(frozen=True)
class Rules:
    roots: tuple[str, ...] = ROOTS
    external: dict[str, str] = field(default_factory=lambda: COMPILER | EXTERNAL)
    by_pointer: dict[str, ByPointer] = field(default_factory=lambda: BY_POINTER)
    not_hot: dict[str, str] = field(default_factory=lambda: NOT_HOT)

    def pointed_to(self) -> set[str]:
        """Functions of ours that the hot path calls through pointers."""
        return {name for one in self.by_pointer.values() for name in one.ours}

    def reach(self, graph: CallGraph) -> dict[Node, Edge | None]:
        return graph.reach([*self.roots, *sorted(self.pointed_to())])


def forbidden(name: str) -> str | None:
    """What kind of forbidden function it is."""
    kinds = (kind for kind, pattern in FORBIDDEN_PATTERNS.items() if pattern.fullmatch(name))
    return next(kinds, None)


def on(patterns: dict[str, str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def source(frames: list[tuple[str, str]]) -> str:
    """ "[inline_function file.h:12, in function file.c:34]" """
    return "[" + ", in ".join(" ".join(frame) for frame in frames) + "]"


def findings(graph: CallGraph, rules: Rules) -> list[str]:
    """What the rules do not allow, each with the calls that lead to it. Empty: all is well."""
    reached = rules.reach(graph)
    return sorted({*_names(graph, rules, reached), *_pointers(graph, rules, reached)})


def _names(graph: CallGraph, rules: Rules, reached: dict[Node, Edge | None]) -> Iterator[str]:
    """Names outside of our code, and forbidden ones of ours."""
    found: dict[Place, tuple[Edge, str]] = {}
    for node in reached:
        for edge in graph.edges.get(node, []):
            kind = forbidden(edge.target.name)
            if kind is None and isinstance(edge.target, External):
                kind = None if on(rules.external, edge.target.name) else "on no list"
            if kind is not None:
                found[edge.place] = edge, kind
    frames = frames_of(place for place, (e, _) in found.items() if isinstance(e.source, Function))
    for place, (edge, kind) in found.items():
        way = f"{chain(reached, edge.source)} -> {edge.target.name}"
        yield f"{way}: {kind} {source(frames[place]) if place in frames else ''}".rstrip()


def _pointers(graph: CallGraph, rules: Rules, reached: dict[Node, Edge | None]) -> Iterator[str]:
    """Calls through pointers, what pointers there are, and what has no name to be called by."""
    calls = list(sites(graph, reached, "by_pointer"))
    atomic = list(sites(graph, reached, "atomic"))
    system = list(sites(graph, reached, "system_calls"))
    frames = frames_of(place for _, place in [*calls, *atomic, *system])
    for function, place in calls:
        if frames[place][0][0] not in rules.by_pointer:
            yield (
                f"{chain(reached, function)}: a call through a pointer in a function that is "
                f"not in BY_POINTER {source(frames[place])}"
            )
    for function, place in atomic:
        if any(INLINE_LOCK.fullmatch(name) for name, _ in frames[place]):
            yield f"{chain(reached, function)}: a lock {source(frames[place])}"
    for function, place in system:
        yield f"{chain(reached, function)}: a system call {source(frames[place])}"

    known = rules.pointed_to()
    for edges in graph.edges.values():
        for edge in edges:
            name = edge.target.name
            if not isinstance(edge.target, Function) or edge.how == "calls" or name in known:
                continue
            if edge.source in reached:
                yield f"{chain(reached, edge.source)} -> {name}: its address is taken"
            elif not on(rules.not_hot, name):
                yield f"{edge.source.name} -> {name}: its address is taken, on no list"
