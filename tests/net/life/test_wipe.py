# SPDX-License-Identifier: BSD-3-Clause
"""--wipe: neither texts nor ids are left in the memory of the process. On a tap: other virtual
drivers map buffers of the kernel, which are its own."""

import os
import random
import re
import socket
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from dpdk_tokd import Client, Tokenizer
from netlab import NetAppliance, NetLab

HOST, TEXT_PORT = "10.96.0.1", 9001
WORD = 11  # letters: a pretoken that a cache keeps
CHUNK = 1 << 20

pytestmark = pytest.mark.skipif(
    "TESTS_SANITIZED" in os.environ, reason="a sanitizer keeps memory of its own"
)


class Secret:
    """Words that are in no vocabulary."""

    def __init__(self, tokenizer: Tokenizer, words: int, rng: random.Random) -> None:
        self.words = ["".join(rng.choices(string.ascii_lowercase, k=WORD)) for _ in range(words)]
        self.text = " ".join(self.words)
        self.ids = tokenizer.encode(self.text)

    def needles(self) -> Iterator[bytes]:
        """Some words, and some ids in a row as they are in rings and replies."""
        middle = len(self.words) // 2
        yield from (self.words[i].encode() for i in (1, middle, -2))
        for kind in "<u4", "<u2":
            ids = self.ids.astype(kind)
            # Not its last bytes: zeros would be sought among zeros.
            yield from (ids[i : i + 8].tobytes()[:-2] for i in (0, len(ids) // 2, len(ids) - 8))


def memory(pid: int) -> Iterator[bytes]:
    """What the process has in memory, in pieces that overlap."""
    with open(f"/proc/{pid}/mem", "rb", 0) as file:
        for mapping in re.split(r"\n(?=[0-9a-f]+-)", Path(f"/proc/{pid}/smaps").read_text()):
            at, end = (int(x, 16) for x in mapping.split(maxsplit=1)[0].split("-"))
            if "[v" in mapping.splitlines()[0] or not re.search(r"^Rss: +[1-9]", mapping, re.M):
                continue
            for here in range(at, end, CHUNK):
                piece = os.pread(file.fileno(), min(CHUNK + 64, end - here), here)
                if piece.strip(b"\0"):  # most is zero
                    yield piece


def found(pid: int, secrets: list[Secret]) -> set[bytes]:
    needles = {needle for secret in secrets for needle in secret.needles()}
    return {needle for piece in memory(pid) for needle in needles if needle in piece}


def ask(lab: NetLab, tokenizer: Tokenizer) -> list[Secret]:
    """A text of several packets, ids to decode, and a datagram for the plain-text port."""
    rng = random.SystemRandom()
    text, decoded, plain = secrets = [Secret(tokenizer, n, rng) for n in (400, 200, 20)]
    with lab.call(lambda: Client(HOST, timeout=20)) as client:
        assert client.tokenize(text.text).tolist() == text.ids.tolist()
        assert client.detokenize(decoded.ids) == decoded.text
    with lab.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        s.bind(("", 20000))
        s.settimeout(20)
        s.sendto(plain.text.encode(), (HOST, TEXT_PORT))
        assert s.recv(2048).split() == [b"%d" % i for i in plain.ids]
    return secrets


@pytest.mark.parametrize("wipe", ["no", "yes"])
def test_texts_and_ids_are_gone_some_seconds_later(lab, gpt2, gpt2_file, tmp_path, wipe) -> None:
    name = f"{lab.namespace}w"
    args = [f"--wipe={wipe}", "--ip", HOST, "--text-port", str(TEXT_PORT)]
    args += ["--streams", "64", "--done-timeout", "500", "--done-names", "1M"]
    with NetAppliance(
        None, gpt2_file, tmp_path, driver="net_tap", memory=["--no-huge", "-m", "128"], args=args,
        devargs=f"iface={name}",
    ) as appliance:  # fmt: skip
        lab.take(name, "10.96.0.2/24")
        secrets = ask(lab, gpt2)
        appliance.wait_until(
            lambda: [w["streams"] for w in appliance.telemetry("/tokd/workers").values()] == [0]
        )
        if wipe == "yes":
            appliance.wait_until(lambda: not found(appliance.pid, secrets))
        else:
            left = found(appliance.pid, secrets)
            assert all(left.intersection(secret.needles()) for secret in secrets)
