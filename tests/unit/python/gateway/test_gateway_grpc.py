# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway --grpc, by a client that protoc makes of the interface."""

import hashlib
import http.client
import importlib
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

grpc = pytest.importorskip("grpc", reason="pip install 'dpdk-tokd[grpc]'")
tools = pytest.importorskip("grpc_tools.protoc", reason="pip install grpcio-tools")
tokenizers = pytest.importorskip("tokenizers")
from dpdk_tokd.gateway.app import App, Limits
from dpdk_tokd.gateway.llmd import proto
from dpdk_tokd.gateway.llmd.server import REFLECTIONS, THREADS, GrpcServer
from dpdk_tokd.gateway.models import Model, Models
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from test_gateway import ask

NAME = "tokenization.TokenizationService"
# Of api/tokenizerpb/tokenizer.proto in llm-d-kv-cache, revision 7be76e1: see `wire_format`.
LLM_D = "238d37fb62ae5560bc36d7c87d2279f83389a234807ac27b964b7d7af2bc255c"
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
    "{% if enable_thinking %}<think>{% endif %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
TEXTS = [
    "",
    "Hello world",
    "naïve cafe\u0301 n\u0303andu\u0301 a\u0323\u0308",
    "a family 👨‍👩‍👧‍👦 and 😀 🏳️‍🌈, a flag 🇪🇸",
    "नमस्ते 你好 مرحبا\u00a0б\u0306",
    "  two  blanks \n\n\tand a tab \r\n",
    "a <|endoftext|> in the text <|endoftext|>",
    "long 😀 texts, e\u0301, are worked on in a thread. " * 2000,
]
SAID = [("user", "one two"), ("assistant", "three 😀")]
HEALTHY, DRAINING = (health_pb2.HealthCheckResponse.ServingStatus.values()[i] for i in (1, 2))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What protoc makes of the interface, where it can be imported."""
    folder = tmp_path_factory.mktemp("protoc")
    options = [f"--{kind}={folder}" for kind in ("python_out", "grpc_python_out")]
    options.append(f"--descriptor_set_out={folder / 'set'}")
    where = f"-I{proto.SOURCE.parent}"
    assert tools.main(["protoc", where, *options, proto.SOURCE.name]) == 0
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def pb(made: Path) -> ModuleType:
    return importlib.import_module("tokenizer_pb2")


@pytest.fixture(scope="module")
def folder(gpt2_reference: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-2 with a template, and with offsets that leave out blanks, as Llama 3 has them."""
    folder = tmp_path_factory.mktemp("model")
    reference = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    reference.add_special_tokens(["<|endoftext|>"])
    id = reference.token_to_id("<|endoftext|>")
    around = tokenizers.processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", id)]
    )
    trim = tokenizers.processors.ByteLevel(trim_offsets=True)
    reference.post_processor = tokenizers.processors.Sequence([trim, around])
    reference.save(str(folder / "tokenizer.json"))
    config = {"chat_template": TEMPLATE, "eos_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@dataclass
class Gateway:
    process: subprocess.Popen[str]
    channel: Any
    stub: Any
    http: str

    def ids_by_http(self, path: str, body: dict[str, Any]) -> list[int]:
        client = http.client.HTTPConnection("localhost")
        client.sock = socket.socket(socket.AF_UNIX)
        client.sock.connect(self.http)
        headers = {"Content-Type": "application/json"}
        client.request("POST", path, json.dumps({"tool_choice": "none"} | body), headers)
        answer = json.load(client.getresponse())
        found: list[int] = (answer[0] if isinstance(answer, list) else answer)["token_ids"]
        return found


@pytest.fixture(scope="module")
def gateway(folder: Path, made: Path, tmp_path_factory: Any) -> Iterator[Gateway]:
    at = tmp_path_factory.mktemp("sockets")
    command = [sys.executable, "-m", "dpdk_tokd.gateway.cli", "--model", f"org/gpt2={folder}"]
    command += ["--uds", str(at / "http"), "--grpc", f"unix:{at / 'grpc'}"]
    command += ["--max-body", str(1 << 20), "--max-model-len", "60"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
        grpc.insecure_channel(f"unix:{at / 'grpc'}") as channel,
    ):
        try:
            grpc.channel_ready_future(channel).result(60)
            stubs = importlib.import_module("tokenizer_pb2_grpc")
            stub = stubs.TokenizationServiceStub(channel)
            yield Gateway(process, channel, stub, str(at / "http"))
        finally:
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
            assert "Traceback" not in log and "uncaught" not in log.lower(), log


def refused(call: Any, request: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as error:
        call(request)
    return error.value.code().name, error.value.details()


# ---- the interface ----


def wire_format(file: Any) -> str:
    """A checksum of all that decides about bytes on the wire."""
    lines = []
    messages = [*file.message_types_by_name.values()]
    while messages:
        message = messages.pop()
        messages += message.nested_types
        for f in message.fields:
            of = f.message_type and f.message_type.full_name
            words = (f.full_name, f.number, f.type, f.is_repeated, f.has_presence, of)
            lines.append(" ".join(map(str, words)))
    for service in file.services_by_name.values():
        for m in service.methods:
            lines.append(f"{m.full_name} {m.input_type.full_name} {m.output_type.full_name}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def test_the_interface_is_llm_ds_and_read_as_protoc_does(made: Path) -> None:
    (file,) = FileDescriptorSet.FromString((made / "set").read_bytes()).file
    by_protoc = DescriptorPool().AddSerializedFile(file.SerializeToString())
    assert wire_format(by_protoc) == wire_format(proto.FILE) == LLM_D
    for line in ("import 'x';", "int32 x;", "enum X {"):
        with pytest.raises(ValueError, match="not understood"):
            proto.read(line, "x.proto")


# ---- answers ----


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_ids_and_offsets_are_those_of_tokenizers(
    gateway: Gateway, pb: Any, folder: Path, text: str, special: bool
) -> None:
    reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    want = reference.encode(text, add_special_tokens=special)
    asked = pb.TokenizeRequest(input=text, model_name="org/gpt2", add_special_tokens=special)
    answer = gateway.stub.Tokenize(asked)
    assert answer.success and not answer.error_message
    assert [*answer.input_ids] == want.ids
    assert [*answer.offset_pairs] == [at for offset in want.offsets for at in offset]


def test_a_completion_is_rendered(gateway: Gateway, pb: Any) -> None:
    asked = pb.RenderCompletionRequest(model_name="org/gpt2", prompt="one 😀")
    answer = gateway.stub.RenderCompletion(asked)
    assert answer.success and answer.request_id.startswith("cmpl-")
    assert [*answer.token_ids] == gateway.ids_by_http(
        "/v1/completions/render", {"prompt": "one 😀"}
    )


def test_a_conversation_is_rendered_as_by_http(gateway: Gateway, pb: Any) -> None:
    said = [pb.ChatMessage(role=role, content=text) for role, text in SAID]
    parts = [pb.ContentPart(type="text", text="four")]
    said.append(pb.ChatMessage(role="user", content_parts=parts))
    same = [{"role": role, "content": text} for role, text in SAID]
    same.append({"role": "user", "content": [{"type": "text", "text": "four"}]})
    tools = [{"type": "function", "function": {"name": "sum"}}]
    variables = {"enable_thinking": True}
    answer = gateway.stub.RenderChatCompletion(
        pb.RenderChatCompletionRequest(
            model_name="org/gpt2",
            messages=said,
            tools_json=json.dumps(tools),
            chat_template_kwargs=json.dumps(variables),
        )
    )
    assert answer.success and answer.request_id.startswith("chatcmpl-")
    assert not answer.HasField("features")
    body = {"messages": same, "tools": tools, "chat_template_kwargs": variables}
    assert [*answer.token_ids] == gateway.ids_by_http("/v1/chat/completions/render", body)
    without = pb.RenderChatCompletionRequest(
        model_name="org/gpt2", messages=said[:2], add_generation_prompt=False
    )
    body = {"messages": same[:2], "add_generation_prompt": False}
    answer = gateway.stub.RenderChatCompletion(without)
    assert [*answer.token_ids] == gateway.ids_by_http("/v1/chat/completions/render", body)


def test_the_deprecated_call_uses_what_the_model_was_initialized_with(
    gateway: Gateway, pb: Any
) -> None:
    turn = pb.ConversationTurn(messages=[pb.ChatMessage(role="user", content="one")])
    asked = pb.ChatTemplateRequest(model_name="org/gpt2", conversation_turns=[turn, turn])
    said = "user: one<|endoftext|>" * 2
    for thinking, prompt, end in ((True, False, "<think>"), (False, True, "assistant:")):
        started = gateway.stub.InitializeTokenizer(
            pb.InitializeTokenizerRequest(
                model_name="org/gpt2", enable_thinking=thinking, add_generation_prompt=prompt
            )
        )
        assert started.success and not started.error_message
        answer = gateway.stub.RenderChatTemplate(asked)
        assert answer.success and answer.rendered_prompt == said + end


# ---- failures ----


def test_failures_are_as_llm_d_has_them(gateway: Gateway, pb: Any) -> None:
    stub = gateway.stub
    for name in ("", "unknown"):
        started = stub.InitializeTokenizer(pb.InitializeTokenizerRequest(model_name=name))
        assert not started.success and (name or "model_name is empty") in started.error_message
        for call, request in (
            (stub.Tokenize, pb.TokenizeRequest),
            (stub.RenderCompletion, pb.RenderCompletionRequest),
            (stub.RenderChatCompletion, pb.RenderChatCompletionRequest),
            (stub.RenderChatTemplate, pb.ChatTemplateRequest),
        ):
            code, details = refused(call, request(model_name=name))
            assert code == "INTERNAL" and (name or "model_name is empty") in details
    one = pb.ChatMessage(role="user", content="one")
    image = pb.ContentPart(type="image_url", image_url=pb.ImageUrl(url="http://x"))
    called = pb.ChatMessage(role="assistant", tool_calls_json="{")
    for fields, code, why in (
        ({}, "INTERNAL", "empty conversation"),
        ({"messages": [one], "tools_json": "["}, "INTERNAL", "tools_json: not JSON"),
        ({"messages": [one], "tools_json": "{}"}, "INTERNAL", "tools"),
        ({"messages": [one], "chat_template": "{{ 1 }}"}, "INTERNAL", "untrusted chat template"),
        ({"messages": [called]}, "INTERNAL", "tool_calls_json: not JSON"),
        (
            {"messages": [pb.ChatMessage(role="user", content_parts=[image])]},
            "UNIMPLEMENTED",
            "image_url",
        ),
    ):
        asked = pb.RenderChatCompletionRequest(model_name="org/gpt2", **fields)
        got = refused(stub.RenderChatCompletion, asked)
        assert got[0] == code and why in got[1], got
    for prompt, why in (
        ("", "must be provided and non-empty"),
        (" one" * 60, "maximum context length is 60 tokens"),
    ):
        asked = pb.RenderCompletionRequest(model_name="org/gpt2", prompt=prompt)
        assert why in refused(stub.RenderCompletion, asked)[1]
    # Its name would not fit into the header that has the message.
    code, details = refused(stub.Tokenize, pb.TokenizeRequest(model_name="x" * 100_000))
    assert code == "INTERNAL" and len(details) == 1000


def test_limits_come_before_work(gateway: Gateway, pb: Any) -> None:
    long = pb.TokenizeRequest(model_name="org/gpt2", input="a" * (1 << 20))
    assert refused(gateway.stub.Tokenize, long)[0] == "RESOURCE_EXHAUSTED"
    raw = gateway.channel.unary_unary(f"/{NAME}/Tokenize")
    assert refused(raw, b"\xff")[0] == "INTERNAL"
    assert refused(gateway.channel.unary_unary(f"/{NAME}/Other"), b"")[0] == "UNIMPLEMENTED"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("/tmp/s", "expected unix:PATH"),
        ("unix:", "expected unix:PATH"),
        ("unix:" + "x" * 108, "longer than 107 bytes"),
        ("unix:/nowhere/s", "there is no folder /nowhere"),
        ("unix:.", "--grpc unix:."),
    ],
)
def test_a_socket_that_cannot_be_is_named(folder: Path, given: str, message: str) -> None:
    command = [sys.executable, "-m", "dpdk_tokd.gateway.cli", "--model", f"x={folder}"]
    done = subprocess.run(
        [*command, "--port", "0", "--grpc", given], capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 2) and message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr


# ---- health, reflection, the end ----


@pytest.fixture
def model(folder: Path) -> Model:
    return Model("gpt2", str(folder / "tokenizer.json"))


def test_health_and_reflection(gateway: Gateway) -> None:
    asked = health_pb2_grpc.HealthStub(gateway.channel)
    for name in ("", NAME):
        assert asked.Check(health_pb2.HealthCheckRequest(service=name)).status == HEALTHY
    got = refused(asked.Check, health_pb2.HealthCheckRequest(service="other"))
    assert got[0] == "NOT_FOUND"
    found = ProtoReflectionDescriptorDatabase(gateway.channel)
    assert {NAME, "grpc.health.v1.Health"} < {*found.get_services()}
    pool = DescriptorPool(found)
    assert wire_format(pool.FindServiceByName(NAME).file) == LLM_D
    assert pool.FindServiceByName("grpc.health.v1.Health").methods_by_name["Watch"]


def test_neither_long_texts_nor_reflection_keep_others_out(model: Model, tmp_path: Path) -> None:
    server = GrpcServer(App(Models([model])), f"unix:{tmp_path / 's'}")
    gate = threading.Event()
    server.start()
    listed = reflection_pb2.ServerReflectionRequest(list_services="")
    asked = proto.message_class("TokenizeRequest")(input="one", model_name="gpt2")
    idle = [queue.SimpleQueue() for _ in range(THREADS + 1)]
    with grpc.insecure_channel(server.address) as channel:
        reflect = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        tokenize = channel.unary_unary(f"/{NAME}/Tokenize")
        streams = []
        for one in idle:
            one.put(listed)
            streams.append(reflect(iter(one.get, None)))
        answered = []
        for stream in streams:
            try:
                assert next(stream).HasField("list_services_response")
                answered.append(stream)
            except grpc.RpcError as error:
                assert error.code().name == "RESOURCE_EXHAUSTED"
        assert len(answered) == REFLECTIONS
        tokenize(asked.SerializeToString(), timeout=60)
        for one in idle:
            one.put(None)  # its client has asked all
        for stream in answered:
            assert list(stream) == []
        again = reflect(iter([listed]))
        assert next(again).HasField("list_services_response")
        for _ in range(THREADS):
            ThreadPoolExecutor.submit(server.threads, gate.wait, 60)
        check = health_pb2_grpc.HealthStub(channel)
        assert check.Check(health_pb2.HealthCheckRequest(), timeout=30).status == HEALTHY
        gate.set()
    server.stop(60)


def test_clients_that_wait_for_reflection_are_few(model: Model, tmp_path: Path) -> None:
    """They would hold all requests that the gateway takes at once."""
    server = GrpcServer(App(Models([model])), f"unix:{tmp_path / 's'}")
    server.start()
    listed = reflection_pb2.ServerReflectionRequest(list_services="")
    idle: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(100)]
    with grpc.insecure_channel(server.address) as channel:
        reflect = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        for one in idle:
            one.put(listed)
        streams = [reflect(iter(one.get, None), timeout=5) for one in idle]
        ends = Counter[str]()
        for stream in streams:
            try:
                next(stream)
                ends["answered"] += 1
            except grpc.RpcError as error:
                ends[error.code().name] += 1
        assert ends == {"answered": REFLECTIONS, "RESOURCE_EXHAUSTED": 100 - REFLECTIONS}
        for one in idle:
            one.put(None)
    server.stop(60)


