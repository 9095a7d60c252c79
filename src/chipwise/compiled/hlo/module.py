"""A parsed module: computations of instructions, in the order the compiler scheduled them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.compiled.hlo.lexical import NAME
from chipwise.compiled.hlo.shape import Shape
from chipwise.compiled.hlo.values import decode, decode_config, unquote

_ROLES = (
    "calls", "to_apply", "condition", "body", "branch_computations", "called_computations",
    "true_computation", "false_computation", "select", "scatter",
)  # fmt: skip
CALLING = frozenset(_ROLES)
UNKNOWN_CYCLES = 2**63 - 1
_NAMES = re.compile(rf"%?({NAME})")
_SCALAR = re.compile(r"-?\d{1,19}$")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the stack the program was traced with."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where in the user's program an instruction comes from; `frames` innermost first, where the text has them."""

    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class StackFrames:
    """The module's tables of frames: id -> (frame, parent's id or 0)."""

    table: Mapping[int, tuple[Frame, int]] = field(default_factory=dict)

    def stack(self, frame: int) -> tuple[Frame, ...]:
        """The frames from `frame` outwards."""
        frames: list[Frame] = []
        visited: set[int] = set()
        while frame in self.table and frame not in visited:
            visited.add(frame)
            here, frame = self.table[frame]
            frames.append(here)
        return tuple(frames)


class Instruction:
    """One instruction. Attributes are kept as text and decoded when asked for, since most never are."""

    __slots__ = (
        "_attributes",
        "_config",
        "_frames",
        "arguments",
        "is_root",
        "name",
        "opcode",
        "operands",
        "raw",
        "shape",
    )

    def __init__(
        self,
        name: str,
        shape: Shape,
        opcode: str,
        arguments: str,
        operands: tuple[str, ...],
        raw: dict[str, str],
        is_root: bool,
        frames: StackFrames,
    ) -> None:
        self.name, self.shape, self.opcode = name, shape, opcode
        self.arguments, self.operands, self.raw = arguments, operands, raw
        self.is_root, self._frames = is_root, frames
        self._attributes: dict[str, Any] | None = None
        self._config: Any = self  # itself: not decoded yet

    def __repr__(self) -> str:
        return f"Instruction({self.name} = {self.opcode}({', '.join(self.operands)}))"

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attribute name -> int, bool, str, list or dict; text of any other form as it stands."""
        if self._attributes is None:
            self._attributes = {
                key: self.backend_config if key == "backend_config" else decode(text) for key, text in self.raw.items()
            }
        return self._attributes

    @property
    def calls(self) -> tuple[str, ...]:
        """Names of the computations this instruction runs or applies."""
        return tuple(name for key in _ROLES if key in self.raw for name in _NAMES.findall(self.raw[key]))

    @property
    def called(self) -> str:
        """The one computation of a fusion, call or async wrapper; empty where there is none."""
        names = self.calls
        return names[0] if names else ""

    @property
    def metadata(self) -> Metadata:
        """Operation name and source line; the line is that of the innermost frame."""
        fields = decode(self.raw.get("metadata", "{}"))
        if not isinstance(fields, dict):
            return Metadata()
        name = str(fields.get("op_name", ""))
        frame = fields.get("stack_frame_id", 0)
        frames = self._frames.stack(frame) if isinstance(frame, int) else ()
        if frames:
            return Metadata(name, frames[0].file, frames[0].line, frames)
        line = fields.get("source_line", 0)
        return Metadata(name, str(fields.get("source_file", "")), line if isinstance(line, int) else 0)

    @property
    def backend_config(self) -> Any:
        """The backend's own settings: a dict where they are JSON, the text otherwise, None where there are none."""
        if self._config is self:
            text = self.raw.get("backend_config")
            self._config = None if text is None else decode_config(text)
        return self._config

    @property
    def estimated_cycles(self) -> int | None:
        """The TPU compiler's own estimate; None where it has none (absent, negative, or INT64_MAX)."""
        if "estimated_cycles" not in self.raw.get("backend_config", ""):
            return None
        config = self.backend_config
        if not isinstance(config, dict):
            return None
        for part in (config, *config.values()):
            text = part.get("estimated_cycles") if isinstance(part, dict) else None
            if text is not None and _SCALAR.match(str(text)):
                cycles = int(text)
                return cycles if 0 <= cycles < UNKNOWN_CYCLES else None
        return None

    @property
    def custom_call_target(self) -> str:
        """The kernel a custom-call runs; empty for others."""
        text = self.raw.get("custom_call_target", "")
        return unquote(text) if text[:1] == '"' else text

    @property
    def kernel_metadata(self) -> Mapping[str, Any]:
        """What a Pallas kernel says about itself, such as its block sizes."""
        attributes = decode(self.raw.get("frontend_attributes", "{}"))
        metadata = attributes.get("kernel_metadata") if isinstance(attributes, dict) else None
        return metadata if isinstance(metadata, dict) else {}

    @property
    def literal(self) -> str | None:
        """The text of a constant's value; None for other opcodes."""
        return self.arguments if self.opcode == "constant" else None

    @property
    def integer(self) -> int | None:
        """The value of a scalar whole-number constant."""
        if self.opcode != "constant" or self.shape.dims or not _SCALAR.match(self.arguments):
            return None
        return int(self.arguments)

    @property
    def number(self) -> int | None:
        """Which parameter this is; None for other opcodes."""
        if self.opcode != "parameter" or not _SCALAR.match(self.arguments):
            return None
        return int(self.arguments)


