# SPDX-License-Identifier: BSD-3-Clause
"""A script in two processes of its own: as it is, and after `patch_transformers()`.

    twice(script, *arguments)

`script` is a function of a test file. What it returns, and its arguments, are pickled.
"""

import importlib
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 900  # seconds: a script that hangs; on a busy machine one takes minutes
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


@dataclass
class Runs:
    plain: Any
    patched: Any
    calls: int  # that libtok answered
    fallbacks: dict[str, int]  # by reason


def twice(script: Callable[..., Any], *arguments: Any) -> Runs:
    home = Path(inspect.getfile(script))
    command = [sys.executable, __file__, str(home), script.__name__]
    given = pickle.dumps(arguments)
    processes = [
        subprocess.Popen(
            [*command, how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | OFFLINE,
        )
        for how in ("plain", "patched")
    ]
    found = []
    try:
        for process in processes:
            out, err = process.communicate(given, TIMEOUT)
            assert process.returncode == 0, err.decode()[-3000:]
            found.append(pickle.loads(out))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    (plain, _, _), (patched, calls, fallbacks) = found
    return Runs(plain, patched, calls, fallbacks)


def main(home: str, name: str, how: str) -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # the result alone goes to standard output
    arguments = pickle.load(sys.stdin.buffer)
    calls, fallbacks = 0, {}
    if how == "patched":
        import dpdk_tokd
        from dpdk_tokd.hf import patch

        call = patch.Backend._call

        def counted(*arguments: Any) -> Any:
            nonlocal calls
            before = patch.fallbacks.total()
            found = call(*arguments)
            calls += patch.fallbacks.total() == before
            return found

        patch.Backend._call = counted  # type: ignore[method-assign]
        dpdk_tokd.patch_transformers()
    sys.path.insert(0, str(Path(home).parent))
    found = getattr(importlib.import_module(Path(home).stem), name)(*arguments)
    if how == "patched":
        fallbacks = dict(patch.fallbacks)
    with os.fdopen(out, "wb") as file:
        pickle.dump((found, calls, fallbacks), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
