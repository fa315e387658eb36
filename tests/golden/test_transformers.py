# SPDX-License-Identifier: BSD-3-Clause
"""What programs do with `transformers`: run as it is, and with `patch_transformers()`. Everything
they see must be equal."""

from __future__ import annotations

import copy
import json
import lzma
import pickle

import pytest
from test_families import FETCHED, SHARED, tokenizers

transformers = pytest.importorskip("transformers", reason="pip install transformers")
hf = pytest.importorskip("dpdk_tokd.hf", reason="pip install ./python")

CLASSES = {
    "gpt2": "GPT2Tokenizer",
    "bert": "BertTokenizer",
    "llama3": "PreTrainedTokenizerFast",
    "qwen3": "Qwen2Tokenizer",
    "t5": "T5Tokenizer",
}
TEXTS = [
    "Hello world, it's a test! naïve café 😀",
    "Second one.\n\n  with   blanks",
    "",
    "[CLS] <|endoftext|> x",
]


@pytest.fixture(params=CLASSES)
def model(request, tmp_path):
    path, packed = FETCHED / f"{request.param}.json", SHARED / f"{request.param}.json.xz"
    if not path.exists() and not packed.exists():
        pytest.skip(f"no {request.param}.json in {FETCHED}, and no {packed}")
    text = path.read_text() if path.exists() else lzma.decompress(packed.read_bytes()).decode()
    (tmp_path / "tokenizer.json").write_text(text)
    config = {"tokenizer_class": CLASSES[request.param], "model_max_length": 512}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.fixture
def patched():
    hf.patch_transformers()
    hf.patch_transformers()
    hf.fallbacks.clear()
    yield
    hf.unpatch_transformers()


def everyday(folder) -> list:
    """What scripts do with a tokenizer, and what they get."""
    t = transformers.AutoTokenizer.from_pretrained(folder)
    t.add_special_tokens({"pad_token": "<a pad>"})
    t.add_tokens([tokenizers.AddedToken("foobarbaz", normalized=False)])
    one, cut = t(TEXTS[0]), {"truncation": True, "max_length": 16, "stride": 2}
    stream = tokenizers.decoders.DecodeStream(skip_special_tokens=True)
    return [
        one.data,
        t(TEXTS, padding=True, return_offsets_mapping=True, return_special_tokens_mask=True).data,
        t(TEXTS[0], TEXTS[1], **cut).data,
        t(TEXTS, return_overflowing_tokens=True, padding="max_length", **cut).data,
        t([["a", "b c"], ["d"]], is_split_into_words=True).data,
        t("x foobarbaz y", add_special_tokens=False).data,
        t(TEXTS[3], split_special_tokens=True).data,
        one.word_ids(), one.tokens(), one.char_to_token(3), one.token_to_chars(2),
        t.tokenize(TEXTS[1]), t.encode(TEXTS[2]), len(t), t.get_vocab(),
        t.decode(one.input_ids), t.batch_decode([one.input_ids], skip_special_tokens=True),
        [stream.step(t.backend_tokenizer, id) for id in one.input_ids],
        pickle.loads(pickle.dumps(t))(TEXTS).data, copy.deepcopy(t)(TEXTS).data,
        t.save_pretrained(folder),
        json.loads((folder / "tokenizer.json").read_text()),
    ]  # fmt: skip


def test_programs_see_no_difference(model, request):
    before = (model / "tokenizer.json").read_text()
    expected = everyday(model)
    (model / "tokenizer.json").write_text(before)
    request.getfixturevalue("patched")
    assert everyday(model) == expected
    assert not hf.fallbacks


def test_what_libtok_refuses_is_the_reference_s(patched, tmp_path, caplog):
    refused = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    refused.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    t = transformers.PreTrainedTokenizerFast(tokenizer_object=refused)
    for _ in range(3):
        assert t("a b a").input_ids == [0, 1, 0]
    assert hf.fallbacks["the tokenizer was refused"] == 3
    assert [r.name for r in caplog.records if "refuses" in r.message] == ["dpdk_tokd"]
    hf.unpatch_transformers()
    t = transformers.PreTrainedTokenizerFast(tokenizer_object=refused)
    assert isinstance(t.backend_tokenizer, tokenizers.Tokenizer)
