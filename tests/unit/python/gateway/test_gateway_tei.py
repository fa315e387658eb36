# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway as text-embeddings-inference: tokens, offsets in bytes, errors in its shape."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
from dpdk_tokd.gateway.app import App, Limits
from dpdk_tokd.gateway.models import Model, Models
from test_gateway import ask

TEXT = "The quick\n\tbrown 中文 😀é fox"


def made(folder: Path) -> Any:
    """Bytes and a few merges, with a template around a text, and truncation and padding, which do
    not count here."""
    from tokenizers import decoders, models, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "q"), ("T", "h"), ("Th", "e"), ("ä", "¸")]
    tokens = [*letters, *(a + b for a, b in merges)]
    model = models.BPE({token: i for i, token in enumerate(tokens)}, merges)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    ids = [(one, tokenizer.token_to_id(one)) for one in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=ids)
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@pytest.fixture
def reference(tmp_path: Path) -> Any:
    return made(tmp_path)


@pytest.fixture
def app(reference: Any, tmp_path: Path) -> App:
    return App(Models([Model("m", str(tmp_path), 100)], max_tokens=200, max_batch=3))


def tokens_of(reference: Any, text: str, add_special_tokens: bool) -> list[dict[str, Any]]:
    """As TEI's into_tokens makes them; what it slices are bytes."""
    found = []
    encoding = reference.encode(text, add_special_tokens=add_special_tokens)
    masked = zip(
        encoding.ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets, strict=True
    )
    for id, token, special, (begin, end) in masked:
        start, stop = (len(text[:at].encode()) for at in (begin, end))
        token = token if special else text.encode()[start:stop].decode("utf-8", "replace")
        place = {"start": None, "stop": None} if special else {"start": start, "stop": stop}
        found.append({"id": id, "text": token, "special": bool(special), **place})
    return found


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("text", [TEXT, "The quick", "a </s> b", "😀😀"])
def test_inputs_become_tokens_with_bytes(
    app: App, reference: Any, text: str, special: bool
) -> None:
    body = {"inputs": text, "add_special_tokens": special, "unknown": 1}
    answer = ask(app, "/tokenize", body)
    want = [tokens_of(reference, text, special)]
    assert (answer.status, answer.json()) == (200, want)
    assert [*answer.json()[0][0]] == ["id", "text", "special", "start", "stop"]


def test_several_inputs_have_a_list_each(app: App, reference: Any) -> None:
    answer = ask(app, "/tokenize", {"inputs": ["The", TEXT], "model": "m"})
    assert answer.json() == [tokens_of(reference, text, True) for text in ("The", TEXT)]


def test_ids_become_texts(app: App, reference: Any) -> None:
    ids = reference.encode(TEXT).ids
    assert ask(app, "/decode", {"ids": ids}).json() == [TEXT]
    body = {"ids": [ids, ids[:3]], "skip_special_tokens": False}
    want = [reference.decode(some, skip_special_tokens=False) for some in (ids, ids[:3])]
    assert ask(app, "/decode", body).json() == want


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "message"),
    [
        ("/tokenize", {"inputs": ""}, 400, "Empty", "`inputs` cannot be empty"),
        ("/tokenize", {"inputs": ["a", ""]}, 400, "Empty", "`inputs` cannot be empty"),
        ("/tokenize", {"inputs": []}, 400, "Empty", "`inputs` cannot be empty"),
        ("/tokenize", {"inputs": 5}, 400, "Validation", "got `int`"),
        ("/tokenize", {"inputs": "a", "add_special_tokens": "x"}, 400, "Validation", "bool"),
        ("/tokenize", {"inputs": "a", "prompt_name": "query"}, 400, "Validation", "prompt_name"),
        ("/tokenize", {"inputs": ["a"] * 4}, 413, "Validation", "batch size 4 > maximum"),
        ("/tokenize", {"inputs": "a" * 25001}, 400, "Validation", "less than 25000 characters"),
        ("/tokenize", {"inputs": ["a" * 100] * 2}, 400, "Validation", "204 tokens: at most 200"),
        ("/tokenize", {"inputs": "a", "model": "x"}, 404, "Validation", "`x` does not exist"),
        ("/decode", {}, 400, "Validation", "ids"),
        ("/decode", {"ids": []}, 400, "Empty", "`input_ids` cannot be empty"),
        ("/decode", {"ids": [[1], []]}, 400, "Empty", "`input_ids` cannot be empty"),
        ("/decode", {"ids": [1, [2]]}, 400, "Validation", "list of such lists"),
        (
            "/decode",
            {"ids": [-1]},
            400,
            "Validation",
            "ids[0]: -1: expected an id of the vocabulary, 0 to 261",
        ),
        ("/decode", {"ids": [[1], [2, 262]]}, 400, "Validation", "ids[1][1]: 262: expected"),
        ("/decode", {"ids": [[1]] * 4}, 413, "Validation", "batch size 4 > maximum"),
        ("/decode", {"ids": [1] * 201}, 400, "Validation", "201 tokens: at most 200"),
        ("/decode", b"{", 400, "Validation", "not JSON"),
    ],
)
def test_errors_have_teis_shape(
    app: App, path: str, body: object, status: int, kind: str, message: str
) -> None:
    answer = ask(app, path, body)
    error = answer.json()
    assert (answer.status, [*error], error["error_type"]) == (status, ["error", "error_type"], kind)
    assert message in error["error"]


def test_refusals_of_its_paths_have_it_too(reference: Any, tmp_path: Path) -> None:
    app = App(Models([Model("m", str(tmp_path))]), Limits(body=100), keys=("key",))
    assert ask(app, "/decode", {"ids": [1]}).json()["error_type"] == "Validation"
    key = "Bearer key"
    assert ask(app, "/decode", {"ids": [1] * 100}, authorization=key).status == 413
    app.in_progress = app.limits.requests
    busy = ask(app, "/decode", {"ids": [1]}, authorization=key)
    assert (busy.status, busy.json()["error_type"]) == (429, "Overloaded")
    assert busy.headers[b"retry-after"] == b"1"


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": "a", "prompt": "a"},
        {"inputs": "a", "messages": []},
        {"inputs": 1, "prompt": 2},
        {},
    ],
)
def test_whose_request_it_is_must_be_clear(app: App, body: object) -> None:
    """Else the shape is vLLM's."""
    assert ask(app, "/tokenize", body).error()[0] == 400


def test_it_says_what_it_is(app: App, tmp_path: Path) -> None:
    info = ask(app, "/info").json()
    assert info["served_model_name"] == "m" and info["model_id"] == str(tmp_path)
    assert (info["max_input_length"], info["max_client_batch_size"]) == (100, 3)
