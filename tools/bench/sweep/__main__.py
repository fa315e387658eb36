# SPDX-License-Identifier: BSD-3-Clause
"""tools/sweep: see doc/reference/sweeps.md."""

import argparse
import shlex
import signal
import sys
from pathlib import Path

from dpdk_tokd.fetch.packages import FetchError

from bench.lab import machine
from bench.programs import ROOT
from bench.sweep import box as boxes
from bench.sweep import compare, corpora, summary, table
from bench.sweep.runner import Runner
from bench.sweep.store import Store, StoreError
from bench.task import TaskError
from bench.texts.packages import write_json

BUSY = 1.0  # load average
DESCRIPTION = """\
Run a benchmark suite (a box), its tests interleaved and repeated. Prints the median and the spread
of the repeats, the ratio to the baseline, and what is missing. If interrupted, run the command
again: it resumes. How to write boxes and tasks: doc/reference/sweeps.md."""
EPILOG = """\
tools/sweep compare A B   compare two result folders of a box: which cells of B are better, worse, or
                          not distinguishable from A's
tools/sweep report DIR    write an HTML report with figures: DIR/report.html

exit code: 0 everything was measured or is listed as missing; 1 wrong ids, or a test failed; 2 the
box or an option is wrong"""


def _leave(number: int, _frame: object) -> None:
    """Signals unwind like errors, so that tasks clean up."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    print("\nsweep: interrupted, cleaning up; the same command resumes", file=sys.stderr)
    sys.exit(128 + number)


def _dry_run(box: boxes.Box) -> None:
    for test in box.tests:
        print(f"{test.name} x{box.repeats}")
    for what, why in box.missing:
        print(f"missing: {what}: {why}")
    print(f"{len(box.tests)} tests, {len(box.tests) * box.repeats} trials")


def _sweep(args: argparse.Namespace) -> int:
    box = boxes.load(args.box, args.quick, corpora.read(args.corpus))
    if args.dry_run:
        _dry_run(box)
        return 0
    default = ROOT / "build" / "sweeps" / (box.name + ("-quick" if args.quick else ""))
    store = Store(args.out or default)
    here = machine.describe()
    store.begin(box, args.quick, here, args.fresh)
    if here["load_average"] > BUSY:
        print(f"sweep: this machine is busy (load average {here['load_average']}): figures will "
              "be noisy", file=sys.stderr)  # fmt: skip
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        Runner(box, store, args.quick, here).run()
    finally:
        command = shlex.join(["tools/sweep", *sys.argv[1:]])
        result = summary.summarize(box, store, command)
        text = table.markdown(result)
        write_json(store.folder / "results.json", result)
        store.write_text("results.csv", table.as_csv(result))
        store.write_text("table.md", text)
        summary.write_hgrm(box, store)
    print(text)
    print(f"written: {store.folder}; HTML report: tools/sweep report {store.folder}")
    rows = [row for one in result["tables"] for row in one["rows"]]
    bad = [row for row in rows if row["state"] in ("refused", "failed") or (row["reason"]
           and row["state"] == "done")]  # fmt: skip
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tools/sweep",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if sys.argv[1:2] == ["compare"]:
        parser = argparse.ArgumentParser(prog="tools/sweep compare")
        parser.add_argument("a", type=Path, help="result folder, or its results.json")
        parser.add_argument("b", type=Path, help="another one of the same box")
        args = parser.parse_args(sys.argv[2:])
    elif sys.argv[1:2] == ["report"]:
        parser = argparse.ArgumentParser(prog="tools/sweep report")
        parser.add_argument("folder", type=Path, metavar="DIR", help="result folder")
        args = parser.parse_args(sys.argv[2:])
    else:
        parser.add_argument("box", type=Path, metavar="BOX.json")
        parser.add_argument("--quick", action="store_true", help="fewer repeats and samples")
        parser.add_argument(
            "--corpus", type=Path, metavar="FILE", action="append", default=[],
            help="your own UTF-8 text instead of the corpora (repeatable)",
        )  # fmt: skip
        parser.add_argument(
            "--out", type=Path, metavar="DIR", help="result folder [build/sweeps/NAME]"
        )
        parser.add_argument("--dry-run", action="store_true", help="list the tests, run none")
        parser.add_argument("--fresh", action="store_true", help="remove results that are there")
        args = parser.parse_args()
    try:
        if "a" in args:
            print(compare.compare(compare.read(args.a), compare.read(args.b)))
            return 0
        if "folder" in args:
            from bench.sweep import report  # imports matplotlib, which is slow

            print(f"written: {report.write(args.folder)}")
            return 0
        return _sweep(args)
    except (boxes.BoxError, TaskError, StoreError) as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    except (FetchError, OSError) as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
