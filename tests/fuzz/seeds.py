# SPDX-License-Identifier: BSD-3-Clause
"""Writes a target's first inputs into a folder: one of each kind that it knows."""

import json
import struct
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

# ---- packets: what step() and its steps read ----

TEXT, ICMP, ARP, RAW, READER, WAIT, STARVE, DRAIN, REQUEST, REQUESTS = range(10)
IPV6, NO_CKSUM, CUT, SPOIL, FRAGMENT, OTHER_VLAN, POLL, OWN = (1 << i for i in range(8))
LAST, IDS, STREAM = 1, 4, 8
END = 7 << 3  # with LAST: so much of a packet, and no flag beside STREAM
PROMPT = 0x80  # `who` of a text that is continued; of a POLL: CANCEL
GPU, HOLDS, BREAKS, ENDS, MAKES = 15, 0, 8, 12, 32


def request(how: int, who: int, packet: int, bits: int, tail: bytes = b"\0") -> bytes:
    return bytes([REQUEST, how, who, packet, bits]) + tail


def requests(n: int, who: int, packet: int) -> bytes:
    return bytes([REQUESTS, n - 1, 0, who, packet, IDS, 0])


def gpu(what: int, how: int = 0) -> bytes:
    return bytes([GPU, what, how])


def short(n: int) -> bytes:
    return n.to_bytes(2, "little")


def packets() -> list[bytes]:
    words = b"hello world, the token"
    whole = [request(0, stream, 0, LAST | IDS | END) for stream in range(16)]
    many = [request(0, 8, n, IDS) for n in range(20)] + [request(0, 8, 20, LAST | IDS | END)]
    polls = [request(POLL, 8, ack, 100, b"") for ack in (0, 10, 60)]
    own = request(OWN, 3, 0, IDS, b"\0" + short(len(words)) + words)
    odd = [many[2], many[1], many[1], many[0]]
    cut = [request(CUT, 8, n, IDS, b"\0\x6a\x10") for n in range(4)]
    halves = [request(FRAGMENT, 14, n, IDS, b"\0\x20\x10") for n in range(4)]
    early = [request(FRAGMENT, s, n, IDS, b"\0\x08\x10") for s in (14, 12) for n in range(1, 30)]
    reader = bytes([READER, 0])
    prompts = [request(0, PROMPT | s, 0, LAST | IDS | STREAM | END) for s in (8, 9, 10, 11, 12)]
    answer = prompts[0] + gpu(MAKES, 63) + polls[0] + gpu(MAKES, 9)
    skipping = prompts[1] + gpu(MAKES, 63) * 2 + polls[1]  # special tokens have no text
    # A reader keeps the ring full, ids are made meanwhile, and then it goes on.
    fill = [request(0, 15, n, IDS) for n in range(9)] + [request(0, 13, n, IDS) for n in range(9)]
    some = gpu(MAKES, 63)
    full = reader + prompts[0] + some * 3 + b"".join(fill) + some * 13 + bytes([READER, 4])
    # So it does, to less than 200 bytes, while a window of small packets comes: then all are fed.
    parts = ((15, 7), (13, 8), (9, 4), (5, 6))  # packets of each stream, ever smaller ones
    brim = [request(0, stream, n, IDS) for stream, packets in parts for n in range(packets)]
    small = requests(1, 0, 0) + b"".join(brim) + requests(32, 0, 1) + requests(32, 0, 33)
    window = reader + small + bytes([READER, 4]) + requests(1, 0, 1)
    spoilt = request(SPOIL, 8, 0, LAST | IDS, b"\0\x2e\1")
    return [
        b"\0" + b"".join(whole),
        b"\1" + b"".join(whole),
        b"\0" + b"".join(many + polls),
        b"\0" + b"".join(odd),
        b"\0" + own + own,
        b"\0" + b"".join(cut),
        b"\0" + b"".join(halves),
        b"\0" + b"".join(early),
        b"\0" + reader + b"".join(many) + bytes([READER, 4]) + bytes([READER, 2]),
        b"\0" + request(IPV6, 8, 0, LAST | IDS | END) + bytes([WAIT | 15 << 4]),
        b"\0" + bytes([TEXT, 0]) + short(len(words)) + words,
        b"\0" + bytes([TEXT, POLL]) + short(20) + b"TOKD\1\1" + bytes(14),
        b"\0" + bytes([TEXT, IPV6 | CUT]) + short(len(words)) + words + b"\x50\1",
        b"\0" + bytes([ICMP, 0, 0, 4]) + b"ping" + bytes([ICMP, IPV6, 0, 4]) + b"ping",
        b"\0" + bytes([ICMP, IPV6, 3, 8]) + bytes([1, 1, 2, 0, 0, 0, 0, 2]),
        b"\0" + bytes([ARP, 0, 1]) + bytes([ARP, SPOIL, 1, 20, 1]),
        b"\0" + bytes([STARVE]) + own + bytes([DRAIN]) + own,
        b"\0" + spoilt + bytes([RAW, 0]) + short(14) + bytes(14),
        b"\2" + answer + gpu(ENDS) + polls[2],
        b"\2" + skipping + gpu(ENDS) + polls[2],
        b"\2" + answer + request(POLL, PROMPT | 8, 0, 0, b"") + prompts[1] + gpu(MAKES, 5),
        b"\2" + answer + gpu(BREAKS) + gpu(MAKES, 5) + gpu(ENDS, 1),
        b"\3" + answer + gpu(ENDS, 3) + prompts[0],
        b"\2" + b"".join(prompts) + gpu(MAKES | 2, 7) + gpu(ENDS | 2) + prompts[4],
        b"\2" + full + some + bytes([READER, 4]) + gpu(ENDS),
        b"\2" + gpu(HOLDS) + b"".join(prompts) + gpu(HOLDS) + gpu(MAKES | 1, 9),
        b"\0" + window,
        b"\1" + b"".join(many[:4]) + request(OTHER_VLAN, 8, 4, IDS, b"\0\0\0"),
    ]


