# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gateway answers what vLLM's own render server has answered: vllm_render.jsonl.xz, which
tools/gen/vllm-render has recorded. Streams are handed over in the middle: each chunk is asked for
with the state that vLLM gave with the one before.

Models whose vocabulary is not there are skipped.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import render_models
import render_record

pytest.importorskip("dpdk_tokd", reason="pip install ./python")
pytest.importorskip("msgspec", reason="pip install 'dpdk-tokd[gateway]'")
pytest.importorskip("jinja2", reason="pip install 'dpdk-tokd[chat]'")
from dpdk_tokd.gateway import appliances
from dpdk_tokd.gateway.app import App
from dpdk_tokd.gateway.errors import Refused
from dpdk_tokd.gateway.models import Model, Models

RECORD = Path(__file__).with_name("vllm_render.jsonl.xz")
TOOLS = "needs a parser of tool calls"
# Refused here, and not by vLLM.
REFUSED = ("expected an id of the vocabulary", "give either `prompt` or `messages`")
# Messages that differ, as those that its validator writes.
OTHERWISE_WORDED = (
    "validation error", "structured outputs", "must be an integer", "are not compatible",
    "number too large",
)  # fmt: skip


def answered(app: App, path: str, body: Any) -> tuple[int, Any]:
    work = app.work.get(path) or app.later[path]
    try:
        answer = work(app.models, json.dumps(render_record.expanded(body)).encode())
        if not isinstance(answer, bytes):
            answer = asyncio.run(answer)
    except Refused as refused:
        return refused.status, json.loads(refused.body)
    return 200, json.loads(answer)


def differs(line: dict[str, Any], status: int, answer: Any) -> str | None:
    """How; None: it does not, but as doc/user/gateway.md says."""
    want = line["answer"]
    if line["status"] == 200:
        if (status, render_record.shortened(answer)) == (200, want):
            return None
        if status == 400 and any(w in answer["error"]["message"] for w in REFUSED):
            return None
        return f"{status} {json.dumps(render_record.shortened(answer), ensure_ascii=False)}"
    error, wanted = answer.get("error", {}), want["error"]
    if status == 501:  # what vLLM refuses unless started with a parser
        return None if TOOLS in error["message"] else f"501 {error}"
    same = status == line["status"] == error.get("code")
    if not any(words in wanted["message"] for words in OTHERWISE_WORDED):
        same &= all(error[name] == wanted[name] for name in ("type", "message", "param"))
    return None if same else f"{status} {error}"


class Appliances(appliances.Appliances):
    """As the gateway's, but without an appliance."""

    def __init__(self, model: Model) -> None:
        self.model, self.asked = model, 0

    async def decode(self, ids: list[int]) -> str:
        self.asked += 1
        return self.model.tokenizer.decode(ids)


@pytest.mark.parametrize("remote", [False, True], ids=["here", "appliances"])
@pytest.mark.parametrize("name", render_models.MODELS)
def test_answers_are_those_of_vllm(name: str, remote: bool, tmp_path: Path) -> None:
    packed = render_models.vocabulary_of(name)
    if packed is not None and not packed.is_file():
        pytest.skip(f"no {packed}")
    model = Model("m", str(render_models.make(name, tmp_path)))
    lines = [line for line in render_record.read(RECORD) if line["model"] == name]
    if remote:
        model.appliances = Appliances(model)
        lines = [line for line in lines if line["path"].endswith(("/derender", "/detokenize"))]
    app = App(Models([model]))
    assert lines
    wrong = []
    for line in lines:
        found = differs(line, *answered(app, line["path"], line["body"]))
        if found:
            body = json.dumps(line["body"], ensure_ascii=False)
            want = json.dumps(line["answer"], ensure_ascii=False)
            wrong.append(f"{line['path']} {body}\n  want {line['status']} {want}\n  got  {found}")
    assert not remote or (model.appliances.asked > 0) == model.hf.joins_bytes
    assert not wrong, f"{len(wrong)} of {len(lines)}:\n" + "\n".join(wrong)
