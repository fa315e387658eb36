# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway as a server: its HTTP, its command, and good clients beside bad ones.

$TESTS_REQUESTS: of the good clients [640].
"""

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
uvicorn = pytest.importorskip("uvicorn", reason="pip install 'dpdk-tokd[gateway]'")
from dpdk_tokd.gateway import protocol
from dpdk_tokd.gateway.app import BODIES, PROMPT_BYTES, THREAD_BYTES, App, Limits
from dpdk_tokd.gateway.models import Model, Models
from dpdk_tokd.gateway.protocol import HEAD_BYTES, Protocol
from uvicorn.server import ServerState

COMMAND = [sys.executable, "-m", "dpdk_tokd.gateway.cli"]
CLIENTS = 64
EACH = int(os.environ.get("TESTS_REQUESTS", "640")) // CLIENTS
BAD = 4  # clients of each kind
BODY_MAX = 256 << 10
FLAT = len(os.sched_getaffinity(0)) * (16 << 20)  # caches of each thread: it may grow so far


def post(body: object, path: str = "/tokenize", *headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: x", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data


def chunked(body: object) -> bytes:
    head = post(b"", "/tokenize").replace(b"content-length: 0", b"transfer-encoding: chunked")
    data = json.dumps(body).encode()
    parts = (data[:5], data[5:], b"")
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return (
        int(head[0].split()[1]),
        headers,
        await reader.readexactly(int(headers["content-length"])),
    )


@pytest.fixture
def app(gpt2_file: Path) -> App:
    return App(Models([Model("gpt2", str(gpt2_file))]), Limits(body=BODY_MAX))


@asynccontextmanager
async def serving(
    app: App, path: Path, state: ServerState | None = None, **options: Any
) -> AsyncIterator[Callable[[], Any]]:
    """A function that connects. state: which has the connections."""
    config = uvicorn.Config(
        app, proxy_headers=False, interface="asgi3", lifespan="off", ws="none", **options
    )
    loop, state = asyncio.get_running_loop(), state or ServerState()
    server = await loop.create_unix_server(lambda: Protocol(config, state, {}), str(path))
    async with server:
        yield lambda: asyncio.open_unix_connection(str(path))


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)  # there is no event to wait for


async def test_requests_in_a_pipeline_are_answered_in_their_order(app: App, tmp_path: Path) -> None:
    """Short ones go around ASGI; those in chunks, long ones and other paths do not."""
    keys = {"prompt": "one " * THREAD_BYTES, "block_keys": {"scheme": "llm-d"}}
    words = PROMPT_BYTES["/tokenize"]
    long = "one " * words
    requests = [
        post({"prompt": "one"}),
        post(keys),
        chunked({"prompt": "one two"}),
        post({"prompt": long}),
        post({"prompt": "one two three"}, "/tokenize", "x-request-id: mine"),
        b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n",
        post({"tokens": [505]}, "/detokenize"),
        post(b"{", "/tokenize", "connection: close"),
    ]
    async with serving(app, tmp_path / "socket") as connect:
        reader, writer = await connect()
        writer.write(b"".join(requests))
        answers = [await answer_of(reader) for _ in requests]
        assert await reader.read() == b""  # closed, as was asked for
        writer.close()
    counts = [json.loads(body).get("count") for _, _, body in answers if body]
    assert counts == [1, THREAD_BYTES + 1, 2, words + 1, 3, None, None]
    assert [status for status, _, _ in answers] == [200] * 7 + [400]
    assert answers[4][1]["x-request-id"] == "mine"
    assert len({headers["x-request-id"] for _, headers, _ in answers}) == len(requests)
    assert (app.in_progress, app.bytes_held) == (0, 0)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/detokenize", {"tokens": [1] * THREAD_BYTES}),
        ("/tokenize", {"inputs": ["a"] * THREAD_BYTES}),
        ("/tokenize", {"messages": [{"role": "user"}] * THREAD_BYTES}),
        ("/v1/completions/derender", {"generate_responses": [{"token_ids": [1] * THREAD_BYTES}]}),
        ("/v1/completions/render", {"prompt": ["a"] * THREAD_BYTES}),
    ],
)
async def test_what_takes_long_does_not_stop_the_others(
    app: App, tmp_path: Path, path: str, body: object
) -> None:
    begun, end = threading.Event(), threading.Event()

    def work(*_: object) -> bytes:
        begun.set()
        assert end.wait(60)
        return b"{}"

    app.work[path] = work
    async with serving(app, tmp_path / "socket") as connect:
        (slow, asks), (reader, writer) = await connect(), await connect()
        asks.write(post(body, path))
        await until(begun.is_set)
        writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await answer_of(reader))[0] == 200
        end.set()
        assert (await answer_of(slow))[0] == 200
        asks.close()
        writer.close()


async def test_too_slow_clients_are_closed(app: App, tmp_path: Path, monkeypatch: Any) -> None:
    for module in ("app", "protocol"):
        monkeypatch.setattr(f"dpdk_tokd.gateway.{module}.BODY_S", 0.05)
    late = [
        (b"", None),
        (b"POST /tok", None),
        (post({"prompt": "one"})[:-1], 408),
        (chunked({"prompt": "one"})[:-5], 408),
    ]
    async with serving(app, tmp_path / "socket") as connect:
        for sent, status in late:
            reader, writer = await connect()
            writer.write(sent)
            if status is not None:
                assert (await answer_of(reader))[0] == status
            assert await reader.read() == b""
            writer.close()
    assert (app.in_progress, app.bytes_held) == (0, 0)


async def test_a_pipeline_may_last(app: App, tmp_path: Path) -> None:
    """A request has its time from its own beginning, however the bytes before ended."""
    state, request = ServerState(), post({"prompt": "one"})
    async with serving(app, tmp_path / "socket", state) as connect:
        reader, writer = await connect()
        writer.write(request[:-7])
        await until(lambda: app.in_progress == 1)
        (connection,) = state.connections
        before = connection._limit.when()
        await until(lambda: connection.loop.time() + protocol.BODY_S > before)  # time passes
        writer.write(request[-7:] + request[:-7])
        assert (await answer_of(reader))[0] == 200
        assert connection._limit.when() > before
        writer.close()


WORDS = {"prompt": "a " * 100_000, "return_token_strs": True}  # the answer is more than buffers


@pytest.mark.parametrize(
    ("header", "then", "kept", "waits"),
    [
        ("x: y", post({"prompt": "one"}), 3600, None),
        ("connection: close", b"", 3600, 1 << 30),
        ("x: y", b"", 0.05, 1 << 30),
        ("x: y", b"nonsense\r\n\r\n", 3600, 1 << 30),
        ("x: y", b"POST /tok", 3600, 1 << 30),
    ],
    ids=["another waits", "to be closed", "no longer kept", "malformed", "too slow"],
)
async def test_who_does_not_take_an_answer_is_closed(
    app: App,
    tmp_path: Path,
    monkeypatch: Any,
    header: str,
    then: bytes,
    kept: float,
    waits: int | None,
) -> None:
    """waits: bytes of answers beyond which the next one is not written."""
    monkeypatch.setattr(protocol, "ANSWER_S", 0.05)
    state = ServerState()

    path = tmp_path / "socket"
    async with serving(app, path, state, timeout_keep_alive=kept) as connect:
        reader, writer = await connect()
        await until(lambda: bool(state.connections))
        (connection,) = state.connections
        connection.transport.set_write_buffer_limits(waits)
        writer.write(post(WORDS, "/tokenize", header))
        await until(lambda: connection.transport.get_write_buffer_size() > 0)
        monkeypatch.setattr(protocol, "BODY_S", 0.05)
        writer.write(then)
        await until(lambda: not state.connections)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await answer_of(reader)
        writer.close()


async def test_answers_that_nobody_takes_are_limited(app: App, tmp_path: Path) -> None:
    """The oldest go; who takes his gets it."""
    app.limits = Limits(body=len(post(WORDS)))  # an answer has five times as much
    state, clients = ServerState(), []
    async with serving(app, tmp_path / "socket", state) as connect:
        for n in range(1, 2 * BODIES):
            clients.append(await connect())
            clients[-1][1].write(post(WORDS))
            await until(lambda n=n: sum(app.metrics._requests.values()) == n)
        assert (await answer_of(clients[-1][0]))[0] == 200
        held = sum(one.transport.get_write_buffer_size() for one in state.connections)
        assert app.limits.body < held <= app.limits.body * BODIES
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await answer_of(clients[0][0])
        for _, writer in clients:
            writer.close()
        await until(lambda: not state.connections)
    assert not app.unread


async def test_who_takes_an_answer_slowly_gets_all_of_it(
    app: App, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(protocol, "ANSWER_S", 3600)
    state = ServerState()
    async with serving(app, tmp_path / "socket", state) as connect:
        reader, writer = await connect()
        writer.write(post(WORDS, "/tokenize", "connection: close"))
        await until(lambda: any(one.transport.is_closing() for one in state.connections))
        (connection,) = state.connections
        taken, checks = b"", 0
        while left := connection.transport.get_write_buffer_size():
            connection._unwatch()  # the time is over
            connection._check_taken(left + 1)
            checks += 1
            while connection.transport.get_write_buffer_size() == left:
                taken += await reader.read(1 << 16)
        taken += await reader.read()
        writer.close()
    head, _, body = taken.partition(b"\r\n\r\n")
    assert b"content-length: %d\r\n" % len(body) in head
    assert checks > 1


def test_who_asks_for_another_protocol_gets_an_answer_in_this_one(app: App, tmp_path: Path) -> None:
    """As Java's HttpClient asks for HTTP/2, with its first request."""
    wish = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAA\r\n"

    def wishing(request: bytes) -> bytes:
        return request.replace(b"host: x\r\n", b"host: x\r\n" + wish.encode())

    requests = [
        wishing(post({"prompt": "one"})),
        wishing(chunked({"prompt": "one two"})),
        wishing(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"),
        post({"prompt": "one two three"}),
        wishing(post({"prompt": "one two three one"}, "/tokenize", "connection: close")),
    ]
    sent = b"".join(requests)

    async def run(size: int) -> None:
        async with serving(app, tmp_path / "socket") as connect:
            reader, writer = await connect()
            for at in range(0, len(sent), size):
                writer.write(sent[at : at + size])
                await asyncio.sleep(0)  # the server reads
            answers = [await answer_of(reader) for _ in requests]
            assert await reader.read() == b""
            writer.close()
        assert [status for status, _, _ in answers] == [200] * len(requests)
        counts = [json.loads(body)["count"] for _, _, body in answers if body]
        assert counts == [1, 2, 3, 4]

    for size in (len(sent), 100, 7):
        asyncio.run(run(size))

    async def tunnel() -> None:
        async with serving(app, tmp_path / "socket") as connect:
            reader, writer = await connect()
            writer.write(b"CONNECT /health HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await answer_of(reader))[0] == 400
            writer.close()

    asyncio.run(tunnel())


async def test_a_head_request_has_no_body(app: App, tmp_path: Path) -> None:
    async with serving(app, tmp_path / "socket") as connect:
        reader, writer = await connect()
        writer.write(b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"\r\n\r\n")


async def test_a_head_has_a_limit(app: App, tmp_path: Path) -> None:
    start = b"GET /health HTTP/1.1\r\nhost: x\r\n"
    body = chunked({"prompt": "one"})
    line = b"a: b\r\n"
    long = [
        (b"", start + b"a: " + b"b" * HEAD_BYTES),
        (b"", start + line * (HEAD_BYTES // len(line))),
        (body[:-5], b"1;" + b"a" * HEAD_BYTES),  # what may stand beside a chunk's length
        (body[:-2], line * (HEAD_BYTES // len(line) + 1)),  # headers behind the body
    ]
    async with serving(app, tmp_path / "socket") as connect:
        for before, more in long:
            reader, writer = await connect()
            writer.write(before)
            if before:
                await until(lambda: app.bytes_held > 0)
            writer.write(more)
            async with asyncio.timeout(60):
                assert (await answer_of(reader))[0] == 400
                assert await reader.read() == b""
            writer.close()
            await until(lambda: app.in_progress == 0)
        reader, writer = await connect()
        most = HEAD_BYTES - len(start) - len(b"\r\n\r\n")
        writer.write(start + b"a:" + b"b" * (most - 2) + b"\r\n\r\n")
        assert (await answer_of(reader))[0] == 200
        writer.close()


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b"Host: 0 fields"),
        (b"GET /health HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", b"Host: 2 fields"),
        (b"GET /health HTTP/1.1\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", b"Host: 0"),
        (
            b"POST /tokenize HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: HTTP/1.0",
        ),
        (b"nonsense\r\n\r\n", b"Invalid HTTP"),
    ],
)
async def test_a_wrong_head_is_refused(app: App, tmp_path: Path, head: bytes, why: bytes) -> None:
    async with serving(app, tmp_path / "socket") as connect:
        reader, writer = await connect()
        writer.write(head)
        status, _, body = await answer_of(reader)
        assert status == 400 and body.startswith(why)
        assert await reader.read() == b""
        writer.close()


async def test_what_stands_behind_a_body_is_no_head(app: App, tmp_path: Path) -> None:
    app.keys = (b"key",)
    key = b"authorization: Bearer key\r\n"
    plain = chunked({"prompt": "one"})
    behind = plain[:-2] + key + plain[-2:]
    before = plain.replace(b"host: x\r\n", b"host: x\r\n" + key)
    async with serving(app, tmp_path / "socket") as connect:
        reader, writer = await connect()
        writer.write(behind + before + behind)
        assert [(await answer_of(reader))[0] for _ in range(3)] == [401, 200, 401]
        writer.close()


async def test_a_request_in_work_outlives_the_one_before_in_its_packet(
    app: App, tmp_path: Path
) -> None:
    """The time that an idle connection is kept is not counted."""
    end = threading.Event()

    def work(*_: object) -> bytes:
        assert end.wait(60)
        return b"{}"

    app.work["/detokenize"] = work
    asked = post({"prompt": "one"}) + post({"tokens": [1] * THREAD_BYTES}, "/detokenize")
    async with serving(app, tmp_path / "socket", timeout_keep_alive=0.05) as connect:
        reader, writer = await connect()
        writer.write(asked)
        assert (await answer_of(reader))[0] == 200
        idle, later = await connect()
        later.write(post({"prompt": "two"}))
        assert (await answer_of(idle))[0] == 200
        assert await idle.read() == b""  # its time is over, so that of the first would be
        later.close()
        end.set()
        assert (await answer_of(reader))[0] == 200
        writer.close()


async def test_who_hangs_up_is_counted(app: App, tmp_path: Path) -> None:
    counted = 'tokd_gateway_requests_total{path="/tokenize",status="499"} 2.0'
    async with serving(app, tmp_path / "socket") as connect:
        for sent in (post({"prompt": "one"}), chunked({"prompt": "one"})):
            _, writer = await connect()
            writer.write(sent[:-5])
            await writer.drain()
            writer.close()
        await until(lambda: counted in app.metrics.page().decode())
    assert (app.in_progress, app.bytes_held) == (0, 0)


async def test_what_waits_for_a_thread_is_not_done_for_who_hangs_up(
    app: App, tmp_path: Path
) -> None:
    begun, end = threading.Event(), threading.Event()
    done = []

    def work(_: object, body: bytes) -> bytes:
        begun.set()
        assert end.wait(60)
        done.append(body)
        return b"{}"

    app.work["/detokenize"] = work
    app._threads = ThreadPoolExecutor(1)
    asked = post({"tokens": [1] * THREAD_BYTES}, "/detokenize")
    async with serving(app, tmp_path / "socket") as connect:
        (first, asks), (_, gone) = await connect(), await connect()
        asks.write(asked)
        await until(begun.is_set)
        gone.write(asked)
        await until(lambda: app._threads._work_queue.qsize() == 1)
        gone.close()
        await until(lambda: app.in_progress == 1)
        end.set()
        assert (await answer_of(first))[0] == 200
        asks.close()
    app._threads.shutdown()
    assert len(done) == 1


class Gateway:
    """A running tokd-gateway at a unix socket."""

    def __init__(self, path: Path, process: subprocess.Popen[str], log: Path) -> None:
        self.path, self.process, self._log = str(path), process, log

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        client.connect(self.path)
        return client

    def listens(self) -> bool:
        try:
            self.connect().close()
        except OSError:  # there is a moment between bind() and listen()
            return False
        return True

    def log(self) -> str:
        return self._log.read_text()

    def metrics(self) -> str:
        with self.connect() as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return client.makefile().read()

    def wait_for(self, condition: Callable[[], object]) -> None:
        until = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None and time.monotonic() < until, self.log()
            time.sleep(0.02)

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) << 10


@contextmanager
def running(folder: Path, vocab: Path, *options: str, **env: str) -> Iterator[Gateway]:
    path, log = folder / "gateway.sock", folder / "gateway.log"
    given = ["--model", f"gpt2={vocab}", "--uds", str(path), *options]
    with (
        log.open("w") as err,
        subprocess.Popen(
            [*COMMAND, *given], stderr=err, text=True, env=os.environ | env
        ) as process,
    ):
        gateway = Gateway(path, process, log)
        try:
            gateway.wait_for(gateway.listens)
            yield gateway
        finally:
            process.kill()


def answer_to(client: socket.socket) -> tuple[int, Any]:
    answer = http.client.HTTPResponse(client)
    answer.begin()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("split", [post, chunked], ids=["short", "chunked"])
def test_sigterm_lets_requests_end(
    gpt2_file: Path, tmp_path: Path, split: Callable[[object], bytes]
) -> None:
    told = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(told))
        notify.settimeout(60)
        with running(tmp_path, gpt2_file, "--log-requests", NOTIFY_SOCKET=str(told)) as gateway:
            assert notify.recv(100) == b"READY=1"
            request = split({"prompt": "one"}).replace(b"host: x", b"host: x\r\nx-request-id: mine")
            with gateway.connect() as idle, gateway.connect() as client:
                idle.sendall(post({"prompt": "one"}))
                assert answer_to(idle)[1]["tokens"] == [505]
                client.sendall(request[:-7])
                idle.sendall(post({"prompt": "one"}))  # by its answer, the gateway has the above
                assert answer_to(idle)[0] == 200
                gateway.process.send_signal(signal.SIGTERM)
                assert notify.recv(100) == b"STOPPING=1"
                assert idle.recv(1) == b""
                client.sendall(request[-7:])
                assert answer_to(client)[1]["tokens"] == [505]
                assert client.recv(1) == b""
            assert gateway.process.wait(60) == 0
            log = gateway.log()
    assert re.search(r"request mine: POST /tokenize: 200, \d+ bytes in, \d+ out", log), log
    assert "Traceback" not in log


def test_a_second_sigterm_does_not_wait(gpt2_file: Path, tmp_path: Path) -> None:
    with running(tmp_path, gpt2_file) as gateway, gateway.connect() as client:
        client.sendall(post({"prompt": "one"})[:-7])
        gateway.wait_for(lambda: "requests_in_progress 1.0\n" in gateway.metrics())
        gateway.process.send_signal(signal.SIGTERM)
        gateway.wait_for(lambda: "Waiting for" in gateway.log())
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(10) == 1
        assert client.recv(1) == b""


def test_the_umask_says_who_may_connect(gpt2_file: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(tmp_path / "gateway.sock"))
    (tmp_path / "gateway.sock").chmod(0o666)
    before = os.umask(0o027)
    try:
        with running(tmp_path, gpt2_file) as gateway:
            assert stat.S_IMODE(os.stat(gateway.path).st_mode) == 0o750
    finally:
        os.umask(before)


@pytest.mark.parametrize("option", ["--uds {}", "--grpc unix:{}"])
def test_a_socket_that_is_served_is_not_taken(gpt2_file: Path, tmp_path: Path, option: str) -> None:
    pytest.importorskip("grpc")
    path = tmp_path / "served"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:  # of any type
        other.bind(str(path))
        other.listen()
        options = [*option.format(path).split(), "--port", "0", "--model", f"x={gpt2_file}"]
        done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60)
    said = f"tokd-gateway: {option.format(path)}: another server listens there: stop it, or give"
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert path.is_socket()


