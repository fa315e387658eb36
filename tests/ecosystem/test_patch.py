# SPDX-License-Identifier: BSD-3-Clause
"""patch_transformers(): fallbacks, changes, threads, and when it is called"""

import copy
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import pytest
import tokenizers
import transformers
from dpdk_tokd import hf
from tokenizers import decoders, models, normalizers, pre_tokenizers
from tokenizers.decoders import DecodeStream
from transformers import AutoTokenizer

TEXT = "A naïve café 😀, isn't it? <|endoftext|>"


@pytest.fixture
def patched():
    hf.patch_transformers()
    hf.fallbacks.clear()
    yield
    hf.unpatch_transformers()
    assert transformers.PreTrainedTokenizerFast._tokenizer is None


def fast(reference) -> transformers.PreTrainedTokenizerFast:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=reference)


def by_libtok(tokenizer) -> bool:
    return isinstance(tokenizer(TEXT).encodings[0], hf.Encoding)


def random_merges():
    found = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")], dropout=1.0))
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    return found


def test_a_refused_file_is_the_reference_s_and_warned_of_once(patched, caplog):
    t = fast(random_merges())
    for _ in range(3):
        assert t("ab").input_ids == [0, 1]
    (reason,) = hf.fallbacks
    assert hf.fallbacks[reason] == 3
    assert "dropout" in reason
    assert "/" not in reason
    (record,) = (r for r in caplog.records if r.name == "dpdk_tokd")
    assert reason in record.message


def test_a_part_written_in_python_is_the_reference_s(patched, model):
    class Halves:
        def pre_tokenize(self, text):
            text.split(lambda _, s: [s[: len(str(s)) // 2], s[len(str(s)) // 2 :]])

    t = AutoTokenizer.from_pretrained(model("gpt2"))
    whole = t("aaaa").input_ids
    t.backend_tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Halves())
    assert t.backend_tokenizer.pre_tokenizer is not None
    assert t("aaaa").input_ids != whole
    assert hf.fallbacks.total() == 1


def test_the_error_of_the_reference_is_the_caller_s(patched, model):
    t = AutoTokenizer.from_pretrained(model("gpt2"))
    with pytest.raises(TypeError, match="TextEncodeInput must be"):
        t.backend_tokenizer.encode_batch([5])
    with pytest.raises(Exception, match="Truncation error"):
        t(TEXT, "b", truncation="only_second", max_length=3)
    assert not hf.fallbacks


def test_a_length_below_the_template_is_the_reference_s(patched, model):
    t = transformers.PreTrainedTokenizerFast(tokenizer_file=str(model("bert") / "tokenizer.json"))
    whole = t("a b c").input_ids
    assert not hf.fallbacks
    for n, length in enumerate((8, 1, 0, 1)):
        assert t("a b c", truncation=True, max_length=length).input_ids == whole
        assert hf.fallbacks.total() == n
    assert t("a b c", truncation=True, max_length=3).input_ids == [*whole[:2], whole[-1]]
    assert hf.fallbacks.total() == n


def change_dropout(backend):
    backend.model.dropout = 1.0


def change_normalizer(backend):
    backend.normalizer = normalizers.Lowercase()


def change_in_place(backend):
    backend.pre_tokenizer.add_prefix_space = True


def change_item(backend):
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(False)])
    backend.encode(TEXT)
    backend.pre_tokenizer[0] = pre_tokenizers.ByteLevel(True)


@pytest.mark.parametrize(
    "change", [change_dropout, change_normalizer, change_in_place, change_item]
)
def test_a_change_of_a_part_counts_from_the_next_text_on(change, patched, model):
    t = AutoTokenizer.from_pretrained(model("gpt2"))
    reference = copy.deepcopy(t.backend_tokenizer._reference)
    assert t.backend_tokenizer.encode(TEXT).ids == reference.encode(TEXT).ids
    change(t.backend_tokenizer)
    change(reference)
    assert t.backend_tokenizer.encode(TEXT).ids == reference.encode(TEXT).ids


def test_copies_are_apart(patched, model):
    t = AutoTokenizer.from_pretrained(model("gpt2"))
    whole = t.backend_tokenizer.encode(TEXT).ids
    for copied in (copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))):
        other = copied(t.backend_tokenizer)
        other.enable_truncation(2)
        other.add_tokens(["naïve"])
        assert len(other.encode(TEXT)) == 2
        assert t.backend_tokenizer.encode(TEXT).ids == whole


