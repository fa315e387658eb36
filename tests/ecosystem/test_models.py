# SPDX-License-Identifier: BSD-3-Clause
"""transformers: collators, pipelines and generation, on tiny models with random weights"""

import threading
from pathlib import Path

import pytest
import torch
import transformers

TEXTS = ["A naïve café, isn't it?", "Angela lives in Berlin and works for Siemens.", "😀 x"]
CONTEXT = "Berlin is the capital of Germany. It has 3.7 million people, in 12 boroughs. " * 8


def tokenizer_of(folder: Path):
    t = transformers.AutoTokenizer.from_pretrained(folder)
    if t.pad_token is None:
        t.add_special_tokens({"pad_token": "<a pad>"})
    return t


def tiny(kind: str, size: int):
    """A model of one layer; the weights are the same each time."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if kind == "GPT2LMHeadModel":
        config = transformers.GPT2Config(vocab_size=size, n_embd=32, n_layer=1, n_head=2)
    else:
        config = transformers.BertConfig(
            vocab_size=size,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
        )
        config.num_labels = 2
    return getattr(transformers, kind)(config).eval()


def collated(folder: Path) -> list:
    t = tokenizer_of(folder)
    t.add_special_tokens({"mask_token": "<a mask>"})
    rows = [t(text) for text in TEXTS]
    labelled = [row | {"labels": [1] * len(row["input_ids"])} for row in rows]
    found = [
        transformers.DataCollatorWithPadding(t)(rows),
        transformers.DataCollatorWithPadding(t, padding="max_length", max_length=32)(rows),
        transformers.DataCollatorForTokenClassification(t)(labelled),
        transformers.DataCollatorForSeq2Seq(t, pad_to_multiple_of=8)(labelled),
        transformers.DataCollatorForLanguageModeling(t, seed=1)(rows),
    ]
    return [{name: value.tolist() for name, value in batch.items()} for batch in found]


@pytest.mark.parametrize("family", ["gpt2", "bert", "llama3"])
def test_data_collators(family, model, both_ways):
    both_ways(collated, model(family))


def piped(folder: Path) -> list:
    t = tokenizer_of(folder)
    size = len(t)

    def pipe(task: str, kind: str, **options):
        return transformers.pipeline(task, tiny(kind, size), tokenizer=t, device="cpu", **options)

    classify = pipe("text-classification", "BertForSequenceClassification", top_k=None)
    entities = pipe("token-classification", "BertForTokenClassification")
    return [
        pipe("feature-extraction", "BertModel")(TEXTS),
        classify(TEXTS, batch_size=2),
        classify({"text": TEXTS[0], "text_pair": TEXTS[1]}),
        pipe("fill-mask", "BertForMaskedLM")("Berlin is a [MASK]."),
        *(
            entities(TEXTS, aggregation_strategy=how)
            for how in ("none", "simple", "first", "average", "max")
        ),
        entities(CONTEXT * 4, stride=16, aggregation_strategy="simple"),
    ]


def test_pipelines(model, both_ways):
    both_ways(piped, model("bert"))


def answered(folder: Path) -> list:
    """Question answering over a context that is too long: windows, offsets, sequence ids."""
    t = tokenizer_of(folder)
    windows = t(
        ["How many people?", "Which capital?"],
        [CONTEXT, CONTEXT[:300]],
        truncation="only_second",
        max_length=48,
        stride=12,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length",
        return_tensors="pt",
    )
    offsets = windows.pop("offset_mapping")
    sample = windows.pop("overflow_to_sample_mapping")
    with torch.no_grad():
        scores = tiny("BertForQuestionAnswering", len(t))(**windows)
    answers = []
    for i in range(len(offsets)):
        inside = torch.tensor([s == 1 for s in windows.sequence_ids(i)])
        first = int(scores.start_logits[i].masked_fill(~inside, -1e9).argmax())
        last = int(scores.end_logits[i].masked_fill(~inside, -1e9).argmax())
        text = CONTEXT[offsets[i][first][0] : offsets[i][last][1]]
        answers.append((int(sample[i]), first, last, text))
    return answers


def test_question_answering(model, both_ways):
    assert len(both_ways(answered, model("bert"))) > 4


def generated(folder: Path) -> list:
    t = tokenizer_of(folder)
    model = tiny("GPT2LMHeadModel", len(t))
    inputs = t("A naïve café", return_tensors="pt")
    found = []
    for skipped in (False, True):
        streamer = transformers.TextIteratorStreamer(t, skip_special_tokens=skipped)
        torch.manual_seed(2)
        options = {"max_new_tokens": 120, "do_sample": True, "streamer": streamer}
        thread = threading.Thread(target=model.generate, kwargs={**inputs, **options})
        thread.start()
        found.append(list(streamer))
        thread.join()
    torch.manual_seed(3)
    stopped = model.generate(
        **inputs, max_new_tokens=60, do_sample=True, stop_strings=["e", "on"], tokenizer=t
    )
    generator = transformers.pipeline("text-generation", model, tokenizer=t, device="cpu")
    return [*found, stopped.tolist(), generator("It is", max_new_tokens=9, do_sample=False)]


@pytest.mark.parametrize("family", ["gpt2", "llama3"])
def test_generation_as_a_stream(family, model, both_ways):
    parts = both_ways(generated, model(family))[0]
    assert len(parts) > 50