def test_the_end_lets_requests_end(model: Model, tmp_path: Path) -> None:
    """One that has arrived and waits for a thread is answered, one too many is refused; in the end
    nobody is answered."""

    server = GrpcServer(App(Models([model]), Limits(requests=1)), f"unix:{tmp_path / 's'}")
    gate = threading.Event()
    # All threads wait, so that one request is not begun when the end is.
    for _ in range(THREADS):
        ThreadPoolExecutor.submit(server.threads, gate.wait, 60)
    server.start()
    asked = proto.message_class("TokenizeRequest")(input="a" * 40_000, model_name="gpt2")
    with grpc.insecure_channel(server.address) as channel:
        answer = channel.unary_unary(f"/{NAME}/Tokenize").future(asked.SerializeToString())
        until = time.monotonic() + 60
        while not server.threads.in_progress and time.monotonic() < until:
            time.sleep(0.01)
        busy = refused(channel.unary_unary(f"/{NAME}/Tokenize"), b"")
        assert busy[0] == "RESOURCE_EXHAUSTED" and "limit" in busy[1]
        end = threading.Thread(target=server.stop, args=(60,))
        end.start()
        gate.set()
        made = proto.message_class("TokenizeResponse").FromString(answer.result(60))
        assert made.success and made.offset_pairs[-1] == 40_000
        end.join(30)
        assert not end.is_alive()
        assert refused(channel.unary_unary(f"/{NAME}/Tokenize"), b"")[0] == "UNAVAILABLE"


