# SPDX-License-Identifier: BSD-3-Clause
"""tools/sweep with tasks made for it: resuming, and what may not enter a table."""

import json
import signal
import time

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.samples import Samples, least_samples
from bench.sweep import box as boxes
from bench.sweep import compare, published_file, summary, table
from bench.sweep.store import Store, StoreError
from sweep_machine import HERE
from sweep_made import PARAMETERS, TASK, start, swept

# ---- percentiles ----


@pytest.mark.parametrize(
    ("percentile", "least"), [(50, 20), (90, 100), (99, 1000), (99.9, 10_000), (99.99, 100_000)]
)
def test_a_percentile_needs_ten_samples_beyond_it(percentile, least):
    samples = Samples()
    samples.add(1000, least - 1)
    assert least_samples(percentile) == least
    assert samples.percentile(percentile) is None
    samples.add(1000)
    assert samples.percentile(percentile) == 1000


def test_samples_are_kept_whole():
    samples = Samples()
    for ns in range(1, 2001):
        samples.add(ns)
    again = Samples.decode(samples.encode())
    again.add_all(samples)
    assert len(again) == 4000 and again.max() == 2000
    assert samples.percentile(50) == 1000 and samples.percentile(99) == 1980
    for wrong in (-1, 4 * 3_600_000_000_000):
        with pytest.raises(ValueError, match="a duration is"):
            samples.add(wrong)


def test_without_samples_enough_no_percentile_is_shown(made, tmp_path):
    result = swept(made(parameters=PARAMETERS | {"count": [999]}), tmp_path / "out")
    cells = [row["cells"]["time p99"] for row in result["tables"][0]["rows"]]
    assert cells == [{"refused": "999 of 1,000 samples"}] * 2
    assert "- (999 of 1,000 samples)" in table.markdown(result)
    assert ",999 of 1,000 samples," in table.as_csv(result).replace('"', "")
    trial = json.loads(next((tmp_path / "out/trials").glob("*/1.json")).read_text())
    assert set(trial["percentiles"]["time"]) == {"p50", "p90", "max"}


# ---- what is measured, missing, refused ----


def test_a_table_has_medians_spread_ratio_and_counts(made, tmp_path):
    path = made({"repeats": {"full": 5, "quick": 1}}, baseline={"ns": 1000})
    result = swept(path, tmp_path / "out")
    first, second = result["tables"][0]["rows"]
    assert first["is_baseline"] and not second["is_baseline"]
    cell = second["cells"]["time p99"]
    assert (cell["median"], cell["min"], cell["max"]) == pytest.approx((2, 2, 2), rel=1e-3)
    assert cell["ratio"]["median"] == pytest.approx(2, rel=1e-3)
    assert cell["verdict"] == "worse" and second["cells"]["speed"]["verdict"] == "worse"
    assert second["counts"] == {"no-answer": 10} and second["ids_checked"] == 35
    assert result["finished"] and result["ids_right"]
    text = table.markdown(result)
    assert "5 x 1,000" in text and "x2.00 worse" in text and "1000 (baseline)" in text
    summary.write_hgrm(boxes.load(path, quick=False), Store(tmp_path / "out"))
    hgrm = (tmp_path / "out/hgrm" / f"{second['test']}.time.hgrm").read_text()
    assert "2.000" in hgrm and "5000" in hgrm
    assert (
        json.loads(next((tmp_path / "out/trials").glob("*/1.json")).read_text())["machine"] == HERE
    )


