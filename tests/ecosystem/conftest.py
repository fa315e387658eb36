# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts of this folder share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import pytest
from twice import twice


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., Path]:
    """Makes the folder of a family's tokenizer, with more of its configuration."""
    return lambda name, **config: models.write(name, tmp_path / name, **config)


@pytest.fixture
def both_ways(record_property: Callable[[str, object], None]) -> Callable[..., Any]:
    """Runs a script twice, patched and not: it must return the same, and libtok must have encoded
    every text.
    """

    def check(script: Callable[..., Any], *arguments: Any) -> Any:
        runs = twice(script, *arguments)
        assert runs.patched == runs.plain
        assert not runs.fallbacks
        assert runs.calls > 0
        record_property("calls by libtok", runs.calls)
        record_property("fallbacks", sum(runs.fallbacks.values()))
        return runs.plain

    return check