def test_limits_and_metrics_are_those_of_http(model: Model, tmp_path: Path) -> None:
    app = App(Models([model], max_tokens=3), Limits(requests=2))
    server = GrpcServer(app, f"unix:{tmp_path / 's'}")
    server.start()
    tokenize = proto.message_class("TokenizeRequest")
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(f"/{NAME}/Tokenize")

        def asked(text: str) -> bytes:
            body: bytes = tokenize(input=text, model_name="gpt2").SerializeToString()
            return body

        call(asked("one two"))
        assert "4 tokens: at most 3" in refused(call, asked("a b c d"))[1]
        app.in_progress = 2
        assert refused(call, asked("a"))[0] == "RESOURCE_EXHAUSTED"
        app.in_progress = 0
    server.stop(60)
    app.by_grpc = [1, 1]
    assert ask(app, "/tokenize", {"prompt": "a"}).status == 503
    page = app.metrics.page().decode()
    for status in ("OK", "INTERNAL", "RESOURCE_EXHAUSTED"):
        labels = f'path="/{NAME}/Tokenize",status="{status}"'
        assert f"tokd_gateway_requests_total{{{labels}}} 1.0" in page
    assert "tokd_gateway_requests_in_progress 2.0" in page
    assert 'tokd_gateway_tokens_total{model="gpt2"} 2.0' in page


