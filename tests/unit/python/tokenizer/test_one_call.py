# SPDX-License-Identifier: BSD-3-Clause
"""The C call from text to array: what it takes, what it refuses, and that it leaks nothing."""

import array
import gc
import lzma
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import dpdk_tokd
import numpy as np
import pytest
from bench.programs import ROOT
from dpdk_tokd._native import libtok
from samples import documents

LONG = 600_000  # bytes of a text whose ids have memory of their own


@pytest.fixture(scope="module")
def strict(gpt2_file) -> dpdk_tokd.Tokenizer:
    return dpdk_tokd.Tokenizer.load(str(gpt2_file), strict_utf8=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (5, "got int$"),
        (None, "got NoneType$"),
        ([65, 66], "got list$"),
        (array.array("i", [65]), 'got array with 1 dimensions of 4-byte items .format "i".'),
        (np.array([65.0]), 'got ndarray with 1 dimensions of 8-byte items .format "d".'),
        (np.zeros((2, 2), np.uint8), "got ndarray with 2 dimensions of 1-byte items"),
        (np.array([True]), 'got ndarray .* .format "\\?".'),
    ],
)
def test_what_is_no_text_is_refused_with_its_type(gpt2, text, says):
    expected = f"expected str, bytes or another buffer of bytes, {says}"
    with pytest.raises(TypeError, match=f"^text: {expected}"):
        gpt2.encode(text)
    with pytest.raises(TypeError, match=f"^text: {expected}"):
        gpt2.stream().feed(text)
    with pytest.raises(TypeError, match=f"^text 1: {expected}"):
        gpt2.encode_batch(["a", text])


def test_signed_bytes_and_characters_are_text(gpt2):
    want = gpt2.encode("abc").tolist()
    for kind in ("b", "B"):
        assert gpt2.encode(array.array(kind, b"abc")).tolist() == want
    assert gpt2.encode(memoryview(b"abc").cast("c")).tolist() == want
    assert gpt2.encode(memoryview(b"-a-b-c")[1::2].tobytes()).tolist() == want
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        gpt2.encode(memoryview(b"-a-b-c")[1::2])


def test_a_surrogate_in_a_batch_is_named_with_its_text(gpt2):
    with pytest.raises(UnicodeEncodeError, match="position 1") as caught:
        gpt2.encode_batch(["a", "b", "c\ud800"])
    assert caught.value.__notes__ == ["text 2 of the batch"]


# Characters of one to four bytes of UTF-8; a str stores them in one, two or four bytes each.
CHARACTERS = (
    "\x00a~\x7f",
    "\x80\xe9\xff",
    "\u0100\u07ff",
    "\u0800\u4e2d\uffff",
    "\U00010000\U0010ffff",
)


def test_a_str_is_encoded_as_its_utf8_whatever_its_characters(gpt2_file, monkeypatch):
    dice = random.Random(11)
    for isa in ("portable", ""):
        monkeypatch.setenv("TOK_ISA", isa)
        own = dpdk_tokd.Tokenizer.load(str(gpt2_file))
        for n in [*range(70), 1000, 9000]:
            for kinds in range(1, len(CHARACTERS) + 1):
                text = "".join(dice.choices("".join(CHARACTERS[:kinds]), k=n))
                want = own.encode(text.encode()).tolist()
                assert own.encode(text).tolist() == want
                assert own.encode_batch([text, text])[1].tolist() == want
                at = dice.randint(0, n)
                for broken in (chr(dice.choice((0xD800, 0xDFFF))), "\ud800\udc00"):
                    with pytest.raises(UnicodeEncodeError) as caught:
                        own.encode(text[:at] + broken + text[at:])
                    assert caught.value.start == at


def test_encoding_keeps_no_utf8_in_a_str(gpt2):
    text = "é" * 1000
    size = sys.getsizeof(text)
    gpt2.encode(text)
    gpt2.encode_batch([text])
    gpt2.stream().feed(text)
    assert sys.getsizeof(text) == size


