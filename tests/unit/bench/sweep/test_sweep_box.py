# SPDX-License-Identifier: BSD-3-Clause
"""Boxes of tools/sweep: what is read, and what is refused with the remedy."""

import json
import re

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import task as tasks
from bench.sweep import box as boxes
from bench.sweep import published_file
from bench.task import TaskError
from sweep_made import PARAMETERS, ROOT, TASK, swept


@pytest.mark.parametrize(
    ("top", "entry", "complaint"),
    [
        ({"titel": "x"}, {}, "unknown key 'titel'; did you mean 'title'?"),
        ({"name": "A Box"}, {}, "write small letters"),
        ({"repeats": {"full": 0, "quick": 1}}, {}, "repeats: 0: give a number from 1 to 1000"),
        ({"repeats": {"full": 3}}, {}, "repeats: key 'quick' is missing"),
        ({"tests": []}, {}, "with at least one entry"),
        ({"missing": [{"what": "a GPU"}]}, {}, "missing[0]: key 'why' is missing"),
        ({}, {"task": "mad"}, "tests[0].task: no task 'mad'"),
        ({}, {"task": "../made"}, "no task '../made'"),
        (
            {},
            {"parameters": PARAMETERS | {"coutn": [1]}},
            "unknown parameter 'coutn' of task made; did you mean 'count'?",
        ),
        ({}, {"parameters": {"kind": ["good"], "ns": [1]}}, "needs the parameter 'count' too"),
        ({}, {"parameters": PARAMETERS | {"kind": ["bad"]}}, "'bad': give one of good, wrong"),
        ({}, {"parameters": PARAMETERS | {"ns": [0]}}, "0: give a whole number from 1 to 10000"),
        ({}, {"parameters": PARAMETERS | {"ns": [True]}}, "True: give a whole number"),
        ({}, {"parameters": PARAMETERS | {"ns": 5}}, "write a list"),
        ({}, {"parameters": PARAMETERS | {"ns": [5, 5]}}, "5 is given twice"),
        ({}, {"quick": {"n": [5]}}, "tests[0].quick: unknown parameter 'n'"),
        ({}, {"metrics": ["time"]}, "write 'time p50'"),
        ({}, {"metrics": ["time p100"]}, "write 'time p50'"),
        ({}, {"metrics": ["speed p50"]}, "write 'speed' alone"),
        ({}, {"metrics": ["tim p50"]}, "unknown metric; task made has time, speed"),
        ({}, {"stages": ["time p99"]}, "which does not add up: name values"),
        ({}, {"stages": ["sped"]}, "'sped' is not one of the metrics; did you mean 'speed'?"),
        ({}, {"stages": []}, "with at least one entry"),
        ({}, {"baseline": {"ns": 3000}}, "3000 is not one of the tested values of ns"),
        ({}, {"baseline": {"nss": 3000}}, "unknown key 'nss'; did you mean 'ns'?"),
    ],
)
def test_a_wrong_box_is_refused_with_the_remedy(made, top, entry, complaint):
    path = made(top, **entry)
    with pytest.raises(boxes.BoxError) as error:
        boxes.load(path, quick=False)
    assert complaint in str(error.value) and str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_json_or_says_a_key_twice_is_refused(tmp_path):
    path = tmp_path / "box.json"
    for text, complaint in (("{", "not JSON"), ('{"name": "a", "name": "b"}', "twice")):
        path.write_text(text)
        with pytest.raises(boxes.BoxError, match=complaint):
            boxes.load(path, quick=False)


def test_a_folder_that_keeps_not_to_the_protocol_is_refused(made, tmp_path):
    path = made()
    task = tmp_path / "tasks/made/task.py"
    task.write_text(TASK.replace("def report", "def tell"))
    with pytest.raises(TaskError, match="report missing"):
        boxes.load(path, quick=False)
    task.write_text(TASK.replace('better="higher"', 'better="more"'))
    with pytest.raises(TaskError, match="speed: better='more': lower, higher, neither"):
        boxes.load(path, quick=False)
    task.write_text("import no_such_module")
    with pytest.raises(TaskError, match="task.py: ModuleNotFoundError: No module"):
        boxes.load(path, quick=False)


def test_tests_are_the_cross_product_in_the_order_of_the_box(made):
    many = {"kind": ["good", "slow"], "ns": [3, 1], "count": [10, 20]}
    path = made(parameters=many, quick={"count": [5]}, baseline={"ns": 1})
    box = boxes.load(path, quick=False)
    assert [tuple(test.parameters.values()) for test in box.tests] == [
        (kind, ns, count) for kind in ("good", "slow") for ns in (3, 1) for count in (10, 20)
    ]
    assert len({test.slug for test in box.tests}) == 8
    assert box.entries[0].base_of(box.tests[5]).parameters["ns"] == 1
    assert box.entries[0].base_of(box.tests[5]).parameters["count"] == 20
    quick = boxes.load(path, quick=True)
    assert [test.parameters["count"] for test in quick.tests] == [5] * 4
    assert quick.repeats == 1


@pytest.mark.parametrize("path", sorted(ROOT.glob("boxes/*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
def test_the_boxes_of_this_repository_are_right(path, quick):
    assert boxes.load(path, quick).tests


def test_the_task_and_the_box_of_the_documentation_work(tmp_path):
    page = (ROOT / "doc/reference/sweeps.md").read_text()
    (tmp_path / "tasks/sleep").mkdir(parents=True)
    (task,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tasks/sleep/task.py").write_text(task)
    box, theirs, stages = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "theirs.json").write_text(theirs)
    asks = tasks.load("client-to-ids")
    known = published_file.load(tmp_path / "theirs.json", asks, {"system": "rust-udp"})
    assert known.value({"system": "tokd", "tokens": 128}, "round-trip p50") == 36
    (tmp_path / "theirs.json").write_text(stages)
    own = tasks.load("pipeline")
    known = published_file.load_stages(tmp_path / "theirs.json", own, [own.metric("tokenize p50")])
    assert known.value({"pipeline": "cpu"}, "tokenize") == (332, "x86")
    path = tmp_path / "box.json"
    path.write_text(box)
    assert len(boxes.load(path, quick=True).tests) == 4
    entry = {"task": "sleep", "parameters": {"us": [1], "count": [20]}, "metrics": ["slept p50"]}
    path.write_text(json.dumps(json.loads(box) | {"tests": [entry]}))
    (row,) = swept(path, tmp_path / "out")["tables"][0]["rows"]
    assert row["cells"]["slept p50"]["median"] >= 1
