# SPDX-License-Identifier: BSD-3-Clause
"""Progress of the demo on stderr, with the seconds since its start."""

import sys
import time

_BEGIN = time.monotonic()


def log(text: str) -> None:
    print(f"[{time.monotonic() - _BEGIN:5.1f} s] {text}", file=sys.stderr, flush=True)
