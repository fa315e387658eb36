# SPDX-License-Identifier: BSD-3-Clause
"""LangChain's and LlamaIndex's text splitters"""

from pathlib import Path

import pytest
import transformers

TEXT = "".join(
    f"Paragraph {i}: a naïve café 😀, isn't it? It's the {i}th one.\nIt goes on and on.\n\n"
    for i in range(60)
)


def by_langchain(folder: Path) -> list:
    from langchain_text_splitters import (
        CharacterTextSplitter,
        MarkdownTextSplitter,
        RecursiveCharacterTextSplitter,
    )

    t = transformers.AutoTokenizer.from_pretrained(folder)
    splitters = (CharacterTextSplitter, MarkdownTextSplitter, RecursiveCharacterTextSplitter)
    return [
        kind.from_huggingface_tokenizer(t, chunk_size=64, chunk_overlap=16).split_text(TEXT)
        for kind in splitters
    ]


def by_llama_index(folder: Path) -> list:
    from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter

    t = transformers.AutoTokenizer.from_pretrained(folder)
    return [
        kind(chunk_size=64, chunk_overlap=16, tokenizer=tokenizer).split_text(TEXT)
        for kind in (SentenceSplitter, TokenTextSplitter)
        for tokenizer in (t.encode, t.tokenize)
    ]


def both(folder: Path) -> list:
    return [*by_langchain(folder), *by_llama_index(folder)]


@pytest.mark.parametrize("family", ["gpt2", "bert", "llama3"])
def test_splitters(family, model, both_ways):
    assert all(len(chunks) > 20 for chunks in both_ways(both, model(family)))
