# SPDX-License-Identifier: BSD-3-Clause
"""tiktoken's own tests, its encodings replaced by ours

They come from the public repository at run time. Those of encodings that tools/fetch-vocab does
not have are not counted.
"""

import shutil
from pathlib import Path

import pytest
from suites import cloned, compare, failures

REPOSITORY, TAG = "https://github.com/openai/tiktoken", "0.14.0"
PLUGIN = "replaced_tiktoken"

# Why a test may fail.
NAMED: dict[str, dict[str, set[str]]] = {
    "as_tiktoken": {
        "it uses private methods and attributes": {
            "test_encoding.test_encode_bytes",
            "test_encoding.test_hyp_encode_bytes",
            "test_offsets.test_hyp_offsets",
            "test_pickle.test_pickle",
        },
    },
    "patch_tiktoken": {},
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    suite = cloned(REPOSITORY, TAG, tmp_path_factory.mktemp("suite") / "tiktoken")
    shutil.rmtree(suite / "tiktoken")  # the installed one is compared
    return suite


@pytest.fixture(scope="module")
def passing(suite) -> list[str]:
    """Those that pass here with tiktoken itself."""
    found = [name for name, failed in failures(suite, PLUGIN, "").items() if not failed]
    assert len(found) > 20
    return found


@pytest.mark.parametrize("kind", NAMED)
def test_it_passes_but_for_what_is_named(kind, suite, passing, record_property):
    failed = failures(suite, PLUGIN, kind)
    record_property("text", f"{kind}: {compare(passing, failed, NAMED[kind])}")
