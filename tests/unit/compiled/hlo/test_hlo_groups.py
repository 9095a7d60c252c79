"""Replica groups in every form XLA prints them."""

import numpy as np
import pytest
from hlo_samples import EXPECTED, NAMES, instructions, module, of_opcode
from hypothesis import given
from hypothesis import strategies as st

from chipwise.compiled.hlo import NotHlo, replica_groups, source_target_pairs
from chipwise.compiled.hlo.groups import parse_groups


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}", [[0, 1], [2, 3]]),
        ("{{0,2,4},{1}}", [[0, 2, 4], [1, -1, -1]]),
        ("{}", [[0, 1, 2, 3]]),
        ("{{}}", [[0, 1, 2, 3]]),
        ("[2,2]<=[4]", [[0, 1], [2, 3]]),
        ("[2,2]<=[2,2]T(1,0)", [[0, 2], [1, 3]]),
        ("[2,4]<=[2,2,2]T(1,0,2)", [[0, 1, 4, 5], [2, 3, 6, 7]]),
        ("mesh['x'=2,'y'=2] {'y'}", [[0, 1], [2, 3]]),
        ("mesh['x'=2,'y'=2] {'x'}", [[0, 2], [1, 3]]),
        ("mesh['x'=2,'y'=2] {'x','y'}", [[0, 1, 2, 3]]),
        ("mesh['x'=2,'y'=2] {'y','x'}", [[0, 2, 1, 3]]),
        ("mesh[x=8] {x:(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("mesh['x'=8] {'x':(1)2}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y'}", [[0, 2], [1, 3]]),
        ("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", [[0, 2], [1, 3]]),
        ("mesh['x'=2,'y'=2] {}", [[0], [1], [2], [3]]),
    ],
)
def test_forms(text: str, groups: list[list[int]]) -> None:
    assert parse_groups(text, 4).tolist() == groups


@pytest.mark.parametrize(
    "text",
    ["", "x", "{0,1}", "{{0,a}}", "[4]", "[2,2]<=[5]", "[2,2]<=[2,2]T(0,0)", "mesh['x'=2] {'y'}", "mesh['x'=0] {'x'}",
     "mesh['x'=6] {'x':(1)4}", "mesh[] {}", "[99999,99999]<=[9999800001]", "mesh['x'=2], device_ids=(0) {'x'}"],
)  # fmt: skip
def test_broken_forms_are_refused(text: str) -> None:
    with pytest.raises(NotHlo):
        parse_groups(text, 4)


@pytest.mark.parametrize("name", NAMES)
def test_groups_part_all_devices(name: str) -> None:
    for instruction in instructions(name):
        if "replica_groups" in instruction.raw:
            groups = replica_groups(instruction, module(name).devices)
            assert sorted(groups.ravel().tolist()) == list(range(EXPECTED[name]["devices"]))


def test_experts_exchange_within_a_row_of_the_mesh() -> None:
    exchanges = of_opcode("moe_v5p", "all-to-all")
    assert len(exchanges) == 2
    for exchange in exchanges:
        assert replica_groups(exchange, 8).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_ring_permutes_name_every_device_once_each_way() -> None:
    for name in ("fsdp_scan_v5e", "moe_v5p"):
        for permute in of_opcode(name, "collective-permute-start"):
            pairs = source_target_pairs(permute)
            assert pairs.shape == (EXPECTED[name]["devices"], 2)
            assert all(len(np.unique(pairs[:, side])) == len(pairs) for side in (0, 1))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_mesh_axes_agree_with_the_iota_form(sizes: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(len(sizes))))
    chosen = axes[: data.draw(st.integers(0, len(axes)))]
    others = [axis for axis in range(len(sizes)) if axis not in chosen]
    count = int(np.prod(sizes))
    width = int(np.prod([sizes[axis] for axis in chosen]))
    mesh = ",".join(f"'a{i}'={n}" for i, n in enumerate(sizes))
    picked = ",".join(f"'a{i}'" for i in chosen)
    named = parse_groups(f"mesh[{mesh}] {{{picked}}}", count)
    dims = ",".join(map(str, sizes))
    order = ",".join(map(str, others + list(chosen)))
    counted = parse_groups(f"[{count // width},{width}]<=[{dims}]T({order})", count)
    assert named.tolist() == counted.tolist()
