# SPDX-License-Identifier: BSD-3-Clause
"""The demo: fetch, set up the network, start both servers, alternate, compare, report."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import FetchError, data_home

from bench.appliance import Appliance, best_on_veth
from bench.baseline import server as conventional
from bench.demo import echo, gpu, report
from bench.demo.measure import Times, run_round, tokenizer_alone
from bench.demo.plan import Round, cut_all, rounds
from bench.lab.cpus import CLIENT_CPU, CPUS, WORKER_CPU
from bench.lab.hugepages import hugepages
from bench.lab.net import Veth, namespace, veth
from bench.log import log
from bench.process import NotReady, Process
from bench.texts import fetch_corpus, reference, slices

PER_SIZE = {"quick": 85, "full": 690}  # slices of each size from each of the three corpora
PER_SIZE_GPU = {"quick": 20, "full": 170}  # likewise, with --sink gpu
DRAIN_S = 20.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DESCRIPTION = """\
dpdk-tokd over a veth pair: text of three corpora goes in as UDP packets; ids come back and are read
from the token ring. Every id is compared with Hugging Face tokenizers. The baseline is tokenizers
behind a kernel UDP socket, on the same core, over a veth pair of its own that is set up alike. The
same client sends it the same texts. The wire alone is an echo of packets of the same sizes, by DPDK's
testpmd with the same driver; the tokenizer alone is tok bench with the same texts, in one process.

