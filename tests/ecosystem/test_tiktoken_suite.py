# SPDX-License-Identifier: BSD-3-Clause
"""tiktoken's own tests, its encodings replaced by ours

They come from the public repository at run time. Those of encodings that tools/fetch-vocab does
not have are not counted.
"""

import shutil

from suites import cloned, compare, failures

REPOSITORY, TAG = "https://github.com/openai/tiktoken", "0.14.0"
PLUGIN = "replaced_tiktoken"

# Why a test may fail.
NAMED = {
    "it uses private methods and attributes": {
        "test_encoding.test_encode_bytes",
        "test_encoding.test_hyp_encode_bytes",
        "test_offsets.test_hyp_offsets",
        "test_pickle.test_pickle",
    },
}


def test_it_passes_but_for_what_is_named(tmp_path, record_property):
    suite = cloned(REPOSITORY, TAG, tmp_path / "tiktoken")
    shutil.rmtree(suite / "tiktoken")  # the installed one is compared
    passing = [name for name, failed in failures(suite, PLUGIN, "").items() if not failed]
    assert len(passing) > 20
    failed = failures(suite, PLUGIN, "ours")
    record_property("text", compare(passing, failed, NAMED))
