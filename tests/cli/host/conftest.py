# SPDX-License-Identifier: BSD-3-Clause
"""Prepared roots, each as a fixture."""

from collections.abc import Callable
from pathlib import Path

import pytest
import roots


def prepared(make: Callable[[Path], None]):
    @pytest.fixture
    def root(tmp_path: Path) -> Path:
        make(tmp_path)
        return tmp_path

    return root


debian, ubuntu, hand_edited = map(prepared, (roots.debian, roots.ubuntu, roots.hand_edited))
rhel, bluefield, dpu = map(prepared, (roots.rhel, roots.bluefield, roots.doca))