class Computation:
    """Instructions in order, the last of them usually the root."""

    __slots__ = ("by_name", "instructions", "is_entry", "name", "root", "thread")

    def __init__(
        self, name: str, instructions: tuple[Instruction, ...], root: Instruction, is_entry: bool, thread: str
    ) -> None:
        self.name, self.instructions, self.root = name, instructions, root
        self.is_entry, self.thread = is_entry, thread
        self.by_name: Mapping[str, Instruction] = {i.name: i for i in instructions}

    def __repr__(self) -> str:
        return f"Computation({self.name}, {len(self.instructions)} instructions)"

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def __getitem__(self, name: str) -> Instruction:
        return self.by_name[name]

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters by number."""
        return tuple(sorted((i for i in self if i.opcode == "parameter"), key=lambda i: i.number or 0))


class Module:
    """A whole module: its computations by name, in the order of the text."""

    __slots__ = ("_callers", "computations", "entry", "name", "raw")

    def __init__(
        self, name: str, raw: dict[str, str], computations: dict[str, Computation], entry: Computation
    ) -> None:
        self.name, self.raw, self.computations, self.entry = name, raw, computations, entry
        self._callers: dict[str, tuple[tuple[Computation, Instruction], ...]] | None = None

    def __repr__(self) -> str:
        return f"Module({self.name}, {len(self.computations)} computations)"

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the header: is_scheduled, num_partitions, entry_computation_layout, input_output_alias..."""
        return {key: decode(text) for key, text in self.raw.items()}

    @property
    def devices(self) -> int:
        """Partitions times replicas: how many devices run this program."""
        counts = [decode(self.raw.get(key, "1")) for key in ("num_partitions", "replica_count")]
        return int(counts[0]) * int(counts[1]) if all(isinstance(n, int) for n in counts) else 1

    @property
    def fused(self) -> frozenset[str]:
        """Names of the computations that are the inside of a fusion."""
        return frozenset(
            name for c in self.computations.values() for i in c if i.opcode == "fusion" for name in i.calls
        )

    def callers(self, computation: str) -> tuple[tuple[Computation, Instruction], ...]:
        """The instructions that run a computation, each with the computation it stands in."""
        if self._callers is None:
            callers_by_name: dict[str, list[tuple[Computation, Instruction]]] = {}
            for home in self.computations.values():
                for instruction in home:
                    for name in instruction.calls:
                        callers_by_name.setdefault(name, []).append((home, instruction))
            self._callers = {name: tuple(callers) for name, callers in callers_by_name.items()}
        return self._callers.get(computation, ())
