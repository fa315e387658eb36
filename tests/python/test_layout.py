# SPDX-License-Identifier: BSD-3-Clause
"""The Python structs and constants are those of the C headers, as a C compiler lays them out."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from dpdk_tokd.ring import layout
from dpdk_tokd import wire

INCLUDE = Path(__file__).resolve().parent.parent.parent / "include"

# C struct, its Python struct, the fields of that in order (Python's name: C's, where they differ)
STRUCTS = [
    ("tokd_req", wire.REQ, wire.Req._fields, {}),
    ("tokd_rep", wire.REP, wire.Rep._fields, {"n_ids": "count"}),
    ("tokd_rec", layout.REC, layout.Rec._fields, {"n_ids": "count"}),
    ("tokd_ring_hdr", layout.HDR, layout.Hdr._fields, {}),
    ("tokd_attach_req", layout.ATTACH_REQ, ("magic", "version", "mode", "reserved"), {}),
    (
        "tokd_attach_rep",
        layout.ATTACH_REP,
        ("magic", "version", "n_rings", "reserved", "instance")
        + tuple(f"start[{i}]" for i in range(layout.RINGS_MAX))
        + ("message",),
        {},
    ),
]

CONSTANTS = {
    "TOKD_WIRE_MAGIC": wire.MAGIC,
    "TOKD_WIRE_VERSION": wire.VERSION,
    "TOKD_WIRE_PORT": wire.PORT,
    "TOKD_WIRE_WINDOW": wire.WINDOW,
    "TOKD_WIRE_PAYLOAD": wire.PAYLOAD,
    "TOKD_DATA": wire.DATA,
    "TOKD_POLL": wire.POLL,
    "TOKD_REPLY": wire.REPLY,
    "TOKD_F_FIRST": wire.F_FIRST,
    "TOKD_F_LAST": wire.F_LAST,
    "TOKD_F_IDS": wire.F_IDS,
    "TOKD_F_STREAM": wire.F_STREAM,
    "TOKD_F_DONE": wire.F_DONE,
    "TOKD_F_FAIL": wire.F_FAIL,
    "TOKD_R_MAX": len(wire.Reason),
    **{f"TOKD_R_{reason.name}": reason for reason in wire.Reason},
    "TOKD_RING_MAGIC": layout.MAGIC,
    "TOKD_RING_VERSION": layout.VERSION,
    "TOKD_RING_HDR_BYTES": layout.HDR_BYTES,
    "TOKD_RING_ALIGN": layout.ALIGN,
    "TOKD_REC_TOKENS": layout.Kind.TOKENS,
    "TOKD_REC_PAD": layout.Kind.PAD,
    "TOKD_REC_FIRST": layout.REC_FIRST,
    "TOKD_REC_LAST": layout.REC_LAST,
    "TOKD_REC_ABORT": layout.REC_ABORT,
    "TOKD_RINGS_MAX": layout.RINGS_MAX,
    "TOKD_CURSOR_STRIDE": layout.CURSOR_STRIDE,
    "TOKD_CURSOR_BYTES": layout.CURSOR_BYTES,
    "TOKD_ATTACH_MAGIC": layout.ATTACH_MAGIC,
    "TOKD_MODE_READER": layout.MODE_READER,
    "TOKD_MODE_TAP": layout.MODE_TAP,
    "offsetof(struct tokd_ring_hdr, head)": layout.HEAD_OFFSET,
    "offsetof(struct tokd_ring_hdr, tail)": layout.TAIL_OFFSET,
}


@pytest.fixture(scope="module")
def in_c(tmp_path_factory) -> dict[str, int]:
    """Values of C expressions, as a program compiled with the headers prints them."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler (cc, or $CC)")
    expressions = list(CONSTANTS)
    for name, _, fields, c_name in STRUCTS:
        expressions.append(f"sizeof(struct {name})")
        for field in fields:
            c_field = c_name.get(field, field)
            expressions.append(f"offsetof(struct {name}, {c_field})")
            expressions.append(f"sizeof(((struct {name} *)0)->{c_field})")
    lines = [f'printf("%llu\\n", (unsigned long long)({e}));' for e in expressions]
    folder = tmp_path_factory.mktemp("layout")
    source = folder / "layout.c"
    source.write_text(
        "#include <stdio.h>\n#include <tokd/wire.h>\n#include <tokd/ring.h>\n"
        "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    )
    program = folder / "layout"
    subprocess.run(
        [compiler, "-std=gnu11", "-I", str(INCLUDE), str(source), "-o", str(program)], check=True
    )
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, out.split())))


def offsets_of(packed: struct.Struct) -> list[tuple[int, int]]:
    """Offset and size of each value of a struct: its packed bytes change where a value does."""
    zero = packed.pack(*[b"" if v == b"" else 0 for v in empty_values(packed)])
    found = []
    for i, value in enumerate(empty_values(packed)):
        values: list[int | bytes] = empty_values(packed)
        values[i] = b"\xff" * 1024 if isinstance(value, bytes) else largest(packed, i)
        differs = [n for n, (a, b) in enumerate(zip(zero, packed.pack(*values))) if a != b]
        found.append((differs[0], differs[-1] - differs[0] + 1))
    return found


def empty_values(packed: struct.Struct) -> list[int | bytes]:
    return [b"" if isinstance(v, bytes) else 0 for v in packed.unpack(bytes(packed.size))]


def largest(packed: struct.Struct, i: int) -> int:
    """The largest number the i-th value holds."""
    full = packed.unpack(b"\xff" * packed.size)[i]
    assert isinstance(full, int)
    return full


@pytest.mark.parametrize(
    "name, packed, fields, c_name", STRUCTS, ids=[name for name, *_ in STRUCTS]
)
def test_struct_is_laid_out_as_in_c(in_c, name, packed, fields, c_name):
    offsets = offsets_of(packed)
    assert len(offsets) == len(fields)
    for field, (offset, size) in zip(fields, offsets):
        c_field = c_name.get(field, field)
        assert offset == in_c[f"offsetof(struct {name}, {c_field})"], field
        assert size == in_c[f"sizeof(((struct {name} *)0)->{c_field})"], field


@pytest.mark.parametrize("name, packed", [s[:2] for s in STRUCTS if s[0] != "tokd_ring_hdr"])
def test_struct_has_the_size_it_has_in_c(in_c, name, packed):
    assert packed.size == in_c[f"sizeof(struct {name})"]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_has_its_value_in_c(in_c, name):
    assert CONSTANTS[name] == in_c[name]
