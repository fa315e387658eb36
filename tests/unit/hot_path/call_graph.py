# SPDX-License-Identifier: BSD-3-Clause
"""What object code calls: a graph of functions, data and external names, from object files.

pyelftools reads sections, symbols and relocations. Calls within a section often have no relocation,
and calls through pointers never have one of their own: instructions are read as objdump shows them,
and addr2line says from which inline function one came. Both are of binutils, which every compiler
here needs anyway; a disassembler from PyPI would be one more package, of machine code.

The graph errs on the side of too much. A function whose address is taken counts as called, a table
that is looked at counts as called in all its functions, and so does the whole section of such a
table, for local names are not always kept. GCC's parts of a function (.cold, .part, .constprop) are
functions as well; the cold one is always reachable from its hot one.
"""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.descriptions import describe_reloc_type
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

FUNCTION_TYPES = ("STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS")
PREFIXES = {"addr32", "bnd", "cs", "data16", "ds", "es", "lock", "notrack", "rep", "repnz", "repz"}
PREFIX = re.compile(r"rex(\.\w+)?$")
BRANCH = re.compile(r"call|j\w+|loop\w*|bl?|b\.\w+|cbn?z|tbn?z")
BRANCH_BY_POINTER = re.compile(r"(blr|br)(a[ab]z?)?")
BRANCH_TARGET = re.compile(r"(?:^|,\s*)(?:0x)?([0-9a-f]+)(?: <[^>]*>)?$")
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\t(.*)")
SYSTEM_CALL = re.compile(r"syscall|sysenter|int|svc|hvc|smc")
# What a lock is made of.
ATOMIC = re.compile(
    r"pause|yield|wfe|lda?x[rp]\w*|stl?x[rp]\w*|cas\w*|swp\w*|(ld|st)(add|clr|eor|set)\w*"
)
COMMENT = re.compile(r"\s+(?:# |//)")
# An address in the same section needs no relocation; objdump has worked it out.
X86_ADDRESS = re.compile(r"\(%rip\).*# (?:0x)?([0-9a-f]+)")
ARM_ADDRESS = re.compile(r"adr\s.*,\s*(?:0x)?([0-9a-f]+)(?: <[^>]*>)?\s*$")
# System V ABI for x86-64, ELF for the Arm 64-bit Architecture: pyelftools has no names for these.
RELOCATIONS = {("EM_X86_64", 41): "R_X86_64_GOTPCRELX"}
RELOCATIONS |= {("EM_AARCH64", n): "R_AARCH64_TLSDESC" for n in range(560, 571)}


@dataclass(frozen=True)
class Function:
    """One of ours; or GCC's part of one."""

    file: Path
    section: str
    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Data:
    """A section of ours that holds no code."""

    file: Path
    section: str

    @property
    def name(self) -> str:
        return f"{self.section} of {self.file.name}"


@dataclass(frozen=True)
class External:
    """Not in the object files given."""

    name: str


Node = Function | Data | External


@dataclass(frozen=True)
class Place:
    file: Path
    section: str
    address: int


@dataclass(frozen=True)
class Edge:
    source: Node
    target: Node
    how: str  # "calls", "takes the address of"
    place: Place


@dataclass(frozen=True)
class Instruction:
    start: int
    end: int
    prefixes: frozenset[str]
    mnemonic: str
    operands: str
    address: int | None  # that it computes from where it stands

    def target(self) -> int | None:
        """Of a branch that names it."""
        if not BRANCH.fullmatch(self.mnemonic) or self.operands.startswith("*"):
            return None
        found = BRANCH_TARGET.search(self.operands)
        return int(found[1], 16) if found else None

    def by_pointer(self) -> bool:
        if BRANCH_BY_POINTER.fullmatch(self.mnemonic):
            return True
        return self.mnemonic in ("call", "jmp") and self.operands.startswith("*")

    def is_switch(self, before: Instruction | None) -> bool:
        """A jump to the sum of a table's address and an offset in it, never of a pointer."""
        register = re.fullmatch(r"\*?(%\w+|x\d+)", self.operands)
        if self.mnemonic not in ("jmp", "br") or before is None or register is None:
            return False
        operands = before.operands.split(",")
        result = operands[-1 if register[1].startswith("%") else 0]
        return before.mnemonic == "add" and result == register[1]

    def is_atomic(self) -> bool:
        exchange = self.mnemonic == "xchg" and "(" in self.operands
        return "lock" in self.prefixes or exchange or bool(ATOMIC.fullmatch(self.mnemonic))

    def is_system_call(self) -> bool:
        return SYSTEM_CALL.fullmatch(self.mnemonic) is not None


