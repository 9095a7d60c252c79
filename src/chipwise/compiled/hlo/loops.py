"""How often a `while` runs, read from its counter: where it starts, what each round adds, what ends it.

Values are followed through copies, fusions, calls and the tuples that loops carry. A number is exact or absent: a loop
whose end depends on data has no trip count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.compiled.hlo.module import Computation, Instruction, Module

_SAME = frozenset(
    {
        "copy", "bitcast", "bitcast-convert", "convert", "reshape", "broadcast", "copy-done", "copy-start",
        "optimization-barrier", "transpose", "domain",
    }
)  # fmt: skip
_CALLS = frozenset({"fusion", "call"})
_OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "NE": "EQ", "EQ": "NE"}
_DEEPEST = 150  # steps back from one value; longer chains count as unknown


@dataclass(frozen=True, slots=True)
class _Whole:
    """The tuple a loop carries."""


@dataclass(frozen=True, slots=True)
class _Linear:
    """A whole number plus multiples of what a loop carries: member of the tuple -> factor; -1 where it is no tuple."""

    offset: int
    terms: tuple[tuple[int, int], ...] = ()

    def plus(self, other: _Linear, factor: int) -> _Linear:
        terms = dict(self.terms)
        for member, times in other.terms:
            terms[member] = terms.get(member, 0) + factor * times
        left = tuple(sorted((member, times) for member, times in terms.items() if times))
        return _Linear(self.offset + factor * other.offset, left)


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison of a value with zero."""

    value: _Linear
    direction: str


@dataclass(frozen=True, slots=True)
class _Parts:
    """A tuple being put together: its members are looked up when taken out."""

    scope: _Scope
    members: tuple[str, ...]

    def member(self, index: int, depth: int) -> _Value:
        return self.scope.value(self.members[index], depth) if 0 <= index < len(self.members) else None


_Value = _Whole | _Linear | _Test | _Parts | None


@dataclass(frozen=True, slots=True)
class _Scope:
    """A computation, and what its parameters stand for: operands in the caller, or the carried tuple."""

    module: Module
    computation: Computation
    caller: _Scope | None = None
    operands: tuple[str, ...] = ()
    values: dict[str, _Value] = field(default_factory=dict, compare=False)

    def value(self, name: str, depth: int) -> _Value:
        """What `name` amounts to; None where it isn't followed."""
        if name not in self.values:
            instruction = self.computation.by_name.get(name)
            follow = instruction is not None and depth < _DEEPEST
            self.values[name] = self._value(instruction, depth + 1) if instruction and follow else None
        return self.values[name]

    def _value(self, instruction: Instruction, depth: int) -> _Value:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "constant":
            return None if instruction.integer is None else _Linear(instruction.integer)
        if opcode == "parameter":
            return self._parameter(instruction, depth)
        if opcode == "tuple":
            return _Parts(self, operands)
        if opcode in _CALLS:
            called = self.module.computations.get(instruction.called)
            return _Scope(self.module, called, self, operands).value(called.root.name, depth) if called else None
        if not operands:
            return None
        if opcode == "get-tuple-element":
            return self._member(instruction, depth)
        first = self.value(operands[0], depth)
        if opcode in _SAME:
            return first
        if opcode == "not" and isinstance(first, _Test):
            return _Test(first.value, _OPPOSITE[first.direction])
        second = self.value(operands[1], depth) if len(operands) == 2 else None
        if not isinstance(first, _Linear) or not isinstance(second, _Linear):
            return None
        if opcode in ("add", "subtract"):
            return first.plus(second, 1 if opcode == "add" else -1)
        if opcode == "multiply" and not (first.terms and second.terms):
            return _Linear(0).plus(second, first.offset) if not first.terms else _Linear(0).plus(first, second.offset)
        direction = instruction.raw.get("direction", "")
        if opcode == "compare" and direction in _OPPOSITE:
            return _Test(first.plus(second, -1), direction)
        return None

    def _parameter(self, parameter: Instruction, depth: int) -> _Value:
        if self.caller is None:
            return _Whole() if parameter.shape.is_tuple else _Linear(0, ((-1, 1),))
        number = parameter.number
        if number is None or number >= len(self.operands):
            return None
        return self.caller.value(self.operands[number], depth)

    def _member(self, instruction: Instruction, depth: int) -> _Value:
        index = instruction.attributes.get("index")
        source = self.computation.by_name.get(instruction.operands[0])
        if not isinstance(index, int) or source is None:
            return None
        if source.opcode == "while":  # its result is what went in, where no round changes that
            if not source.operands or not _unchanged(self.module, source, index, depth):
                return None
            source = self.computation.by_name.get(source.operands[0], source)
        whole = self.value(source.name, depth)
        if isinstance(whole, _Whole):
            return _Linear(0, ((index, 1),))
        return whole.member(index, depth) if isinstance(whole, _Parts) else None


