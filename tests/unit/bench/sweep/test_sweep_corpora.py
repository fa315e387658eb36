# SPDX-License-Identifier: BSD-3-Clause
"""tools/sweep --corpus: which files it takes, what they stand for, and what is recorded of them."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import task as tasks
from bench.sweep import box as boxes
from bench.sweep import corpora
from bench.sweep.box import BoxError
from bench.sweep.store import Store, StoreError

ROOT = Path(__file__).resolve().parents[4]
TEXT = "".join(f"Line {n} of {n * n} w\u00f6rds, \u4f60\u597d.\n" for n in range(6000)).encode()
PARAMETERS = {
    "vocabulary": ["gpt2"], "seen": ["first"], "corpus": ["english", "mixed"], "unit": ["bytes"],
    "length": [200], "engine": ["tokenizers"], "calls": [50], "megabytes": [1], "seconds": [60],
}  # fmt: skip
ENTRY = {"task": "tokenize", "parameters": PARAMETERS, "metrics": ["call p50", "ns-per-byte"]}


@pytest.fixture
def own(tmp_path) -> Path:
    path = tmp_path / "my-notes.txt"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def box(tmp_path) -> Path:
    path = tmp_path / "box.json"
    whole = {"name": "own", "title": "Own text", "repeats": {"full": 1, "quick": 1}}
    path.write_text(json.dumps(whole | {"tests": [ENTRY]}))
    return path


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("absent.txt", None, "there is no such file"),
        ("a b.txt", TEXT, "name the file by 1 to 40 of A-Z"),
        ("english.txt", TEXT, "'english' is what a corpus of tools/fetch-corpus is called"),
        ("mixed", TEXT, "'mixed' is what a corpus"),
        ("few.txt", TEXT[:99_999], "99,999 bytes: give a file of 100,000 to 268,435,456"),
        ("latin.txt", TEXT + "\u00e9 at the end".encode("latin-1"), "is not UTF-8: convert it"),
        ("cut.txt", TEXT + "\u4f60".encode()[:2], f"byte {len(TEXT):,} is not UTF-8"),
    ],
    ids=["absent", "blank", "english", "mixed", "few", "latin", "cut"],  # not the texts
)
def test_what_cannot_be_a_corpus_is_refused_with_the_remedy(tmp_path, name, data, complaint):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(BoxError) as error:
        corpora.read([path])
    assert str(error.value).startswith(f"--corpus {path}: ") and complaint in str(error.value)


def test_two_of_one_name_and_a_folder_are_refused(tmp_path, own):
    other = tmp_path / "other" / own.name
    other.parent.mkdir()
    other.write_bytes(TEXT)
    with pytest.raises(BoxError, match=f"{own} is called the same"):
        corpora.read([own, other])
    with pytest.raises(BoxError, match="not a file"):
        corpora.read([other.parent])


def test_it_takes_the_place_of_every_corpus(tmp_path, own, box):
    second = tmp_path / "second.md"
    second.write_bytes(TEXT[::-1].decode("utf-8", "ignore").encode())
    given = corpora.read([own, second])
    assert [t.parameters["corpus"] for t in boxes.load(box, False).tests] == ["english", "mixed"]
    found = boxes.load(box, False, given)
    assert [t.parameters["corpus"] for t in found.tests] == ["my-notes", "second"]
    jitter = {"without": ["nothing"], "neighbour": ["none"], "seconds": [1]}
    entry = {"task": "jitter", "parameters": jitter, "metrics": ["lost"]}
    box.write_text(json.dumps(json.loads(box.read_text()) | {"tests": [entry]}))
    with pytest.raises(BoxError, match="no task of them has a corpus: leave out --corpus"):
        boxes.load(box, False, given)


@pytest.mark.parametrize("path", sorted(ROOT.glob("boxes/*.json")), ids=lambda path: path.stem)
def test_every_box_takes_one_where_its_tasks_have_a_corpus(own, path):
    given = corpora.read([own])
    if not any("corpus" in test.parameters for test in boxes.load(path, False).tests):
        with pytest.raises(BoxError, match="leave out --corpus"):
            boxes.load(path, False, given)
        return
    tests = boxes.load(path, False, given).tests
    assert {t.parameters["corpus"] for t in tests if "corpus" in t.parameters} == {"my-notes"}


def swept(*arguments: object) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT / "tools"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "bench.sweep", *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def goes_on(out: Path, box: boxes.Box) -> str:
    """On the same machine, and of the same revision: why not, if it does not."""
    store = Store(out)
    try:
        store.begin(box, False, store.run()["machine"], fresh=False)
    except StoreError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_a_sweep_of_it_is_recorded_and_goes_on_with_no_other(tmp_path, own, box, ranks_file):
    out = tmp_path / "out"
    done = swept(box, "--corpus", own, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((out / "results.json").read_text())
    digest = hashlib.sha256(TEXT).hexdigest()
    assert result["corpora"] == [{"name": "my-notes", "bytes": len(TEXT), "sha256": digest}]
    (row,) = result["tables"][0]["rows"]
    assert row["state"] == "done" and row["ids_checked"] > 0
    assert row["parameters"]["corpus"] == "my-notes"
    assert (
        f"Corpus my-notes: a file of one's own, {len(TEXT):,} bytes, SHA-256 {digest}."
        in (out / "table.md").read_text()
    )
    assert goes_on(out, boxes.load(box, False, corpora.read([own]))) == ""
    own.write_bytes(TEXT + b"One line more.\n")
    for given in ([own], []):
        complaint = goes_on(out, boxes.load(box, False, corpora.read(given)))
        assert "holds a sweep that is not this one" in complaint
        assert digest in complaint and "--fresh removes it" in complaint
    done = swept(box, "--corpus", tmp_path / "absent.txt", "--out", out)
    assert done.returncode == 2 and done.stderr.endswith("absent.txt: there is no such file\n")


@pytest.mark.slow
def test_the_texts_that_are_sent_are_of_it(tmp_path, own, ranks_file, monkeypatch):
    """As client-to-ids, open-loop and stages cut them."""
    from bench.tasks import systems
    from bench.texts import encode_texts

    def unwanted(_: Path) -> dict[str, Path]:
        raise AssertionError("tools/fetch-corpus was asked")

    for where in (systems.fetch_corpus, encode_texts.fetch_corpus):
        monkeypatch.setattr(where, "fetch", unwanted)
    given = {one.name: one.path for one in corpora.read([own])}
    context = tasks.Context(tmp_path, True, [], lambda _: None, given)
    vocab, pieces = systems._cut(context, {16: 30})
    assert len(pieces["my-notes", 16]) == 30
    assert all(piece.text.encode() in TEXT for piece in pieces["my-notes", 16])
    _, sample = systems._prepare_servers(context, vocab)
    assert TEXT.endswith(sample.read_bytes()) and sample.stat().st_size >= systems.SAMPLE
    kind = encode_texts.Kind("gpt2", "my-notes", "bytes", 100)
    _, found = encode_texts.cut(kind, encode_texts.load("gpt2", tmp_path), 20, given)
    assert len(found) == 20 and all(piece.text.encode() in TEXT for piece in found)