# ---- config: pieces with NUL between ----


def config() -> list[bytes]:
    address = b"--ip\x0010.0.0.1"
    file = b"f[tokd]\nip = 10.0.0.1\nring-size = 64M # a comment\n\nvocab = a\\#b\nvlan=7\n"
    return [
        address,
        file,
        address + b"\0--check-config\0--mac=02:00:00:00:00:01\0--ip6\x002001:db8::1\0--vlan\x007",
        b"eIP=10.0.0.1\0eRING_SIZE=1M\0eRING_SIZ=1",
        b"x-l\0x1\0x--ip\0--strict-utf8\0--strict-utf8=no\0--help",
        address + b"\0--socket-mode\x000660\0--mbufs=99999\0--rxd\x0032\0" + file,
        b"f[tokd]\nip6 = ::1\n[tokd]\n=\nkey\n[other]\n",
    ]


# ---- control: what step() reads, client in the upper half of a byte ----


def control() -> list[bytes]:
    hello, ask, leave, hear, cursor, poll, workers = 0, 1, 3, 4, 5, 7, 8
    later, impatient, look, attach, publish = 9, 10, 11, 12, 13
    lap = bytes([publish, 255]) * 4
    laps = lap + bytes([cursor, 0]) + lap
    tap = 0x40
    return [
        bytes([attach, look]) + laps + bytes([look, leave, poll, workers]),
        bytes([attach, attach | 0x10]) + lap + bytes([cursor, 0, impatient, hear | 0x10, hear]),
        bytes([attach | tap, look, hello | 0x10, later | 0xA0, hear | 0x10]),
        bytes([attach, cursor, 6]) + b"\xff" * 8 + lap + bytes([cursor, 7]) + bytes(8) + lap,
        bytes([hello, ask, 4, 16]) + b"DATT" + bytes(12) + bytes([poll, hear]),
        bytes([hello, ask, 2, 8, 3, poll, hear, hello, ask, 4, 200]) + bytes(200) + bytes([poll]),
        bytes([attach, ask, 0, poll, hear, attach]),
        bytes([hello, hello | 0x10, ask, 0, ask | 0x10, 1, poll, poll, later | 0xB0, hear]),
    ]


