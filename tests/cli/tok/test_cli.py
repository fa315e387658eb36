# SPDX-License-Identifier: BSD-3-Clause
"""The `tok` command as a user runs it, on GPT-2's vocabulary in each format."""

import array
import base64
import json
import os
import random
import selectors
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
TOK = Path(os.environ.get("TOKD_BUILD", REPOSITORY / "build")) / "app/tok"
END_OF_TEXT = "<|endoftext|>"
GPT2_CHECKSUM = "68850f16"  # on the wire: both sides name a vocabulary by it

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "It's 3.14 — they'll've  seen\t\n\n   naïve 中文 😀 'quoted' 's",
    "a" * 300 + "-" * 300 + "=" * 300,
    "The end.<|endoftext|>Not the end.",
    "\u3000\u00a0\u2028x \u0085 ¼½ Ⅷ ١٢٣ éé e\u0301",
    " ".join(random.Random(1).choices(["the", "of", "\n", "12", "(x)", "中", "don't"], k=2000)),
]


def run(
    *args: str | Path, data: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    if not TOK.is_file():
        pytest.skip(f"{TOK} is not built")
    return subprocess.run(
        [TOK, *args],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
        env=None if env is None else os.environ | env,
    )


def encode(vocab: Path, data: bytes, *args: str) -> list[int]:
    done = run("encode", "--vocab", vocab, *args, data=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"\n")
    return [int(number) for number in done.stdout.split()]


def decode(vocab: Path, ids: list[int]) -> bytes:
    done = run("decode", "--vocab", vocab, data=" ".join(map(str, ids)).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def assert_one_line(done: subprocess.CompletedProcess[bytes], code: int, says: str) -> None:
    assert done.returncode == code
    assert done.stderr.startswith(b"tok: ")
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.endswith(b"\n")
    assert says in done.stderr.decode()


@pytest.fixture(scope="session")
def formats(gpt2_reference, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """GPT-2's vocabulary in each format that libtok reads."""
    folder = tmp_path_factory.mktemp("gpt2")
    document = json.loads(gpt2_reference.to_str())
    document["truncation"] = document["padding"] = None
    model = document["model"]
    model["vocab"][END_OF_TEXT] = 50256
    document["added_tokens"] = [{"id": 50256, "content": END_OF_TEXT, "special": True}]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    hidden = [b for b in range(256) if b not in shown]
    byte = {chr(b): b for b in shown} | {chr(256 + i): b for i, b in enumerate(hidden)}
    ranks = sorted((i, t) for t, i in model["vocab"].items() if t != END_OF_TEXT)

    (folder / "tokenizer.json").write_text(json.dumps(document))
    (folder / "pair").mkdir()
    (folder / "pair/vocab.json").write_text(json.dumps(model["vocab"]))
    (folder / "pair/merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    with (folder / "gpt2.tiktoken").open("wb") as file:
        for i, token in ranks:
            file.write(base64.b64encode(bytes(byte[c] for c in token)) + b" %d\n" % i)
    return {
        "tokenizer.json": folder / "tokenizer.json",
        "vocab.json": folder / "pair",
        "tiktoken": folder / "gpt2.tiktoken",
    }


@pytest.fixture(scope="session")
def vocab(formats: dict[str, Path]) -> Path:
    """The format that loads fastest: these tests start the command a hundred times."""
    return formats["tiktoken"]


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "tiktoken"])
def test_each_format_is_the_same_vocabulary(formats: dict[str, Path], name: str) -> None:
    done = run("vocab", "info", formats[name])
    assert done.returncode == 0, done.stderr
    info = dict(line.split(None, 1) for line in done.stdout.decode().splitlines())
    assert info["format"] == name
    assert info["checksum"] == GPT2_CHECKSUM
    assert (info["ids"], info["merges"], info["special"]) == ("50257", "50000", "1")
    assert info["pretokenizer"] == "gpt2"


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "tiktoken"])
def test_ids_are_the_references_and_decode_to_the_text(formats, gpt2_reference, name) -> None:
    for text in ("", "\n".join(TEXTS)):
        want = gpt2_reference.encode(text).ids
        assert encode(formats[name], text.encode()) == want
        assert decode(formats[name], want) == text.encode()


