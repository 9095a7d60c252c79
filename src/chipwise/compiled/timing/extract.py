"""From the optimized module to a schedule: classes of ops, bytes moved, collectives, loops, async pairs."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

from chipwise.compiled.hlo import (
    COLLECTIVES,
    Computation,
    Instruction,
    Module,
    Shape,
    async_pairs,
    collective_chains,
    replica_groups,
    source_target_pairs,
    trip_count,
    wrapped,
)
from chipwise.compiled.hlo.shape import HOST, ON_CHIP
from chipwise.compiled.hlo.source_lines import source_line
from chipwise.compiled.timing.products import PRODUCTS, Product, product_of
from chipwise.compiled.timing.schedule import Branch, Collective, Item, Loop, Op, Schedule

_FREE = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "partition-id",
        "replica-id",
        "optimization-barrier",
        "domain",
        "add-dependency",
        "opt-barrier",
        "get-dimension-size",
    }
)
_FREE_CALLS = frozenset(
    {
        "AllocateBuffer",
        "ConcatBitcast",
        "AssumeGatherIndicesInBound",
        "Sharding",
        "PrepareAsyncCallStart",
        "PrepareAsyncCallDone",
    }
)
_MOVING_CALLS = ("X64Split", "X64Combine")  # halves of 64-bit values, taken apart and put together
_SLICES = frozenset({"dynamic-slice", "slice", "gather"})
_KINDS = {
    "all-gather": "gather",
    "reduce-scatter": "scatter",
    "all-reduce": "reduce",
    "all-to-all": "exchange",
    "ragged-all-to-all": "exchange",
    "collective-permute": "permute",
    "collective-broadcast": "gather",
}
_SPLASH = re.compile(r"splash\[([0-9.]+)\]")
CAUSAL = 0.5  # share of the scores of a splash kernel whose mask isn't known: a causal one
# Products the size of the scores in each kernel of splash attention: QK and PV forward; the fused backward makes
# the scores again and four gradients; the separate ones share them (jax splash_attention_kernel.py, 2025-06)
_SPLASH_PRODUCTS = {
    "splash_mha_fwd": 2.0,
    "splash_mqa_fwd": 2.0,
    "splash_mha_dkv": 5.0,
    "splash_mqa_dkv": 5.0,
    "splash_mha_dq": 3.0,
    "splash_mqa_dq": 3.0,
    "flash_attention": 2.0,
    "flash_mha": 2.0,
}


def extract(module: Module) -> Schedule:
    """The schedule of a module, from its entry computation."""
    reader = _Reader(module)
    reader.visit(module.entry)
    return Schedule(module.entry.name, reader.blocks, module.devices, dict(reader.unknown))


class _Reader:
    """Walks the computations that run on their own (fusions and reducers are part of an op)."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.blocks: dict[str, list[Item]] = {}
        self.unknown: Counter[str] = Counter()

    def visit(self, computation: Computation) -> None:
        if computation.name in self.blocks:
            return
        items: list[Item] = []
        self.blocks[computation.name] = items
        starts = async_pairs(computation)
        dones = {done: start for start, done in starts.items()}
        chains = {chain.start: chain for chain in collective_chains(self.module, computation)}
        carried = {name: chain.start for chain in chains.values() for name in chain.carriers}
        ended = {chain.done: chain.start for chain in chains.values()}
        users = _Users(computation)
        for instruction in computation:
            name, opcode = instruction.name, instruction.opcode
            if name in chains:
                items.append(self._collective(chains[name].collective, instruction, computation, users, pair=name))
            elif name in ended:
                items.append(Op("wait", name, pair=ended[name]))
            elif name in dones:
                items.append(Op("wait", name, pair=dones[name]))
            elif opcode == "while":
                items.append(self._loop(instruction))
            elif opcode == "conditional":
                for called in instruction.calls:
                    self.visit(self.module.computations[called])
                items.append(Branch(tuple(instruction.calls), name))
            elif opcode == "call":
                self.visit(self.module.computations[instruction.calls[0]])
                items.append(Loop(instruction.calls[0], 1, True, name))
            elif opcode not in _FREE and not opcode.endswith(("-done", "-update")):
                op = self._op(instruction, computation, users, name if name in starts else "", carried.get(name, ""))
                if op is not None:
                    items.append(op)

    def _loop(self, instruction: Instruction) -> Loop:
        body = str(instruction.raw["body"]).lstrip("%")
        self.visit(self.module.computations[body])
        trips = trip_count(self.module, instruction)
        return Loop(body, trips if trips is not None else 1, trips is not None, instruction.name)

    def _op(
        self, instruction: Instruction, computation: Computation, users: _Users, pair: str, beside: str
    ) -> Op | None:
        real = wrapped(self.module, instruction)
        opcode = real.opcode.removesuffix("-start")
        name, where = instruction.name, source_line(instruction)
        if opcode in COLLECTIVES:
            return self._collective(real, instruction, computation, users, pair)
        if opcode == "custom-call":
            return self._custom(real, instruction, computation, pair)
        if pair or opcode in ("copy", "send", "recv"):
            return _copy(instruction, computation, pair, where)
        if opcode == "fusion":
            inside = self.module.computations[instruction.calls[0]]
            products = _products(self.module, inside)
            moved = _fusion_bytes(instruction, inside, computation)
            kinds = {i.opcode for i in inside}
            kind = _kind(products, kinds)
            cycles = float(instruction.estimated_cycles or 0)
            return Op(
                kind, name, cycles, moved, products, source=where, op_name=instruction.metadata.op_name, beside=beside
            )
        own_products = (product_of(instruction, computation),) if opcode in PRODUCTS else ()
        kind = _kind(own_products, {opcode})
        return Op(
            kind,
            name,
            float(instruction.estimated_cycles or 0),
            _plain_bytes(instruction, computation),
            own_products,
            source=where,
            op_name=instruction.metadata.op_name,
        )

    def _collective(
        self, real: Instruction, shown: Instruction, computation: Computation, users: _Users, pair: str
    ) -> Op:
        op = _KINDS[real.opcode.removesuffix("-start")]
        home = computation if real.name in computation.by_name else None
        data = float(_result(real).bytes)
        if op == "scatter" and home is not None:
            data = float(sum(home[o].shape.bytes for o in real.operands))
        if op == "permute":
            pairs = source_target_pairs(real)
            stride = int(abs(pairs[0][1] - pairs[0][0])) if len(pairs) else 1
            collective = Collective(op, data, 2, max(stride, 1), max(len(pairs), 1))
        else:
            groups = replica_groups(real, self.module.devices)
            size = int(groups.shape[1])
            if op == "scatter" and home is None:
                data *= size
            if op == "reduce" and size > 1 and users.sliced(self.module, shown, size):
                op = "scatter"  # every device keeps only its own part of the sum
            stride = int(abs(groups[0][1] - groups[0][0])) if size > 1 else 1
            collective = Collective(op, data, size, stride, int(groups.shape[0]))
        return Op(
            "collective",
            shown.name,
            0.0,
            0.0,
            (),
            collective,
            source=source_line(real) or source_line(shown),
            op_name=real.metadata.op_name or shown.metadata.op_name,
            pair=pair,
        )

    def _custom(self, real: Instruction, shown: Instruction, computation: Computation, pair: str) -> Op | None:
        target = real.custom_call_target
        if target in _FREE_CALLS:
            return None
        where, moved = source_line(shown), _plain_bytes(shown, computation)
        op_name = real.metadata.op_name
        if target.startswith(_MOVING_CALLS):
            return Op("stream", shown.name, 0.0, moved, source=where, op_name=op_name, pair=pair)
        attention = _attention(real, shown, computation)
        if attention:
            return Op("attention", shown.name, 0.0, moved, (), None, attention, where, op_name, pair)
        label = _kernel_name(real) or target
        self.unknown[label] += 1
        return Op("kernel", label, float(real.estimated_cycles or 0), moved, source=where, op_name=op_name, pair=pair)


