# SPDX-License-Identifier: BSD-3-Clause
"""What all suites in Python share: a vocabulary, and the reference that decides what its ids are.

GPT-2's vocabulary is looked for in $TOK_TEST_VOCAB_DIR and in the folders where dpdk-tokd looks
($TOK_VOCAB_PATH, else ~/.local/share/dpdk-tokd/vocab).
"""

import asyncio
import inspect
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.config import create_terminal_writer

REPOSITORY = Path(__file__).resolve().parent.parent
NAMES = ("gpt2.json", "gpt2/tokenizer.json", "gpt2.tiktoken")


def _folders() -> Iterator[Path]:
    if folder := os.environ.get("TOK_TEST_VOCAB_DIR"):
        yield Path(folder)
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    search = os.environ.get("TOK_VOCAB_PATH") or str(data / "dpdk-tokd/vocab")
    yield from map(Path, filter(None, search.split(":")))


def pytest_sessionstart(session: pytest.Session) -> None:
    """SIGINT interrupts also in a script's background job, which ignores it. With --tap, too, a
    failure shows what it compared: pytest asks the terminal's reporter for a writer, and pytest-tap
    has removed that reporter."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not session.config.pluginmanager.has_plugin("terminalreporter"):
        writer = create_terminal_writer(session.config)
        session.config.get_terminal_writer = lambda: writer


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine has an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    assert (
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})) is None
    )
    return True


@pytest.fixture
def compiled_example(tmp_path: Path) -> Callable[..., Path]:
    """A C program of a document, with words replaced, linked to a library of the build."""
    build = REPOSITORY / os.environ.get("TOKD_BUILD", "build")

    def compiled(document: str, library: str, number: int = 0, **replaced: str) -> Path:
        archive, compiler = build / library, shutil.which("cc")
        if not archive.is_file() or compiler is None:
            pytest.skip(f"needs {archive} and a C compiler: run tools/setup")
        blocks = re.findall(r"```c\n(.*?)```", (REPOSITORY / document).read_text(), re.DOTALL)
        source = [block for block in blocks if "main(" in block][number]
        for word, other in replaced.items():
            assert word in source
            source = source.replace(word, other)
        (tmp_path / "example.c").write_text(source)
        options = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{REPOSITORY}/include"]
        if "-fsanitize=address,undefined" in (build / "build.ninja").read_text():
            options.append("-fsanitize=address,undefined")  # as the library was made
        program = tmp_path / "example"
        subprocess.run(
            [compiler, *options, "-o", program, tmp_path / "example.c", archive], check=True
        )
        return program

    return compiled


@pytest.fixture(scope="session")
def gpt2_file() -> Path:
    """A file that holds GPT-2's vocabulary, in a format libtok reads."""
    looked = list(_folders())
    for folder in looked:
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
    pytest.skip(
        f"no GPT-2 vocabulary ({', '.join(NAMES)} in {', '.join(map(str, looked))}): "
        "run tools/fetch-vocab, or set TOK_TEST_VOCAB_DIR"
    )


@pytest.fixture(scope="session")
def gpt2_reference(gpt2_file: Path):
    """Hugging Face's Tokenizer, loaded by its own code; special tokens are text to it."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    if gpt2_file.suffix == ".tiktoken":
        from bench.texts.reference import load_gpt2

        return load_gpt2(gpt2_file)
    reference = tokenizers.Tokenizer.from_file(str(gpt2_file))
    reference.no_truncation()
    reference.no_padding()
    reference.encode_special_tokens = True
    return reference


@pytest.fixture(scope="session")
def gpt2(gpt2_file: Path):
    """The package's Tokenizer of the same file."""
    dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")
    return dpdk_tokd.Tokenizer.load(str(gpt2_file))