@pytest.mark.parametrize("split", ["1", "2", "3", "7", "4096", "random:0", "random:1", "random:2"])
def test_splitting_the_text_does_not_change_the_ids(vocab, split: str) -> None:
    for text in ("", "\n".join(TEXTS)):
        whole = encode(vocab, text.encode())
        assert encode(vocab, text.encode(), "--split", split) == whole


def test_options_that_change_nothing_are_taken(vocab: Path) -> None:
    assert encode(vocab, b"hi there", "--algo", "exact", "--no-special") == [5303, 612]


@pytest.mark.parametrize("split", [[], ["--split", "1"], ["--split", "random:3"]])
def test_the_template_is_printed_unless_it_shall_not_be(tmp_path: Path, split: list[str]) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\n[CLS]\n[SEP]\nhello\n##s\n")
    assert encode(path, b"hellos hello", *split) == [1, 3, 4, 3, 2]
    assert encode(path, b"", *split) == [1, 2]
    assert encode(path, b"hellos hello", "--no-special", *split) == [3, 4, 3]
    assert encode(path, b"", "--no-special", *split) == []
    info = run("vocab", "info", path).stdout.decode()
    assert "template      1 TEXT 2\n" in info
    assert run("vocab", "check", path).returncode == 0


@pytest.mark.parametrize("split", [[], ["--split", "1"], ["--split", "random:3"]])
def test_which_added_tokens_are_recognised(formats, tmp_path: Path, split: list[str]) -> None:
    document = json.loads(formats["tokenizer.json"].read_text())
    document["added_tokens"].append({"id": 50257, "content": "<t>", "special": False})
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    text = f"a<t>b{END_OF_TEXT}".encode()
    marked = encode(formats["tokenizer.json"], END_OF_TEXT.encode())
    assert len(marked) > 1
    plain = [64, 50257, 65, *marked]
    assert encode(path, text, *split) == plain
    assert encode(path, text, "--added-tokens", "not-special", *split) == plain
    assert encode(path, text, "--added-tokens", "all", *split) == [64, 50257, 65, 50256]
    as_text = encode(formats["tokenizer.json"], text)
    assert encode(path, text, "--added-tokens", "none", *split) == as_text
    last = ("--added-tokens", "all", "--added-tokens", "none")
    assert encode(path, text, *last, *split) == as_text
    info = run("vocab", "info", path).stdout.decode()
    assert "special       1\nadded         1\n" in info
    assert "added         0\n" in run("vocab", "info", formats["tokenizer.json"]).stdout.decode()
    assert run("vocab", "check", path).returncode == 0


def test_bytes_that_are_not_utf8_are_replaced_or_refused(vocab, gpt2_reference) -> None:
    for data in (b"\xff", b"a\xe4\xb8 b", b"\xf0\x9f\x98", b"\xed\xa0\x80\xc0\xaf"):
        want = gpt2_reference.encode(data.decode("utf-8", "replace")).ids
        assert encode(vocab, data) == want
        assert encode(vocab, data, "--split", "1") == want
        refused = run("encode", "--vocab", vocab, "--strict-utf8", data=data)
        assert_one_line(refused, 1, "not UTF-8")


def test_where_a_text_is_not_utf8_is_said(vocab) -> None:
    good = b"hello world ok ok "
    for split in ((), ("--split", "1"), ("--split", "random:3")):
        command = ("encode", "--vocab", vocab, "--strict-utf8", *split)
        refused = run(*command, data=good + b"\xff tail")
        assert b"after %d bytes" % len(good) in refused.stderr
        assert refused.stdout.endswith(b"\n")
        assert refused.stdout.split()[:3] == [b"31373", b"995", b"12876"]


def test_a_character_that_is_not_complete_is_said_where_it_begins(vocab, talk) -> None:
    for data in (b"ab\xe4\xb8", b"ab\xe4\xb8 c", b"ab\xf0\x9f\x98\xe4\xb8\xad"):
        for split in ((), ("--split", "1"), ("--split", "3")):
            refused = run("encode", "--vocab", vocab, "--strict-utf8", *split, data=data)
            assert b"after 2 bytes" in refused.stderr
    process = talk("encode", "--strict-utf8", stderr=subprocess.PIPE)
    process.stdin.write(b"hello world ok\xe4")
    assert read_some(process).split() == [b"31373", b"995"]  # the first read is over
    process.stdin.write(b"\xb8 c")
    assert b"after 14 bytes" in process.communicate(timeout=20)[1]


