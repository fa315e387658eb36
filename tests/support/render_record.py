# SPDX-License-Identifier: BSD-3-Clause
"""Recorded answers of vLLM's render server: one JSON object a line, long lists shortened."""

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

IDS_MAX = 64  # of a list that is recorded as it is; a longer one is its length and checksum


def expanded(value: Any) -> Any:
    """A request, with {"$repeat": [text, n]} as the text n times."""
    if isinstance(value, dict):
        if "$repeat" in value:
            text, n = value["$repeat"]
            return text * n
        return {key: expanded(item) for key, item in value.items()}
    return [expanded(item) for item in value] if isinstance(value, list) else value


def shortened(value: Any) -> Any:
    """An answer without what differs from run to run, and long lists by their checksum."""
    if isinstance(value, list):
        if len(value) > IDS_MAX:
            return {"$list": [len(value), hashlib.sha256(json.dumps(value).encode()).hexdigest()]}
        return [shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    answer = {key: shortened(item) for key, item in value.items()}
    if "created" in answer:
        answer["created"] = 0
    for key in ("id", "request_id"):
        if isinstance(name := answer.get(key), str):
            begin, _, end = name.partition("-")
            made = len(name.removeprefix(f"{begin}-").partition("-")[0]) >= 16
            answer[key] = f"{begin}-*" if end and made else "*" if made else name
    return answer


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    with lzma.open(path, "wt", preset=9 | lzma.PRESET_EXTREME) as file:
        for line in lines:
            line["answer"] = shortened(line["answer"])
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt") as file:
        return [json.loads(line) for line in file]
