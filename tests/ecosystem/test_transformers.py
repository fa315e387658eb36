# SPDX-License-Identifier: BSD-3-Clause
"""transformers: a family's tokenizer as AutoTokenizer loads it, and calls of it"""

import copy
import json
import pickle
from pathlib import Path

import pytest
import tokenizers
import transformers
from models import CLASSES

TEXTS = [
    "Hello world, it's a test! naïve café 😀",
    "Second one.\n\n  with   blanks",
    "",
    "[CLS] <|endoftext|> x",
]
LONG = "The quick brown fox, 42 of them, jumped over the naïve dog's café. " * 6


def loaded(folder: Path):
    t = transformers.AutoTokenizer.from_pretrained(folder)
    t.add_special_tokens({"pad_token": "<a pad>"})
    return t


def used(folder: Path) -> list:
    """What scripts do with a tokenizer, and what they get."""
    t = loaded(folder)
    t.add_tokens([tokenizers.AddedToken("foobarbaz", normalized=False)])
    one = t(TEXTS[0])
    stream = tokenizers.decoders.DecodeStream(skip_special_tokens=True)
    return [
        one.data, one.word_ids(), one.tokens(), one.sequence_ids(),
        one.char_to_token(3), one.token_to_chars(2), one.word_to_tokens(1), one.char_to_word(7),
        t("x foobarbaz y", add_special_tokens=False).data,
        t(TEXTS[3], split_special_tokens=True).data,
        t.tokenize(TEXTS[1]), t.encode(TEXTS[2]), len(t), t.get_vocab(), t.get_added_vocab(),
        t.convert_tokens_to_string(one.tokens()), t.num_special_tokens_to_add(pair=True),
        t.decode(one.input_ids), t.batch_decode([one.input_ids], skip_special_tokens=True),
        [stream.step(t.backend_tokenizer, id) for id in one.input_ids],
        pickle.loads(pickle.dumps(t))(TEXTS).data, copy.deepcopy(t)(TEXTS).data,
    ]  # fmt: skip


def called(folder: Path) -> list:
    """The arguments of a call."""
    t = loaded(folder)
    calls = [
        t(TEXTS, padding=True, return_offsets_mapping=True, return_special_tokens_mask=True),
        t(TEXTS, padding="max_length", max_length=64, return_tensors="pt"),
        t(TEXTS, padding=True, pad_to_multiple_of=8, return_length=True, return_tensors="np"),
        t([["a", "b c"], ["naïve", "😀", "d"]], is_split_into_words=True, padding=True),
        t(["two", "words"], ["and", "three more", "here"], is_split_into_words=True),
        t(TEXTS, text_target=TEXTS[::-1]),
        t(TEXTS[0], text_pair=TEXTS[1], return_token_type_ids=True),
        t(LONG, truncation=True, max_length=20),
    ]
    for strategy in ("only_first", "only_second", "longest_first"):
        cut = {"truncation": strategy, "max_length": len(t(LONG, LONG).input_ids) - 15}
        calls.append(t([LONG] * 2, [LONG, LONG[:90]], padding="max_length", **cut))
    overflowing = {"return_overflowing_tokens": True, "return_offsets_mapping": True, "stride": 5}
    calls.append(t([LONG, LONG[:90]], truncation=True, max_length=24, padding=True, **overflowing))
    calls.append(t(LONG[:40], LONG, truncation="only_second", max_length=40, **overflowing))
    t.padding_side, t.truncation_side = "left", "left"
    calls.append(t([LONG, *TEXTS], truncation=True, max_length=16, padding="max_length"))
    return [
        (
            {name: getattr(value, "tolist", lambda v=value: v)() for name, value in c.items()},
            [(e.tokens, e.word_ids, e.sequence_ids) for e in c.encodings or []],
        )
        for c in calls
    ]


def saved(folder: Path) -> list:
    t = loaded(folder)
    t.add_tokens(["foobarbaz"])
    t.save_pretrained(folder / "saved")
    again = transformers.AutoTokenizer.from_pretrained(folder / "saved")
    return [
        again("x foobarbaz y").data,
        json.loads((folder / "saved/tokenizer.json").read_text()),
    ]


def everyday(folder: Path) -> list:
    return [used(folder), called(folder), saved(folder)]


@pytest.mark.parametrize("family", CLASSES)
def test_auto_tokenizer(family, model, both_ways):
    both_ways(everyday, model(family))


def trained(folder: Path) -> list:
    t = transformers.AutoTokenizer.from_pretrained(folder)
    new = t.train_new_from_iterator([TEXTS, [LONG]], 400, show_progress=False)
    return [new(LONG).data, new.get_vocab()]


@pytest.mark.parametrize("family", ["gpt2", "llama3"])  # WordPiece: not twice the same
def test_train_new_from_iterator(family, model, both_ways):
    both_ways(trained, model(family))


CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def chatted(folder: Path) -> list:
    t = transformers.AutoTokenizer.from_pretrained(folder, chat_template=CHATML)
    chat = [
        {"role": "user", "content": "How are naïve 😀 you?"},
        {"role": "assistant", "content": "Fine, <|im_end|> thanks."},
    ]
    asked = {"tokenize": True, "return_dict": True}
    return [
        t.apply_chat_template(chat, tokenize=False),
        t.apply_chat_template(chat, **asked).data,
        t.apply_chat_template(chat[:1], add_generation_prompt=True, **asked).data,
        t.apply_chat_template(chat, return_assistant_tokens_mask=True, **asked).data,
        t.apply_chat_template(chat, continue_final_message=True, **asked).data,
    ]


@pytest.mark.parametrize("family", ["gpt2", "llama3", "qwen3", "deepseek"])
def test_apply_chat_template(family, model, both_ways):
    both_ways(chatted, model(family))