def trip_count(module: Module, loop: Instruction) -> int | None:
    """Rounds of a `while`; None where they depend on data."""
    stated = _stated_trips(loop)
    if stated is not None:
        return stated
    condition = module.computations.get(_called(loop, "condition"))
    if condition is None:
        return None
    test = _Scope(module, condition).value(condition.root.name, 0)
    if not isinstance(test, _Test):
        return None
    start, step = test.value.offset, 0
    for member, times in test.value.terms:
        first, added = _start(module, loop, member, 0), _step(module, loop, member, 0)
        if first is None or added is None:
            return None
        start, step = start + times * first, step + times * added
    return _rounds(start, step, test.direction)


def _stated_trips(loop: Instruction) -> int | None:
    """The count XLA itself wrote down, which the GPU compiler does."""
    if "known_trip_count" not in loop.raw.get("backend_config", ""):
        return None
    config = loop.backend_config
    count = config.get("known_trip_count") if isinstance(config, dict) else None
    number = str(count.get("n", "")) if isinstance(count, dict) else ""
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else None


def _called(loop: Instruction, role: str) -> str:
    return loop.raw.get(role, "").removeprefix("%")


def _after_round(module: Module, loop: Instruction, member: int, depth: int) -> _Value:
    """What a member of the carried tuple is after one round, in terms of the tuple before it."""
    body = module.computations.get(_called(loop, "body"))
    if body is None or depth > _DEEPEST:
        return None
    result = _Scope(module, body).value(body.root.name, depth)
    if member < 0:
        return result
    if isinstance(result, _Whole):
        return _Linear(0, ((member, 1),))
    return result.member(member, depth) if isinstance(result, _Parts) else None


def _unchanged(module: Module, loop: Instruction, member: int, depth: int) -> bool:
    return _after_round(module, loop, member, depth) == _Linear(0, ((member, 1),))


def _step(module: Module, loop: Instruction, member: int, depth: int) -> int | None:
    """What one round adds to a member; what it adds may itself be carried, if no round changes that."""
    after = _after_round(module, loop, member, depth)
    if not isinstance(after, _Linear) or (member, 1) not in after.terms:
        return None
    step = after.offset
    for other, times in after.terms:
        if other != member:
            fixed = _start(module, loop, other, depth) if _unchanged(module, loop, other, depth) else None
            if fixed is None:
                return None
            step += times * fixed
    return step


def _start(module: Module, loop: Instruction, member: int, depth: int) -> int | None:
    """The first value of a member of the carried tuple; it may come from the tuple of a loop around this one."""
    callers = module.callers(_called(loop, "body"))
    home = next((home for home, caller in callers if caller is loop), None)
    if home is None or not loop.operands or depth > _DEEPEST:
        return None
    value = _Scope(module, home).value(loop.operands[0], depth)
    if isinstance(value, _Parts):
        value = value.member(member, depth)
    elif isinstance(value, _Whole):
        value = _Linear(0, ((member, 1),))
    if not isinstance(value, _Linear):
        return None
    start = value.offset
    around = module.callers(home.name)
    for outer, times in value.terms:
        if len(around) != 1 or around[0][1].opcode != "while":
            return None
        loop_around = around[0][1]
        if not _unchanged(module, loop_around, outer, depth + 1):
            return None
        first = _start(module, loop_around, outer, depth + 1)
        if first is None:
            return None
        start += times * first
    return start


def _rounds(value: int, step: int, direction: str) -> int | None:
    """Rounds until `value`, growing by `step`, fails the test against zero; None where it never does.

    >>> _rounds(-9, 3, "LT"), _rounds(9, -1, "GT"), _rounds(-5, 1, "NE"), _rounds(-5, -1, "LT"), _rounds(-4, 2, "LE")
    (3, 9, 5, None, 3)
    """
    if direction in ("GT", "GE"):
        value, step, direction = -value, -step, {"GT": "LT", "GE": "LE"}[direction]
    if direction == "LE":
        value, direction = value - 1, "LT"
    if direction == "LT":
        if value >= 0:
            return 0
        return -(value // step) if step > 0 else None
    if direction == "EQ":
        return 0 if value != 0 else (1 if step else None)
    if value == 0:
        return 0
    return -value // step if step and value % step == 0 and -value // step > 0 else None
