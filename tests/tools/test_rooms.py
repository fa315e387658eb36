# SPDX-License-Identifier: BSD-3-Clause
"""Nothing that is written as a test is left out of the suites."""

from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_file_of_golden_is_run():
    listed = (TESTS / "golden/meson.build").read_text()
    files = [path.stem.removeprefix("test_") for path in (TESTS / "golden").glob("test_*.py")]
    assert len(files) > 10
    assert [name for name in files if f"'{name}'" not in listed] == []