class _Users:
    """Who reads what inside one computation."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.of: dict[str, list[Instruction]] = {}
        for instruction in computation:
            for operand in instruction.operands:
                self.of.setdefault(operand, []).append(instruction)

    def sliced(self, module: Module, shown: Instruction, size: int) -> bool:
        """Whether all readers of a result take only one part in `size` of it."""
        readers = [(shown, user) for user in self.of.get(shown.name, ())]
        sliced = False
        while readers:
            value, user = readers.pop()
            if user.opcode in ("get-tuple-element", "bitcast"):
                readers.extend((user, u) for u in self.of.get(user.name, ()))
                continue
            whole = value.shape.bytes
            if user.opcode in _SLICES:
                touched = float(user.shape.bytes)
            elif user.opcode == "fusion":
                inside = module.computations[user.calls[0]]
                touched = max(
                    _touched(inside, inside.parameters[i], 0.0) for i, o in enumerate(user.operands) if o == value.name
                )
            else:
                return False
            if touched * size > 1.25 * whole:  # shards may be padded
                return False
            sliced = True
        return sliced


def _kind(products: tuple[Product, ...], opcodes: set[str]) -> str:
    if products:
        return "conv" if any(p.is_conv for p in products) else "matmul"
    if "sort" in opcodes:
        return "sort"
    if opcodes & {"gather", "scatter"}:
        return "gather"
    return "stream"


def _products(module: Module, inside: Computation) -> tuple[Product, ...]:
    products: list[Product] = []
    for instruction in inside:
        if instruction.opcode in PRODUCTS:
            products.append(product_of(instruction, inside))
        elif instruction.opcode == "fusion":
            products.extend(_products(module, module.computations[instruction.calls[0]]))
    return tuple(products)


def _hbm(shape: Shape) -> float:
    """Bytes of a value that lie in the device's main memory."""
    return float(
        sum(
            leaf.tiled_bytes
            for leaf in shape.leaves()
            if leaf.memory_space not in (ON_CHIP, HOST) and leaf.dtype not in ("token", "opaque")
        )
    )


