# SPDX-License-Identifier: BSD-3-Clause
"""Folders that `AutoTokenizer.from_pretrained` loads: the tokenizer.json of a family, and the
configuration that its models have."""

import json
import lzma
from pathlib import Path

import pytest
from dpdk_tokd.fetch.packages import data_home

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vocab"
FETCHED = data_home() / "vocab"

CLASSES = {
    "gpt2": "GPT2Tokenizer",
    "bert": "BertTokenizer",
    "llama3": "PreTrainedTokenizerFast",
    "qwen3": "Qwen2Tokenizer",
    "gemma3": "GemmaTokenizer",
    "deepseek": "PreTrainedTokenizerFast",
    "t5": "T5Tokenizer",
    "umt5": "T5Tokenizer",
    "xlmr": "XLMRobertaTokenizer",
}


def text_of(name: str) -> str:
    """The family's tokenizer.json. Skips the test where there is none."""
    path, packed = FETCHED / f"{name}.json", SHARED / f"{name}.json.xz"
    if path.exists():
        return path.read_text()
    if packed.exists():
        return lzma.decompress(packed.read_bytes()).decode()
    pytest.skip(f"no {name}.json in {FETCHED}, and no {packed}")


def write(name: str, folder: Path, **config: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(text_of(name))
    config = {"tokenizer_class": CLASSES[name], "model_max_length": 512} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
