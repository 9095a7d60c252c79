"""Starts and dones, and collectives hidden in fusions."""

import pytest
from hlo_samples import NAMES, module, of_opcode

from chipwise.compiled import hlo


@pytest.mark.parametrize("name", NAMES)
def test_each_start_has_one_done_after_it(name: str) -> None:
    for computation in module(name).computations.values():
        pairs = hlo.async_pairs(computation)
        place = {instruction.name: i for i, instruction in enumerate(computation)}
        starts = {i.name for i in computation if i.opcode.endswith("-start")}
        dones = [i.name for i in computation if i.opcode.endswith("-done")]
        assert set(pairs) == starts
        assert sorted(pairs.values()) == sorted(dones)
        assert all(place[start] < place[done] for start, done in pairs.items())


def test_offloads_are_slices_into_host_memory_under_way_beside_other_work() -> None:
    out, back = of_opcode("offload_v6e", "dynamic-update-slice-start"), of_opcode("offload_v6e", "dynamic-slice-start")
    assert out
    assert back
    for start in out:
        assert start.shape.elements[1].memory_space == hlo.HOST
    for start in back:
        assert start.shape.elements[0].elements[0].memory_space == hlo.HOST
        assert start.shape.elements[1].memory_space != hlo.HOST


def test_gathers_spread_over_fusions_are_found() -> None:
    whole = module("fsdp_gathers_v5e")
    chains = [chain for c in whole.computations.values() for chain in hlo.collective_chains(whole, c)]
    assert len(chains) == 2
    for chain in chains:
        assert chain.collective.opcode == "all-gather"
        assert chain.start.startswith("async-collective-start")
        assert chain.done.startswith("async-collective-done")
        assert chain.carriers
    inside = {i.name for chain in chains for i in [chain.collective]}
    assert len(inside) == 2


def test_a_wrapped_instruction_is_found_behind_its_start_update_and_done() -> None:
    whole = hlo.parse("""HloModule wrapped

%inner (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %reduced = f32[8]{0} all-to-all(%p), replica_groups={}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %begin = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(%x), calls=%inner
  %on = ((f32[8]{0}), f32[8]{0}, u32[]) async-update(%begin)
  ROOT %end = f32[8]{0} async-done(%on)
}
""")
    assert hlo.async_pairs(whole.entry) == {"begin": "end"}
    assert hlo.wrapped(whole, whole.entry["begin"]).opcode == "all-to-all"


def test_sends_pair_with_their_dones() -> None:
    whole = hlo.parse("""HloModule pairs

ENTRY %main (x: f32[8]) -> token[] {
  %x = f32[8]{0} parameter(0)
  %after = token[] after-all()
  %out = (f32[8]{0}, u32[], token[]) send(%x, %after), channel_id=1
  %in = (f32[8]{0}, u32[], token[]) recv(%after), channel_id=2
  %got = (f32[8]{0}, token[]) recv-done(%in), channel_id=2
  ROOT %sent = token[] send-done(%out), channel_id=1
}
""")
    assert hlo.async_pairs(whole.entry) == {"in": "got", "out": "sent"}
