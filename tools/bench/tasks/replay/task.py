# SPDX-License-Identifier: BSD-3-Clause
"""How much text workers tokenize side by side: each on a CPU, with a capture of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import replay
from bench.lab.host_measures import CPUS, ENDS_WITH_US
from bench.programs import DPDK_TOKD
from bench.task import Context, Missing, Number, Report, Value, WrongIds
from bench.texts import fetch_corpus, fetch_vocab, reference
from bench.texts.packages import data_home

HELP = (
    "Without clients: each worker of one dpdk-tokd has the same texts, a packet each, in a capture "
    "of its own (net_pcap), and starts with the others; each trial by an appliance started anew. "
    "throughput: text by the time that a worker was busy with it, all workers together; each: the "
    "mean of them; slowest: the least."
)
PARAMETERS = {
    "workers": Number(1, 64, "of one appliance, each on a CPU of its own"),
    "bytes": Number(10_000, 10_000_000, "of each of the three corpora, for each worker"),
}
METRICS = {
    "throughput": Value("MB/s", better="higher"),
    "each": Value("MB/s", better="higher"),
    "slowest": Value("MB/s", better="higher"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True


@dataclass(frozen=True)
class State:
    folder: Path
    vocab: Path
    texts: dict[int, replay.Texts]  # by bytes
    captures: dict[int, list[Path]]


def prepare(context: Context) -> State:
    """Texts, their ids, on which tiktoken must agree with tokenizers, and captures of them."""
    if not DPDK_TOKD.is_file():
        raise Missing(f"{DPDK_TOKD} is not built: run tools/setup")
    vocab = fetch_vocab.fetch("gpt2", data_home() / "vocab")
    corpora = fetch_corpus.fetch(data_home() / "corpus")
    texts, captures = {}, {}
    for size in sorted({test["bytes"] for test in context.tests}):
        try:
            texts[size] = replay.texts(vocab, corpora, size)
        except reference.ReferenceMismatch as error:
            raise WrongIds(str(error)) from error
        context.say(f"replay: tiktoken agrees with tokenizers on {texts[size].agreed:,} bytes")
        most = max(test["workers"] for test in context.tests if test["bytes"] == size)
        place = context.folder / str(size)
        place.mkdir()
        captures[size] = replay.captures(place, texts[size], min(most, len(CPUS)))
    return State(context.folder, vocab, texts, captures)


def run(state: State, parameters: dict[str, Any]) -> replay.Replay:
    workers, size = parameters["workers"], parameters["bytes"]
    if workers > len(CPUS):
        raise Missing(f"{workers} workers need {workers} CPUs, and there are {len(CPUS)}")
    cpus = CPUS[::-1][:workers]
    captures = state.captures[size]
    try:
        return replay.replay(
            cpus, state.vocab, state.texts[size], captures, state.folder, ENDS_WITH_US
        )
    except replay.WrongReplay as error:
        raise WrongIds(str(error)) from error


def report(_state: State, parameters: dict[str, Any], raw: replay.Replay) -> Report:
    whole = sum(raw.mb_per_s)
    return Report(
        values={
            "throughput": whole,
            "each": whole / parameters["workers"],
            "slowest": min(raw.mb_per_s),
        },
        ids_checked=raw.ids,
    )


def clean(_state: State) -> None:
    """Nothing outlasts a trial, and the files are the folder's."""