The servers alternate. All poll without sleeping, so the others are stopped meanwhile (SIGSTOP),
and so is the reader of the token ring while times are taken."""


class Reader(Process):
    """bench.demo.reader, which checks the token ring."""

    def __init__(self, appliance: Appliance, plan: list[Round], folder: Path) -> None:
        expected = folder / "expected.bin"
        slices.write(expected, [piece for part in plan for piece in part.slices])
        self.progress, self.result = folder / "progress", folder / "reader.json"
        command = [sys.executable, "-m", "bench.demo.reader", str(appliance.socket), str(expected)]
        command += [str(self.progress), str(self.result), str(CLIENT_CPU)]
        super().__init__("ring reader", command, folder / "reader.log")

    def drain(self, streams: int) -> None:
        """Let it run until it has read `streams` streams."""
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            if self.progress.is_file() and int(self.progress.read_bytes() or b"0") >= streams:
                return
            if self.wait(0.01) is not None:
                return


class Demo:
    """The running programs and the times measured."""

    def __init__(self, stack: ExitStack, folder: Path, corpora: dict[str, Path], vocab: Path):
        self.folder = folder
        self.namespace = stack.enter_context(namespace("client"))
        server = stack.enter_context(namespace("server"))
        self.link = stack.enter_context(veth(0, self.namespace, None))
        self.baseline_link = stack.enter_context(veth(1, self.namespace, server))
        huge = stack.enter_context(hugepages())
        sample = folder / "sample.txt"
        texts = (path.read_text(encoding="utf-8")[-20_000:] for path in corpora.values())
        sample.write_text("\n".join(texts), encoding="utf-8")
        self.baseline = stack.enter_context(
            conventional.start(self.baseline_link, server, vocab, sample, folder, WORKER_CPU)
        )
        self.baseline.pause()
        self.appliance = stack.enter_context(
            best_on_veth(self.link, vocab, folder, WORKER_CPU, huge)
        )
        self.echo_link = stack.enter_context(veth(2, self.namespace, None))
        self.appliance.pause()
        self.echo = echo.start(self.echo_link, self.namespace, self.appliance, folder, WORKER_CPU)
        if self.echo is not None:
            stack.enter_context(self.echo)
            self.echo.pause()
        self.appliance.go_on()
        self.ours, self.again, self.theirs, self.wire = Times(), Times(), Times(), Times()

    def run(self, plan: list[Round], reader: Reader) -> None:
        sent = 0
        for i, part in enumerate(plan):
            again = " (the last round repeated)" if part.again else ""
            log(f"round {i + 1} of {len(plan)}{again}: {len(part.slices)} requests")
            reader.pause()
            self._round(part, "tokd", self.link, self.again if part.again else self.ours)
            sent += len(part.slices)
            reader.go_on()
            reader.drain(sent)
            if not part.again:
                self.appliance.pause()
                self.baseline.go_on()
                self._round(part, "plain", self.baseline_link, self.theirs)
                self.baseline.pause()
                if self.echo is not None:
                    self.echo.go_on()
                    self._round(part, "echo", self.echo_link, self.wire)
                    self.echo.pause()
                self.appliance.go_on()

    def _round(self, part: Round, mode: str, link: Veth, times: Times) -> None:
        errors = run_round(part, mode, link, self.namespace, self.folder, CLIENT_CPU, times)
        if errors:
            log(errors)


def quit_on_signals() -> None:
    """Signals unwind like errors, so that everything is cleaned up. Further signals are ignored:
    they would interrupt that."""

    def leave(number: int, _frame: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        print("demo: interrupted, cleaning up", file=sys.stderr)
        sys.exit(128 + number)

    for number in SIGNALS:
        signal.signal(number, leave)


def read_ring_result(reader: Reader, demo: Demo) -> dict[str, Any]:
    reader.wait(DRAIN_S)
    if not reader.result.is_file():
        log(f"the ring reader has no result:\n{reader.tail()}\n{demo.appliance.tail()}")
        return {"streams": 0, "ranges": 0, "ids": 0, "wrong": 1, "copies": 0}
    return json.loads(reader.result.read_text())


def sent_streams(plan: list[Round]) -> int:
    return sum(len(part.slices) for part in plan)


def show(args: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, Any]:
    vocab = vocabs.fetch("gpt2", data_home() / "vocab")
    corpora = fetch_corpus.fetch(data_home() / "corpus")
    per_size = (PER_SIZE_GPU if args.sink else PER_SIZE)["quick" if args.quick else "full"]
    busy = os.getloadavg()[0]
    log("cutting slices and computing the reference's ids")
    pieces = cut_all(corpora, vocab, per_size)
    tokenizer = reference.load_gpt2(vocab)
    checked = [piece.text for piece in reference.some(pieces)]
    agreed = reference.verify(tokenizer, vocab, checked)
    log(f"reference: Hugging Face tokenizers; tiktoken agrees with it on {agreed:,} bytes")
    if args.sink:
        return gpu.show(pieces, vocab, folder, stack, (CLIENT_CPU, WORKER_CPU))
    demo = Demo(stack, folder, corpora, vocab)
    log(demo.appliance.ready)
    log(demo.baseline.wait_for("ready:", 1.0))
    plan = rounds(pieces)
    reader = stack.enter_context(Reader(demo.appliance, plan, folder))
    reader.wait_for("attached", 30.0)
    demo.run(plan, reader)
    ring = read_ring_result(reader, demo)
    log(f"dpdk-tokd ended with {demo.appliance.stop()}")
    every = (demo.ours, demo.again, demo.theirs)
    ring_equal = ring["wrong"] == ring["copies"] == 0 and ring["streams"] == sent_streams(plan)
    return {
        "samples": [report.sample(piece) for piece in pieces[:3]],
        "ids_equal": ring_equal and all(times.wrong == 0 for times in every),
        "rtt_us": report.by_size(demo.ours),
        "baseline_us": report.by_size(demo.theirs),
        "repeated_us": report.by_size(demo.again),
        "echo_us": report.by_size(demo.wire),
        "tokenizer_us": report.by_size(tokenizer_alone(pieces, vocab, folder, WORKER_CPU)),
        "by_corpus": {
            "rtt_us": report.by_corpus(demo.ours),
            "baseline_us": report.by_corpus(demo.theirs),
        },
        "text_bytes": sum(len(piece.text.encode()) for piece in pieces),
        "ids": sum(len(piece.ids) for piece in pieces),
        "ring": ring,
        "retransmits": {"dpdk-tokd": demo.ours.retransmits, "baseline": demo.theirs.retransmits},
        "driver": demo.appliance.driver,
        "huge_pages": demo.appliance.huge_pages,
        "load_average_before": round(busy, 2),
        "machine": report.machine(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="demo", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer requests: under a minute")
    parser.add_argument("--sink", choices=["gpu"], help="embeddings by tokd-gpu on the CPU")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    args = parser.parse_args()
    if len(CPUS) < 2:
        print("demo: needs two CPUs: one for dpdk-tokd, one for the client", file=sys.stderr)
        return 1
    if args.json:
        try:
            args.json.open("a").close()  # fail before minutes of measuring
        except OSError as error:
            print(f"demo: --json {args.json}: {error.strerror}", file=sys.stderr)
            return 2
    quit_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="tokd-demo-") as folder, ExitStack() as stack:
            result = show(args, Path(folder), stack)
    except (FetchError, NotReady, OSError, subprocess.SubprocessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except reference.ReferenceMismatch as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    samples = result.pop("samples", [])
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    if args.sink:
        equal = result["ids_equal"] and result["embeddings_equal"]
        print(
            f"\nids and embeddings equal: {'yes, all' if equal else 'NO'} ({result['rows']:,} rows)"
        )
        print(f"\n{gpu.table(result)}")
        return 0 if equal else 1
    parts = (report.verdict(result), report.table(result), report.meaning(result), *samples)
    print("", *parts, sep="\n\n")
    return 0 if result["ids_equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
