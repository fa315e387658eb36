# SPDX-License-Identifier: BSD-3-Clause
"""Workers that replay captures: each does all of its own, and a wrong id is no figure."""

import numpy as np
import pytest

replay = pytest.importorskip("bench.replay", reason="run tools/setup")
from bench.texts import reference

SENTENCES = [f"Text {n} has {n * n} words, \u4f60\u597d and caf\u00e9." for n in range(200)]


@pytest.fixture(scope="module")
def given(ranks_file):
    tiktoken = reference.load_tiktoken(ranks_file)
    ids = [np.array(tiktoken.encode_ordinary(text), np.uint32) for text in SENTENCES]
    return replay.Texts([text.encode() for text in SENTENCES], ids, 0)


@pytest.fixture
def run(given, ranks_file, tmp_path):
    if not replay.DPDK_TOKD.is_file():
        pytest.skip(f"{replay.DPDK_TOKD} is not built: run tools/setup")

    def run(cpus: list[int], texts=given):
        captures = replay.captures(tmp_path, given, len(cpus))
        return replay.replay(cpus, ranks_file, texts, captures, tmp_path)

    return run


@pytest.mark.parametrize("workers", [1, 2])
def test_each_worker_tokenizes_all_of_its_own(run, given, workers):
    cpus = sorted(replay.os.sched_getaffinity(0))
    if len(cpus) < workers:
        pytest.skip(f"{workers} workers need as many CPUs, and there are {len(cpus)}")
    found = run(cpus[:workers])
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
    cpu = max(replay.os.sched_getaffinity(0))
    with pytest.raises(replay.WrongReplay, match="worker 0, text 100: "):
        run([cpu], replay.Texts(given.texts, ids, 0))


def test_texts_are_all_of_the_corpora(ranks_file, tmp_path):
    """Cut in the middle of a character, too: then the reference has what stands for it."""
    corpora = {}
    for name, unit in (("english", "word "), ("multi", "\u6771\u4eac")):
        corpora[name] = tmp_path / name
        corpora[name].write_text(unit * 2000, "utf-8")
    found = replay.texts(ranks_file, corpora, 5001)
    assert b"".join(found.texts) == b"".join(p.read_bytes()[:5001] for p in corpora.values())
    assert max(map(len, found.texts)) == replay.PACKET and found.agreed > 0
    second = reference.load_tiktoken(ranks_file)
    for text, ids in zip(found.texts, found.ids, strict=True):
        assert second.encode_ordinary(text.decode("utf-8", "replace")) == ids.tolist()
    assert found.ring_bytes >= sum(64 + 4 * len(one) for one in found.ids)
    assert found.ring_bytes & (found.ring_bytes - 1) == 0
