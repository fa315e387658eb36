# SPDX-License-Identifier: BSD-3-Clause
"""Tokenizer.from_pretrained, on a cache as huggingface_hub leaves it: no network."""

import json
import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import dpdk_tokd
import pytest

COMMIT, OLDER = "1" * 40, "2" * 40
VOCAB = "[UNK]\n[CLS]\n[SEP]\nhello\n"


@pytest.fixture
def cache(tmp_path: Path):
    """Put files of a repository into a cache; refs/main is the commit they are of."""
    pytest.importorskip("huggingface_hub", reason="pip install huggingface_hub")

    def put(files: dict[str, str | Path], commit: str = COMMIT) -> Path:
        repository = tmp_path / "models--some--model"
        (repository / "refs").mkdir(parents=True, exist_ok=True)
        (repository / "refs/main").write_text(COMMIT)
        snapshot = repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (repository / "blobs").mkdir(exist_ok=True)
        for name, content in files.items():
            if isinstance(content, Path):
                (snapshot / name).symlink_to(content)
            else:
                blob = repository / "blobs" / f"{commit}-{name}"
                blob.write_text(content)
                (snapshot / name).symlink_to(Path("../../blobs") / blob.name)
        return tmp_path

    return put


def load(cache_dir: Path, **more: object) -> dpdk_tokd.Tokenizer:
    return dpdk_tokd.Tokenizer.from_pretrained(
        "some/model", cache_dir=cache_dir, local_files_only=True, **more
    )


def test_tokenizer_json_is_what_is_loaded(cache, gpt2_reference, gpt2, tmp_path):
    path = tmp_path / "gpt2.json"
    gpt2_reference.save(str(path))
    tok = load(cache({"tokenizer.json": path, "vocab.txt": VOCAB}))
    assert tok.info.format == "tokenizer.json"
    assert tok.encode("Hello, world").tolist() == gpt2.encode("Hello, world").tolist()


def test_other_files_where_there_is_none(cache):
    tok = load(cache({"vocab.txt": VOCAB, "vocab.json": "{}"}))  # without merges.txt it is none
    assert tok.info.format == "vocab.txt"
    assert tok.encode("hello").tolist() == [1, 3, 2]


def test_the_pair_is_found_together(cache, tmp_path):
    with pytest.raises(ValueError, match="vocab.json.*the vocabulary is empty"):
        load(cache({"vocab.json": "{}", "merges.txt": "", "vocab.txt": VOCAB}))


def test_what_is_beside_it_comes_too(cache):
    more = {"tokenizer_config.json": '{"pad_token": "[SEP]"}', "chat_template.jinja": "{{ 1 }}"}
    tok = load(cache({"vocab.txt": VOCAB} | more))
    assert tok.pad_token_id == 2 and tok._config.templates == {"default": "{{ 1 }}"}


def test_a_revision(cache):
    cache({"vocab.txt": VOCAB})
    folder = cache({"vocab.txt": "[UNK]\nolder\n"}, OLDER)
    assert load(folder).vocab_size == 4
    assert load(folder, revision=OLDER).vocab_size == 2


def test_arguments_of_load(cache):
    folder = cache({"vocab.txt": "[UNK]\nHe\n"})
    with pytest.raises(ValueError, match="bert-cased"):
        load(folder)
    assert load(folder, pretokenizer="bert-cased").encode("He").tolist() == [1]


def test_a_folder(tmp_path):
    (tmp_path / "vocab.txt").write_text(VOCAB)
    assert dpdk_tokd.Tokenizer.from_pretrained(str(tmp_path)).vocab_size == 4


TEKKEN_REGEX = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def test_a_folder_that_has_tekken_json_alone(tmp_path):
    with pytest.raises(ValueError, match="holds none of tokenizer.json, .* tekken.json"):
        dpdk_tokd.Tokenizer.from_pretrained(str(tmp_path))
    tokens = [bytes([b]) for b in range(256)] + [b"he"]
    document = {
        "config": {
            "pattern": TEKKEN_REGEX,
            "default_vocab_size": 1 + len(tokens),
            "default_num_special_tokens": 1,
            "version": "v3",
        },
        "vocab": [
            {"rank": i, "token_bytes": b64encode(token).decode(), "token_str": None}
            for i, token in enumerate(tokens)
        ],
    }
    (tmp_path / "tekken.json").write_text(json.dumps(document))
    tok = dpdk_tokd.Tokenizer.from_pretrained(str(tmp_path))
    assert tok.info.format == "tekken.json"
    assert tok.encode("he").tolist() == [1 + 256]


def test_what_is_not_in_the_cache_is_said(cache):
    with pytest.raises(
        FileNotFoundError, match="local cache of some/model .revision main. has none"
    ):
        load(cache({"config.json": "{}"}))
    with pytest.raises(FileNotFoundError, match="revision v9"):
        load(cache({}, OLDER), revision="v9")


def test_the_environment_says_where_and_that_there_is_no_network(cache):
    folder = cache({"vocab.txt": VOCAB})
    program = (
        "import dpdk_tokd; print(dpdk_tokd.Tokenizer.from_pretrained('some/model').vocab_size)"
    )
    environment = os.environ | {"HF_HUB_CACHE": str(folder), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "4"


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'dpdk-tokd\[hub\]'"):
        dpdk_tokd.Tokenizer.from_pretrained("some/model", local_files_only=True)
