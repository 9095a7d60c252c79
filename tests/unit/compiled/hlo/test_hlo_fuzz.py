"""Cut, torn or scribbled text is either still a module or refused in one line; nothing else ever happens."""

from contextlib import suppress

import pytest
from hlo_samples import NAMES, module, text
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.compiled import hlo

TEXTS = [
    text(name)
    for name in ("matmul_tpu7x", "tensor_parallel_v5p", "moe_v5p", "nested_scan_v5e", "splash_v6e", "fsdp_scan_h100")
]
MARKS = st.text(alphabet="{}()[]\"'\\,=%:<>*/ \nab019ROOT.\x00\u2028é", max_size=6)
JUNK = st.one_of(MARKS, st.sampled_from(["(" * 50, "{" * 50, "[" * 3000, '{"a":' * 30, "9" * 5000, "ROOT ", "/*", '"']))


def read_everything(source: str) -> None:
    """Parse, and touch all that is decoded late."""
    try:
        whole = hlo.parse(source)
    except hlo.NotHlo as refused:
        assert len(str(refused).splitlines()) == 1
        assert "line " in str(refused)
        return
    assert whole.attributes is not None
    assert whole.devices >= 0
    for computation in whole.computations.values():
        assert set(hlo.async_pairs(computation)) <= set(computation.by_name)
        hlo.collective_chains(whole, computation)
        for instruction in computation:
            _ = instruction.attributes, instruction.metadata, instruction.kernel_metadata, instruction.integer
            _ = instruction.estimated_cycles, instruction.custom_call_target, instruction.shape.tiled_bytes
            with suppress(hlo.NotHlo):
                hlo.replica_groups(instruction, 8)
            with suppress(hlo.NotHlo):
                hlo.source_target_pairs(instruction)
            if instruction.opcode == "while":
                hlo.trip_count(whole, instruction)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TEXTS), st.floats(0, 1))
def test_cut_text(source: str, part: float) -> None:
    read_everything(source[: int(part * len(source))])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), JUNK), min_size=1, max_size=4))
def test_torn_and_scribbled_text(source: str, edits: list[tuple[float, int, str]]) -> None:
    for part, gone, junk in edits:
        place = int(part * len(source))
        source = source[:place] + junk + source[place + gone :]
    read_everything(source)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TEXTS), st.floats(0, 1), st.floats(0, 1))
def test_lines_out_of_order(source: str, first: float, second: float) -> None:
    lines = source.split("\n")
    i, j = (min(int(part * len(lines)), len(lines) - 1) for part in (first, second))
    lines[i], lines[j] = lines[j], lines[i]
    read_everything("\n".join(lines))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_any_text(source: str) -> None:
    read_everything(source)
    read_everything("HloModule m\n\n" + source)
    read_everything("HloModule m\n\nENTRY %e (x: f32[]) -> f32[] {\n  ROOT %x = " + source + "\n}\n")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_printed_again_is_read_the_same(name: str) -> None:
    whole = module(name)
    printed = [f"HloModule {whole.name}" + "".join(f", {k}={v}" for k, v in whole.raw.items()), ""]
    for computation in whole.computations.values():
        printed.append(f"{'ENTRY ' if computation.is_entry else ''}%{computation.name} {{")
        for i in computation:
            inside = ", ".join(f"%{o}" for o in i.operands) or i.arguments
            attributes = "".join(f", {k}={v}" for k, v in i.raw.items())
            printed.append(
                f"  {'ROOT ' if i.is_root else ''}%{i.name} = {_spelled(i.shape)} {i.opcode}({inside}){attributes}"
            )
        printed.append("}\n")
    again = hlo.parse("\n".join(printed))
    assert again.attributes == whole.attributes
    assert list(again.computations) == list(whole.computations)
    for computation in whole.computations.values():
        other = again.computations[computation.name]
        assert other.root.name == computation.root.name
        for before, after in zip(computation, other, strict=True):
            assert (before.name, before.shape, before.opcode) == (after.name, after.shape, after.opcode)
            assert (before.operands, before.raw) == (after.operands, after.raw)


def _spelled(shape: hlo.Shape) -> str:
    if shape.is_tuple:
        return "(" + ", ".join(_spelled(e) for e in shape.elements) + ")"
    dims = ",".join(map(str, shape.dims))
    if shape.minor_to_major is None:
        return f"{shape.dtype}[{dims}]"
    tiles = "".join(f"({','.join(map(str, tile))})" for tile in shape.tiles)
    rest = (f"T{tiles}" if tiles else "") + (f"E({shape.element_bits})" if shape.element_bits else "")
    rest += f"S({shape.memory_space})" if shape.memory_space else ""
    order = ",".join(map(str, shape.minor_to_major))
    return f"{shape.dtype}[{dims}]{{{order}{':' + rest if rest else ''}}}"