def test_curl(gpt2_file: Path, tmp_path: Path) -> None:
    """It asks to continue before it sends a body of over 1 MiB."""
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    body = tmp_path / "body"
    with running(tmp_path, gpt2_file) as gateway:
        command = ["curl", "-sS", "--unix-socket", gateway.path, "http://x/tokenize", "--json"]
        for count in (1, 1 << 19):
            body.write_text(json.dumps({"prompt": "one " * count}))
            done = subprocess.run([*command, f"@{body}"], capture_output=True, timeout=60)
            assert json.loads(done.stdout)["count"] == count + 1, done.stderr


def test_tls(gpt2_file: Path, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x"
    names = ["-addext", "subjectAltName=DNS:gateway", "-keyout", key, "-out", cert]
    subprocess.run(["openssl", *made.split(), *names], check=True, capture_output=True)
    options = ("--ssl-certfile", cert, "--ssl-keyfile", key)
    trusted = ssl.create_default_context(cafile=cert)
    with running(tmp_path, gpt2_file, *options) as gateway, gateway.connect() as plain:
        with trusted.wrap_socket(plain, server_hostname="gateway") as client:
            client.sendall(post({"prompt": "one"}))
            assert answer_to(client)[1]["tokens"] == [505]


def test_what_cannot_be_served_is_an_error(gpt2_file: Path, tmp_path: Path) -> None:
    given = ["--model", f"x={gpt2_file}", "--port", "0"]
    socket, pem = str(tmp_path / "no/socket"), str(tmp_path / "no.pem")
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no PEM")
    for options, code, why in (
        (["--uds", socket], 1, f"--uds {socket}: .*No such file"),
        (["--ssl-certfile", pem], 1, f"{pem}: .*No such file"),
        (["--ssl-certfile", str(wrong)], 1, f"{wrong}: .*PEM"),
        (["--ssl-keyfile", pem], 2, "--ssl-certfile"),
        (["--port", "65536"], 2, "--port: '65536': expected a number from 0 to 65535"),
        (["--port", "-1"], 2, "--port"),
        (["--appliance", ""], 2, "host ''"),
    ):
        done = subprocess.run([*COMMAND, *given, *options], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert re.search(f"tokd-gateway: .*{why}", done.stderr), done.stderr
        assert "Traceback" not in done.stderr


class Crowd:
    """64 clients that ask and check, beside others that misbehave until these have done."""

    def __init__(self, path: str, tok: Any) -> None:
        self._path, self._done = path, asyncio.Event()
        texts = ["one two", "Once upon a time. " * 30, "a b\n" * 2000, "x y z " * 10_000]
        self._asked = [(post({"prompt": t}), tok.encode(t).tolist()) for t in texts]
        self.bad = dict.fromkeys(("slow", "hang up", "malformed", "oversize"), 0)

    def _connect(self) -> Any:
        return asyncio.open_unix_connection(self._path)

    async def good(self, first: int, count: int) -> None:
        reader, writer = await self._connect()
        for i in range(first, first + count):
            request, ids = self._asked[min(i % 16 // 5, 3)]  # a long one in 16
            writer.write(request)
            status, _, body = await answer_of(reader)
            assert status == 200 and json.loads(body)["tokens"] == ids
        writer.close()

    async def _misbehave(self, how: str, once: Callable[..., Any]) -> None:
        while not self._done.is_set():
            reader, writer = await self._connect()
            await once(reader, writer)
            writer.close()
            self.bad[how] += 1
            await asyncio.sleep(0.002)  # else the queue of connections may be full

    async def slow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request, ids = self._asked[0]
        for at in range(0, len(request), 9):
            writer.write(request[at : at + 9])
            await asyncio.sleep(0.002)
        assert json.loads((await answer_of(reader))[2])["tokens"] == ids

    async def hang_up(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request, _ = self._asked[self.bad["hang up"] % 4]
        writer.write(request[: len(request) // (1 + self.bad["hang up"] % 3)])
        await writer.drain()

    async def malformed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wrong = [
            b"nonsense\r\n\r\n",
            post(b'{"prompt": "one'),
            post({"prompt": 1.5}),
            post(b"", "/tokenize", "content-length: x"),
            chunked({})[:-5] + b"zz\r\n",
        ]
        writer.write(wrong[self.bad["malformed"] % len(wrong)])
        assert (await answer_of(reader))[0] == 400

    async def oversize(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(post(b" " * (BODY_MAX + 1)))
        assert (await answer_of(reader))[0] == 413

    async def run(self, each: int) -> None:
        others = (self.slow, self.hang_up, self.malformed, self.oversize)
        async with asyncio.TaskGroup() as bad:
            for how, once in zip(self.bad, others, strict=True):
                for _ in range(BAD):
                    bad.create_task(self._misbehave(how, once))
            try:
                async with asyncio.TaskGroup() as good:
                    for i in range(CLIENTS):
                        good.create_task(self.good(i, each))
            finally:
                self._done.set()


def test_good_clients_do_not_suffer_from_bad_ones(gpt2_file: Path, tmp_path: Path) -> None:
    from dpdk_tokd import Tokenizer

    tok = Tokenizer.load(gpt2_file)
    with running(tmp_path, gpt2_file, "--max-body", str(BODY_MAX)) as gateway:
        for each in (EACH // 5 + 1, EACH):  # the first fills caches and pools
            before = gateway.resident()
            crowd = Crowd(gateway.path, tok)
            asyncio.run(asyncio.wait_for(crowd.run(each), 600))
            assert min(crowd.bad.values()) > 0
        assert gateway.resident() - before < FLAT
        gateway.wait_for(lambda: "\ntokd_gateway_requests_in_progress 0.0\n" in gateway.metrics())
        page = gateway.metrics()
        good = re.search(r'requests_total{path="/tokenize",status="200"} (\d+)', page)
        assert good and int(good[1]) >= CLIENTS * (EACH // 5 + 1 + EACH)
        assert 'status="500"' not in page
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(60) == 0
        assert "Traceback" not in gateway.log()