def test_of_what_neither_more_nor_less_is_better_nothing_is_better(made, tmp_path):
    path = made({"repeats": {"full": 5, "quick": 1}}, baseline={"ns": 1000})
    task = tmp_path / "tasks/made/task.py"
    task.write_text(TASK.replace('better="higher"', 'better="neither"'))
    result = swept(path, tmp_path / "out")
    cell = result["tables"][0]["rows"][1]["cells"]["speed"]
    assert cell["ratio"]["median"] == pytest.approx(0.5) and cell["verdict"] == "neither"
    assert " x0.50 |" in table.markdown(result) and ",1/s,neither,done," in table.as_csv(result)
    shown = compare.compare(result, result)
    assert "2 not distinguishable, 2 neither" in shown and "of 2 cells" in shown
    assert "Not the same" not in shown
    other_text = result | {"corpora": [{"name": "own", "bytes": 100_000, "sha256": "a1"}]}
    shown = compare.compare(result, other_text)
    assert "Differences, A / B:\n- corpora: [] / " in shown and "a1" in shown
    other = next(t for t in boxes.load(path, quick=False).entries).task
    theirs = {"who": "T", "source": "S", "remarks": ["r"], "by": "kind", "names": {"good": "g"},
              "figures": [{"parameters": {"kind": "good"}, "metrics": {"speed": 1}}]}  # fmt: skip
    (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    with pytest.raises(boxes.BoxError, match="'speed': neither more nor less of it is better"):
        published_file.load(tmp_path / "theirs.json", other, {"kind": "good"})


@pytest.mark.parametrize("kind", ["wrong", "blind"])
def test_a_test_whose_ids_are_wrong_has_no_figure(made, tmp_path, kind):
    kinds = PARAMETERS | {"kind": [kind, "good"], "ns": [1000]}
    result = swept(made(parameters=kinds, baseline={"kind": kind}), tmp_path / "out")
    bad, good = result["tables"][0]["rows"]
    assert bad["state"] == "refused" and bad["cells"] == {}
    assert bad["reason"] == ("text 3: wrong ids" if kind == "wrong" else "no ids were compared")
    assert not result["ids_right"]
    # It is no baseline either.
    assert "ratio" not in good["cells"]["time p99"] and "verdict" not in good["cells"]["time p99"]
    assert f"- {kind} (baseline)" not in table.markdown(result)
    assert f"{kind}: refused: " in table.markdown(result)


def test_one_repeat_with_wrong_ids_refuses_the_test(made, tmp_path, monkeypatch):
    path = made()
    swept(path, tmp_path / "out")
    trial = next((tmp_path / "out/trials").glob("*ns=2000*")) / "2.json"
    changed = json.loads(trial.read_text()) | {"state": "refused", "reason": "text 1: wrong ids"}
    trial.write_text(json.dumps(changed))
    rows = swept(path, tmp_path / "out")["tables"][0]["rows"]
    assert [row["state"] for row in rows] == ["done", "refused"]


def test_what_is_missing_is_listed(made, tmp_path):
    kinds = PARAMETERS | {"kind": ["good", "absent"], "ns": [1000]}
    path = made({"missing": [{"what": "a GPU", "why": "none here"}]}, parameters=kinds)
    result = swept(path, tmp_path / "out")
    text, rows = table.markdown(result), table.as_csv(result)
    assert "- absent: missing: no such device" in text
    assert "- a GPU: missing: none here" in text
    assert rows.count("missing,no such device") == 2 and "missing,none here" in rows
    assert result["finished"] and result["ids_right"]


def test_a_trial_that_failed_is_told_and_run_again(made, tmp_path, said):
    path = made(parameters=PARAMETERS | {"kind": ["broken"], "ns": [1]})
    result = swept(path, tmp_path / "out")
    (row,) = result["tables"][0]["rows"]
    assert (row["state"], row["reason"]) == ("failed", "ValueError: it broke")
    assert not result["finished"] and said().count("broken 1") == 2
    swept(path, tmp_path / "out")
    assert said().count("broken 1") == 4 and said().count("clean") == 2


def test_repeats_take_turns(made, tmp_path, said):
    swept(made(), tmp_path / "out")
    trials = ["good 1000", "good 2000"]
    assert said() == ["prepare", *trials, *trials, "clean", "closed"]


def test_what_a_task_opened_is_closed_if_it_is_missing_then(made, tmp_path, said):
    text = TASK[: TASK.index("def clean")].replace("return context", 'raise Missing("no disk")')
    path = made()
    (tmp_path / "tasks/made/task.py").write_text(text)
    row, _ = swept(path, tmp_path / "out")["tables"][0]["rows"]
    assert (row["state"], row["reason"]) == ("missing", "no disk")
    assert said() == ["prepare", "closed"]


# ---- ended early ----


@pytest.mark.slow
def test_after_a_kill_it_goes_on_behind_the_last_trial(made, tmp_path, said):
    path = made({"repeats": {"full": 3, "quick": 1}},
                parameters={"kind": ["slow"], "ns": [1, 2, 3], "count": [20]})  # fmt: skip
    out, task = tmp_path / "out", tmp_path / "tasks/made/task.py"
    # The fifth trial lasts until it is killed.
    until_killed = "time.sleep(60 if LOG.read_text().count('slow') == 5 else 0)"
    task.write_text(TASK.replace("time.sleep(0.1)", until_killed))
    task.with_name("log").touch()
    process = start(str(path), "--out", str(out))
    deadline = time.monotonic() + 60
    while sum("slow" in word for word in said()) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    done = {p: p.stat().st_mtime_ns for p in out.glob("trials/*/*.json")}
    assert len(done) == 4
    again = start(str(path), "--out", str(out))
    shown, complaints = again.communicate(timeout=60)
    assert again.returncode == 0, complaints
    assert f"{len(done)} of 9 trials are there already" in complaints
    assert all(p.stat().st_mtime_ns == when for p, when in done.items())
    assert sum("slow" in word for word in said()) == 10  # that which was cut short once more
    assert "NOT FINISHED" not in shown and (out / "results.csv").is_file()
    # Nothing is left to do: nothing is prepared.
    before = said().count("prepare")
    third = start(str(path), "--out", str(out))
    third.communicate(timeout=60)
    assert third.returncode == 0 and said().count("prepare") == before


def test_a_task_is_told_the_repeat_and_finds_what_it_kept(made, tmp_path, said):
    path, out = made(parameters=PARAMETERS | {"ns": [1]}), tmp_path / "out"
    run = """def run(state, p, repeat):
    log(f"repeat {repeat}")
    if repeat == 2 and not state.kept.is_dir():
        state.kept.mkdir(parents=True)
        raise ValueError("the first time")
"""
    (tmp_path / "tasks/made/task.py").write_text(TASK.replace("def run(state, p):\n", run))
    assert not swept(path, out)["finished"]
    assert swept(path, out)["finished"]
    assert [w for w in said() if "repeat" in w] == ["repeat 1", "repeat 2", "repeat 2"]
    Store(out).begin(boxes.load(path, quick=False), False, HERE, fresh=True)
    assert not (out / "kept").exists()


@pytest.mark.slow
def test_a_signal_cleans_the_tasks_and_shows_what_there_is(made, tmp_path, said):
    path = made(parameters={"kind": ["slow"], "ns": list(range(1, 200)), "count": [20]})
    out = tmp_path / "out"
    process = start(str(path), "--out", str(out))
    deadline = time.monotonic() + 60
    while not list(out.glob("trials/*/*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert said()[-2:] == ["clean", "closed"]
    assert "NOT FINISHED" in (out / "table.md").read_text()


def test_a_sweep_of_another_machine_or_box_is_not_gone_on_with(made, tmp_path):
    out = tmp_path / "out"
    swept(made(), out)
    with pytest.raises(StoreError, match="kernel: k #1 / k #2.*--fresh removes it"):
        swept(made(), out, HERE | {"kernel": "k #2"})
    with pytest.raises(StoreError, match="is not this one .tests"):
        swept(made(parameters=PARAMETERS | {"ns": [5]}), out)


def test_two_sweeps_do_not_write_to_one_folder(made, tmp_path):
    box = boxes.load(made(), quick=False)
    first = Store(tmp_path / "out")
    first.begin(box, False, HERE, fresh=False)
    with pytest.raises(StoreError, match="another sweep writes there"):
        Store(tmp_path / "out").begin(box, False, HERE, fresh=False)


def test_a_dry_run_lists_and_runs_nothing(made, tmp_path):
    path = made({"missing": [{"what": "a GPU", "why": "none here"}]})
    out = tmp_path / "out"
    process = start(str(path), "--dry-run", "--out", str(out))
    shown, complaints = process.communicate(timeout=60)
    assert process.returncode == 0, complaints
    assert shown.splitlines() == [
        "made kind=good ns=1000 count=1000 x2",
        "made kind=good ns=2000 count=1000 x2",
        "missing: a GPU: none here",
        "2 tests, 4 trials",
    ]
    assert not out.exists() and not (tmp_path / "tasks/made/log").exists()


@pytest.mark.slow
def test_exit_codes(made, tmp_path):
    refused = made(parameters=PARAMETERS | {"kind": ["wrong"]})
    process = start(str(refused), "--out", str(tmp_path / "out"))
    process.communicate(timeout=60)
    assert process.returncode == 1
    process = start(str(made({"titel": "x"})), "--out", str(tmp_path / "out2"))
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 2 and complaints.startswith("sweep: ")
