# SPDX-License-Identifier: BSD-3-Clause
"""An appliance with vocabularies of several families, chosen by the client's checksum.

tests/golden compares the tokenizer with the references; this compares the appliance with the
tokenizer.
"""

import dpdk_tokd
import pytest
from dpdk_tokd import Client
from dpdk_tokd.fetch.packages import data_home
from netlab import SERVER_IP
from samples import TEXTS, documents

FETCHED = data_home() / "vocab"
FILES = (
    *("cl100k_base.tiktoken", "o200k_base.tiktoken", "tekken.json", "bert-base-uncased.txt"),
    "mistral.model",
)


def test_each_client_has_its_vocabulary(lab, start):
    found = [FETCHED / name for name in FILES if (FETCHED / name).is_file()]
    if not found:
        pytest.skip(f"none of {', '.join(FILES)} in {FETCHED}: run tools/fetch-vocab")
    start("--vocab", ",".join(path.stem for path in found))
    texts = [*TEXTS.values(), documents()[:200_000], documents()[50_000:51_000]]
    for path in found:
        tokenizer = dpdk_tokd.Tokenizer.load(str(path))
        with lab.call(lambda t=tokenizer: Client(SERVER_IP, vocab=t.checksum)) as client:
            for text in texts:
                want = tokenizer.encode(text, add_special_tokens=False, tokens_in_text="none")
                assert client.tokenize(text).tolist() == want.tolist(), path.name


@pytest.mark.parametrize("asked", ["none", "not-special"])
def test_added_tokens_are_text_unless_the_appliance_is_told(lab, start, asked):
    path = FETCHED / "deepseek.json"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab deepseek")
    start("--vocab", str(path), *(["--added-tokens"] if asked == "not-special" else []))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    special, plain = next(iter(tokenizer.special_tokens)), "<think>"
    text = f"a{plain}b{special}c {plain * 3}{special}" * 200
    ids = tokenizer.encode(text, add_special_tokens=False, tokens_in_text=asked).tolist()
    assert (tokenizer.token_to_id(plain) in ids) == (asked == "not-special")
    assert tokenizer.token_to_id(special) not in ids
    with lab.call(lambda: Client(SERVER_IP)) as client:
        assert client.tokenize(text).tolist() == ids