def binutils(tool: str, *arguments: str | Path) -> str:
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def parse(text: str) -> tuple[frozenset[str], str, str, int | None]:
    """What is said of an instruction: all but where it is."""
    address = X86_ADDRESS.search(text) or ARM_ADDRESS.match(text)
    words = COMMENT.split(text)[0].split()
    n = 0
    while n < len(words) - 1 and (words[n] in PREFIXES or PREFIX.match(words[n])):
        n += 1
    operands = " ".join(words[n + 1 :])
    return frozenset(words[:n]), words[n], operands, int(address[1], 16) if address else None


def disassemble(file: Path, sizes: dict[str, int]) -> dict[str, list[Instruction]]:
    """The instructions of each section, whose sizes say where the last one ends."""
    sections: dict[str, list[Instruction]] = {}
    lines: list[tuple[int, str]] = []

    def close(name: str) -> None:
        if not lines:
            return
        ends = [start for start, _ in lines[1:]] + [sizes[name]]
        sections[name] = [
            Instruction(start, end, *parse(text))
            for (start, text), end in zip(lines, ends, strict=True)
        ]

    name = ""
    for line in binutils("objdump", "-d", "-w", "-z", "--no-show-raw-insn", file).splitlines():
        if line.startswith("Disassembly of section "):
            close(name)
            name, lines = line.removeprefix("Disassembly of section ").rstrip(":"), []
        elif found := INSTRUCTION.match(line):
            lines.append((int(found[1], 16), found[2]))
    close(name)
    return sections


