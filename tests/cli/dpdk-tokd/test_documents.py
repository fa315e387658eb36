# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages, completion and the example configuration: they say what the programs say."""

import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
OPTION = re.compile(r"--[a-z][a-z0-9-]*")


def output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.fixture
def build(binary: Path) -> Path:
    return binary.parents[1]


def options_of_manual(page: Path) -> set[str]:
    """Those that have a paragraph."""
    lines = page.read_text().splitlines()
    section = lines[lines.index(".SH OPTIONS") :]
    heads = [b for a, b in itertools.pairwise(section) if a == ".TP"]
    return {found for head in heads for found in OPTION.findall(head.replace("\\-", "-"))}


# Pages that a program prints from its table of options, and pages that are written by hand.
PRINTED = ("dpdk-tokd", "tok", "tokd-client", "tokd-gpu", "tokd-load", "tokd-tail")
WRITTEN = {
    "tokd-diag": REPOSITORY / "tools/tokd-diag",
    "tokd-exporter": REPOSITORY / "tools/tokd-exporter",
    "tokd-gateway": REPOSITORY / "build/venv/bin/tokd-gateway",
    "tokd-top": REPOSITORY / "tools/tokd-top",
}


@pytest.mark.parametrize("program", [*PRINTED, *WRITTEN])
def test_a_manual_page_is_sound(build: Path, program: str) -> None:
    path = build / "doc" / f"{program}.1"
    if shutil.which("mandoc"):
        command = ["mandoc", "-T", "lint", "-W", "warning", path]
    elif shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww", "-z", path]
    else:
        pytest.skip("neither mandoc nor groff is installed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("program", WRITTEN)
def test_a_written_page_has_each_option_of_help_and_no_other(build: Path, program: str) -> None:
    shown = output(WRITTEN[program], "--help")
    listed = set(re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", shown, re.MULTILINE))
    assert options_of_manual(build / "doc" / f"{program}.1") == listed


def test_the_example_is_what_check_config_prints(binary: Path) -> None:
    printed = output(binary, "--check-config")
    assert (REPOSITORY / "doc/dpdk-tokd.conf").read_text() == printed


LIKE_DIAG = ("tokd-exporter", "tokd-gateway", "tokd-top")  # they share its completion
COMPLETE = """
source "$1"; shift
program=${1##*/}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
$(complete -p "$program" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completions(build: Path, *words: str | Path) -> list[str]:
    """What bash offers for the last of `words`."""
    name = Path(words[0]).name
    script = build / "doc" / ("tokd-diag" if name in LIKE_DIAG else name)
    shown = output("bash", "--norc", "-c", COMPLETE, "bash", script, *words)
    return [line for line in shown.splitlines() if line]


def test_completion_offers_application_options_behind_the_dashes(build: Path) -> None:
    assert completions(build, "dpdk-tokd", "-l", "1", "--", "--ring") == ["--ring-size"]
    every = completions(build, "dpdk-tokd", "--", "")
    assert {"--ip", "--vocab", "--check-config", "--drain"} <= set(every)
    assert "--vdev" not in every


def test_completion_offers_eals_options_before_the_dashes(build: Path) -> None:
    assert completions(build, "dpdk-tokd", "--vd") == ["--vdev"]
    assert {"--", "--help"} <= set(completions(build, "dpdk-tokd", ""))
    assert completions(build, "dpdk-tokd", "--ring") == []


def test_completion_offers_files_and_nothing_for_a_number(
    build: Path, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "my vocabulary.conf").touch()
    wanted = [str(tmp_path / "my vocabulary.conf")]
    start = str(tmp_path / "my")
    assert completions(build, "dpdk-tokd", "--", "--config", start) == wanted
    assert completions(build, "dpdk-tokd", "--", "--config", "=", start) == wanted
    assert completions(build, "dpdk-tokd", "--", "--rxd", "") == []
    (tmp_path / "gpt7.json").touch()
    monkeypatch.setenv("TOK_VOCAB_PATH", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # files of the folder are offered as well
    assert completions(build, "dpdk-tokd", "--", "--vocab", "gp") == ["gpt7"]
    assert completions(build, build / "app/tok", "encode", "--vocab", "gp") == ["gpt7"]


def test_completion_of_tok(build: Path) -> None:
    tok = build / "app/tok"
    assert completions(build, tok, "en") == ["encode"]
    assert completions(build, tok, "vocab", "") == ["check", "compile", "info"]
    assert completions(build, tok, "vocab", "info", "--al") == ["--algo"]
    assert completions(build, tok, "encode", "--added-tokens", "") == ["none", "not-special", "all"]
    assert "--strict-utf8" in completions(build, tok, "encode", "--")
    assert completions(build, tok, "train", "--model", "") == ["bpe", "wordpiece"]


def test_completion_of_the_small_programs(build: Path, tmp_path: Path) -> None:
    tail = build / "app/tokd-tail"
    assert completions(build, tail, "--t") == ["--tap", "--timeout"]
    assert completions(build, tail, "--timeout", "") == []
    (tmp_path / "tokd.sock").touch()
    wanted = [str(tmp_path / "tokd.sock")]
    assert completions(build, tail, "--socket", str(tmp_path / "tok")) == wanted
    assert completions(build, build / "app/tokd-client", "--in") == ["--in-flight"]
    assert completions(build, REPOSITORY / "tools/tokd-top", "--on") == ["--once"]
    gateway = REPOSITORY / "build/venv/bin/tokd-gateway"
    assert completions(build, gateway, "--max-b") == ["--max-batch", "--max-body"]
    assert completions(build, gateway, "--model", "x", "=", str(tmp_path / "tok")) == wanted
    diag = REPOSITORY / "tools/tokd-diag"
    assert completions(build, diag, "--want", "") == ["verbs", "cuda", "shm"]
    assert completions(build, diag, "--region", "") == []
    assert completions(build, diag, "--drivers", str(tmp_path / "tok")) == wanted


def test_completion_knows_only_options_that_eal_has(binary: Path, build: Path) -> None:
    offered = completions(build, "dpdk-tokd", "--")
    own = set(re.findall(r"^  (--[a-z0-9-]+)", output(binary, "--help"), re.MULTILINE))
    assert set(offered) - own - {"--"} <= set(OPTION.findall(output(binary, "-h")))


def test_documents_name_what_exists(binary: Path, build: Path) -> None:
    """Links, files and options of every document, and what is generated in them."""
    done = subprocess.run(
        [REPOSITORY / "tools/gen/doc", "--check"],
        env=os.environ | {"TOKD_BUILD": str(build)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
