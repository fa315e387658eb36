# SPDX-License-Identifier: BSD-3-Clause
"""Vocabularies and limits are reloaded, and an appliance is restarted, under load: no text is lost,
and none has other ids than one of the vocabularies gives.

TESTS_RELOADS=N, TESTS_RESTARTS=N: so many, instead of six and two."""

import base64
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from dpdk_tokd import Client, Reason, RingReader, TokdError, Tokenizer
from netlab import NO_HUGE, SERVER_IP, NetAppliance
from raw_client import RawStream
from text_load import Load

RELOADS = int(os.environ.get("TESTS_RELOADS", 6))
RESTARTS = int(os.environ.get("TESTS_RESTARTS", 2))
SMALL = 20_000  # ids


@pytest.fixture(scope="module")
def small_file(gpt2, tmp_path_factory) -> Path:
    """GPT-2's first tokens, a vocabulary of its own."""
    path = tmp_path_factory.mktemp("vocab") / "small.tiktoken"
    tokens = (base64.b64encode(gpt2.decode_bytes([i])) for i in range(SMALL))
    path.write_bytes(b"".join(b"%s %d\n" % (token, i) for i, token in enumerate(tokens)))
    return path


class Reloaded:
    """An appliance with a configuration file."""

    def __init__(self, appliance: NetAppliance, config: Path) -> None:
        self.appliance, self._config = appliance, config
        self.done = self.failed = 0

    def ask(self, *lines: str, by: str = "signal") -> None:
        self._config.write_text("\n".join(("[tokd]", *lines)) + "\n")
        if by == "signal":
            self.appliance.send_signal(signal.SIGHUP)
        else:
            assert "reload" in self.appliance.telemetry("/tokd/reload")

    def reload(self, *lines: str, by: str = "signal", fails: bool = False) -> None:
        """Until new texts are served by `lines`, and no text by what was before."""
        self.ask(*lines, by=by)
        self.done += not fails
        self.failed += fails
        want = {"reloads": self.done, "reloads_failed": self.failed, "old_texts": 0}
        self.appliance.wait_until(lambda: want.items() <= self.info().items())

    def info(self) -> dict:
        return self.appliance.telemetry("/tokd/info")

    def resident(self) -> int:
        """Bytes."""
        status = Path(f"/proc/{self.appliance.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) * 1024


@pytest.fixture
def reloaded(lab, huge, gpt2_file, small_file, tmp_path, monkeypatch) -> Iterator[Reloaded]:
    monkeypatch.setenv("TOK_VOCAB_PATH", str(small_file.parent))
    config = tmp_path / "tokd.conf"
    config.write_text(f"[tokd]\nvocab = {gpt2_file}\n")
    memory = NO_HUGE if huge is None else huge
    appliance = NetAppliance(
        lab, None, tmp_path, driver="net_af_packet", memory=memory,
        args=("--config", str(config), "--pretokenizer", "gpt2"),
    )  # fmt: skip
    with appliance:
        yield Reloaded(appliance, config)


def test_reloads_under_load_lose_no_text(lab, reloaded, gpt2_file, gpt2, small_file):
    small = Tokenizer.load(str(small_file), pretokenizer="gpt2")
    states = [f"{gpt2_file},{small_file}", f"{small_file},{gpt2_file}", str(gpt2_file)]
    resident = []
    with ExitStack() as stack:
        default, by_name, other = loads = [
            stack.enter_context(load)
            for load in (
                Load(lab, SERVER_IP, gpt2, small),
                Load(lab, SERVER_IP, gpt2, vocab=gpt2.checksum),
                Load(lab, SERVER_IP, small, vocab=small.checksum, may_lack=True),
            )
        ]
        for i in range(RELOADS):
            reloaded.reload(
                f"vocab = {states[i % len(states)]}", f"max-text = {16 + i % 2}M",
                by=("signal", "telemetry")[i % 2],
            )  # fmt: skip
            for load in default, by_name:
                load.go_on()
            resident.append(reloaded.resident())
    print(f"{RELOADS} reloads, resident {resident[len(states) - 1] >> 20} MiB after the first "
          f"three, {resident[-1] >> 20} after the last")  # fmt: skip
    for load in loads:
        print(load)
        load.check()
    assert other.answered > 0 and other.refused > 0


def test_texts_in_progress_keep_their_vocabulary_and_hold_up_the_next_reload(
    lab, reloaded, gpt2_file, gpt2, small_file
):
    text, rest = b"begun before a reload, ", b"ended after it"
    appliance = reloaded.appliance
    with RawStream(lab) as stream, lab.call(lambda: Client(SERVER_IP)) as client:
        packets = stream.packets(text + rest, [len(text)])
        stream.send(packets[0])
        appliance.wait_counters(lambda c: c["streams_opened"] == 1)
        reloaded.ask(f"vocab = {small_file}")
        appliance.wait_until(
            lambda: (reloaded.info()["reloads"], reloaded.info()["old_texts"]) == (1, 1)
        )
        reloaded.ask(f"vocab = {gpt2_file}")
        appliance.wait_for("reload: waits for 1 texts")
        client.tokenize("not held up")
        small = Tokenizer.load(str(small_file), pretokenizer="gpt2")
        assert client.server_vocab == small.checksum
        stream.finish(packets)
        assert stream.id_list() == gpt2.encode(text + rest).tolist()
        appliance.wait_until(lambda: reloaded.info()["reloads"] == 2)
        client.tokenize("again")
        assert client.server_vocab == gpt2.checksum


def test_an_error_changes_nothing_and_what_cannot_change_is_named(
    lab, reloaded, gpt2_file, gpt2, small_file, tmp_path_factory
):
    appliance = reloaded.appliance
    with RingReader(appliance.socket, timeout=5):  # stays
        for line, why in (
            ("vocab = /nowhere/x.json", "/nowhere/x.json"),
            ("max-text = 0", "max-text = 0: out of range"),
            ("max-txt = 1M", "did you mean max-text?"),
        ):
            reloaded.reload(line, fails=True)
            assert why in reloaded.info()["reload_error"] + appliance.said()
            assert appliance.telemetry("/tokd/config")["max_text"] == "16M"
        elsewhere = tmp_path_factory.mktemp("elsewhere") / small_file.name
        shutil.copy(small_file, elsewhere)
        reloaded.reload(f"vocab = {elsewhere}", fails=True)
        assert "restart to read from another" in appliance.said()
        reloaded.reload(f"vocab = {gpt2_file}", "max-text = 8", "streams = 100", "udp-port = 7")
        for name, is_, asked in ("streams", 4096, 100), ("udp-port", 9000, 7):
            assert f"reload: --{name} stays {is_}; a restart changes it to {asked}" in (
                appliance.said()
            )
        assert "reload: --max-text is 8, was 16M" in appliance.said()
        config = appliance.telemetry("/tokd/config")
        assert (config["max_text"], config["streams"], config["udp_port"]) == ("8", "4096", "9000")
        with lab.call(lambda: Client(SERVER_IP)) as client:
            assert client.tokenize("8 bytes.").tolist() == gpt2.encode("8 bytes.").tolist()
            with pytest.raises(TokdError) as e:
                client.tokenize("9 bytes..")
            assert e.value.reason is Reason.TEXT_TOO_LONG
        assert len(appliance.telemetry("/tokd/readers")) == 1
    assert appliance.stop() == 0


def test_restarts_under_load_lose_no_text(lab, start, gpt2):
    with ExitStack() as stack:
        load = Load(lab, SERVER_IP, gpt2, vocab=gpt2.checksum)
        appliance = start("--drain", "10000")
        stack.enter_context(load)
        for _ in range(RESTARTS):
            load.go_on()
            with RawStream(lab) as stream:  # drains until its text has ended
                packets = stream.packets(b"begun before a restart", [5])
                stream.send(packets[0], stream.poll())
                assert stream.reply() is not None
                appliance.send_signal(signal.SIGTERM)
                appliance.wait_for("draining")
                appliance.wait_counters(lambda c: c["drop_shutdown"] > 0)
                stream.finish(packets)
            assert appliance.wait(10) == 0
            appliance = start("--drain", "10000")
        load.go_on()
    print(f"{RESTARTS} restarts, {load}")
    load.check()
    assert load.resends > 0