def test_a_message_has_a_time_to_come(model: Model, tmp_path: Path, monkeypatch: Any) -> None:
    """Those who send none do not keep others out: neither from tokens nor from the health."""
    monkeypatch.setattr("dpdk_tokd.gateway.llmd.server.MESSAGE_S", 0.2)
    server = GrpcServer(App(Models([model])), f"unix:{tmp_path / 's'}")
    server.start()
    asked = proto.message_class("TokenizeRequest")(input="one", model_name="gpt2")
    never: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    with grpc.insecure_channel(server.address) as channel:
        paths = [f"/{NAME}/Tokenize"] * (THREADS + 1) + ["/grpc.health.v1.Health/Check"] * 2
        silent = [channel.stream_unary(path).future(iter(never.get, None)) for path in paths]
        channel.unary_unary(paths[0])(asked.SerializeToString(), timeout=60)
        check = health_pb2_grpc.HealthStub(channel).Check
        assert check(health_pb2.HealthCheckRequest(), timeout=60).status == HEALTHY
        assert {call.code().name for call in silent} == {"CANCELLED"}
        none = channel.stream_unary(paths[0])
        assert refused(none, iter(())) == ("UNIMPLEMENTED", "the call has no message: send one")
        assert refused(channel.unary_unary(paths[-1]), b"\xff")[0] == "INTERNAL"
        never.put(None)  # type: ignore[arg-type]
    server.stop(60)


def test_sigterm_ends_both_servers(gateway: Gateway) -> None:
    """The gateway is gone afterwards. The health is still watched then, and a client of reflection
    has not asked all, which would take 30 s."""
    watch = health_pb2_grpc.HealthStub(gateway.channel).Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == HEALTHY
    asks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    asks.put(reflection_pb2.ServerReflectionRequest(list_services=""))
    reflect = reflection_pb2_grpc.ServerReflectionStub(gateway.channel).ServerReflectionInfo
    told = reflect(iter(asks.get, None))  # which would end with its last reference
    assert next(told).HasField("list_services_response")
    gateway.process.send_signal(signal.SIGTERM)
    assert next(watch).status == DRAINING
    gateway.process.wait(20)
    asks.put(None)