def test_an_error_is_one_line_whatever_was_asked(vocab) -> None:
    assert_one_line(
        run("encode", "--vocab", vocab, "--algo", "a\nb"), 2, "--algo a?b: give exact or greedy"
    )


def read_some(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(20), "nothing was printed while standard input was open"
        return os.read(process.stdout.fileno(), 65536)


@pytest.fixture
def talk(vocab: Path):
    """Start the command with pipes to write to and read from."""
    if not TOK.is_file():
        pytest.skip(f"{TOK} is not built")
    started: list[subprocess.Popen[bytes]] = []

    def start(
        command: str, *options: str, stdout: int = subprocess.PIPE, stderr: int | None = None
    ) -> subprocess.Popen[bytes]:
        args = [TOK, command, "--vocab", vocab, *options]
        started.append(
            subprocess.Popen(args, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, bufsize=0)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_ids_are_printed_before_the_text_ends(talk) -> None:
    process = talk("encode")
    process.stdin.write(b"Hello world. ")
    assert read_some(process) == b"15496 995 13"
    assert process.communicate(timeout=20)[0] == b" 220\n"


def test_bytes_are_printed_before_the_ids_end_and_never_half_a_character(talk) -> None:
    process = talk("decode")
    process.stdin.write(b"15496 47249 ")  # "Hello", and three bytes of a character of four
    assert read_some(process) == b"Hello"
    process.stdin.write(b"222 ")
    assert read_some(process) == "😀".encode()
    assert process.communicate(timeout=20)[0] == b""


GRANITE = b"8197 438 322 18926 432 45600 49"
LLM_D = ("block-keys", "--scheme", "llm-d", "--model", "ibm-granite/granite-3.1-8b-instruct")


def test_a_key_is_printed_when_its_block_is_full() -> None:
    """llm-d-kv-cache's own example, tests/e2e/uds_tokenizer/uds_e2e_test.go."""
    with subprocess.Popen(
        [TOK, *LLM_D, "--block-size", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        process.stdin.write(GRANITE)
        assert read_some(process) == b"%016x\n" % 1334984470577408192
        assert process.communicate(timeout=20)[0] == b""


def test_keys_are_those_of_the_package() -> None:
    block_keys = pytest.importorskip("dpdk_tokd").Tokenizer.block_keys
    ids = [i * 7919 % 152064 for i in range(70_000)]
    data = " ".join(map(str, ids)).encode()
    for scheme in ("vllm-sha256-cbor", "vllm-xxhash-cbor"):
        how = ("--seed", "", "--cache-salt", "a salt", "--block-size", "3")
        done = run("block-keys", "--scheme", scheme, *how, data=data)
        keys = block_keys(ids, scheme, 3, seed="", cache_salt="a salt")
        assert done.stdout.decode().split() == [bytes(key).hex() for key in keys]
    assert_one_line(run(*LLM_D, data=b"1 2 -3"), 1, "id number 3: expected digits")


def test_memory_does_not_grow_with_the_text(talk) -> None:
    process = talk("encode", stdout=subprocess.DEVNULL)
    mebibyte = (b"A line of text, and a number: 12345.\n" * 30000)[: 1 << 20]
    peaks = []
    for _ in range(48):
        process.stdin.write(mebibyte)
        status = Path(f"/proc/{process.pid}/status").read_text()
        peaks.append(int(status.split("VmHWM:")[1].split()[0]))
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert peaks[-1] - peaks[0] < 2048, f"{peaks} KiB"


def test_ids_may_be_cut_between_reads(vocab: Path) -> None:
    text = "\n".join(TEXTS) * 40
    spaced = b" \n\t".join(b"%d" % i for i in encode(vocab, text.encode()))
    assert len(spaced) > 4 * 65536  # reads
    done = run("decode", "--vocab", vocab, data=spaced)
    assert done.returncode == 0
    assert done.stdout == text.encode()
    assert decode(vocab, []) == b""


@pytest.mark.parametrize(
    ("data", "out", "says"),
    [
        (b"15496 99999", b"Hello", "id 99999, number 2, is not in the vocabulary"),
        (b"50257", b"", "id 50257, number 1, is not in the vocabulary: its ids are below 50257"),
        (b"15496 x", b"Hello", "id number 2: expected digits, found byte 0x78"),
        (b"-1", b"", "id number 1: expected digits, found byte 0x2d"),
        (b"1\0", b"", "found byte 0x00"),
        (b"15496 4294967296", b"Hello", "id number 2 is above 4294967295"),
        (b"1" * 1000, b"", "id number 1 is above 4294967295"),
    ],
)
def test_a_bad_id_is_named_after_what_was_good(vocab, data: bytes, out, says: str) -> None:
    done = run("decode", "--vocab", vocab, data=data)
    assert_one_line(done, 1, says)
    assert done.stdout == out


def test_check_finds_gpt2_sound(vocab: Path) -> None:
    done = run("vocab", "check", vocab)
    assert done.returncode == 0, done.stderr
    assert "49912 ids whose text encodes to them" in done.stdout.decode()
    assert done.stdout.decode().splitlines()[-1].startswith("OK")


def test_check_knows_that_form_c_changes_a_text(formats, tmp_path: Path) -> None:
    document = json.loads(formats["tokenizer.json"].read_text())
    document["normalizer"] = {"type": "NFC"}
    document["added_tokens"].append({"id": 50257, "content": "<e\u0301\u212a>", "special": True})
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    done = run("vocab", "check", path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_name_is_found_in_the_search_path(formats: dict[str, Path]) -> None:
    env = {"TOK_VOCAB_PATH": f"/nowhere:{formats['tiktoken'].parent}"}
    done = run("vocab", "info", "gpt2", env=env)
    assert done.returncode == 0, done.stderr
    assert f"file          {formats['tiktoken']}" in done.stdout.decode()
    done = run("encode", "--vocab", "no-such", env=env)
    assert_one_line(done, 1, "get it with `python3 -m dpdk_tokd.fetch no-such`")


@pytest.fixture(scope="session")
def compiled(vocab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compiled") / "gpt2.tokv"
    done = run("vocab", "compile", vocab, "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return out


def test_a_compiled_vocabulary_gives_the_same_ids_and_bytes(vocab: Path, compiled: Path) -> None:
    text = "\n".join(TEXTS).encode()
    ids = encode(vocab, text)
    for split in ((), ("--split", "random:1")):
        assert encode(compiled, text, *split) == ids
    assert decode(compiled, ids) == text
    assert run("vocab", "check", compiled).stdout == run("vocab", "check", vocab).stdout


def test_a_compiled_vocabulary_says_what_it_is_of(vocab: Path, compiled: Path) -> None:
    done = run("vocab", "info", compiled)
    assert done.returncode == 0, done.stderr
    info = {line[:14].strip(): line[14:] for line in done.stdout.decode().splitlines()}
    assert (info["format"], info["checksum"], info["algo"]) == ("tokv", GPT2_CHECKSUM, "exact")
    crc = zlib.crc32(vocab.read_bytes())
    source = f"tiktoken: {vocab.name} of {vocab.stat().st_size} bytes with CRC-32 {crc:08x}"
    assert info["compiled from"] == source
    assert info["tables"].endswith(" MiB in mapped file")
    assert run("vocab", "info", vocab).stdout.endswith(b" MiB in small pages\n")


def test_a_vocabulary_is_compiled_for_one_algo(vocab: Path, tmp_path: Path) -> None:
    out = tmp_path / "greedy.tokv"
    assert run("vocab", "compile", vocab, "--algo", "greedy", "-o", out).returncode == 0
    text = "\n".join(TEXTS).encode()
    want = encode(vocab, text, "--algo", "greedy")
    assert encode(out, text) == encode(out, text, "--algo", "greedy") == want
    assert want != encode(vocab, text)
    refused = run("encode", "--vocab", out, "--algo", "exact")
    assert_one_line(refused, 1, "compiled for algo greedy, not exact")


def test_a_damaged_compiled_vocabulary_is_refused(compiled: Path, tmp_path: Path) -> None:
    data = bytearray(compiled.read_bytes())
    data[len(data) // 2] ^= 1
    other = tmp_path / "other.tokv"
    other.write_bytes(data)
    assert_one_line(run("vocab", "info", other), 1, "damaged, the checksum of its tables is wrong")


@pytest.mark.parametrize("command", ["encode", "decode"])
def test_huge_pages_are_used_or_asked_for_in_words(compiled: Path, vocab: Path, command) -> None:
    data = b"Hello" if command == "encode" else b"15496"
    for path in (compiled, vocab):
        done = run(command, "--vocab", path, "--huge-pages", data=data)
        if done.returncode == 0:
            assert done.stdout == (b"15496\n" if command == "encode" else b"Hello")
            assert b" MiB in huge pages\n" in run("vocab", "info", path, "--huge-pages").stdout
        else:
            assert_one_line(done, 1, "leave the option out")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], '"": no such command; give one of encode, decode, vocab info'),
        (["frobnicate"], "frobnicate: no such command; give one of"),
        (["encode"], "--vocab VOCAB is missing"),
        (["vocab"], "vocab: no such command; give one of"),
        (["vocab", "info"], "expected tok vocab info VOCAB"),
        (["vocab", "look", "gpt2"], "vocab: no such command"),
        (["vocab", "info", "gpt2", "-o", "x.tokv"], "-o: no such option"),
        (["vocab", "compile", "gpt2"], "--out FILE is missing"),
        (["vocab", "compile", "-o", "x.tokv"], "expected tok vocab compile VOCAB -o FILE.tokv"),
        (["encode", "--vocab"], "--vocab: value missing"),
        (["decode", "--no-such"], "--no-such: no such option"),
        (["encode", "--vocab", "gpt2", "--algo", "best"], "--algo best: give exact or greedy"),
        (
            ["encode", "--vocab", "gpt2", "--split", "0"],
            "--split 0: give a number from 1, or random:SEED",
        ),
        (["encode", "--vocab", "gpt2", "--split", "-1"], "--split -1: give a number"),
        (["encode", "--vocab", "gpt2", "--split", "random:"], "--split random:: give a number"),
        (
            ["encode", "--vocab", "gpt2", "--added-tokens", "some"],
            "--added-tokens some: give none, not-special or all",
        ),
        (["encode", "--vocab", "gpt2", "text"], "the text is read from standard input"),
        (["decode", "--vocab", "gpt2", "1"], "ids are read from standard input"),
        (["block-keys"], "--scheme llm-d|vllm-sha256-cbor|vllm-xxhash-cbor is missing"),
        (["block-keys", "--scheme", "llm-d", "--block-size", "0"], "--block-size 0: "),
        (["block-keys", "--scheme", "llm-d", "--cache-salt", "x"], "cache_salt: llm-d hashes none"),
        (["bench"], "--vocab VOCAB is missing"),
        (["bench", "--vocab", "v", "--tokens", "0"], "--tokens 0: "),
        (["bench", "--vocab", "v", "--tokens", "1", "--bytes", "1"], "give one of them"),
        (["bench", "--vocab", "v", "--slices", "s", "text"], "its texts are cut already"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(args: list[str], says: str) -> None:
    assert_one_line(run(*args), 2, says)


def bench(vocab: Path, *args: str | Path, data: bytes = b"") -> dict[str, Any]:
    done = run("bench", "--vocab", vocab, "--json", *args, data=data)
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


def test_bench_times_each_text_first_and_again(vocab: Path, tmp_path: Path) -> None:
    text = " ".join(TEXTS).encode()
    n_ids = len(encode(vocab, text))
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_bytes(text)
    whole = bench(vocab, *files)
    assert (whole["bytes"], whole["ids"]) == (2 * len(text), 2 * n_ids)
    assert bench(vocab, data=text)["ids"] == bench(vocab, "--split", "7", files[0])["ids"] == n_ids
    for name in ("first", "again"):
        assert len(whole[name]["ns"]) == 2
        assert min(whole[name]["ns"]) > 0
        counted = not whole["not_counted"]
        assert ("instructions" in whole[name], "cycles" in whole[name]) == (counted, counted)
        if counted:
            assert whole[name]["instructions"] > whole["bytes"]
    assert whole["load_ms"] > 0
    assert whole["clock_ns"] > 0


@pytest.mark.parametrize("tokens", [1, 20, 300])
def test_bench_cuts_texts_of_about_as_many_tokens(vocab: Path, tmp_path: Path, tokens: int) -> None:
    words = random.Random(2).choices(["the", " of", "\n", " 12", "(x)", "中文", "'ve"], k=3000)
    (tmp_path / "text").write_text("".join(words))
    found = bench(vocab, "--tokens", str(tokens), tmp_path / "text")
    assert found["ids"] == pytest.approx(tokens * len(found["first"]["ns"]), rel=0.2)
    assert found["bytes"] > len("".join(words).encode()) - 8 * tokens


def test_bench_cuts_texts_of_about_as_many_bytes(vocab: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("中" * 1000)
    found = bench(vocab, "--bytes", "100", tmp_path / "text")
    assert (found["bytes"], len(found["first"]["ns"])) == (29 * 102, 29)  # the last is shorter
    (tmp_path / "bytes").write_bytes(b"\xbf" * 1000)
    assert bench(vocab, "--bytes", "100", tmp_path / "bytes")["bytes"] == 9 * 103


def test_bench_prints_a_table_whose_percentiles_have_calls_above_them(vocab: Path) -> None:
    text = " ".join(TEXTS).encode()
    table = run("bench", "--vocab", vocab, "--bytes", "16", data=text).stdout.decode().splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in table[2:4]}
    for name in ("first", "again"):
        median, p90, p99 = rows[name][:3]
        assert float(median) <= float(p90)
        assert p99 == "-"


def test_bench_says_what_it_cannot_read(vocab: Path, tmp_path: Path) -> None:
    assert_one_line(run("bench", "--vocab", vocab, tmp_path / "absent"), 1, "absent: No such file")
    assert_one_line(run("bench", "--vocab", vocab), 1, "there is no text: give a file")
    assert_one_line(run("bench", "--vocab", vocab, tmp_path), 1, "Is a directory")


COMMANDS = ("tok encode", "tok decode", "tok vocab check", "tok vocab compile", "tok train")
COMMANDS += ("tok bench", "tok block-keys")


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["--help"], COMMANDS),
        (["-h"], COMMANDS),
        (["vocab", "--help"], COMMANDS),
        (["encode", "--help"], ("tok encode", "--split", "--no-special", "--added-tokens")),
        (["vocab", "compile", "-h"], ("tok vocab compile", "-o, --out FILE")),
    ],
)
def test_help_names_commands_and_options(args: list[str], names: tuple[str, ...]) -> None:
    done = run(*args)
    assert (done.returncode, done.stderr) == (0, b"")
    for name in names:
        assert name in done.stdout.decode()


def test_version_is_one_line() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"tok ")
    assert done.stdout.count(b"\n") == 1


def test_a_full_disk_is_an_error(vocab: Path) -> None:
    if not TOK.is_file():
        pytest.skip(f"{TOK} is not built")
    for command, data in (("encode", b"hello"), ("decode", b"15496"), ("bench", b"hello")):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [TOK, command, "--vocab", vocab],
                input=data,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=60,
                check=False,
            )
        assert_one_line(done, 1, "standard output: No space left on device")


def test_standard_input_that_cannot_be_read_is_an_error(vocab: Path) -> None:
    if not TOK.is_file():
        pytest.skip(f"{TOK} is not built")
    for command in ("encode", "decode", "bench"):
        folder = os.open("/", os.O_RDONLY)
        done = subprocess.run(
            [TOK, command, "--vocab", vocab],
            stdin=folder,
            capture_output=True,
            timeout=60,
            check=False,
        )
        os.close(folder)
        assert_one_line(done, 1, "standard input: Is a directory")


def test_jobs_runs_the_package_over_files(formats, tmp_path):
    pytest.importorskip("dpdk_tokd", reason="needs dpdk_tokd: run tools/setup")
    (tmp_path / "in.txt").write_text("Hello\nworld")
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    vocab, files = formats["tiktoken"], [tmp_path / "in.txt", "-o", tmp_path / "out"]
    asked = ["encode", "--jobs", "2", "--vocab", vocab, *files, "--separator", r"\n"]
    done = run(*asked, "--append-eos", END_OF_TEXT, env=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    ids = array.array("H", (tmp_path / "out.bin").read_bytes()).tolist()
    assert ids == [15496, 50256, 6894, 50256]
    assert run("encode", "--jobs=2", *files).returncode == 2
    done = run("encode", "--jobs=2", f"--vocab={vocab}", *files, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"python3: No such file or directory: --jobs needs Python" in done.stderr
