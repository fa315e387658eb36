# SPDX-License-Identifier: BSD-3-Clause
"""tokenizers' own tests in Python, its Tokenizer replaced by ours

They come from the public repository at run time. What fails there with tokenizers itself, most of
it because it needs more from the network, is not counted.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from models import FETCHED
from suites import cloned, compare, failures

REPOSITORY, TAG = "https://github.com/huggingface/tokenizers", "v0.23.1"
PLUGIN = "replaced_tokenizer"

# Why a test may fail.
NAMED = {
    "HFTokenizer": {
        "libtok refuses a normalizer ByteLevel": {
            "test_add_tokens_with_normalizer",
            "test_normalizer_change_refreshes_added_tokens",
        },
        "libtok refuses a model without tokens, or of three pieces without decoder": {
            "test_bert_parity",
            "test_concurrent_setters_no_lock_poisoning",
            "test_encode",
            "test_encode_while_mutating_trainer_fields",
            "test_encode_while_swapping_post_processor",
            "test_get_set_components",
            "test_multithreaded_concurrency",
            "test_padding",
            "test_post_process",
            "test_processing",
            "test_roberta_parity",
            "test_truncation",
            "test_unigram_byte_fallback",
        },
        "no training by this interface": {
            "test_cannot_train_different_model",
            "test_has_expected_type_and_methods",
            "test_train",
            "test_train_basic",
            "test_train_from_iterator",
            "test_train_from_iterator_with_unk_token",
            "test_train_with_special_tokens",
            "test_train_with_unk_token",
        },
        "the test expects that a forked child hangs": {"test_multiprocessing_with_parallelism"},
        "repr() is one short line": {"test_repr", "test_repr_complete", "test_repr_str"},
        "errors are in words of our own": {"test_encode_formats"},
    },
    "Backend": {
        "the test expects that a forked child hangs": {"test_multiprocessing_with_parallelism"},
    },
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    folder = cloned(REPOSITORY, TAG, tmp_path_factory.mktemp("tokenizers") / "source")
    data = folder / "bindings/python/tests/data"
    data.mkdir()
    if (vocab := FETCHED / "bert-base-uncased.txt").exists():
        shutil.copy(vocab, data / "bert-base-uncased-vocab.txt")
    return folder / "bindings/python"


@pytest.fixture(scope="module")
def passing(suite) -> list[str]:
    """Those that pass here with tokenizers itself."""
    found = [name for name, failed in failures(suite, PLUGIN, "").items() if not failed]
    assert len(found) > 100
    return found


@pytest.mark.parametrize("kind", NAMED)
def test_it_passes_but_for_what_is_named(kind, suite, passing, record_property):
    failed = failures(suite, PLUGIN, kind)
    record_property("text", f"{kind}: {compare(passing, failed, NAMED[kind])}")
