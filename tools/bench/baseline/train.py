# SPDX-License-Identifier: BSD-3-Clause
"""A process of its own, in which Hugging Face tokenizers train a vocabulary.

Run as `python train.py FILE`: JSON with the model, the number of ids, the special
tokens, the file of text, and the file to write.
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
        trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **common)
    else:
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(**common)
    made.train([text], trainer)
    made.save(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
