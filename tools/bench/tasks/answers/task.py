# SPDX-License-Identifier: BSD-3-Clause
"""Prompts to answers: dpdk-tokd --sink gpu over a veth pair and tokd-gpu --lanes, whose stand-in
for a model makes ids by a rule."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.appliance import Consumer, best_on_veth
from bench.client import ask
from bench.lab import neighbours
from bench.lab.cpus import CLIENT_CPU, CPUS, OTHER_CPUS, WORKER_CPU, need_two_cpus, on_cpus
from bench.lab.hugepages import hugepages
from bench.lab.machine import gpu_here
from bench.lab.net import Veth, client_link
from bench.programs import DPDK_TOKD, TOKD_GPU
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, need
from bench.texts import encode_texts, slices
from bench.texts.encode_texts import Kind

HELP = (
    "Answers of 64 ids to prompts of 128 tokens that were never seen; a fresh appliance for each "
    "trial. first-id: from before the client sends a prompt to the first id of "
    "its answer; per-id: from there to the last id, for each id. The client is one process of "
    "AsyncClient. The model is a stand-in: its time is not that of a model. Every id is compared "
    "with the rule's."
)
PARAMETERS = {
    "streams": Number(1, 512, "answers at once"),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {"first-id": Distribution("us"), "per-id": Distribution("us")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
VOCABULARY, CORPUS, PROMPT, ANSWER = "gpt2", "english", 128, 64
DIM = 16
LIMIT_S = 300.0


@dataclass
class State:
    folder: Path
    vocabulary: Path
    rows: int
    pieces: list[slices.Slice]
    link: Veth
    client: str  # namespace
    huge: bool
    gpu: bool


@dataclass(frozen=True)
class Raw:
    times: list[list[int]]  # of each answer: ns to the first id, and to the last
    notes: list[str]


def _warm_up(parameters: dict[str, Any]) -> int:
    return max(20, 2 * parameters["streams"])


def prepare(context: Context) -> State:
    """Prompts with ids, the network, huge pages."""
    need_two_cpus()
    need(DPDK_TOKD, TOKD_GPU)
    vocabulary = encode_texts.load(VOCABULARY, context.folder)
    wanted = max(test["requests"] + _warm_up(test) for test in context.tests)
    kind = Kind(VOCABULARY, CORPUS, "tokens", PROMPT)
    _, pieces = encode_texts.cut(kind, vocabulary, wanted, context.corpora)
    client, link = client_link(context.stack, "answers")
    huge = context.stack.enter_context(hugepages())
    rows = vocabulary.tokenizer.get_vocab_size()
    return State(context.folder, vocabulary.file, rows, pieces, link, client, huge, gpu_here())


def _consumer(state: State, streams: int) -> Consumer:
    device = ["--device", "cuda:0", "--ring", "host"] if state.gpu else ["--device", "cpu"]
    lanes = 4 * streams // 3 + 2  # one source leaves a quarter of them to others
    options = [*device, "--producers", "1", "--lanes", str(lanes)]
    with on_cpus(OTHER_CPUS):
        return Consumer(state.folder, f"random:{state.rows}x{DIM}:1", *options)


def _ask(state: State, parameters: dict[str, Any], sent: Path) -> Any:
    """What the client prints. WrongIds: an id is not the rule's."""
    told = {
        "server": state.link.server, "port": state.link.port, "texts": str(sent),
        "answer": ANSWER, "rows": state.rows, "streams": parameters["streams"],
        "warm_up": _warm_up(parameters),
    }  # fmt: skip
    return ask(state.client, "bench.tasks.answer_client", LIMIT_S, told)


def run(state: State, parameters: dict[str, Any]) -> Raw:
    wanted = parameters["requests"] + _warm_up(parameters)
    if len(state.pieces) < wanted:
        raise Missing(f"the corpus has only {len(state.pieces)} of {wanted} prompts")
    sent = state.folder / "prompts.bin"
    slices.write(sent, state.pieces[:wanted])
    with ExitStack() as stack:
        consumer = stack.enter_context(_consumer(state, parameters["streams"]))
        own = ["--sink", f"gpu=shm:{consumer.socket}"]
        appliance = stack.enter_context(
            best_on_veth(state.link, state.vocabulary, state.folder, WORKER_CPU, state.huge, own)
        )
        beside = neighbours.beside_worker(parameters["neighbour"], True, state.folder)
        stack.enter_context(beside)
        times = _ask(state, parameters, sent)
    shared = ", which share the client's CPU" if OTHER_CPUS == [CLIENT_CPU] else ""
    device = "a GPU, its ring in host memory" if state.gpu else f"threads of the CPU{shared}"
    memory = "huge pages" if appliance.huge_pages else "no huge pages"
    return Raw(
        times, [f"{appliance.driver}, {memory}, one worker, {len(CPUS)} CPUs; tokd-gpu on {device}"]
    )


def report(_state: State, _parameters: dict[str, Any], raw: Raw) -> Report:
    first, each = Samples(), Samples()
    for begun, ended in raw.times:
        first.add(begun)
        each.add((ended - begun) // (ANSWER - 1))
    return Report(
        samples={"first-id": first, "per-id": each},
        ids_checked=ANSWER * len(raw.times),
        notes=raw.notes,
    )
