# SPDX-License-Identifier: BSD-3-Clause
"""What is no longer used is given back: mappings, caches, tokenizers."""

import gc
import resource
import tracemalloc
import weakref
from pathlib import Path

import dpdk_tokd
import pytest
from dpdk_tokd.hf.decoders import decoder

MIB = 1 << 20


def mapped() -> int:
    """Bytes that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def test_a_large_text_leaves_no_mapping(gpt2) -> None:
    text = "a word or two, " * 30_000
    for _ in range(2):
        gpt2.encode(text)
    before = mapped()
    for _ in range(100):
        gpt2.encode(text)
    assert mapped() - before < 50 * MIB


def test_tokens_of_a_client_are_not_kept() -> None:
    decode = decoder({"type": "WordPiece", "prefix": "##", "cleanup": True})
    tracemalloc.start()
    try:
        for i in range(1000):
            assert len(decode([f"{i:01024}", "##" + f"{i:01024}"])) == 2048
        assert tracemalloc.get_traced_memory()[0] < MIB
    finally:
        tracemalloc.stop()


def test_open_streams_share_a_cache(gpt2) -> None:
    before = mapped()
    streams = [gpt2.stream() for _ in range(50)]
    for piece in ("A text that", " is fed by", " turns"):
        assert len({stream.feed(piece).tobytes() for stream in streams}) == 1
    assert mapped() - before < 100 * MIB
    assert {stream.finish().tobytes() for stream in streams} == {gpt2.encode(" turns").tobytes()}


@pytest.mark.parametrize("name", ["stream", "decode_stream"])
def test_a_tokenizer_that_holds_its_stream_is_freed(gpt2_file: Path, name: str) -> None:
    tok = dpdk_tokd.Tokenizer.load(gpt2_file)
    tok.mine = getattr(tok, name)()  # type: ignore[attr-defined]
    gone = weakref.ref(tok)
    del tok
    gc.collect()
    assert gone() is None