@dataclass
class Object:
    """One object file."""

    file: Path
    functions: dict[str, list[Function]] = field(default_factory=dict)  # by section and start
    code: dict[str, int] = field(default_factory=dict)  # sections and their sizes
    globals: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    by_pointer: list[tuple[Function, Place]] = field(default_factory=list)
    atomic: list[tuple[Function, Place]] = field(default_factory=list)
    system_calls: list[tuple[Function, Place]] = field(default_factory=list)

    def __post_init__(self) -> None:
        with self.file.open("rb") as stream:
            self.elf = ELFFile(stream)
            self.names = [section.name for section in self.elf.iter_sections()]
            if any(name.startswith(".gnu.lto_") for name in self.names):
                raise ValueError(f"{self.file} is compiled with LTO: it holds no code yet")
            self._read_symbols()
            self._read_relocations()

    def _read_symbols(self) -> None:
        for section in self.elf.iter_sections():
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
                self.code[section.name] = section["sh_size"]
        table = next(s for s in self.elf.iter_sections() if isinstance(s, SymbolTableSection))
        self.symbols = list(table.iter_symbols())
        for symbol in self.symbols:
            index = symbol["st_shndx"]
            if not isinstance(index, int):
                continue
            node: Node = Data(self.file, self.names[index])
            if symbol["st_info"]["type"] in FUNCTION_TYPES and symbol["st_size"] > 0:
                start = symbol["st_value"]
                section = self.names[index]
                node = Function(self.file, section, start, start + symbol["st_size"], symbol.name)
                self.functions.setdefault(section, []).append(node)
            if symbol["st_info"]["bind"] != "STB_LOCAL":
                self.globals[symbol.name] = node
        for functions in self.functions.values():
            functions.sort(key=lambda f: f.start)

    def function_at(self, section: str, address: int) -> Function | None:
        functions = self.functions.get(section, [])
        n = bisect_right(functions, address, key=lambda f: f.start)
        return functions[n - 1] if n > 0 and address < functions[n - 1].end else None

    def _read_relocations(self) -> None:
        instructions = disassemble(self.file, self.code)
        relocations: dict[str, list] = {}
        for section in self.elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            of = self.elf.get_section(section["sh_info"])
            if not of["sh_flags"] & SH_FLAGS.SHF_ALLOC or of.name in (".eh_frame", ".eh_frame_hdr"):
                continue
            if of.name in self.code:
                relocations[of.name] = list(section.iter_relocations())
            else:
                self._read_pointers(of.name, section)
        unread = {name for name, size in self.code.items() if size > 0} - set(instructions)
        if unread:
            raise ValueError(f"{self.file}: objdump shows nothing of {', '.join(sorted(unread))}")
        for name in instructions:
            self._read_code(name, instructions[name], relocations.get(name, []))
        self._join_cold_parts()

    def _kind(self, relocation) -> str:
        number = relocation["r_info_type"]
        name = RELOCATIONS.get((self.elf["e_machine"], number))
        return name or describe_reloc_type(number, self.elf)

    def _target(self, relocation, behind: int) -> tuple[Node, int] | None:
        """What it refers to, and the offset in it if that is ours and local to its section.

        `behind`: bytes from the relocation to the end of its instruction, from where x86 counts.
        """
        symbol = self.symbols[relocation["r_info_sym"]]
        if symbol["st_shndx"] == "SHN_UNDEF":
            return (External(symbol.name), 0) if symbol.name else None
        if not isinstance(symbol["st_shndx"], int):
            return None
        section = self.names[symbol["st_shndx"]]
        kind = self._kind(relocation)
        offset = symbol["st_value"]
        if "GOT" not in kind:
            offset += relocation["r_addend"]
            offset += behind if kind in ("R_X86_64_PC32", "R_X86_64_PLT32") else 0
        if section in self.code:
            function = self.function_at(section, offset)
            return (function, offset) if function else None
        return Data(self.file, section), offset

    def _read_pointers(self, section: str, relocations: RelocationSection) -> None:
        """Pointers in data. A switch's point into functions, those to functions at their start."""
        source = Data(self.file, section)
        for relocation in relocations.iter_relocations():
            kind = self._kind(relocation)
            target = self._target(relocation, 0)
            if target is None or kind in ("R_X86_64_PC32", "R_AARCH64_PREL32"):
                continue
            node, offset = target
            if isinstance(node, Function) and offset != node.start:
                continue
            place = Place(self.file, section, relocation["r_offset"])
            self.edges.append(Edge(source, node, "takes the address of", place))

    def _read_code(self, section: str, instructions: list[Instruction], relocations: list) -> None:
        relocations.sort(key=lambda r: r["r_offset"])
        n = 0
        before = None
        for instruction in instructions:
            found = []
            while n < len(relocations) and relocations[n]["r_offset"] < instruction.end:
                found.append(relocations[n])
                n += 1
            function = self.function_at(section, instruction.start)
            if function is not None:
                self._read_instruction(function, instruction, before, found)
            elif found:
                raise ValueError(f"{self.file}: {section}+{instruction.start:#x} is in no function")
            before = instruction
        if n != len(relocations):
            raise ValueError(f"{self.file}: relocations behind the code of {section}")

    def _read_instruction(
        self, function: Function, one: Instruction, before: Instruction | None, relocations: list
    ) -> None:
        place = Place(self.file, function.section, one.start)
        branch = one.target() is not None
        by_pointer = one.by_pointer() and not one.is_switch(before)
        for relocation in relocations:
            target = self._target(relocation, one.end - relocation["r_offset"])
            itself = target is not None and target[0] == function
            if target is None or (itself and (branch or target[1] != function.start)):
                continue
            called = branch
            # call *malloc@GOTPCREL(%rip), by -fno-plt, is as direct as call malloc.
            kind = self._kind(relocation)
            if by_pointer and "GOTPC" in kind:
                called, by_pointer = True, False
            # A variable of a thread's, on ARM: the linker of a program makes a load of it.
            by_pointer = by_pointer and "TLSDESC" not in kind
            how = "calls" if called else "takes the address of"
            self.edges.append(Edge(function, target[0], how, place))
        address = one.target() if branch else one.address
        if address is not None and not relocations:
            other = self.function_at(function.section, address)
            if other is not None and (other != function or (not branch and address == other.start)):
                how = "calls" if branch else "takes the address of"
                self.edges.append(Edge(function, other, how, place))
        if by_pointer:
            self.by_pointer.append((function, place))
        if one.is_atomic():
            self.atomic.append((function, place))
        if one.is_system_call():
            self.system_calls.append((function, place))

    def _join_cold_parts(self) -> None:
        """The table of a switch may lead there; otherwise a jump does, which is seen as well."""
        every = [f for functions in self.functions.values() for f in functions]
        hot = {f.name: f for f in every}
        for cold in every:
            stem = hot.get(re.sub(r"\.cold(\.\d+)?$", "", cold.name))
            if stem is not None and stem != cold:
                place = Place(self.file, cold.section, cold.start)
                self.edges.append(Edge(stem, cold, "calls", place))


