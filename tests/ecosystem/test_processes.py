# SPDX-License-Identifier: BSD-3-Clause
"""datasets.map and PyTorch's DataLoader, with processes"""

import sys
from pathlib import Path

import transformers

TEXTS = [f"Row {i}: a naïve café 😀, isn't it? {'x' * i}" for i in range(200)]


def without_fallback(found):
    """In another process: what libtok refused there is an error."""
    patch = sys.modules.get("dpdk_tokd.hf.patch")
    if patch is not None:
        assert patch.fallbacks.total() == 0, patch.fallbacks
    return found


def mapped(folder: Path) -> list:
    import datasets

    t = transformers.AutoTokenizer.from_pretrained(folder)
    t(TEXTS[0])  # before fork
    rows = datasets.Dataset.from_dict({"text": TEXTS})
    batches = rows.map(
        lambda batch: without_fallback(t(batch["text"], truncation=True, max_length=12)),
        batched=True,
        batch_size=16,
        num_proc=2,
    )
    alone = rows.map(lambda row: without_fallback(t(row["text"])), num_proc=2)
    return [batches.to_dict(), alone.to_dict()]


def test_datasets_map(model, both_ways, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    both_ways(mapped, model("gpt2"))


class Collate:
    def __init__(self, tokenizer) -> None:
        self.tokenizer = tokenizer

    def __call__(self, texts: list[str]):
        return without_fallback(self.tokenizer(texts, padding=True, return_tensors="pt"))


def loaded(folder: Path) -> list:
    from torch.utils.data import DataLoader

    t = transformers.AutoTokenizer.from_pretrained(folder)
    t(TEXTS[0])
    found = []
    for how in ("fork", "spawn"):
        loader = DataLoader(
            TEXTS, 16, num_workers=2, collate_fn=Collate(t), multiprocessing_context=how
        )
        found.append([{k: v.tolist() for k, v in batch.items()} for batch in loader])
    return found


def test_data_loader(model, both_ways):
    both_ways(loaded, model("bert"))
