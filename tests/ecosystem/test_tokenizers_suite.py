# SPDX-License-Identifier: BSD-3-Clause
"""tokenizers' own tests in Python, its Tokenizer replaced by ours

They come from the public repository at run time. What fails there with tokenizers itself, most of
it because it needs more from the network, is not counted.
"""

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
            "TestTokenizer.test_add_tokens_with_normalizer",
            "TestTokenizer.test_normalizer_change_refreshes_added_tokens",
        },
        "libtok refuses a model without tokens, or of three pieces without decoder": {
            "TestBaseTokenizer.test_get_set_components",
            "TestBertProcessing.test_processing",
            "TestEncodeUnderConcurrentSetters.test_concurrent_setters_no_lock_poisoning",
            "TestEncodeUnderConcurrentSetters.test_encode_while_mutating_trainer_fields",
            "TestEncodeUnderConcurrentSetters.test_encode_while_swapping_post_processor",
            "TestRobertaProcessing.test_processing",
            "TestSequenceProcessing.test_post_process",
            "TestTemplateProcessing.test_bert_parity",
            "TestTemplateProcessing.test_roberta_parity",
            "TestTokenizer.test_encode",
            "TestTokenizer.test_multithreaded_concurrency",
            "TestTokenizer.test_padding",
            "TestTokenizer.test_post_process",
            "TestTokenizer.test_truncation",
            "TestTokenizer.test_unigram_byte_fallback",
        },
        "no training by this interface": {
            "TestBertWordPieceTokenizer.test_train_from_iterator",
            "TestByteLevelBPE.test_train_from_iterator",
            "TestCharBPETokenizer.test_train_from_iterator",
            "TestSentencePieceBPE.test_train_from_iterator",
            "TestSentencePieceUnigram.test_train",
            "TestSentencePieceUnigram.test_train_from_iterator",
            "TestSentencePieceUnigram.test_train_from_iterator_with_unk_token",
            "TestSentencePieceUnigram.test_train_with_unk_token",
            "TestTokenizer.test_has_expected_type_and_methods",
            "TestTrainFromIterators.test_train_basic",
            "TestUnigram.test_cannot_train_different_model",
            "TestUnigram.test_train_with_special_tokens",
        },
        "the test expects that a forked child hangs": {
            "TestBertWordPieceTokenizer.test_multiprocessing_with_parallelism",
            "TestTokenizer.test_multiprocessing_with_parallelism",
        },
        "repr() is one short line": {
            "TestSerialization.test_repr_str",
            "TestTokenizerRepr.test_repr",
            "TestTokenizerRepr.test_repr_complete",
        },
        "errors are in words of our own": {"TestTokenizer.test_encode_formats"},
    },
    "Backend": {
        "the test expects that a forked child hangs": {
            "TestBertWordPieceTokenizer.test_multiprocessing_with_parallelism"
        },
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