def _result(instruction: Instruction) -> Shape:
    """The result of a collective; of the pair (inputs, outputs) that a start makes, the outputs."""
    shape = instruction.shape
    if instruction.opcode.endswith("-start") and shape.is_tuple and len(shape.elements) >= 2:
        return shape.elements[1]
    return shape


def _plain_bytes(instruction: Instruction, computation: Computation) -> float:
    """Bytes an instruction outside a fusion moves."""
    out = _hbm(instruction.shape)
    if instruction.opcode in _SLICES:
        return 2 * out
    if instruction.opcode == "dynamic-update-slice":
        return 2 * _hbm(computation[instruction.operands[1]].shape)
    if instruction.opcode == "scatter":
        return 2 * _hbm(computation[instruction.operands[-1]].shape)
    if instruction.opcode in ("broadcast", "iota", "rng", "rng-bit-generator"):
        return out
    return out + sum(_hbm(computation[o].shape) for o in dict.fromkeys(instruction.operands))


def _fusion_bytes(instruction: Instruction, inside: Computation, computation: Computation) -> float:
    """Bytes a fusion moves: of what it only slices the slice, of what it updates in place the update."""
    total = 0.0
    for parameter, operand in zip(inside.parameters, instruction.operands, strict=False):
        whole = _hbm(computation[operand].shape)
        if whole:
            total += min(whole, _touched(inside, parameter, whole))
    return total + _written(inside, inside.root, instruction.shape)