def test_it_may_be_called_late_twice_and_undone(model):
    folder = model("gpt2")
    early = AutoTokenizer.from_pretrained(folder)
    for _ in range(2):
        hf.patch_transformers()
    late = AutoTokenizer.from_pretrained(folder)
    assert by_libtok(late)
    assert not by_libtok(early)
    ids = late(TEXT).input_ids
    for _ in range(2):
        hf.unpatch_transformers()
    assert not by_libtok(AutoTokenizer.from_pretrained(folder))
    assert by_libtok(late)
    for t in (early, late):
        stream = DecodeStream()
        assert "".join(filter(None, (stream.step(t.backend_tokenizer, id) for id in ids))) == TEXT


def test_a_decode_stream_imported_by_name_takes_both(patched, model):
    """By a module that was imported before the patch; copies go on alone."""
    t = AutoTokenizer.from_pretrained(model("gpt2"))
    ids = t(TEXT).input_ids
    assert DecodeStream is tokenizers.decoders.DecodeStream
    stream = DecodeStream(ids[:3])
    twin = copy.copy(stream)
    for backend in (t.backend_tokenizer, t.backend_tokenizer._reference):
        one = [stream.step(backend, id) for id in ids[3:8]]
        assert one == [twin.step(backend, id) for id in ids[3:8]]


def test_threads_load_and_encode_while_it_is_patched(model):
    folders = [model("gpt2"), model("bert")]
    expected = {f: AutoTokenizer.from_pretrained(f)(TEXT).input_ids for f in folders}
    end = threading.Event()

    def toggle():
        while not end.wait(0.02):
            hf.patch_transformers()
            end.wait(0.02)
            hf.unpatch_transformers()

    def work(i):
        folder = folders[i % 2]
        t = AutoTokenizer.from_pretrained(folder)
        assert t(TEXT).input_ids == expected[folder]
        with ThreadPoolExecutor(4) as pool:  # one tokenizer, threads that find it not loaded
            found = list(pool.map(lambda _: t(TEXT).input_ids, range(40)))
        assert found == [expected[folder]] * 40
        return by_libtok(t)

    hf.fallbacks.clear()
    toggler = threading.Thread(target=toggle)
    toggler.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            kinds = set(pool.map(work, range(24)))
    finally:
        end.set()
        toggler.join()
    assert kinds == {True, False}
    assert not hf.fallbacks


def test_a_fork_beside_a_thread_that_loads(patched, model):
    t = AutoTokenizer.from_pretrained(model("bert"))
    expected = t(TEXT).input_ids
    end = threading.Event()

    def load():
        while not end.is_set():
            t.add_tokens([f"word{len(t)}"])
            t("x")

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if t(TEXT).input_ids == expected else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        end.set()
        thread.join()


def test_without_transformers_it_says_so(tmp_path):
    code = "import sys; sys.modules['transformers'] = None; import dpdk_tokd as d; d.patch_transformers()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr
    assert "transformers" in done.stderr.splitlines()[-1]


def as_vllm_does(folder) -> list:
    """The plugin's entry point, the copy that caches, and its detokenizer with ids of no token."""
    t = AutoTokenizer.from_pretrained(folder)
    cached = copy.copy(t)
    cached.__class__ = type("Cached", (type(t),), {"__len__": lambda self: 7})
    ids = cached(TEXT).input_ids
    stream = tokenizers.decoders.DecodeStream(ids=ids[:4], skip_special_tokens=True)
    inner = cached._tokenizer
    steps = [stream.step(inner, id) for id in [*ids[4:], 10**6, ids[0]]]
    apart = copy.deepcopy(cached)
    return [ids, steps, len(cached), inner.get_added_tokens_decoder(), apart(TEXT).input_ids]


def test_what_vllm_does(model):
    folder = model("gpt2")
    plain = as_vllm_does(folder)
    EntryPoint("any", "dpdk_tokd:patch_transformers", "vllm.general_plugins").load()()
    hf.fallbacks.clear()
    try:
        assert as_vllm_does(folder) == plain
        assert by_libtok(AutoTokenizer.from_pretrained(folder))
    finally:
        hf.unpatch_transformers()
    assert not hf.fallbacks
