# SPDX-License-Identifier: BSD-3-Clause
"""Workers that replay captures: each does all of its own, and a wrong id is no figure."""

import numpy as np
import pytest

captures = pytest.importorskip("bench.captures", reason="run tools/setup")
from bench import task as tasks
from bench.lab.cpus import CPUS
from bench.task import WrongIds
from bench.texts import reference

SENTENCES = [f"Text {n} has {n * n} words, \u4f60\u597d and caf\u00e9." for n in range(200)]


@pytest.fixture(scope="module")
def given(ranks_file):
    tiktoken = reference.load_tiktoken(ranks_file)
    ids = [np.array(tiktoken.encode_ordinary(text), np.uint32) for text in SENTENCES]
    return captures.Texts([text.encode() for text in SENTENCES], ids, 0)


@pytest.fixture
def run(given, ranks_file, tmp_path):
    module = tasks.load("replay").module
    if not module.DPDK_TOKD.is_file():
        pytest.skip(f"{module.DPDK_TOKD} is not built: run tools/setup")

    def run(workers: int, texts=given):
        paths = [given.write(tmp_path / f"{worker}.pcap") for worker in range(workers)]
        state = module.State(tmp_path, ranks_file, {1: texts}, {1: paths})
        return module.run(state, {"workers": workers, "bytes": 1})

    return run


@pytest.mark.parametrize("workers", [1, 2])
def test_each_worker_tokenizes_all_of_its_own(run, given, workers):
    if len(CPUS) < workers:
        pytest.skip(f"{workers} workers need as many CPUs, and there are {len(CPUS)}")
    found = run(workers)
    assert found.ids == workers * sum(len(one) for one in given.ids)
    assert len(found.mb_per_s) == workers and min(found.mb_per_s) > 0


@pytest.mark.parametrize("change", ["another", "one more", "one less"])
def test_a_wrong_id_is_no_figure(run, given, change):
    ids = [one.copy() for one in given.ids]
    ids[100] = {
        "another": np.append(ids[100][:-1], ids[100][-1] + 1),
        "one more": np.append(ids[100], np.uint32(1)),
        "one less": ids[100][:-1],
    }[change]
    with pytest.raises(WrongIds, match="worker 0, text 100: "):
        run(1, captures.Texts(given.texts, ids))


def test_texts_are_all_of_the_corpora(ranks_file, tmp_path):
    """Cut in the middle of a character, too: then the reference has what stands for it."""
    corpora = {}
    for name, unit in (("english", "word "), ("multi", "\u6771\u4eac")):
        corpora[name] = tmp_path / name
        corpora[name].write_text(unit * 2000, "utf-8")
    found = captures.first_of(ranks_file, corpora, 5001)
    assert b"".join(found.texts) == b"".join(p.read_bytes()[:5001] for p in corpora.values())
    assert max(map(len, found.texts)) == captures.PACKET and found.agreed > 0
    second = reference.load_tiktoken(ranks_file)
    for text, ids in zip(found.texts, found.ids, strict=True):
        assert second.encode_ordinary(text.decode("utf-8", "replace")) == ids.tolist()
    assert found.ring_bytes >= sum(64 + 4 * len(one) for one in found.ids)
    assert found.ring_bytes & (found.ring_bytes - 1) == 0
