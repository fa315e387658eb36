# SPDX-License-Identifier: BSD-3-Clause
"""The systems under test: dpdk-tokd over a veth pair, and conventional servers behind kernel
sockets over another pair that is set up alike. The same tokd-load asks both."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpdk_tokd.fetch.packages import data_home

from bench.appliance import Appliance, on_veth
from bench.baseline import engines, server
from bench.lab.cpus import WORKER_CPU, need_two_cpus
from bench.lab.hugepages import hugepages
from bench.lab.net import Veth, namespace, veth
from bench.programs import DPDK_TOKD, TOKD_LOAD
from bench.task import Context, Missing, need
from bench.texts import fetch_corpus
from bench.texts import mix as texts
from bench.texts.slices import Slice

HELP = (
    "Systems. tokd: dpdk-tokd on AF_XDP; tokd-af-packet: on AF_PACKET; both with huge pages. rust: "
    "Hugging Face tokenizers; python: the pure Python GPT-2 encoder; tiktoken, gigatoken, libtok: "
    "those libraries; each behind a kernel socket (tools/bench/baseline/socket_server.py), -udp or "
    "-tcp, in one thread that spins as dpdk-tokd does; -sleep: it sleeps until a packet comes; "
    "-asyncio: in asyncio."
)
CORPORA = ("english", "code", "multi")


@dataclass(frozen=True)
class Server:
    engine: str
    transport: str
    loop: tuple[str, ...]  # options of the server


TOKD = {"tokd": "net_af_xdp", "tokd-af-packet": "net_af_packet"}  # drivers
AF_XDP = 44  # Linux's; Python has no name for it
LOOPS = {"": ("thread",), "-sleep": ("thread", "--block"), "-asyncio": ("asyncio",)}
SERVERS = {
    f"{name}-{transport}{suffix}": Server(engine, transport, loop)
    for name, engine in (
        ("rust", "tokenizers"),
        *((engine, engine) for engine in ("python", "tiktoken", "gigatoken", "libtok")),
    )
    for transport in ("udp", "tcp")
    for suffix, loop in LOOPS.items()
}
NAMES = (*TOKD, *SERVERS)
MODES = {"udp": "plain", "tcp": "tcp"}  # tokd-load's
SAMPLE = 32_768  # characters on which a server warms up and chooses its library's call


@dataclass
class Bench:
    """What all systems need."""

    folder: Path
    vocab: Path
    json: Path  # the same as tokenizer.json
    sample: Path
    pieces: dict[tuple[str, int], list[Slice]]  # by corpus and tokens
    client: str | None  # namespaces
    server: str | None
    links: tuple[Veth, Veth]  # dpdk-tokd's, and that of the conventional servers
    huge: bool

    def texts(self, corpus: str, tokens: int, wanted: int) -> list[Slice]:
        every = self.pieces[corpus, tokens]
        if len(every) < wanted:
            raise Missing(f"the corpus has only {len(every)} of {wanted} texts")
        return every[:wanted]


@dataclass(frozen=True)
class Serving:
    link: Veth
    mode: str  # tokd-load's
    note: str  # how it runs


def _cut(
    context: Context, wanted: dict[int, int]
) -> tuple[Path, dict[tuple[str, int], list[Slice]]]:
    """Texts by corpus and tokens, with ids; tiktoken agrees with tokenizers on a sample."""
    pieces: dict[tuple[str, int], list[Slice]] = {}
    names = tuple(context.corpora) or CORPORA
    agreed = 0
    vocab = Path()
    for tokens, count in sorted(wanted.items()):
        vocab, found, checked = texts.cut(len(names) * count, {tokens: 1}, context.corpora)
        agreed += checked
        for corpus in names:
            pieces[corpus, tokens] = [piece for piece in found if piece.corpus == corpus]
    context.log(f"tiktoken agrees with tokenizers on {agreed:,} bytes")
    return vocab, pieces


def _prepare_servers(context: Context, vocab: Path) -> tuple[Path, Path]:
    """GPT-2's tokenizer.json, which takes seconds to make; and text to select the fastest call."""
    made, sample = context.folder / "tokenizer.json", context.folder / "sample.txt"
    engines.write_json(vocab, made)
    corpora = context.corpora or fetch_corpus.fetch(data_home() / "corpus")
    # The ends of the corpora, which the requests rarely reach.
    part = SAMPLE // len(corpora)
    parts = [path.read_text("utf-8")[-part:] for path in corpora.values()]
    sample.write_text("".join(parts), encoding="utf-8")
    return made, sample


def prepare(context: Context, wanted: dict[int, int]) -> Bench:
    """Texts with ids, the servers' files, the network, huge pages. `wanted`: texts of each corpus,
    by tokens."""
    need_two_cpus()
    need(DPDK_TOKD, TOKD_LOAD)
    vocab, pieces = _cut(context, wanted)
    made, sample = _prepare_servers(context, vocab)
    enter = context.stack.enter_context
    try:
        client, server = enter(namespace("client")), enter(namespace("server"))
        links = enter(veth(0, client, None)), enter(veth(1, client, server))
    except OSError as error:
        raise Missing(f"cannot make a veth pair (needs root): {error}") from error
    huge = enter(hugepages())
    return Bench(context.folder, vocab, made, sample, pieces, client, server, links, huge)


def _obstacle(bench: Bench, system: str) -> str | None:
    """Why this system cannot run here; there is no fallback."""
    if not bench.huge:
        return "huge pages of 2 MB could not be reserved"
    if TOKD[system] == "net_af_xdp":
        try:
            socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
        except OSError as error:
            return f"the kernel has no AF_XDP sockets: {error.strerror}"
    return None


@contextmanager
def _tokd(bench: Bench, system: str) -> Iterator[Serving]:
    if why := _obstacle(bench, system):
        raise Missing(why)
    link = bench.links[0]
    device = on_veth(TOKD[system], link)
    port = ("--udp-port", str(link.port))
    with Appliance(
        device, link.server, bench.vocab, bench.folder, [WORKER_CPU], bench.huge, *port
    ) as appliance:
        yield Serving(link, "tokd", f"{system}: {appliance.driver}, huge pages of 2 MB, one worker")


@contextmanager
def _server(bench: Bench, system: str) -> Iterator[Serving]:
    link, which = bench.links[1], SERVERS[system]
    if why := engines.obstacle(which.engine):
        raise Missing(why)
    more = ["--engine", which.engine, "--transport", which.transport, "--loop", *which.loop]
    more += ["--json", str(bench.json)]
    with server.start(
        link, bench.server, bench.vocab, bench.sample, bench.folder, WORKER_CPU, *more
    ) as running:
        _, _, how = running.wait_for("ready:", 1.0).partition(", ")
        yield Serving(link, MODES[which.transport], f"{system}: {how}")


@contextmanager
def serving(bench: Bench, system: str) -> Iterator[Serving]:
    """A fresh server on the worker's CPU, stopped at the end of the context."""
    with (_tokd if system in TOKD else _server)(bench, system) as one:
        yield one
