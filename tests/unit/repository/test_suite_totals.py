# SPDX-License-Identifier: BSD-3-Clause
"""tools/test's last line: what meson's logs say, and what only one of them says."""

import json
import sys
from pathlib import Path

import pytest
import suite_totals
from ended import ended
from suite_totals import Totals, add, diagnoses

# As meson 1.0.1 writes them: a suite for a program with subtests, and one for all without.
JUNIT = """<?xml version='1.0' encoding='utf-8'?>
<testsuites>
<testsuite name="p.ring"><testcase name="1 one" classname="p.ring" />
 <testcase name="2 two" classname="p.ring"><skipped /><system-out>no root</system-out></testcase>
 <testcase name="3 three" classname="p.ring">{third}</testcase></testsuite>
<testsuite name="p"><testcase name="plain" classname="p" />
 <testcase name="whole" classname="p"><skipped />
  <system-out>{whole}</system-out></testcase></testsuite>
</testsuites>"""


WHOLE = "1..0 # SKIP no huge pages"


def totals(folder: Path, third: str = "", whole: str = WHOLE, **results: str) -> Totals:
    ended = {"ring": "OK", "plain": "OK", "whole": "SKIP"} | results
    (folder / "testlog.junit.xml").write_text(JUNIT.format(third=third, whole=whole))
    (folder / "testlog.json").write_text(
        "\n".join(json.dumps({"name": name, "result": end}) for name, end in ended.items())
    )
    found = Totals()
    add(found, str(folder / "testlog"))
    return found


def test_subtests_are_counted_and_skips_keep_their_reasons(tmp_path):
    found = totals(tmp_path)
    assert found.line() == "3 passed, 0 failed, 2 skipped"
    assert dict(found.skipped) == {"ring: no root": 1, "whole: no huge pages": 1}


def test_a_failed_subtest_is_named_and_counted_once(tmp_path):
    found = totals(tmp_path, third="<failure />", ring="FAIL")
    assert found.line() == "2 passed, 1 failed, 2 skipped"
    assert found.failures == ["ring: 3 three"]


@pytest.mark.parametrize("end", ["ERROR", "TIMEOUT", "INTERRUPT", "FAIL"])
@pytest.mark.parametrize("name", ["ring", "plain"])
def test_a_bad_end_is_a_failure_though_all_subtests_passed(tmp_path, name, end):
    found = totals(tmp_path, **{name: end})
    assert found.failed == 1
    assert found.failures[0].startswith(f"{name}: {end}")


# Names of their own: TAP would take one with a "# SKIP" in it for a test that was skipped.
@pytest.mark.parametrize(
    "said", ["", "[ RUN ] test_one", "1..0 # SKIP"], ids=["nothing", "no TAP", "no reason"]
)
def test_a_program_that_is_no_tap_or_gives_no_reason_has_failed(tmp_path, said):
    found = totals(tmp_path, whole=said)
    assert found.line() == "3 passed, 1 failed, 1 skipped"
    assert found.failures == ["whole: whole: skipped without a reason"]


def test_what_was_said_of_a_failed_subtest_is_found():
    log = "1..3\nok 1 a\n# not of it\nnot ok 2 b\n# assert 1 == 2\n# b.py:7\nok 3 c\n# nor this"
    assert diagnoses(log) == ["not ok 2 b", "# assert 1 == 2", "# b.py:7"]


def test_missing_logs_are_a_failure(tmp_path):
    found = Totals()
    add(found, str(tmp_path / "testlog"))
    assert found.failed == 1


def test_what_had_no_run_is_counted_with_its_reason(tmp_path):
    totals(tmp_path)
    command = [sys.executable, suite_totals.__file__, "--skipped", "tools/arm: no compiler"]
    run = ended(*command, tmp_path / "testlog")
    assert "skipped: 1 x tools/arm: no compiler\n" in run.stdout
    assert run.stdout.endswith("3 passed, 0 failed, 3 skipped\n")
    assert run.returncode == 0
