# SPDX-License-Identifier: BSD-3-Clause
"""The lines of the log: time, level and part; as text and as JSON."""

import json
import re
from pathlib import Path

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
LEVELS = "error|warning|notice|info"


def test_lines_have_time_and_level_and_long_lists_are_folded(start, gpt2_file: Path) -> None:
    own = [f"--{name}={n}" for name, n in (("rxd", 512), ("txd", 512), ("mbufs", 4096))]
    appliance = start(
        "--vocab", str(gpt2_file), "--text-port", "9001", "--drain", "7", *own
    ).ready()
    lines = appliance.said().splitlines()
    assert appliance.stop() == 0
    for line in lines:
        assert re.match(rf"{TIME} ({LEVELS}) ", line), line
    options = [line for line in lines if " info tokd.main: options (command line): " in line]
    assert len(options) > 1 and all(len(line) < 250 for line in options)
    assert " --" not in "".join(options) and " drain=7" in "".join(options)


def test_json_has_an_object_a_line(start, tmp_path: Path) -> None:
    name = str(tmp_path / 'a "quoted"\\name')
    appliance = start("--vocab", name, "--log-format", "json")
    assert appliance.wait(30) == 2
    lines = [json.loads(line) for line in appliance.said().splitlines()]
    assert all(set(one) == {"time", "level", "part", "message"} for one in lines)
    assert all(re.fullmatch(TIME, one["time"]) for one in lines)
    (error,) = [one for one in lines if one["level"] == "error"]
    assert error["part"] == "tokd.main"
    assert name in error["message"]
    assert any(one["part"] == "EAL" for one in lines)


def test_the_journal_gets_the_level_of_each_line(start, tmp_path: Path, monkeypatch) -> None:
    """journalctl -p warning shows no line that has no level in front."""
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("JOURNAL_STREAM", f"{log.stat().st_dev}:{log.stat().st_ino}")
    appliance = start("--vocab", "/no/such.json", log=log)
    assert appliance.wait(30) == 2
    lines = appliance.said().splitlines()
    numbers = {"error": 3, "warning": 4, "notice": 5, "info": 6}
    for line in lines:
        found = re.match(rf"<(\d)>{TIME} ({LEVELS}) ", line)
        assert found and int(found[1]) == numbers[found[2]], line
    assert lines[-1].startswith("<3>") and "/no/such.json" in lines[-1]
    refused = start("--vocab", "/no/such.json", "--mtu", "x", log=log)
    assert refused.wait(30) == 2
    assert refused.said().startswith("<3>dpdk-tokd: --mtu x: ")
    # Inherited, by a program whose standard error is another file.
    other = start("--vocab", "/no/such.json")
    assert other.wait(30) == 2
    assert re.match(TIME, other.said())