# ---- telemetry: command and whether it has parameters, workers, parameters ----


def telemetry() -> list[bytes]:
    params = ["", "0", "18", "19", "-1", "99999999999999999999", "wire_to_ring", "wire_to_ring,3"]
    params += ["tokenizer,", "rx_packets", "64", "readers_attached", "4294967295", "\xff"]
    seeds = [bytes([command, 18]) + p.encode("latin-1") for command in range(8) for p in params]
    return seeds + [bytes([8 + command, 0]) for command in range(8)]


# ---- client: what step() reads ----


def client() -> list[bytes]:
    submit, send, tick, done, cancel, fail, answer = 0, 1, 2, 3, 4, 5, 6
    ids, part = 0x10 | 2, 0xF0 | 2
    finish = bytes([answer, 1 | 4, 0, 1, 0, 0])
    some = bytes([answer, 1 | 4, 0, 2, 0, 0])
    take = 31 << 3 | done
    prompt, small = (bytes([submit, 0x10 | 8 | bit, send, 8]) for bit in (0, 4))
    all_made = sum(8 + i * 37 % 100 for i in range(61))

    def made(total: int, first: int) -> bytes:
        numbers = total.to_bytes(2, "little") + first.to_bytes(2, "little")
        return bytes([answer, 1 | 4, 0, 1]) + numbers

    late = bytes([cancel | 8, send, 8, tick | 0xA0, send, 8])
    whole = b"".join(made(all_made, at) + bytes([take]) * 2 for at in range(0, all_made, 1376))
    return [
        prompt + made(500, 0) + bytes([take]) + whole,
        small + b"".join(made(all_made, n) + bytes([take, send, 8]) for n in range(0, 3000, 150)),
        prompt + made(900, 300) + made(900, 0) + late + made(all_made, 0),
        bytes([submit, ids, send, 8]) + finish + bytes([done]),
        bytes([submit, part | 1, send, 8]) + some + bytes([done, send, 8, tick | 0x40, send, 8]),
        bytes([submit, part] * 6 + [send, 15]) + some * 3 + bytes([cancel | 8, done, fail]),
        bytes([submit, ids, send, 1, answer, 1 | 8, 0, 0, 7, tick | 0x80, send, 1]) + finish,
        bytes([submit, part, send, 15, answer, 2 | 4, 0, 1, 0, 6, 9, 0, tick | 0x50, send, 0x8F]),
        bytes([submit, part, send, 15, answer, 1 | 16 | 32, 0, 1, 8, 1, 40, 2, done]),
        bytes([submit, ids, send, 1] + [tick | 0xF0, send, 1] * 4 + [done]),
    ]


# ---- reader: how it is answered, as what it attaches; what use() reads ----


def reader() -> list[bytes]:
    publish, look, release, head, bye, spoil = 0, 2, 4, 5, 6, 7
    lap = bytes([publish, 63, look, release | 8]) * 20
    return [
        bytes([0, 0]) + lap + bytes([bye | 8, look]),
        bytes([1, 4, publish | 8, 5, publish, 6, look, look, look, release | 0x18, release]),
        bytes([0, 1]) + bytes([publish, 9, look, head | 0x10, 0, release, look]) + lap,
        bytes([0, 2]) + bytes([publish, 64 | 9, look, publish, 128 | 9, 0, 0, 1, look]),
        bytes([0, 0, head]) + (2**63).to_bytes(8, "little") + bytes([look]),
        bytes([0, 1, publish, 3, head | 0x20]) + (4096).to_bytes(8, "little") + bytes([look, look]),
        bytes([0, 0, publish, 3, spoil, 0, 0, 255, look, bye]) + b"gone",
        *(bytes([1 << bit, kind, 1, 3, 0, 8, 1]) for bit in range(1, 6) for kind in (0, 1)),
    ]


