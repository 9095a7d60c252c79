"""The preset data against what the models' authors print."""

from __future__ import annotations

import re

import pytest

from chipwise.errors import UnknownName
from chipwise.workload.params import count
from chipwise.workload.presets import _tables, folded, preset, preset_entry, preset_names

NAMES = preset_names()
# Exact integers come from stored weights; rounded figures from papers.
EXACT = [n for n in NAMES if preset(n).published_params % 1_000_000]
# Active parameters per token as published: (billions, printed digits' half unit).
ACTIVE = {
    "mixtral-8x7b": (12.9, 0.05),  # arXiv:2401.04088, abstract says 13B; model card 12.9B
    "mixtral-8x22b": (39.0, 0.5),  # mistral.ai/news/mixtral-8x22b
    "dbrx": (36.0, 0.5),  # databricks.com/blog/introducing-dbrx
    "deepseek-v2": (21.0, 0.5),  # arXiv:2405.04434
    "qwen3-30b-a3b": (3.3, 0.06),  # model card
    "qwen3-235b-a22b": (22.0, 0.5),  # model card
    "llama-4-scout": (17.0, 0.5),  # model card
    "llama-4-maverick": (17.0, 0.5),  # model card
}


def test_there_are_enough_presets_of_every_family():
    assert len(NAMES) >= 40
    assert {preset(n).family for n in NAMES} == {"decoder", "encoder", "vit", "dit", "cnn"}


@pytest.mark.parametrize("name", NAMES)
def test_count_is_within_half_a_percent_of_the_published_one(name):
    entry = preset_entry(name)
    ours = count(entry.model).main + entry.outside
    published = entry.model.published_params
    print(f"{name}: ours {ours:,}, published {published:,.0f}")
    assert abs(ours / published - 1) <= 0.005


@pytest.mark.parametrize("name", EXACT)
def test_count_is_exact_where_the_stored_weights_were_counted(name):
    entry = preset_entry(name)
    assert count(entry.model).main + entry.outside == int(entry.model.published_params)


@pytest.mark.parametrize("name", sorted(ACTIVE))
def test_active_parameters_agree_with_the_published_ones(name):
    billions, half = ACTIVE[name]
    assert abs(count(preset(name)).active / 1e9 - billions) <= half


def test_gpt_oss_active_parameters_agree_once_the_embedding_is_left_out():
    # arXiv:2508.10925 counts the output layer but not the embedding.
    for name, billions in (("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)):
        p = count(preset(name))
        assert abs((p.active - p.embedding) / 1e9 - billions) < 0.006


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_has_a_source_and_a_date(name):
    model = preset(name)
    assert model.source.startswith("https://")
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", model.source_date)


def test_aliases_are_unambiguous():
    owner: dict[str, str] = {}
    for name, table in _tables().items():
        for spelling in (name, *table.get("aliases", ())):
            assert owner.setdefault(folded(spelling), name) == name, spelling


def test_what_is_left_out_is_named():
    for name in NAMES:
        entry = preset_entry(name)
        assert bool(entry.outside) == bool(entry.outside_what)


@pytest.mark.parametrize("spelling", ["Llama-3.1-8B", "llama3.1-8b", "meta-llama/Llama-3.1-8B", " LLAMA_3.1_8b "])
def test_spellings_meet(spelling):
    assert preset(spelling).name == "llama-3.1-8b"


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match=r"llama-3\.1-8b"):
        preset("llama-3.1-8")


def test_per_layer_figures_add_up():
    for name in NAMES:
        model = preset(name)
        p = count(model)
        if model.family != "cnn":
            outside = p.embedding + p.positions + p.head + p.mtp + p.norms_outside
            outside += p.conditioning_outside + p.other_outside
            assert round(p.per_layer * p.layers) + outside == p.total
            assert round((p.per_layer_dense + p.per_layer_experts) * p.layers) == p.inside_layers
        assert sum(p.by_class().values()) == p.total
        assert 0 < p.active <= p.total


# max_position_embeddings of the config at the source; 0 where none is published.
@pytest.mark.parametrize(("name", "context"), [
    ("llama-2-70b", 4096), ("llama-3.1-70b", 131072), ("llama-4-scout", 0), ("mistral-7b", 32768),
    ("mixtral-8x22b", 65536), ("gemma-2-27b", 8192), ("gemma-3-27b", 131072), ("qwen2.5-72b", 131072),
    ("qwen3-235b-a22b", 40960), ("deepseek-v3", 163840), ("gpt-oss-120b", 131072), ("phi-3-mini", 4096),
    ("gpt2-xl", 1024), ("opt-30b", 2048), ("bert-large", 512), ("vit-b-16", 0), ("resnet-50", 0),
])  # fmt: skip
def test_the_longest_sequence_is_the_published_one(name, context):
    assert preset(name).context == context


def test_no_sequence_is_longer_than_the_positions_learned():
    assert all(preset(n).context <= preset(n).learned_positions for n in NAMES if preset(n).learned_positions)
