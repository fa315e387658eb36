# SPDX-License-Identifier: BSD-3-Clause
"""`tok train` on small texts: the reference's vocabularies, and what it refuses."""

import json
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from training import (
    BERT,
    BUILD,
    TOK,
    BertSettings,
    Settings,
    characters,
    options_of,
    pinned,
    reference_bert,
    reference_bpe,
    run,
    tokenizers,
    train,
    vocab_of,
)

dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

# Few letters: ties, tokens that are made in several ways, runs of one letter.
ALPHABETS = ["ab", "aab", "a", " a\n", "ab \n", "abcde ", "abcdefghij  \n", "é中a '.\r\n\t\0"]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def some_text(rng: random.Random, alphabets: list[str]) -> str:
    return "".join(rng.choices(rng.choice(alphabets), k=rng.choice([1, 5, 20, 100, 400, 2000])))


def assert_one_line(done: subprocess.CompletedProcess[bytes], code: int, says: str) -> None:
    assert done.returncode == code
    assert done.stderr.startswith(b"tok: ")
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.endswith(b"\n")
    assert says in done.stderr.decode()


# ---- equal to the reference ----


@pytest.mark.parametrize("seed", range(4))
def test_bpe_is_the_reference_s_file(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        texts = [some_text(rng, ALPHABETS) for _ in range(rng.choice([1, 1, 2]))]
        if rng.random() < 0.2:  # the queue has several counts in one list above 63
            texts[0] = (texts[0][:100] + "\n") * 300
        files = [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(texts)]
        special = rng.choice([(), ("<s>",), ("<s>", '<"\\>', "<s>", "é\x01")])
        settings = Settings(
            vocab_size=259 + rng.choice([0, 1, 3, 10, 50, 300, 1000]),
            min_frequency=rng.choice([0, 1, 2, 3]),
            special=special,
            max_token_length=rng.choice([None, None, 1, 2, 3, 4, 6, 10]),
            pretokenizer=rng.choice(["gpt2", "gpt2", "llama3", "qwen2"]),
        )
        made = train(files, settings, tmp_path / "made.json").read_text()
        assert made == reference_bpe(files, settings), (settings, texts)


BERT_ALPHABETS = [
    "ab",
    "abc ",
    "abcde ,.\n",
    "aAbB é\u0301",
    "中文ab ",
    "가나다 각e\u0301\u0323x",
    "İIi\u0307 ßẞ",
    "\u0591\u05b0\u1dce\u0f71\u0301\u0327a b",
    "a\u200d\ufeff\x01b\ufffd c\r\n",
    "ab \U00016ff0\u302e\U0001d165\U0001d16d",  # marks that stay, each of another class
]


def some_bert_settings(rng: random.Random) -> BertSettings:
    return BertSettings(
        vocab_size=rng.choice([60, 100, 300, 1000]),
        min_frequency=rng.choice([0, 1, 2, 3]),
        limit_alphabet=None,
        initial_alphabet=rng.choice(["", "xyz"]),
        lowercase=rng.random() < 0.6,
        clean_text=rng.random() < 0.8,
        handle_chinese_chars=rng.random() < 0.7,
        strip_accents=rng.choice([None, None, True, False]),
    )


@pytest.mark.parametrize("seed", range(4))
def test_wordpiece_is_the_reference_s_vocabulary(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        text = some_text(rng, BERT_ALPHABETS)
        path = write(tmp_path / "text.txt", "a" + text)
        settings = some_bert_settings(rng)
        settings = BertSettings(**vars(settings) | {"special": BERT + pinned(path, settings)})
        made = train([path], settings, tmp_path / "made.json")
        assert vocab_of(made) == reference_bert([path], settings), (settings, text)


def test_a_limited_alphabet_is_the_reference_s(tmp_path: Path) -> None:
    """Where the last character kept is more frequent than the first that is not."""
    rng = random.Random(5)
    compared = 0
    for _ in range(30):
        letters = "abcdefghijklmnop中文 "
        text = "".join(rng.choices(letters, weights=range(1, 1 + len(letters)), k=500))
        path = write(tmp_path / "text.txt", text)
        counts = sorted(characters(path, BertSettings()).values(), reverse=True)
        limit = rng.randrange(1, len(counts))
        if counts[limit - 1] == counts[limit]:
            continue
        special = BERT + pinned(path, BertSettings())
        settings = BertSettings(200, special=special, limit_alphabet=limit)
        made = train([path], settings, tmp_path / "made.json")
        assert vocab_of(made) == reference_bert([path], settings), (limit, text)
        compared += 1
    assert compared > 10


def test_what_the_reference_leaves_to_chance_goes_by_code_point(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "zy xw vu yz wx uv t")
    made = train([path], BertSettings(100, min_frequency=9), tmp_path / "made.json")
    assert list(vocab_of(made)) == [*BERT, *"tuvwxyz", *(f"##{c}" for c in "uvwxyz")]
    settings = BertSettings(100, min_frequency=9, limit_alphabet=3)
    made = train([path], settings, tmp_path / "made.json")
    assert list(vocab_of(made)) == [*BERT, *"uvw", "##u", "##v", "##w"]


def test_each_line_with_its_end_is_a_text(tmp_path: Path) -> None:
    """White space at the end of one is a word with gpt2's, were the next line behind it or not."""
    path = write(tmp_path / "text.txt", "a   \n   b\n" * 3 + "c  ")
    made = train([path], Settings(300), tmp_path / "made.json").read_text()
    assert made == reference_bpe([path], Settings(300))
    joined = ["".join(pair) for pair in json.loads(made)["model"]["merges"]]
    assert "ĠĠĠĊ" in joined
    assert not any("ĊĠ" in token for token in joined)


@pytest.mark.parametrize("settings", [Settings(400), BertSettings(200)], ids=["bpe", "wordpiece"])
def test_the_same_text_gives_the_same_file(
    settings: Settings | BertSettings, tmp_path: Path
) -> None:
    text = b"the cat sat\n" * 9 + bytes(random.Random(3).choices(b"abcdef \n", k=5000))
    path = write(tmp_path / "text.txt", text)
    first = train([path], settings, tmp_path / "1.json").read_bytes()
    assert train([path], settings, tmp_path / "2.json").read_bytes() == first
    done = run(*options_of(settings), "-o", tmp_path / "3.json", "-", data=text)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "3.json").read_bytes() == first


# ---- what is made is good for something ----

TEXTS = ["", "the cats", "Ünïcode 中文 don't\n\n  x", "[CLS] <s> zzz", "a\u0301 가각"]


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen2", "o200k", "tekken", "deepseek"])
def test_bpe_is_loaded_by_both(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "the cat sat on the mat, don't\n" * 5)
    made = train([path], Settings(280, special=("<s>",), pretokenizer=name), tmp_path / "t.json")
    ours, theirs = dpdk_tokd.Tokenizer.load(str(made)), tokenizers.Tokenizer.from_file(str(made))
    for text in TEXTS:
        assert ours.encode(text).tolist() == theirs.encode(text).ids
        assert ours.decode(ours.encode(text)) == text


@pytest.mark.parametrize("lowercase", [True, False])
def test_wordpiece_is_loaded_by_both(lowercase: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "The cat sat on the mat, don't Ünïcode\n" * 5)
    made = train([path], BertSettings(100, lowercase=lowercase), tmp_path / "tokenizer.json")
    ours, theirs = dpdk_tokd.Tokenizer.load(str(made)), tokenizers.Tokenizer.from_file(str(made))
    for text in TEXTS:
        assert ours.encode(text).tolist() == theirs.encode(text).ids
    assert ours.encode("").tolist() == [2, 3]  # [CLS] and [SEP]


# ---- hostile and odd texts ----


@pytest.mark.parametrize(
    "data",
    [b"a" * (2 << 20), b"\0" * (2 << 20), b"ab" * (1 << 20), " \u3000".encode() * (1 << 19)],
    ids=["letters", "nul", "two letters", "spaces"],
)
def test_a_long_line_is_not_quadratic(data: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", data)
    begin = time.monotonic()
    train([path], Settings(300, max_token_length=200), tmp_path / "made.json")
    assert time.monotonic() - begin < 20  # quadratic: hours


def test_one_word_of_random_letters_is_not_quadratic(tmp_path: Path) -> None:
    data = bytes(random.Random(1).choices(b"abcdefgh", k=1 << 19))
    path = write(tmp_path / "text.txt", data)
    begin = time.monotonic()
    train([path], Settings(5000), tmp_path / "made.json")
    assert time.monotonic() - begin < 30


def test_a_token_that_libtok_could_not_load_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "a" * 8000)
    done = run("--model", "bpe", "--min-frequency", "1", "-o", tmp_path / "t.json", path)
    assert_one_line(done, 1, "the limit is 1024: --max-token-length")
    assert not (tmp_path / "t.json").exists()


# ---- refused ----


@pytest.mark.parametrize("model", ["bpe", "wordpiece"])
def test_a_file_that_is_not_utf_8_is_refused(model: str, tmp_path: Path) -> None:
    good = write(tmp_path / "good.txt", "hello\n")
    late = b"x\n" * 800_000
    for data, at in [(b"one\ntw\xff\n", 6), (b"\xed\xa0\x80", 0), (late + b"\xc3", len(late))]:
        path = write(tmp_path / "bad.txt", data)
        done = run("--model", model, "-o", tmp_path / "t.json", good, path)
        assert_one_line(done, 1, f"bad.txt: not UTF-8 at byte {at}:")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.txt", "good.txt"]


REFUSED = [
    ([], "--model bpe|wordpiece is missing"),
    (["--model", "unigram"], "--model unigram: give bpe or wordpiece"),
    (["--model", "bpe", "x"], "--out FILE is missing"),
    (["--model", "bpe", "-o", "x"], "expected tok train --model M -o FILE.json TEXT..."),
    (["--model", "bpe", "--vocab-size", "0"], "--vocab-size 0: out of range; give 1 to 2097152"),
    (["--model", "bpe", "--vocab-size", "9999999"], "--vocab-size 9999999: out of range"),
    (["--model", "bpe", "--vocab-size", "1x"], "--vocab-size 1x: not a number"),
    (["--model", "bpe", "--min-frequency", "-1"], "--min-frequency -1: not a number"),
    (["--model", "bpe", "--pretokenizer", "gpt5"], "--pretokenizer gpt5: not implemented"),
    (["--model", "bpe", "-o", "x", "y", "--cased"], "--cased is not for --model bpe"),
    (
        ["--model", "wordpiece", "-o", "x", "y", "--pretokenizer", "gpt2"],
        "--pretokenizer is not for --model",
    ),
    (["--model", "bpe", "--special", ""], "--special: the value is empty; give TOKEN"),
    (["--model", "bpe", "--frobnicate"], "--frobnicate: no such option"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED, ids=[" ".join(o) for o, _ in REFUSED])
def test_wrong_use_is_said(options: list[str], says: str) -> None:
    assert_one_line(run(*options), 2, says)


FAILS = [
    (["--model", "bpe", "--vocab-size", "255"], "special tokens and the alphabet are 256 already"),
    (["--model", "wordpiece", "--vocab-size", "8"], "are 9 already; --limit-alphabet"),
    (["--model", "wordpiece", "--special", "[PAD]"], "WordPiece needs the special token [UNK]"),
    (["--model", "bpe", "--special", "x" * 513], "expected 1 to 512 bytes of UTF-8"),
    (["--model", "bpe", "--pretokenizer", "cl100k"], "llama3 differs in white space"),
]


def test_what_libtok_could_not_load_is_refused(tmp_path: Path) -> None:
    path, out = write(tmp_path / "text.txt", "ab ab a\0b"), tmp_path / "t.json"
    done = run("--model", "bpe", "--special", "b", "-o", out, path)
    assert_one_line(done, 1, 'special token "b" is a letter')
    done = run("--model", "bpe", "--special", "ab", "-o", out, path)
    assert_one_line(done, 1, 'special token "ab" is also what words')
    done = run("--model", "wordpiece", "--keep-controls", "-o", out, path)
    assert_one_line(done, 1, "a word has a NUL")
    assert not out.exists()
    train([path], BertSettings(special=(*BERT, "ab", "a")), out)  # WordPiece has no such trouble
    assert dpdk_tokd.Tokenizer.load(str(out)).encode("ab", add_special_tokens=False).tolist() == [5]


@pytest.mark.parametrize(("options", "says"), FAILS, ids=[" ".join(o)[:60] for o, _ in FAILS])
def test_what_cannot_be_is_said(options: list[str], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "abba\n")
    assert_one_line(run(*options, "-o", tmp_path / "t.json", path), 1, says)
    assert [p.name for p in tmp_path.iterdir()] == ["text.txt"]


def test_files_that_cannot_be_read_or_written_are_said(tmp_path: Path) -> None:
    path, out = write(tmp_path / "text.txt", "abba\n"), tmp_path / "t.json"
    missing = tmp_path / "missing.txt"
    assert_one_line(run("--model", "bpe", "-o", out, path, missing), 1, "missing.txt: No such file")
    assert_one_line(run("--model", "bpe", "-o", out, tmp_path), 1, "is a folder")
    nowhere = tmp_path / "no" / "t.json"
    assert_one_line(run("--model", "bpe", "-o", nowhere, path), 1, "t.json: No such file")
    empty = write(tmp_path / "empty.txt", "")
    assert_one_line(run("--model", "bpe", "-o", out, empty, empty), 1, "the files have no words")
    blank = write(tmp_path / "blank.txt", " \n\t\n")
    assert_one_line(run("--model", "wordpiece", "-o", out, blank), 1, "the files have no words")
    assert not out.exists()


def test_too_little_memory_is_said(tmp_path: Path) -> None:
    if "-fsanitize=address" in (BUILD / "build.ninja").read_text():
        pytest.skip("AddressSanitizer needs more address space than there is to be")
    data = bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz ", k=2 << 20))
    path = write(tmp_path / "text.txt", data)
    said = set()
    for mib in (20, 40):

        def limit(size: int = mib << 20) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

        done = run("--model", "bpe", "-o", tmp_path / "t.json", path, preexec_fn=limit)
        if done.returncode != 0:
            assert_one_line(done, 1, "out of memory")
            said.add(done.stderr)
    assert len(said) > 1
    assert sorted(p.name for p in tmp_path.iterdir()) in (["text.txt"], ["t.json", "text.txt"])


def test_interrupted_it_leaves_what_was_there(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", random.Random(1).randbytes(4 << 20).hex())
    out = write(tmp_path / "t.json", "what was there")
    command = [TOK, "train", "--model", "bpe", "--progress", "-o", out, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(path.read_bytes() + b"\n")
        process.stdin.flush()
        assert b"MB read" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == -signal.SIGINT
    assert out.read_text() == "what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.json", "text.txt"]


def test_progress_is_said_on_request_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "abba\n" * 1000)
    done = run("--model", "bpe", "--progress", "-o", tmp_path / "t.json", path)
    assert done.returncode == 0
    assert b"tok: 0 of 0 MB read\n" in done.stderr
