# SPDX-License-Identifier: BSD-3-Clause
"""The three memory operations of the extension refuse what is not an aligned word of the buffer."""

import mmap

import pytest
from dpdk_tokd._native import libtok


@pytest.fixture
def page():
    return mmap.mmap(-1, 4096)


@pytest.mark.parametrize("load", [libtok.load_acquire_u64, libtok.load_fenced_u64])
def test_what_was_stored_is_loaded(page, load):
    for value in (0, 1, 1 << 63, (1 << 64) - 1):
        libtok.store_release_u64(page, 128, value)
        assert load(page, 128) == value
        assert int.from_bytes(page[128:136], "little") == value


@pytest.mark.parametrize("offset", [-8, 4, 4092, 4096, 1 << 40])
def test_an_offset_that_is_no_word_is_refused(page, offset):
    with pytest.raises(IndexError, match=str(offset)):
        libtok.load_acquire_u64(page, offset)
    with pytest.raises(IndexError):
        libtok.store_release_u64(page, offset, 1)


def test_read_only_memory_is_not_stored_to():
    with pytest.raises(BufferError):
        libtok.store_release_u64(bytes(64), 0, 1)


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_what_is_no_u64_is_refused(page, value):
    with pytest.raises(OverflowError):
        libtok.store_release_u64(page, 0, value)