# ---- text: how many cuts, which vocabulary; cuts; the text ----


def text() -> list[bytes]:
    words = "hello wORLd, ab abc'RE  cab\n  \r\n é e\u0301 中文AB 12345's \u00a0x/\n\x01\x02a"
    last = words.encode() + bytes(range(128, 160))
    runs = [b"ab", b"cab", b"hello"]
    seeds = [bytes([0x40, which, 1, 0x82, 3, 0x80]) + last for which in range(128)]
    return seeds + [bytes([0x30, i, 1, 1, 0x81]) + run * 40 for i, run in enumerate(runs)]


# ---- regex: how the expressions are chosen; which, or their length; how many cuts; cuts; text ----


def regex() -> list[bytes]:
    texts = [bytes(range(26)) * 2, b"\0\1\2\2\2\3\3\3\5\5\2\7\0\0\4\1", bytes(range(128, 200))]
    cuts = b"\3\1\3\5"
    made = [
        bytes([1 | (i == 2) << 7]) + short(which) + cuts + text
        for which in range(256)
        for i, text in enumerate(texts)
    ]
    own = [bytes([0, len(spec) - 1, 0]) + spec + cuts + texts[1] for spec in (b"\0\0\x29\x18",)]
    return made + own


# ---- decode: how many cuts, which vocabulary; room; cuts; ids ----


def decode() -> list[bytes]:
    def ids(*numbers: int) -> bytes:
        return b"".join(n.to_bytes(2, "little") for n in numbers)

    some = ids(0xF0, 0x9F, 0x98, 0x80, 0xF0, 0x9F, 0x41, 0xE4, 0xB8, *range(256, 360, 3))
    special = ids(4, 5, 6, 8, 9, 10, 11, 0x8000)
    cuts = bytes([0x81, 1, 0xC3, 0xC4, 0x82, 0x12, 3, 0x91])
    return [
        *(bytes([0x80 | which, 5]) + cuts + some for which in (0, 1)),
        *(bytes([0x80 | which, 9]) + cuts + ids(*range(15)) for which in (2, 3)),
        *(bytes([0x40 | which, 20]) + cuts[:4] + special for which in range(4)),
        *(bytes([which, 0]) + ids(1, 2, 0xFFFF, 1) for which in range(4)),
        *(bytes([0x10 | which, 0, 1]) + ids(3, 1) for which in (2, 3)),
    ]


# ---- vocab: the format, its file or files; \1 stands for the tokens of the 256 bytes ----

EVERY_BYTE = "EVERY_BYTE"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"[^\r\n\p{L}\p{N}]?"
UPPERS, LOWERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|" + WORDS + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
LLAMA3 += SPACES
TEKKEN = f"{WORDS}{UPPERS}*{LOWERS}+|{WORDS}{UPPERS}+{LOWERS}*|"
TEKKEN += r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    (
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
        "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
        "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
    ),
]
BERT = ["[UNK]", "[CLS]", "he", "hell", "##llo", "##o", "wor", "##ld", ",", "the", "12", "##3"]


MADE = [b"he", b"ll", b"hell", b" w"]


def packed(document: dict) -> bytes:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return text.replace(f'"{EVERY_BYTE}":0', "\1").replace(f'"{EVERY_BYTE}"', "\1").encode()


def typed(kind: str, **fields: Any) -> dict:
    return {"type": kind, **fields}


