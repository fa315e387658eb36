# SPDX-License-Identifier: BSD-3-Clause
"""What the demo tells whoever watches it: to stderr, with the seconds since it began."""

import sys
import time

_BEGIN = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _BEGIN:5.1f} s] {text}", file=sys.stderr, flush=True)
