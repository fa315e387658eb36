# SPDX-License-Identifier: BSD-3-Clause
"""Run the Python lines of documents, as a user of the package would: `documented.py FILE...`.

A paragraph of code that needs an appliance, a hub or another package is left out. `expression  #
literal` must have that value. Needs the vocabularies they load, and nothing but the package.
"""

import ast
import re
import sys
from pathlib import Path

ELSEWHERE = re.compile(r"Client|client|Reader|from_pretrained|transformers|torch|await|Pipeline")


def paragraphs(text: str) -> list[str]:
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = [part for block in blocks for part in re.split(r"\n\n+", block)]
    return [part for part in found if not ELSEWHERE.search(part)]


def literal(line: str) -> object:
    """What the comment of a line says that it gives; None: it is prose."""
    try:
        return ast.literal_eval(line.partition("  # ")[2])
    except (SyntaxError, ValueError):
        return None


def run(code: str, names: dict[str, object], where: str) -> int:
    """Returns how many values were compared."""
    lines, compared = code.splitlines(), 0
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
            wanted = literal(lines[statement.lineno - 1])
            if wanted is not None:
                got = value.tolist() if hasattr(value, "tolist") else value
                if got != wanted:
                    raise SystemExit(f"{where}: {lines[statement.lineno - 1]}\nis {got!r}")
                compared += 1
        else:
            exec(compile(ast.Module([statement], []), where, "exec"), names)
    return compared


def main() -> None:
    for path in sys.argv[1:]:
        names: dict[str, object] = {"texts": ["Hello, world", "and another text"]}
        parts = paragraphs(Path(path).read_text())
        compared = sum(run(part, names, path) for part in parts)
        print(f"{Path(path).name}: {len(parts)} paragraphs, {compared} values")


if __name__ == "__main__":
    main()