def bpe_documents() -> list[dict]:
    made, merges = ["he", "ll", "hell", "\u0120w"], ["h e", "l l", "he ll", "\u0120 w"]
    ids = {EVERY_BYTE: 0, **{token: 256 + i for i, token in enumerate(made)}}
    byte_level = typed("ByteLevel", add_prefix_space=False, trim_offsets=True)
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    model = typed("BPE", dropout=None, unk_token=None, continuing_subword_prefix="")
    model |= {"end_of_word_suffix": "", "fuse_unk": False, "vocab": ids, "merges": merges}
    added = {"id": 260, "content": "<|endoftext|>", **how, "special": True}
    gpt2 = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [added]}
    gpt2 |= {"normalizer": None, "pre_tokenizer": byte_level, "post_processor": byte_level}
    gpt2 |= {"decoder": byte_level, "model": model}

    def split(*regexes: str) -> dict:
        how = {"behavior": "Isolated", "invert": False}
        pieces = [typed("Split", pattern={"Regex": r}, **how) for r in regexes]
        return typed("Sequence", pretokenizers=[*pieces, byte_level | {"use_regex": False}])

    begin = {"SpecialToken": {"id": "<b>", "type_id": 0}}
    text, second = ({"Sequence": {"id": "AB"[i], "type_id": i}} for i in (0, 1))
    template = typed("TemplateProcessing", single=[begin, text], pair=[begin, text, begin, second])
    special = {"id": "<b>", "ids": [257, 1], "tokens": ["<b>", "x"]}
    template["special_tokens"] = {"<b>": special}
    padding = {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": 4}
    shape = {
        "post_processor": typed("Sequence", processors=[byte_level, template]),
        "truncation": {"direction": "Left", "max_length": 9, "strategy": "OnlyFirst", "stride": 1},
        "padding": padding | {"pad_id": 257, "pad_type_id": 0, "pad_token": "ll"},
        "normalizer": typed("NFC"),
    }
    unordered = ["he l", "he ll", "hel l", "h e", "l l", "\u0120 w"]
    unmade = {"xyz": 260, "hel": 261}
    greedy = model | {"ignore_merges": True, "vocab": ids | unmade, "merges": unordered}
    plain = {key: gpt2[key] for key in ("pre_tokenizer", "decoder")}
    return [
        gpt2,
        plain | {"model": {"vocab": ids, "merges": [m.split(" ") for m in merges]}},
        plain | shape | {"pre_tokenizer": split(LLAMA3), "model": greedy},
        plain | {"pre_tokenizer": split(LLAMA3.replace("{1,3}", "")), "model": model},
        plain | {"pre_tokenizer": split(*DEEPSEEK), "model": model},
    ]


def tekken_documents() -> list[dict]:
    numbers = {"default_vocab_size": 261, "default_num_special_tokens": 2, "version": "v3"}
    tokens = [{"rank": i, "token_bytes": b64encode(t).decode()} for i, t in enumerate(MADE, 256)]
    old = {"config": {"pattern": TEKKEN, **numbers}, "vocab": [EVERY_BYTE, *tokens]}
    return [old, old | {"special_tokens": [{"rank": 1, "token_str": "<s>", "is_control": True}]}]


def bert_documents() -> list[dict]:
    normalizer = typed("BertNormalizer", clean_text=True, handle_chinese_chars=True)
    normalizer |= {"strip_accents": None, "lowercase": True}
    model = typed("WordPiece", unk_token="[UNK]", continuing_subword_prefix="##")
    model |= {"max_input_chars_per_word": 100, "vocab": {token: i for i, token in enumerate(BERT)}}
    uncased = {
        "version": "1.0",
        "added_tokens": [{"id": 1, "content": "[CLS]", "special": True}],
        "normalizer": normalizer,
        "pre_tokenizer": typed("BertPreTokenizer"),
        "post_processor": typed("BertProcessing", sep=["[SEP]", 1], cls=["[CLS]", 1]),
        "decoder": typed("WordPiece", prefix="##", cleanup=True),
        "model": model,
    }
    cased = normalizer | {"clean_text": False, "strip_accents": False, "lowercase": False}
    return [uncased, uncased | {"normalizer": cased}]


PIECES = [*"helo▁é中", "he", "ll", "hell", "▁▁", "▁▁▁", "▁▁▁▁", "▁w", "w", "lo"]


def piece(text: str, score: float = 0.0, kind: int = 1) -> bytes:
    inner = b"\x0a" + bytes([len(text.encode())]) + text.encode()
    inner += b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
    return b"\x0a" + bytes([len(inner)]) + inner


def models() -> list[bytes]:
    """SentencePiece's: kind BPE with byte_fallback, and a normalizer that leaves text as it is."""
    control = piece("<s>", kind=3) + piece("<unk>", kind=2) + piece("[X]", kind=4)
    ranked = b"".join(piece(text, -1.0 - i) for i, text in enumerate(PIECES))
    runs = b"".join(piece("▁" * n, -100.0) for n in range(1, 9)) + piece("a") + piece("aa", -1)
    trainer, normalizer = b"\x12\x05\x18\x02\x98\x02\x01", b"\x1a\x04\x18\x01\x20\x00"
    bare = b"\x1a\x06\x12\x00\x18\x00\x20\x00"
    return [
        control + ranked + trainer + normalizer,
        ranked + trainer + bare,
        runs + control + trainer + normalizer,
        ranked + b"\x12\x02\x18\x01" + normalizer,
        *normalized_models(control + ranked, b"\x12\x05\x18\x01\x98\x02\x01"),
        *normalized_models(control + ranked, b"\x12\x02\x18\x02"),
    ]


def charsmap(letter: int, text: bytes) -> bytes:
    """A map of one byte to the text."""
    units = [0] * 768
    units[0] = 256 << 10
    units[256 + letter] = letter | 1 << 8 | ((256 + letter) ^ 512) << 10
    units[512] = 1 << 31
    return struct.pack("<I768I", 4 * len(units), *units) + text


def sized(field: bytes, inner: bytes) -> bytes:
    return field + bytes([len(inner) & 0x7F | 0x80, len(inner) >> 7]) + inner


def normalized_models(pieces: bytes, trainer: bytes) -> list[bytes]:
    """As it is; all blanks kept; with a map of e to a blank and é."""
    mapped = sized(b"\x1a", sized(b"\x12", charsmap(ord("e"), " é\0".encode())))
    return [pieces + trainer + last for last in (b"", b"\x1a\x04\x18\x01\x20\x00", mapped)]


def piece_documents() -> list[dict]:
    """The same as a tokenizer.json."""
    tokens = [f"<0x{byte:02X}>" for byte in range(256)] + PIECES
    pairs = [(a, b) for a in PIECES for b in PIECES if a + b in PIECES]
    merges = sorted(pairs, key=lambda pair: (PIECES.index(pair[0] + pair[1]), len(pair[0])))
    model = typed("BPE", byte_fallback=True, merges=merges)
    model["vocab"] = {text: i for i, text in enumerate(tokens)}
    blanks = typed("Replace", pattern={"String": " "}, content="▁")
    back = typed("Replace", pattern={"String": "▁"}, content=" ")
    decoders = [back, typed("ByteFallback"), typed("Fuse")]
    strip = typed("Strip", content=" ", start=1, stop=0)
    both = [typed("Prepend", prepend="▁"), blanks]
    metaspace = typed("Metaspace", replacement="▁", prepend_scheme="first", split=False)
    return [
        {
            "model": model,
            "added_tokens": [{"id": 256 + PIECES.index("▁▁"), "content": "▁▁", "special": False}],
            "normalizer": typed("Sequence", normalizers=both),
            "pre_tokenizer": None,
            "decoder": typed("Sequence", decoders=[*decoders, strip]),
        },
        {
            "model": model | {"merges": merges[::-1]},
            "normalizer": None,
            "pre_tokenizer": metaspace,
            "decoder": typed("Sequence", decoders=decoders),
        },
    ]


def unigram_documents() -> list[dict]:
    mapped = charsmap(0xC3, b"e\0")
    metaspace = typed("Metaspace", replacement="▁", prepend_scheme="always", split=True)
    squeeze = typed("Replace", pattern={"Regex": " {2,}"}, content="▁")
    strip = typed("Strip", strip_left=False, strip_right=True)
    precompiled = typed("Precompiled", precompiled_charsmap=b64encode(mapped).decode())
    words = typed("Sequence", pretokenizers=[typed("WhitespaceSplit"), metaspace])
    pieces = ["<unk>", "▁", "▁he", "l", "ll", "llo", "o", "▁w", "or", "ld", "e", "en", "中"]
    bytes_ = [[f"<0x{i:02X}>", -20.0] for i in range(256)]
    vocab = [[piece, -i / 7] for i, piece in enumerate(pieces)]
    model = typed("Unigram", unk_id=0, vocab=vocab, byte_fallback=False)
    plain = {
        "version": "1.0",
        "added_tokens": [{"id": 13, "content": "the", "special": False, "normalized": True}],
        "normalizer": typed("Sequence", normalizers=[precompiled, strip, squeeze]),
        "pre_tokenizer": metaspace,
        "decoder": metaspace,
        "model": model,
    }
    by_bytes = {"model": model | {"vocab": vocab + bytes_, "byte_fallback": True}}
    by_words = {"normalizer": None, "pre_tokenizer": words}
    return [plain, plain | by_words, plain | by_bytes | {"added_tokens": []}]


def vocab() -> list[bytes]:
    lines = b"\1" + b"".join(b64encode(t) + b" %d\n" % i for i, t in enumerate(MADE, 256))
    pair = b'{\1,"he":256,"ll":257,"hell":258}\n---\n#version: 0.2\nh e\nl l\nhe ll\n'
    bert_lines = "\n".join(BERT).encode()
    bpe = [packed(document) for document in bpe_documents()]
    return [
        *(b"\0" + document for document in bpe),
        *(b"\x80" + document for document in bpe[1:3]),  # greedy
        *(b"\0" + packed(document) for document in bert_documents()),
        *(b"\0" + packed(document) for document in unigram_documents()),
        *(b"\6" + packed(document) for document in tekken_documents()),
        *(b"\0" + packed(document) for document in piece_documents()),
        *(b"\x08" + model for model in models()),
        b"\x88" + models()[0],
        b"\1" + pair,
        *(bytes([kind]) + lines for kind in (2, 3, 0x83, 7)),
        b"\4" + bert_lines,
        b"\5" + bert_lines + b"\nHe\r\n",
        b'\0{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}',
        b'\1{"a":0}\n---\n',
        b"\2YQ== 0\n",
    ]


# ---- compiled: which file, and what is changed of it ----


def compiled() -> list[bytes]:
    """Each table of each kind with a word of it changed: in the first, at the front; in the next,
    to a large value; in the next, at the back; and so on, with another first one in each kind."""

    def change(table: int, place: int, value: int) -> bytes:
        return bytes([table, 2]) + short(place) + value.to_bytes(4, "little")

    tables, numbers = range(41), 255
    back = (0x80 // len(tables) + 1) * len(tables)  # from 0x80 on counted from the end
    seeds = [bytes([kind]) for kind in range(14)]
    for kind in range(14):
        changes = [(0, 3, 5), (0, 1, 2**32 - 1), (back, 8, 1)]
        for t in tables:
            way, place, value = changes[(kind + t) % 3]
            seeds.append(bytes([kind]) + change(way + t, place, value))
        seeds += [bytes([kind]) + change(numbers, n, 2) for n in range(8)]
    return seeds


# ---- block_keys: scheme, width and size of a block, seed, model, salt, ids with their widths ----


def block_keys() -> list[bytes]:
    ids = b"".join(bytes([width]) + b"\xff" * width for width in (0, 1, 2, 3, 4) * 8)
    salts = (b"\0", b"\4salt")
    return [
        bytes([scheme, 0, size]) + b"\1s\1m" + salt + ids
        for scheme in range(4)
        for size in (0, 1, 4, 16)
        for salt in (salts if scheme else salts[:1])
    ]


def main() -> None:
    target, folder = sys.argv[1], Path(sys.argv[2])
    for i, seed in enumerate(globals()[target]()):
        (folder / str(i)).write_bytes(seed)


if __name__ == "__main__":
    main()
