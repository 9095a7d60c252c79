"""Shapes: bytes, tiles and memory spaces."""

import pytest
from hlo_samples import NAMES, instructions, module

from chipwise.compiled.hlo import HOST, ON_CHIP, NotHlo, parse_shape


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[]", 4),
        ("pred[8]", 8),
        ("bf16[2,3]{1,0}", 12),
        ("s4[5]{0}", 3),
        ("u4[8]{0:T(128)E(4)}", 4),
        ("f8e4m3fn[10]", 10),
        ("c64[2]", 16),
        ("f32[0,4]", 0),
        ("token[]", 0),
        ("f32[<=8,2]{1,0}", 64),
        ("()", 0),
        ("(f32[2], (s8[3], /*index=5*/pred[]))", 12),
        ("b(f32[4])", 16),
    ],
)
def test_bytes(text: str, size: int) -> None:
    assert parse_shape(text).bytes == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("bf16[3,5]{1,0:T(8,128)(2,1)}", 8 * 128 * 2),
        ("bf16[3,5]{0,1:T(8,128)(2,1)}", 8 * 128 * 2),
        ("bf16[9,129]{0,1:T(8,128)(2,1)}", 136 * 128 * 2),
        ("f32[]{:T(128)}", 512),
        ("s32[5]{0:T(1024)}", 4096),
        ("bf16[1,256]{1,0:T(1,128)(2,1)}", 2 * 256 * 2),
        ("f32[4,8,128]{2,1,0:T(8,128)}", 4 * 8 * 128 * 4),
        ("f32[3,5]{1,0}", 60),
    ],
)
def test_tiles_pad(text: str, size: int) -> None:
    assert parse_shape(text).tiled_bytes == size


def test_memory_spaces() -> None:
    assert parse_shape("f32[2]{0:T(128)S(1)}").memory_space == ON_CHIP
    assert parse_shape("f32[2]{0:S(5)}").memory_space == HOST
    assert parse_shape("f32[2]{0}").memory_space == 0
    offloaded = [i for i in instructions("offload_v6e") if i.opcode == "dynamic-update-slice-done"]
    assert offloaded
    assert all(i.shape.memory_space == HOST for i in offloaded)


def test_dynamic_sizes_are_marked() -> None:
    assert parse_shape("f32[<=8,2]{1,0}").dynamic == (True, False)
    assert parse_shape("f32[8,2]{1,0}").dynamic == ()


@pytest.mark.parametrize(
    "text",
    ["", "f32", "f32[", "f32[2", "f32[a]", "f32[2]{0", "x9[2]", "(f32[2]", "f32[2])", "f32[2],f32[2]", "f32[2]{0,0}",
     "f32[99999999999999999999]", "(f32[2],,f32[2])", "f32[2] f32[2]", "f32[2]{0:T(0)}", "f32[2]{0:S(x)}"],
)  # fmt: skip
def test_broken_shapes_are_refused(text: str) -> None:
    with pytest.raises(NotHlo):
        parse_shape(text)


@pytest.mark.parametrize("name", NAMES)
def test_tiles_never_shrink_an_array(name: str) -> None:
    for instruction in instructions(name):
        for leaf in instruction.shape.leaves():
            assert leaf.tiled_bytes >= leaf.bytes


@pytest.mark.parametrize("name", NAMES)
def test_a_get_tuple_element_has_the_shape_of_the_member_it_takes(name: str) -> None:
    for computation in module(name).computations.values():
        for instruction in computation:
            if instruction.opcode == "get-tuple-element":
                whole = computation[instruction.operands[0]].shape
                member = whole.elements[instruction.attributes["index"]]
                assert (member.dtype, member.dims) == (instruction.shape.dtype, instruction.shape.dims)
