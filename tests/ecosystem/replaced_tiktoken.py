# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: tiktoken has its encodings from the files of tools/fetch-vocab, and they are
what $REPLACED_BY makes of them, if it names something."""

import os
from functools import cache
from typing import Any

import dpdk_tokd
import tiktoken
import tiktoken.load
import tiktoken.model
import tiktoken_ext.openai_public
from models import FETCHED

GPT2 = {"gpt2", "r50k_base"}  # the same ranks


def path_of(name: str) -> str:
    return str(FETCHED / f"{'gpt2' if name in GPT2 else name}.tiktoken")


def ranks_of(url: str, *_: Any, **__: Any) -> dict[bytes, int]:
    name = url.rpartition("/")[2].removesuffix(".tiktoken")
    return tiktoken.load.load_tiktoken_bpe(path_of("gpt2" if name == "vocab.bpe" else name))


@cache  # as tiktoken.get_encoding has it
def ours(name: str) -> Any:
    return dpdk_tokd.as_tiktoken(dpdk_tokd.Tokenizer.load(path_of(name)), name)


os.environ["TIKTOKEN_CACHE_DIR"] = ""  # none
tiktoken_ext.openai_public.load_tiktoken_bpe = ranks_of
tiktoken_ext.openai_public.data_gym_to_mergeable_bpe_ranks = lambda vocab_bpe_file, **_: ranks_of(
    vocab_bpe_file
)
if os.environ["REPLACED_BY"] == "as_tiktoken":
    tiktoken.get_encoding = tiktoken.model.get_encoding = ours
elif os.environ["REPLACED_BY"]:
    dpdk_tokd.patch_tiktoken()
