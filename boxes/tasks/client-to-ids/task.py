# SPDX-License-Identifier: BSD-3-Clause
"""How long a client waits for ids: dpdk-tokd over a veth pair, and conventional servers behind
kernel sockets over another that is set up alike, asked by the same tokd-load."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engines
import fetch_corpus
import neighbours
import reference
import round_trips
import slices
from demo.hugepages import hugepages
from demo.net import Veth, namespace, veth
from demo.servers import DRIVERS, start_appliance, start_baseline
from host_measures import CLIENT_CPU, CPUS, ENDS_WITH_US, WORKER_CPU
from memif import texts
from packages import data_home
from round_trips import WARM_UP
from slices import Slice
from sweep.samples import Samples
from sweep.task import Choice, Context, Distribution, Missing, Number, Report, Value, WrongIds

HELP = (
    "Closed loop: one request in flight, of text not seen before, each trial by a server started "
    "anew. round-trip: the client's, from before it sends to the last id; average: its mean; "
    "throughput: ids by the time waited for them, so of one client. tokd: dpdk-tokd on AF_XDP, or "
    "on AF_PACKET; rust, python, tiktoken, gigatoken, libtok: Hugging Face tokenizers, the pure "
    "Python GPT-2 encoder, and those libraries, behind a kernel socket "
    "(tools/baseline/socket_server.py), udp or tcp, in one thread that spins as dpdk-tokd does, or "
    "sleeps until something comes, or in asyncio."
)
CORPORA = ("english", "code", "multi")


@dataclass(frozen=True)
class Server:
    engine: str
    transport: str
    loop: tuple[str, ...]  # options of the server


TOKD = {"tokd": DRIVERS, "tokd-af-packet": ("net_af_packet",)}  # drivers, the better one first
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
MODES = {"udp": "plain", "tcp": "tcp"}
OTHERS = [cpu for cpu in CPUS if cpu not in (CLIENT_CPU, WORKER_CPU)]
PLACES = {"others": OTHERS, "client": [CLIENT_CPU], "server": [WORKER_CPU]}
PARAMETERS = {
    "corpus": Choice(CORPORA, "of tools/fetch-corpus"),
    "tokens": Number(16, 2048, "of a text"),
    "system": Choice((*TOKD, *SERVERS), "who answers"),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "place": Choice(tuple(PLACES), "the neighbour's: neither's CPUs, the client's, the server's"),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {
    "round-trip": Distribution("us"),
    "average": Value("us"),
    "throughput": Value("M ids/s", better="higher"),
}
COUNTS = round_trips.COUNTS
CHECKS_IDS = True
SAMPLE = 32_768  # characters on which a server warms up and chooses its library's call


@dataclass
class State:
    stack: ExitStack
    folder: Path
    vocab: Path
    json: Path  # the same as tokenizer.json
    sample: Path
    pieces: dict[tuple[str, int], list[Slice]]  # by corpus and tokens
    client: str
    server: str
    links: tuple[Veth, Veth]  # dpdk-tokd's, and that of the conventional servers
    huge: bool


@dataclass(frozen=True)
class Raw:
    rows: list[dict[str, str]]  # tokd-load's
    notes: list[str]


def _cut(context: Context) -> tuple[Path, dict[tuple[str, int], list[Slice]]]:
    """Texts by corpus and tokens, with ids on which tiktoken agrees with tokenizers."""
    pieces: dict[tuple[str, int], list[Slice]] = {}
    agreed = 0
    vocab = Path()
    for tokens in sorted({test["tokens"] for test in context.tests}):
        most = WARM_UP + max(t["requests"] for t in context.tests if t["tokens"] == tokens)
        try:
            vocab, found, checked = texts.cut(len(CORPORA) * most, {tokens: 1})
        except reference.ReferenceMismatch as error:
            raise WrongIds(str(error)) from error
        agreed += checked
        for corpus in CORPORA:
            pieces[corpus, tokens] = [piece for piece in found if piece.corpus == corpus]
    context.say(f"client-to-ids: tiktoken agrees with tokenizers on {agreed:,} bytes")
    return vocab, pieces


def _prepare_servers(context: Context, vocab: Path) -> tuple[Path, Path]:
    """GPT-2's tokenizer.json, which takes seconds to make; and text to choose calls on."""
    made, sample = context.folder / "tokenizer.json", context.folder / "sample.txt"
    engines.write_json(vocab, made)
    corpora = fetch_corpus.fetch(data_home() / "corpus")
    # Their ends, which the texts that are sent seldom come to.
    parts = [corpora[name].read_text("utf-8")[-SAMPLE // len(CORPORA) :] for name in CORPORA]
    sample.write_text("".join(parts), encoding="utf-8")
    return made, sample


def prepare(context: Context) -> State:
    """Texts, their ids, and what the servers need; the wires; huge pages."""
    if len(CPUS) < 2:
        raise Missing("needs two CPUs: for the server and the client")
    round_trips.need_tokd_load()
    vocab, pieces = _cut(context)
    made, sample = _prepare_servers(context, vocab)
    with ExitStack() as stack:
        try:
            client = stack.enter_context(namespace("client"))
            server = stack.enter_context(namespace("server"))
            links = (
                stack.enter_context(veth(0, client, None)),
                stack.enter_context(veth(1, client, server)),
            )
        except OSError as error:
            raise Missing(f"no veth pair can be made, which needs root: {error}") from error
        huge = stack.enter_context(hugepages())
        folder, kept = context.folder, stack.pop_all()
        return State(kept, folder, vocab, made, sample, pieces, client, server, links, huge)
    raise AssertionError


def _beside(state: State, parameters: dict[str, Any]) -> AbstractContextManager[None]:
    """The neighbour, one for each CPU it has."""
    kind, cpus = parameters["neighbour"], PLACES[parameters["place"]]
    if kind == "none":
        return nullcontext()
    if not cpus:
        raise Missing(
            f"a neighbour on CPUs of its own needs three, and there are {len(CPUS)}: the server "
            "and the client have one each"
        )
    return neighbours.neighbour(kind, cpus, len(cpus), state.folder)


def _run_tokd(state: State, parameters: dict[str, Any], sent: Path) -> Raw:
    link, system, beside = state.links[0], parameters["system"], _beside(state, parameters)
    with start_appliance(
        link, state.vocab, state.folder, WORKER_CPU, state.huge,
        before=ENDS_WITH_US, drivers=TOKD[system],
    ) as appliance, beside:  # fmt: skip
        rows = round_trips.load(link, state.client, sent, CLIENT_CPU, "tokd")
        memory = "huge pages of 2 MB" if appliance.huge_pages else "no huge pages"
        return Raw(rows, [f"{system}: {appliance.driver}, {memory}, one worker"])


def _run_server(state: State, parameters: dict[str, Any], sent: Path) -> Raw:
    link, which, beside = state.links[1], SERVERS[parameters["system"]], _beside(state, parameters)
    if why := engines.obstacle(which.engine):
        raise Missing(why)
    more = ["--engine", which.engine, "--transport", which.transport, "--loop", *which.loop]
    more += ["--json", str(state.json)]
    with start_baseline(
        link, state.server, state.vocab, state.sample, state.folder, WORKER_CPU, more, ENDS_WITH_US
    ) as server, beside:  # fmt: skip
        rows = round_trips.load(link, state.client, sent, CLIENT_CPU, MODES[which.transport])
        _, _, how = server.wait_for("ready:", 1.0).partition(", ")
        return Raw(rows, [f"{parameters['system']}: {how}"])


def _sent(state: State, parameters: dict[str, Any]) -> list[Slice]:
    every = state.pieces[parameters["corpus"], parameters["tokens"]]
    wanted = parameters["requests"] + WARM_UP
    if len(every) < wanted:
        raise Missing(f"{len(every)} texts, of {wanted} asked for: the corpus has no more")
    return every[:wanted]


def run(state: State, parameters: dict[str, Any]) -> Raw:
    sent = state.folder / "texts.bin"
    slices.write(sent, _sent(state, parameters))
    which = _run_tokd if parameters["system"] in TOKD else _run_server
    return which(state, parameters, sent)


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    pieces = _sent(state, parameters)
    counts: dict[str, int] = {}
    trips = Samples()
    ids = whole = 0
    for index, ns, _ in round_trips.answered(raw.rows, counts):
        trips.add(ns)
        whole += ns
        ids += len(pieces[index].ids)
    if not len(trips):
        raise OSError(f"none of {len(raw.rows)} requests was answered: {counts}")
    return Report(
        values={"average": whole / len(trips) / 1000, "throughput": 1000 * ids / whole},
        samples={"round-trip": trips},
        counts=counts,
        ids_checked=ids,
        notes=raw.notes,
    )


def clean(state: State) -> None:
    state.stack.close()
