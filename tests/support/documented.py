# SPDX-License-Identifier: BSD-3-Clause
"""Run the Python lines of documents, as a user of the package would: `documented.py FILE...`.

`expression  # literal` must have that value, as far as the literal goes. A statement that needs an
appliance, a hub or another package is named and skipped, and so is what uses its names. Needs the
vocabularies they load, and nothing but the package with its extra `chat`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

NEEDS = {  # a name in a statement: what the statement needs
    "Client": "an appliance",
    "RingReader": "an appliance",
    "from_pretrained": "the Hugging Face Hub",
    "patch_tiktoken": "tiktoken",
    "patch_transformers": "transformers",
    "Pipeline": "transformers and a model",
    "ray": "Ray",
    "dataset": "datasets",
}


def statements(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """Those of all blocks, with their lines."""
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            yield statement, "\n".join(lines[statement.lineno - 1 : statement.end_lineno])


def names_of(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """What it uses, attributes too, and what it assigns."""
    used: set[str] = set()
    assigned: set[str] = set()
    parameters: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.arg):
            parameters.add(node.arg)
        elif isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else assigned).add(node.id)
    return used - parameters, assigned


def literal(line: str) -> object:
    """What the comment of a line says that it gives; None: it is prose."""
    try:
        return ast.literal_eval(line.partition("  # ")[2].partition(": ")[0])
    except (SyntaxError, ValueError):
        return None


def agrees(got: object, wanted: object) -> bool:
    """`wanted` may end with an ellipsis."""
    got = got.tolist() if hasattr(got, "tolist") else got
    if isinstance(wanted, list) and isinstance(got, list) and wanted[-1:] == [...]:
        wanted, got = wanted[:-1], got[: len(wanted) - 1]
    return got == wanted


def run(statement: ast.stmt, line: str, names: dict[str, object], where: str) -> int:
    """Returns how many values were compared."""
    if not isinstance(statement, ast.Expr):
        exec(compile(ast.Module([statement], []), where, "exec"), names)
        return 0
    value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
    wanted = literal(line)
    if wanted is None:
        return 0
    if not agrees(value, wanted):
        raise SystemExit(f"{where}: {line}\nis {value!r}")
    return 1


def page(path: Path) -> int:
    """Returns how many statements ran."""
    names: dict[str, object] = {}
    needs, ran, compared = dict(NEEDS), 0, 0
    exec("import dpdk_tokd", names)
    for statement, line in statements(path.read_text()):
        used, assigned = names_of(statement)
        needed = sorted({needs[name] for name in used & needs.keys()})
        first = line.splitlines()[0].partition("  #")[0]
        if needed:
            needs |= dict.fromkeys(assigned - names.keys(), needed[0])
            print(f"{path.name}: skipped, needs {' and '.join(needed)}: {first}")
            continue
        compared += run(statement, line, names, path.name)
        ran += 1
    print(f"{path.name}: {ran} statements, {compared} values")
    return ran


if __name__ == "__main__":
    for file in sys.argv[1:]:
        page(Path(file))