def _touched(inside: Computation, parameter: Instruction, whole: float) -> float:
    """Bytes of a parameter that the fusion reads."""
    names, touched = {parameter.name}, 0.0
    for user in inside:
        if not names.intersection(user.operands):
            continue
        same = user.shape.bytes >= parameter.shape.bytes
        if same and user.opcode in ("bitcast", "reshape", "copy", "get-tuple-element"):
            names.add(user.name)
        elif user.opcode in _SLICES and user.operands[0] in names:
            touched += float(user.shape.bytes)
        elif user.opcode in ("dynamic-update-slice", "scatter") and user.operands[0] in names:
            continue  # updated in place
        else:
            return whole or float(parameter.shape.bytes)
    return touched


def _written(inside: Computation, root: Instruction, shape: Shape) -> float:
    if shape.is_tuple and root.opcode == "tuple":
        return sum(
            _written(inside, inside[name], leaf) for name, leaf in zip(root.operands, shape.elements, strict=True)
        )
    while root.opcode in ("bitcast", "copy") and root.operands:
        root = inside[root.operands[0]]
    if root.opcode == "dynamic-update-slice" and _hbm(shape):
        return 2 * float(inside[root.operands[1]].shape.bytes)
    return _hbm(shape)


def _copy(instruction: Instruction, computation: Computation, pair: str, where: str) -> Op:
    """A copy between memories; one end on the host makes it a transfer over the host link."""
    shapes = [*instruction.shape.leaves(), *(computation[o].shape for o in instruction.operands)]
    spaces = {leaf.memory_space for shape in shapes for leaf in shape.leaves()}
    if "update" in instruction.opcode:
        moved = float(computation[instruction.operands[1]].shape.bytes)
    elif instruction.shape.is_tuple:
        moved = float(min(element.bytes for element in instruction.shape.elements[:2]))
    else:
        moved = float(instruction.shape.bytes)
    if HOST in spaces:
        return Op("host", instruction.name, 0.0, moved, source=where, pair=pair)
    if not pair:
        moved = _plain_bytes(instruction, computation)
        return Op(
            "stream",
            instruction.name,
            float(instruction.estimated_cycles or 0),
            moved,
            source=where,
            op_name=instruction.metadata.op_name,
        )
    return Op("copy", instruction.name, 0.0, moved if ON_CHIP in spaces else 2 * moved, source=where, pair=pair)


def _attention(real: Instruction, shown: Instruction, computation: Computation) -> tuple[float, ...]:
    """Batch x heads, queries, keys, head size, share of the scores, and products of their size; () if it is none."""
    text = f"{real.metadata.op_name} {real.kernel_metadata} {_kernel_name(real)}"
    products = next((count for label, count in _SPLASH_PRODUCTS.items() if label in text), 0.0)
    if not products:
        return ()
    shapes = [leaf for o in shown.operands for leaf in computation[o].shape.leaves()]
    wide = [s for s in shapes if len(s.dims) >= 3 and s.dtype in ("bf16", "f16", "f32") and s.dims[-1] <= 1024]
    if len(wide) < 2:
        return ()
    # queries, keys and values come first: queries have the most heads, or come first of as many; keys may be longer
    q = max(wide[:3], key=_lead)
    k = min(wide[1:3] if q == wide[0] else wide[:3], key=_lead)
    rows, head, lead = float(q.dims[-2]), float(q.dims[-1]), _lead(q)
    density = _SPLASH.search(text)
    return (lead, rows, float(k.dims[-2]), head, float(density.group(1)) if density else CAUSAL, products)


def _lead(shape: Shape) -> float:
    """Batch x heads of an operand of attention."""
    return float(prod(shape.dims[:-2]))


_KERNEL = re.compile(r'kernel_name"?\s*[:=]\s*\\?"?([\w.-]+)')


def _kernel_name(instruction: Instruction) -> str:
    for text in (
        str(instruction.kernel_metadata or ""),
        str(instruction.raw.get("backend_config", ""))[:4000],
        instruction.name,
    ):
        match = _KERNEL.search(text)
        if match:
            return match.group(1)
    return instruction.name if instruction.opcode == "custom-call" and "." in instruction.name else ""