def test_keywords_are_those_of_the_signature(gpt2):
    name = b"truncation".decode()  # equal, and not the same object
    assert gpt2.encode("one two three", **{name: 2}).tolist() == [505, 734]
    assert gpt2.encode(text="one two three").tolist() == [505, 734, 1115]
    for call, name in (
        (gpt2.encode, "padding"),
        (lambda *_, **k: gpt2.stream(**k), "truncation"),
        (lambda t, **k: gpt2.encode_batch([t], **k), "return_offsets"),
    ):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            call("a", **{name: 1})
    for arguments in ((), ("a", "b")):
        with pytest.raises(TypeError, match="encode.. takes one text"):
            gpt2.encode(*arguments)
    with pytest.raises(TypeError, match="encode.. takes one text"):
        gpt2.encode("a", text="b")


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_what_a_value_of_the_caller_raises_is_not_hidden(gpt2, error):
    """But that it is no number, or type: which the option's own error says better."""

    class Value:
        def __index__(self) -> int:
            raise error("of the caller")

    class Type:
        @property
        def dtype(self) -> str:
            raise RecursionError("of the caller")  # numpy forgets all others itself

    with pytest.raises(error, match="of the caller"):
        gpt2.encode("a", truncation=Value())
    with pytest.raises(RecursionError, match="of the caller"):
        gpt2.encode("a", dtype=Type())
    for name, wrong in (("truncation", 1.5), ("truncation", 1 << 99), ("dtype", "no type")):
        with pytest.raises(ValueError, match=f"^{name}: "):
            gpt2.encode("a", **{name: wrong})


@pytest.mark.parametrize("text", ["", "a", "naïve 中文", documents()[:30_000]])
def test_the_array_is_the_callers_own(gpt2, text):
    ids = gpt2.encode(text)
    other = gpt2.encode(text)
    assert ids.dtype == np.uint32 and ids.flags.c_contiguous and ids.flags.writeable
    assert ids.nbytes == 4 * len(ids)
    ids[:] = 7
    assert other.tolist() == gpt2.encode(text).tolist() != [7] or len(other) == 0


# In the words of which several threads may or may not cut a text.
WORDS = ("a b", "It's I'LL", "don 't", "x  y", "x\ty", " é", "e\u0301 f", "1 2", "a 1", "中文 b", "z\n",
    "<|endoftext|>", "_ q", "\xa0r")  # fmt: skip


@pytest.mark.parametrize("family", ["gpt2", "llama3", "qwen3", "bert"])
def test_a_text_for_several_threads_has_the_ids_of_a_stream(tmp_path, family):
    packed = ROOT.parent / "shared" / "vocab" / f"{family}.json.xz"
    if not packed.is_file():
        pytest.skip(f"{packed} is not here")
    (tmp_path / "tokenizer.json").write_bytes(lzma.decompress(packed.read_bytes()))
    own = dpdk_tokd.Tokenizer.load(str(tmp_path / "tokenizer.json"))
    plain = {"tokens_in_text": "none", "add_special_tokens": False}
    text = " ".join(random.Random(5).choices(WORDS, k=400_000)).encode()
    for given in (text, text.decode(), text + b"\xff a", b"a" * 2**20 + b" b"):
        stream = own.stream(**plain)
        whole = given if isinstance(given, bytes) else given.encode()
        parts = [stream.feed(whole[i : i + 99_991]) for i in range(0, len(whole), 99_991)]
        want = np.concatenate([*parts, stream.finish()])
        assert np.array_equal(own.encode(given, **plain), want)
        for threads in (1, 2):
            batch = own.encode_batch([given], threads=threads, **plain)
            assert np.array_equal(batch.ids, want) and batch.splits.tolist() == [0, len(want)]
        around = [*own.template.before, *want.tolist(), *own.template.after]
        assert own.encode(given, tokens_in_text="none").tolist() == around


