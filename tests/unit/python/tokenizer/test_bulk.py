# SPDX-License-Identifier: BSD-3-Clause
"""`python -m dpdk_tokd encode`: documents, the files it writes, kill and resume, errors.

Parquet and Arrow are the matter of tests/ecosystem/test_bulk.py.
"""

import fcntl
import gzip
import json
import os
import pty
import random
import re
import signal
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import IO

import dpdk_tokd
import numpy as np
import pytest
from dpdk_tokd import bulk
from dpdk_tokd._native import libtok
from dpdk_tokd.bulk import run, sinks, sources
from samples import TEXTS, documents

EOS = "<|endoftext|>"
MANIFEST = "out.manifest.json"


def read_index(path: Path) -> list[np.ndarray]:
    """The documents of an indexed dataset, by the published layout, each field checked."""
    index, ids = path.with_suffix(".idx").read_bytes(), path.with_suffix(".bin")
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, n, n_documents = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1 and code in (4, 8)
    dtype = np.dtype(np.uint16 if code == 8 else np.int32)
    assert len(index) == 34 + n * 12 + n_documents * 8
    lengths = np.frombuffer(index, np.int32, n, 34)
    pointers = np.frombuffer(index, np.int64, n, 34 + n * 4)
    ends = np.frombuffer(index, np.int64, n_documents, 34 + n * 12)
    all_ids = np.fromfile(ids, dtype)
    assert ends[0] == 0 and ends[-1] == n
    assert pointers.tolist() == [0, *np.cumsum(lengths, dtype=np.int64)[:-1] * dtype.itemsize][:n]
    sequences = [all_ids[p // dtype.itemsize :][:k] for p, k in zip(pointers, lengths, strict=True)]
    assert sum(map(len, sequences)) == len(all_ids)
    return [np.concatenate([*sequences[a:b], np.empty(0, dtype)]) for a, b in pairwise(ends)]


@pytest.fixture
def texts() -> list[str]:
    text = documents().decode()
    many = [text[i : i + 700] for i in range(0, len(text), 700)]
    return [*many, "", *(t.decode("utf-8", "replace") for t in TEXTS.values())]


def json_lines(path: Path, texts: list[str]) -> str:
    path.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts))
    return str(path)


def expected(tok: dpdk_tokd.Tokenizer, texts: list[str] | list[bytes]) -> list[list[int]]:
    """With the id that ends documents, behind all but empty ones."""
    end = tok.special_tokens[EOS]
    batch = tok.encode_batch(texts, tokens_in_text="not-special")
    return [[*ids, end] if ids else [] for ids in batch.tolist()]


def small_blocks(monkeypatch, n: int = 5000) -> None:
    monkeypatch.setattr(sources, "BLOCK", n)


@pytest.mark.parametrize("jobs", [1, 3])
def test_json_lines_become_an_indexed_dataset(gpt2, gpt2_file, tmp_path, texts, monkeypatch, jobs):
    small_blocks(monkeypatch)
    files = [json_lines(tmp_path / f"{i}.jsonl", part) for i, part in enumerate((texts, texts[:3]))]
    out = tmp_path / "out"
    totals = bulk.encode_files(str(gpt2_file), files, out, append=EOS, jobs=jobs)
    got = read_index(out.with_suffix(".bin"))
    assert [ids.tolist() for ids in got] == expected(gpt2, [*texts, *texts[:3]])
    assert totals.documents == len(texts) + 3 and totals.done
    assert totals.ids == sum(map(len, got)) and totals.size == totals.total
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".jsonl") == [
        "out.bin",
        "out.idx",
        "out.manifest.json",
    ]


@pytest.mark.parametrize("block", [7, 100, 5000, 1 << 22])
@pytest.mark.parametrize("separator", ["\n", "<|endoftext|>", "  "])
def test_documents_of_a_text_end_with_the_separator(
    gpt2, gpt2_file, tmp_path, monkeypatch, block, separator
):
    """Also where a document is longer than a block, and where a block ends in a separator."""
    small_blocks(monkeypatch, block)
    text = documents()[:20_000].replace(b"\n#", EOS.encode())
    (tmp_path / "in.txt").write_bytes(text)
    bulk.encode_files(
        str(gpt2_file), [tmp_path / "in.txt"], tmp_path / "out", separator=separator, append=EOS
    )
    parts = text.split(separator.encode())
    want = expected(gpt2, parts if parts[-1] else parts[:-1])
    assert [ids.tolist() for ids in read_index(tmp_path / "out.bin")] == want


