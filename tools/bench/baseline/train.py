# SPDX-License-Identifier: BSD-3-Clause
"""Trains a vocabulary with Hugging Face tokenizers in a process of its own.

Run as `python train.py FILE`: JSON with model, number of ids, special tokens, text file, output
file.
"""

import json
import sys
from pathlib import Path

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)  # fmt: skip


def main() -> int:
    model, size, special, text, out = json.loads(Path(sys.argv[1]).read_text())
    common = {
        "vocab_size": size, "min_frequency": 2, "special_tokens": special, "show_progress": False,
    }  # fmt: skip
    if model == "bpe":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        made.post_processor = processors.ByteLevel(trim_offsets=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        made.train([text], trainers.BpeTrainer(initial_alphabet=alphabet, **common))
    else:
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.train([text], trainers.WordPieceTrainer(**common))
    made.save(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
