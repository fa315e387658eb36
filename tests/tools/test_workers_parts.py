# SPDX-License-Identifier: BSD-3-Clause
"""tools/workers: a run that did not reach all workers is none of that many workers."""

import pytest


@pytest.mark.parametrize(
    ("given", "taken", "streams"),
    [
        ([[3, 5]], 1, [3, 5]),
        ([[0, 8], [8, 0], [1, 7], [4, 4]], 3, [1, 7]),
        ([[0, 8]] * 4, 3, [0, 8]),
    ],
)
def test_a_run_that_left_a_worker_out_is_repeated_three_times_in_all(
    monkeypatch, given, taken, streams
):
    workers = pytest.importorskip("bench.old.workers", reason="run tools/setup")
    runs = [workers.Run(1.0, True, one, True, [0.5, 0.5]) for one in given]
    left = iter(runs)
    monkeypatch.setattr(workers, "run", lambda *_: next(left))
    assert workers.run_on_all(None, "", 2, None, [], None).streams == streams
    assert len(list(left)) == len(runs) - taken