def test_each_text_file_is_one_document(gpt2, gpt2_file, tmp_path, monkeypatch):
    small_blocks(monkeypatch, 1000)
    contents = [documents()[:5000], b"", b"a" * 1000, b"short", b"b" * 2000]
    files = [tmp_path / f"{i}.txt" for i in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    bulk.encode_files(str(gpt2_file), files, tmp_path / "out", append=EOS)
    got = [ids.tolist() for ids in read_index(tmp_path / "out.bin")]
    assert got == expected(gpt2, contents)


def test_packed_files_are_unpacked(gpt2, gpt2_file, tmp_path, texts):
    plain = json_lines(tmp_path / "in.jsonl", texts)
    (tmp_path / "in2.jsonl.gz").write_bytes(gzip.compress(Path(plain).read_bytes()))
    bulk.encode_files(str(gpt2_file), [tmp_path / "in2.jsonl.gz"], tmp_path / "out")
    got = [ids.tolist() for ids in read_index(tmp_path / "out.bin")]
    assert got == gpt2.encode_batch(texts, tokens_in_text="not-special").tolist()


def test_many_ids_are_int32(tmp_path):
    words = ["[UNK]", "[CLS]", "[SEP]", *"abcw0123456789", *(f"w{i}" for i in range(66_000))]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    (tmp_path / "in.txt").write_text("a w65999")
    bulk.encode_files(str(tmp_path / "vocab.txt"), [tmp_path / "in.txt"], tmp_path / "out")
    (ids,) = read_index(tmp_path / "out.bin")
    tok = dpdk_tokd.Tokenizer.load(str(tmp_path / "vocab.txt"))
    assert ids.dtype == np.int32 and ids.max() > 65_535
    assert ids.tolist() == tok.encode("a w65999").tolist()


# ---- JSON ----

LINES = [
    b'{"text": "a", "n": [1, -2.5e3, {"b": null}], "text2": true}',
    '{"text": "naïve 😀 \\u00e9\\ud83d\\ude00 \\n\\t\\"\\\\/"}'.encode(),
    b' {"text" : "" } \r',
    b'{"text": "first", "text": "last"}',
    b'{"text": "a\\u0000b"}',
    b'{"text": "a", "text\\u0000": "b"}',
    b'{"text": "a", "n": 123456789012345678901234567890, "m": NaN}',
    b'\xef\xbb\xbf{"text": "a"}',
    b'{"text": "a", "deep": ' + b"[" * 200 + b"]" * 200 + b"}",
]


def test_lines_are_read_as_python_reads_them(tmp_path):
    """Also where libtok's parser leaves a line to Python's."""
    blank = [b"", b" \t\v\f"]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join([*blank, *LINES, *blank]))
    source = sources.Source(None, "text", None)
    blocks = source.blocks([str(tmp_path / "in.jsonl")], sources.Position(0, 0))
    texts = [text for block in blocks for text in sources.texts_of(block, source)]
    got = [text if isinstance(text, str) else text.decode() for text in texts]
    assert got == [json.loads(line)["text"] for line in LINES]


def test_libtok_takes_no_line_that_python_reads_otherwise():
    rng, taken = random.Random(1), 0
    for _ in range(20_000):
        line = bytearray(rng.choice(LINES[:3]))
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(line))
            line[at : at + rng.randrange(3)] = rng.choices(rng.choice(LINES), k=rng.randrange(3))
        for found in libtok.json_lines(bytes(line).replace(b"\n", b""), "text"):
            taken += found is not None
            assert found is None or json.loads(line)["text"].encode() == found
    assert taken > 5000


# ---- killed and resumed ----


