"""Which layouts are legal, and what is said about the others."""

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog import load, parse
from chipwise.catalog.stacks import EVERY_AXIS, Parallelism
from chipwise.errors import NoLayout
from chipwise.layout import enumerate_layouts, in_words
from chipwise.layout.splits import interleavings, micro_batches, stages_refusal
from chipwise.predict.model.layouts import RECOMPUTE
from chipwise.workload.model import Train
from chipwise.workload.presets import preset


def space(name, place, train):
    return enumerate_layouts(preset(name), train, parse(place))


def test_axes_multiply_to_the_chips():
    x = space("llama-3.1-8b", "h100:96", Train(96, 8192)).layouts
    assert np.all(x.dp * x.tp * x.pp * x.cp == 96)


def test_tp_that_does_not_divide_the_heads_is_refused_with_the_number():
    model = replace(preset("llama-3.1-8b"), heads=56, kv_heads=8, d_model=7168)
    found = enumerate_layouts(model, Train(512, 4096), parse("h100:64"))
    assert set(found.layouts.tp) == {1, 2, 4, 8}
    assert any(line.startswith("tp does not divide 56 heads") for line in in_words(found.refused))


def test_tp_reaches_over_two_fast_domains_at_most():
    gpu, tpu = (space("llama-3.1-70b", place, Train(256, 4096)) for place in ("h100:256", "v5p:256"))
    assert gpu.layouts.tp.max() == 16 and tpu.layouts.tp.max() == 64
    assert any("more than 2 fast domains of 8 chips" in why for why in gpu.refused)


def test_tp_is_a_divisor_or_a_multiple_of_the_key_value_heads():
    model = replace(preset("llama-3.1-8b"), heads=24, kv_heads=6, d_ff=12288)
    assert set(enumerate_layouts(model, Train(48, 4096), parse("h100:48")).layouts.tp) == {1, 2, 3, 6, 12}


def test_stages_may_have_different_numbers_of_layers():
    model = preset("llama-3.1-405b")
    assert interleavings(model, 16) == (1, 2, 3, 4, 8)
    assert {8, 16} <= set(enumerate_layouts(model, Train(512, 8192), parse("h100:1024")).layouts.pp)
    deep = space("deepseek-v3", "gb200:256", Train(4096, 4096, precision="fp8")).layouts
    assert np.any((deep.pp == 4) & (deep.vpp == 4) & (deep.ep == 64))
    assert not stages_refusal(preset("deepseek-v3"), 9, 7, EVERY_AXIS)
    assert "more than 61 layers" in stages_refusal(preset("deepseek-v3"), 16, 4, EVERY_AXIS)


def test_a_stack_whose_stages_are_even_has_no_others():
    maxtext = load().stacks["maxtext"].parallel
    model, train = preset("llama-3.1-405b"), Train(512, 8192)
    found = enumerate_layouts(model, train, parse("v5p:1024"), maxtext)
    assert np.all(126 % (found.layouts.pp * found.layouts.vpp) == 0) and found.layouts.pp.max() > 1
    assert "the stack's stages are even: pp does not divide 126 layers" in found.refused
    assert "does not divide 126" in stages_refusal(model, 2, 4, maxtext)


def test_interleaving_needs_whole_rounds_of_micro_batches():
    x = space("llama-3.1-70b", "h100:256", Train(256, 8192)).layouts
    rounds = 256 / (x.dp * x.micro_batch) / x.pp
    assert np.all(np.mod(rounds[x.vpp > 1], 1) == 0) and (x.vpp > 1).any()


def test_context_is_not_cut_below_4096_tokens_unless_sequences_are_fewer_than_chips():
    found = space("llama-3.1-8b", "h100:64", Train(64, 8192))
    assert found.layouts.cp.max() == 2
    assert "cp leaves a chip fewer than 4,096 of 8192 tokens" in found.refused
    found = space("llama-3.1-8b", "h100:64", Train(16, 4096))
    assert found.layouts.cp.max() == 4
    assert "cp leaves a chip fewer than 1,024 of 4096 tokens" in found.refused


def test_experts_spread_over_divisors_of_their_number():
    found = space("mixtral-8x7b", "h100:64", Train(64, 4096))
    assert set(found.layouts.ep) == {1, 2, 4, 8}
    assert np.all((found.layouts.dp * found.layouts.cp) % found.layouts.ep == 0)


def test_hybrid_sharding_stays_in_one_fast_domain():
    x = space("llama-3.1-8b", "h100:64", Train(64, 8192)).layouts
    flat = (x.tp == 1) & (x.pp == 1) & (x.cp == 1) & (x.zero == 3)
    assert set(x.shard[flat]) == {8, 64}
    two = space("llama-3.1-8b", "v5e:512", Train(512, 8192)).layouts
    assert set(two.shard[(two.dp == 512) & (two.zero == 3)]) == {256, 512}


def test_a_cnn_splits_over_data_alone_and_a_vit_over_tensors_too():
    cnn = space("resnet-50", "h100:8", Train(2048, 1)).layouts
    assert np.all(cnn.dp == 8) and cnn.micro_batch.max() == 256
    vit = space("vit-b-16", "h100:8", Train(2048, 197)).layouts
    assert set(vit.tp) == {1, 2, 4} and set(vit.pp) == {1}


def test_recomputation_the_workload_asks_for_is_the_only_one():
    x = space("llama-3.1-8b", "h100:8", Train(64, 8192, recompute="full")).layouts
    assert set(x.recompute) == {RECOMPUTE.index("full")}


def test_placement_is_listed_once_where_the_wires_cannot_tell():
    assert not space("llama-3.1-8b", "h100:8", Train(64, 8192)).layouts.pipe_inner.any()
    assert space("llama-3.1-8b", "h100:64", Train(64, 8192)).layouts.pipe_inner.any()


def test_short_sequences_and_images_get_larger_micro_batches():
    assert max(micro_batches(preset("llama-3.1-8b"), Train(1024, 8192), 1)) == 64
    assert max(micro_batches(preset("bert-large"), Train(4096, 128), 1)) == 1024


def test_a_batch_nothing_divides_is_refused_with_the_nearest_that_work():
    with pytest.raises(NoLayout, match=r"global_batch\(96\) % dp\(128\) != 0.*nearest.* is 128"):
        space("resnet-50", "h100:128", Train(96, 1))
    with pytest.raises(NoLayout, match="96 or 102"):
        enumerate_layouts(preset("llama-3.1-8b"), Train(100, 8192), parse("h100:96"), Parallelism(frozenset({"tp"})))


def test_large_spaces_come_in_several_grids_that_hold_every_layout_once():
    found = space("deepseek-v3", "h800:2048", Train(15360, 4096))
    assert len(found.grids) > 1 and len(found) == sum(len(g) for g in found.grids) == len(found.layouts)
    grid = found.grids[0]
    flat = grid.flat()
    for i in (0, 1, len(grid) // 2, len(grid) - 1):
        assert grid.at(i) == flat.at(i)