@pytest.mark.parametrize("special", ["<|a|>", "[MASK]", "<a b>", "a|", "|a", "<\xa0>"])
def test_special_tokens_are_found_where_a_text_is_cut(gpt2_reference, tmp_path, special):
    """Those that hold a blank, or may take one, keep a text whole."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    made = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    made.add_special_tokens([tokenizers.AddedToken(special, lstrip=True, rstrip=True)])
    made.save(str(tmp_path / "tokenizer.json"))
    own = dpdk_tokd.Tokenizer.load(tmp_path / "tokenizer.json")
    words = (*WORDS, special, f" {special} ", special, "a b")
    text = " ".join(random.Random(6).choices(words, k=200_000))
    assert own.encode(text).tolist() == made.encode(text).ids


@pytest.mark.parametrize("n", [100_000, 300_000])
def test_a_long_text_may_hold_more_than_a_stream(gpt2_reference, tmp_path, n):
    """It is encoded in parts, which hold no more marks."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    made = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    made.normalizer = tokenizers.normalizers.NFC()
    made.save(str(tmp_path / "tokenizer.json"))
    own = dpdk_tokd.Tokenizer.load(tmp_path / "tokenizer.json")
    text = "a\u0301" * (n // 6) + "e" + "\u0323\u0301" * 300 + "\n\u03b1\u0301" * (n // 10)
    assert own.encode(text).tolist() == made.encode(text).ids
    assert own.encode_batch([text], threads=1).tolist() == [made.encode(text).ids]


def test_a_long_text_of_a_batch_is_refused_by_its_index(strict):
    text = b"a b " * 200_000
    with pytest.raises(ValueError, match=r"^text 0: .*not UTF-8.*after 800001 bytes"):
        strict.encode_batch([text + b"c\xff d e" + text])
    with pytest.raises(UnicodeEncodeError) as caught:
        strict.encode_batch([text.decode() + "\ud800"])
    assert caught.value.__notes__ == ["text 0 of the batch"]


def test_a_long_text_has_the_ids_of_its_parts(gpt2):
    part = documents()[:50_000] + b"\n\nend"
    parts = LONG // len(part) + 1
    want = gpt2.encode(part).tolist() * parts
    text = part * parts
    assert gpt2.encode(text).tolist() == want
    assert gpt2.encode(text, truncation=5).tolist() == want[:5]
    stream = gpt2.stream()
    assert [*stream.feed(text), *stream.finish()] == want
    batch = gpt2.encode_batch([text, "", text, "one"], threads=2)
    assert batch.tolist() == [want, [], want, [505]]
    ids, offsets = gpt2.encode(text, return_offsets=True)
    assert ids.tolist() == want and offsets[-1].tolist() == [len(text) - 3, len(text)]


def test_lists_are_those_of_numpy(gpt2):
    texts = ["", "one two", "中文 😀", documents()[:5000]]
    batch = gpt2.encode_batch(texts)
    assert batch.tolist() == [ids.tolist() for ids in batch]
    assert gpt2.encode_batch([]).tolist() == []
    big = np.array([0, 2**18 - 1, 2**18, 2**32 - 1], np.uint32)
    assert dpdk_tokd.Batch(big, np.array([0, 1, 4])).tolist() == [[0], big[1:].tolist()]
    for splits in ([0, 5], [0, -1], [-1, 2], [3, 2]):
        with pytest.raises(ValueError, match=r"splits: text 0 is from .* of 4 ids"):
            dpdk_tokd.Batch(big, np.array(splits)).tolist()


def calls(tok: dpdk_tokd.Tokenizer, strict: dpdk_tokd.Tokenizer) -> None:
    """Each way through the extension once, the failing ones too."""
    buffer = bytearray(b"some text of a buffer")
    tok.encode("a")
    tok.encode(buffer, return_offsets=True, truncation=1)
    tok.encode("x" * 300_000)
    tok.encode_batch(["a", buffer, b"c"] * 50, threads=2).tolist()
    stream = tok.stream()
    stream.feed(buffer)
    stream.finish()
    for call, text in (
        (strict.encode, b"\xff"),
        (strict.encode, b"\xff" * 500_000),
        (tok.encode, "\ud800"),
        (tok.encode, 5),
        (tok.encode_batch, ["a", buffer, 5]),
        (strict.encode_batch, [b"a", b"\xff", buffer]),
        (lambda t: tok.encode(t, return_offsets=True), b"\xff"),
        (lambda t: tok.encode(t, truncation=-1), "a"),
        (lambda t: tok.encode(t, no="such"), "a"),
        (strict.stream().feed, b"\xff" * 500_000),
    ):
        with pytest.raises((ValueError, TypeError)):
            call(text)
    buffer.append(1)  # BufferError where it is still held


def memory() -> tuple[int, int]:
    """KiB of addresses, and of memory."""
    size, resident, *_ = Path("/proc/self/statm").read_text().split()
    return int(size) * 4, int(resident) * 4


def test_nothing_leaks(gpt2, strict):
    for _ in range(30):
        calls(gpt2, strict)
    gc.collect()
    blocks, before = sys.getallocatedblocks(), memory()
    references = [sys.getrefcount(o) for o in (None, gpt2, type(gpt2), libtok.Stream)]
    for _ in range(100):
        calls(gpt2, strict)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 100
    addresses, resident = (now - then for now, then in zip(memory(), before, strict=True))
    assert addresses < 200_000 and resident < 20_000
    after = [sys.getrefcount(o) for o in (None, gpt2, type(gpt2), libtok.Stream)]
    assert max(abs(a - b) for a, b in zip(after, references, strict=True)) < 20


def test_memory_does_not_grow_with_the_words_seen(gpt2):
    """Half a million words, none seen before: to keep them would take 16 MB at least."""
    rng, n = np.random.default_rng(1), 100_000

    def encode_new_words() -> None:
        letters = rng.integers(ord("a"), ord("z") + 1, n, np.uint8)
        letters[rng.integers(0, n, n // 10)] = ord(" ")
        gpt2.encode(letters)

    encode_new_words()
    before = memory()
    for _ in range(50):
        encode_new_words()
    addresses, resident = (now - then for now, then in zip(memory(), before, strict=True))
    assert addresses < 4_000 and resident < 4_000


def test_threads_encode_with_one_tokenizer(gpt2):
    """Short texts with the GIL, long ones without, batches and streams, all at once."""
    text = documents()
    rng = random.Random(1)
    texts = [text[a : a + rng.choice([1, 50, 5000, 20_000])] for a in range(0, 90_000, 1500)]
    want = [gpt2.encode(t).tolist() for t in texts]
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            i = rng.randrange(len(texts))
            stream = gpt2.stream()
            if [*stream.feed(texts[i]), *stream.finish()] != want[i]:
                wrong.append(i)
            if gpt2.encode(texts[i]).tolist() != want[i]:
                wrong.append(i)
            if rng.random() < 0.2 and gpt2.encode_batch(texts, threads=4).tolist() != want:
                wrong.append(-1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_batch_keeps_its_threads(gpt2):
    texts = [documents()[:20_000]] * 20
    gpt2.encode_batch(texts, threads=3)
    before = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        gpt2.encode_batch(texts, threads=3)
    assert len(os.listdir("/proc/self/task")) == before


def test_a_child_has_threads_of_its_own(gpt2):
    texts = [documents()[:20_000]] * 20
    want = gpt2.encode_batch(texts, threads=3).ids.sum()
    child = os.fork()
    if child == 0:
        right = gpt2.encode_batch(texts, threads=3).ids.sum() == want
        os._exit(0 if right and len(os.listdir("/proc/self/task")) == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_import_takes_asyncio_from_nobody():
    slow = {
        "asyncio", "ctypes.util", "dpdk_tokd.client", "dpdk_tokd.hf", "dpdk_tokd.tokenizer.chat",
        "huggingface_hub", "jinja2", "json", "torch", "ssl", "multiprocessing", "socket",
        "urllib.parse", "numpy.typing"
    }  # fmt: skip
    code = "import numpy, sys; before = {*sys.modules}; import dpdk_tokd; "
    code += f"print({slow} & ({{*sys.modules}} - before)); "
    code += "dpdk_tokd.AsyncClient; print('asyncio' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split("\n")[:2] == ["set()", "True"]


def test_no_text_is_encoded_after_much_text(gpt2):
    gpt2.encode_batch(["a b " * 400_000], threads=1)
    assert gpt2.encode("").size == 0
    stream = gpt2.stream()
    assert stream.feed(b"").size == 0
    assert stream.finish().size == 0


@pytest.mark.parametrize("before", [3000, 131069, 131070, 131071, 131072])
@pytest.mark.parametrize("invalid", [b"\xe2\x82A", b"\xc3\xc3\xa9", b"\xf0\x9f\x91\xe2\x82\xac"])
@pytest.mark.parametrize("behind", [1000, 0])
def test_invalid_utf8_in_a_long_text_is_found_where_it_begins(strict, before, invalid, behind):
    with pytest.raises(ValueError, match=f"after {before} bytes"):
        strict.encode(b"a" * before + invalid + b"a" * behind)


@pytest.mark.parametrize("before", [0, 3000, 131069, 131070, 131071, 131072])
@pytest.mark.parametrize("begun", [b"\xc3", b"\xe2\x82", b"\xf0\x9f\x91"])
def test_a_character_that_is_incomplete_at_the_end_is_found_where_it_begins(strict, before, begun):
    with pytest.raises(ValueError, match=f"after {before} bytes"):
        strict.encode(b"a" * before + begun)