def command(vocab: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "dpdk_tokd", "encode", str(vocab), *map(str, arguments)]


def same_files(a: Path, b: Path) -> None:
    for ending in (".bin", ".idx"):
        assert a.with_suffix(ending).read_bytes() == b.with_suffix(ending).read_bytes()


SLOW = """
import sys, time
from dpdk_tokd.bulk import cli, run, sources
sources.BLOCK, run.SAVE_SECONDS = 20_000, 0
encode = run._encode
run._encode = lambda *a: (time.sleep(0.01), encode(*a))[1]
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_killed_at_any_time_and_run_again_gives_the_same_files(gpt2_file, tmp_path, texts):
    """Or interrupted from the keyboard; with one thread or two."""
    source = json_lines(tmp_path / "in.jsonl", texts * 20)
    arguments = ["encode", str(gpt2_file), source, "--append-eos", EOS, "-o"]
    program = [sys.executable, "-c", SLOW, *arguments]
    subprocess.run([*program, tmp_path / "whole"], check=True)
    at, kills = 0.2, 0
    while True:
        process = subprocess.Popen([*program, tmp_path / "cut", "-j", str(1 + kills // 2 % 2)])
        try:
            assert process.wait(at) == 0
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL if kills % 2 else signal.SIGINT)
            process.wait()
            kills += 1
            at += 0.05  # later each time, so that the next goes further
    assert kills >= 3, "a resumed run ended before it could be killed three times"
    same_files(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.parametrize("calls", range(5))
def test_interrupted_at_each_step_of_the_end_it_finishes(
    gpt2_file, tmp_path, texts, monkeypatch, calls
):
    """The n-th file to be renamed is not, and nothing that follows happens."""
    source = json_lines(tmp_path / "in.jsonl", texts)
    bulk.encode_files(str(gpt2_file), [source], tmp_path / "whole")
    left = calls

    def rename(old: Path, new: Path) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        os.replace(old, new)

    with monkeypatch.context() as m:
        m.setattr(sinks, "rename", rename)
        m.setattr(run, "rename", rename)
        m.setattr(run, "SAVE_SECONDS", 0)
        with pytest.raises(KeyboardInterrupt):
            bulk.encode_files(str(gpt2_file), [source], tmp_path / "cut")
    assert bulk.encode_files(str(gpt2_file), [source], tmp_path / "cut").done
    same_files(tmp_path / "cut", tmp_path / "whole")


def test_a_full_disk_ends_a_run_that_continues_later(gpt2_file, tmp_path, texts):
    """A limit of the files' size, in place of the disk's."""
    source = json_lines(tmp_path / "in.jsonl", texts)
    subprocess.run(command(gpt2_file, source, "-o", tmp_path / "whole"), check=True, timeout=60)
    program = command(gpt2_file, source, "-o", tmp_path / "cut")
    limited = ["prlimit", "--fsize=20000", *program]
    p = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=60)
    assert p.returncode == 1
    assert "cut: File too large: once that is mended, the same command continues\n" in p.stderr
    subprocess.run(program, check=True, timeout=60)
    same_files(tmp_path / "cut", tmp_path / "whole")


def test_another_that_is_started_meanwhile_changes_nothing(gpt2_file, tmp_path, texts, monkeypatch):
    """At each step of the first, also where the result has its names and the manifest has not."""
    source = json_lines(tmp_path / "in.jsonl", texts)
    bulk.encode_files(str(gpt2_file), [source], tmp_path / "whole")
    small_blocks(monkeypatch)
    renamed = []

    def rename(old: Path, new: Path) -> None:
        with pytest.raises(bulk.BulkError, match="another process writes this output"):
            bulk.encode_files(str(gpt2_file), [source], tmp_path / "out")
        os.replace(old, new)
        renamed.append(new.name)

    monkeypatch.setattr(sinks, "rename", rename)
    monkeypatch.setattr(run, "rename", rename)
    monkeypatch.setattr(run, "SAVE_SECONDS", 0)
    assert bulk.encode_files(str(gpt2_file), [source], tmp_path / "out").done
    assert len(renamed) > 5 and renamed[-3:] == ["out.idx", "out.bin", MANIFEST]
    same_files(tmp_path / "out", tmp_path / "whole")
    assert sorted(p.name for p in tmp_path.glob("out*")) == ["out.bin", "out.idx", MANIFEST]


def test_one_that_waited_continues_from_what_the_other_has_done(gpt2_file, tmp_path, monkeypatch):
    """It opened the lock before the other removed it."""
    (tmp_path / "in.txt").write_text("Hello")
    arguments = (str(gpt2_file), [tmp_path / "in.txt"], tmp_path / "out")
    flock = fcntl.flock

    def ended(file: IO[bytes], how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        Path(file.name).unlink()
        assert bulk.encode_files(*arguments).done
        (tmp_path / "out.bin").write_bytes(b"the other's")
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", ended)
    assert bulk.encode_files(*arguments).done
    assert (tmp_path / "out.bin").read_bytes() == b"the other's"
    (tmp_path / MANIFEST).unlink()
    with (tmp_path / f"{MANIFEST}.lock").open("wb") as third:
        flock(third, fcntl.LOCK_EX)
        with pytest.raises(bulk.BulkError, match=r"\.lock: another process writes this output"):
            bulk.encode_files(*arguments)
    assert bulk.encode_files(*arguments).done  # what a killed one leaves is no obstacle


def test_other_options_do_not_continue_a_run(gpt2_file, tmp_path, texts):
    source = json_lines(tmp_path / "in.jsonl", texts)
    bulk.encode_files(str(gpt2_file), [source], tmp_path / "out")
    with pytest.raises(bulk.BulkError, match=r"out.manifest.json: was begun with .* \(append\)"):
        bulk.encode_files(str(gpt2_file), [source], tmp_path / "out", append=EOS)
    os.utime(source, (0, 0))  # another text, perhaps of the same size
    with pytest.raises(bulk.BulkError, match=r"out.manifest.json: was begun with .* \(inputs\)"):
        bulk.encode_files(str(gpt2_file), [source], tmp_path / "out")


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        '{"begun": []}',
        "of another program",
        {"at": {"file": 0}},
        {"state": []},
        {"state": {"ids": "7"}},
        {"totals": {"documents": -1}},
    ],
)
def test_a_manifest_of_something_else_is_refused(gpt2_file, tmp_path, texts, content):
    source = json_lines(tmp_path / "in.jsonl", texts)
    bulk.encode_files(str(gpt2_file), [source], tmp_path / "out")
    manifest = tmp_path / MANIFEST
    whole = json.loads(manifest.read_text())
    manifest.write_text(content if isinstance(content, str) else json.dumps(whole | content))
    with pytest.raises(bulk.BulkError, match=r"out\.manifest\.json: .*begin again"):
        bulk.encode_files(str(gpt2_file), [source], tmp_path / "out")


def test_special_tokens_stay_text_unless_asked(gpt2, gpt2_file, tmp_path):
    """By default as with the command."""
    text = f"a{EOS}"
    (tmp_path / "in.txt").write_text(text)
    for tokens in ("not-special", "all"):
        options = {} if tokens == "not-special" else {"tokens_in_text": tokens}
        bulk.encode_files(str(gpt2_file), [tmp_path / "in.txt"], tmp_path / tokens, **options)
        ids = np.fromfile(tmp_path / f"{tokens}.bin", np.uint16).tolist()
        assert ids == gpt2.encode(text, tokens_in_text=tokens).tolist()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"to": "csv"}, ValueError, '^to: \'csv\': expected "bin", "parquet" or "arrow"$'),
        ({"kind": "xml"}, ValueError, '^kind: \'xml\': expected "text", "json" or "parquet"$'),
        ({"jobs": -1}, ValueError, "^jobs: -1: expected a number from 1 to 1024$"),
        ({"field": "text"}, bulk.BulkError, "^field 'text': is for JSON lines and Parquet"),
    ],
)
def test_wrong_and_ignored_arguments_are_refused(gpt2_file, tmp_path, options, error, says):
    (tmp_path / "in.txt").write_text("Hello")
    with pytest.raises(error, match=says):
        bulk.encode_files(str(gpt2_file), [tmp_path / "in.txt"], tmp_path / "out", **options)


def test_progress_is_shown_on_a_terminal(gpt2_file, tmp_path):
    (tmp_path / "in.txt").write_text("Hello")
    ours, theirs = pty.openpty()
    program = command(gpt2_file, tmp_path / "in.txt", "-o", tmp_path / "out")
    subprocess.run(program, stderr=theirs, check=True, timeout=60)
    shown = os.read(ours, 1000).decode()
    assert re.search(r"1 documents, 0 of 0 MB, [\d.]+ MB/s, [\d.]+ M ids/s, \d+ s\r?\n$", shown)
    subprocess.run(program, stderr=theirs, check=True, timeout=60)
    assert os.read(ours, 1000).decode().startswith(f"dpdk_tokd: {tmp_path}/out: complete; remove")


# ---- errors ----


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a"', "in.jsonl: line 4: not JSON: Expecting"),
        (b'["text"]', "in.jsonl: line 4: not a JSON object"),
        (b'{"body": "a"}', "in.jsonl: line 4: no field 'text' (there are: 'body'): give --field"),
        (b'{"text": 5}', "in.jsonl: line 4: field 'text' is not a string"),
        (b'{"text": "\\ud800"}', "in.jsonl: line 4: 'utf-8' codec can't encode"),
        (b'{"text": "\xff"}', "in.jsonl: line 4: not JSON: 'utf-8' codec can't decode"),
    ],
)
@pytest.mark.parametrize("block", [10, 1 << 22])
def test_an_error_names_the_line(gpt2_file, tmp_path, monkeypatch, line, message, block):
    small_blocks(monkeypatch, block)
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "b"}\n\n{"text": "c"}\n' + line + b"\n")
    with pytest.raises(bulk.BulkError) as e:
        bulk.encode_files(str(gpt2_file), [tmp_path / "in.jsonl"], tmp_path / "out")
    assert message in str(e.value)


def test_the_command_says_what_is_wrong_in_one_line(gpt2_file, tmp_path):
    (tmp_path / "in.txt").write_text("Hello")
    for arguments, code, message in (
        ([tmp_path / "none.txt"], 1, "none.txt: No such file or directory"),
        ([tmp_path], 1, "not a regular file: give files"),
        ([tmp_path / "in.txt", "--append-eos", "</s>"], 1, "'</s>' is no token of"),
        (
            [tmp_path / "in.txt", "--append-eos", "50257"],
            1,
            "append: 50257: expected a number from 0 to 50256",
        ),
        ([tmp_path / "in.txt", "--separator", ""], 1, "separator: empty"),
        ([tmp_path / "in.txt", "--separator", r"\ud800"], 1, "surrogates not allowed: give whole"),
        ([tmp_path / "in.txt", "--separator", r"\u"], 2, r"truncated \uXXXX escape; \\ is a"),
        ([tmp_path / "in.txt", "--separator", "x", "--from", "json"], 1, "is for files of text"),
        ([tmp_path / "in.txt", "--jobs", "0"], 2, "expected a number from 1 to 1024"),
        ([tmp_path / "in.txt"], 0, ""),
    ):
        program = command(gpt2_file, *arguments, "-o", tmp_path / "out")
        p = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
        assert (p.returncode, p.stdout) == (code, "") and message in p.stderr, p.stderr
        assert code == 2 or p.stderr.count("\n") == (code != 0), p.stderr


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("", "output '': no name: give FOLDER/NAME"),
        ("none/out", "output none/out: none is no folder: make it"),
        ("in", "in.bin: output in would replace it"),
    ],
)
def test_an_output_that_cannot_be_is_refused(gpt2_file, tmp_path, monkeypatch, out, message):
    monkeypatch.chdir(tmp_path)
    Path("in.bin").write_text("Hello")
    with pytest.raises(bulk.BulkError, match=re.escape(message)):
        bulk.encode_files(str(gpt2_file), ["in.bin"], out)
    assert [p.name for p in tmp_path.iterdir()] == ["in.bin"]