def members(archive: Path) -> list[Path]:
    """Object files of a static library of meson's, thin or not; a shared one beside it has them."""
    names = [Path(name).name for name in binutils("ar", "t", archive).splitlines()]
    shared = sorted(archive.parent.glob(f"{archive.stem}.so*.p"))
    return [(shared[0] if shared else Path(f"{archive}.p")) / name for name in names]


class CallGraph:
    def __init__(self, files: list[Path]) -> None:
        self.objects = [Object(file) for file in files]
        self.globals = {name: node for o in self.objects for name, node in o.globals.items()}
        self.functions: dict[str, list[Function]] = {}  # local ones as well
        self.edges: dict[Node, list[Edge]] = {}
        for one in self.objects:
            for function in (f for section in one.functions.values() for f in section):
                self.functions.setdefault(function.name, []).append(function)
            for edge in one.edges:
                target = self.globals.get(edge.target.name, edge.target)
                if isinstance(edge.target, External) and target != edge.target:
                    edge = Edge(edge.source, target, edge.how, edge.place)
                self.edges.setdefault(edge.source, []).append(edge)

    def reach(self, roots: Collection[str]) -> dict[Node, Edge | None]:
        """All that `roots` lead to, and the edge by which each was found first."""
        missing = [name for name in roots if name not in self.functions]
        if missing:
            raise ValueError(f"no such function: {', '.join(missing)}")
        reached: dict[Node, Edge | None] = {f: None for name in roots for f in self.functions[name]}
        waiting = deque(reached)
        while waiting:
            for edge in self.edges.get(waiting.popleft(), []):
                if edge.target not in reached:
                    reached[edge.target] = edge
                    waiting.append(edge.target)
        return reached


def frames_of(places: Iterable[Place]) -> dict[Place, list[tuple[str, str]]]:
    """Function and line of the source of each, the innermost inline function first."""
    sections: dict[tuple[Path, str], list[Place]] = {}
    for place in places:
        sections.setdefault((place.file, place.section), []).append(place)
    frames: dict[Place, list[tuple[str, str]]] = {}
    for (file, section), inside in sections.items():
        addresses = [hex(place.address) for place in inside]
        said = binutils("addr2line", "-a", "-f", "-i", "-j", section, "-e", file, *addresses)
        parts = re.split(r"^0x[0-9a-f]+\n", said, flags=re.MULTILINE)[1:]
        for place, part in zip(inside, parts, strict=True):
            lines = [line.removesuffix(")").split(" (")[0] for line in part.splitlines()]
            names = [Path(line).name for line in lines[1::2]]
            frames[place] = list(zip(lines[::2], names, strict=True))
    return frames


def chain(reached: dict[Node, Edge | None], node: Node) -> str:
    """The shortest way from a root: "feed -> helper"."""
    names = [node.name]
    while (edge := reached[node]) is not None:
        node = edge.source
        names.append(node.name)
    return " -> ".join(reversed(names))


def sites(
    graph: CallGraph, reached: dict[Node, Edge | None], kind: str
) -> Iterator[tuple[Function, Place]]:
    """Instructions of one kind ("by_pointer", "atomic", "system_calls") in what is reached."""
    for one in graph.objects:
        for function, place in getattr(one, kind):
            if function in reached:
                yield function, place
