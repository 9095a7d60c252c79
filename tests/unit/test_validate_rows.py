"""Published rows are read as they say."""

import pytest

from chipwise.catalog import load
from chipwise.predict.site import traits
from chipwise.validate.score import published, read_rows
from chipwise.validate.training_rows import eligible, layout_of, read, recompute_of, release_of

ROWS = {r["id"]: r for r in read_rows(published()[0])[1]}


def row(**changes: str) -> dict[str, str]:
    base = dict(ROWS["T0610"])
    base.update(changes)
    return base


def test_a_megatron_row_keeps_its_layout_and_shards_the_optimizer():
    known = read(row())
    assert (known.layout.tp, known.layout.pp, known.layout.vpp, known.layout.dp) == (4, 8, 6, 16)
    assert known.layout.zero == 1
    assert known.layout.chips == known.chips


@pytest.mark.parametrize(
    "text, axes",
    [
        ("fsdp=64 (ICI) x dp=2 (DCN)", {"dp": 128, "shard": 64, "zero": 3}),
        ("ici_fsdp_parallelism=-1, ici_fsdp_transpose_parallelism=1", {"dp": 128, "shard": 128, "zero": 3}),
        ("FSDP FULL_SHARD, 128 GPUs; grad_accum=1; mp_mode=PURE", {"dp": 128, "shard": 128, "zero": 3}),
        ("tp=8 pp=4 dp=4", {"dp": 4, "tp": 8, "pp": 4}),
    ],
)
def test_parallelism_in_words_is_understood(text, axes):
    known = read(row(parallelism=text, chips="128", global_batch="2048", micro_batch="1"))
    assert {k: getattr(known.layout, k) for k in axes} == axes
    assert known.layout.chips == 128


def test_a_layout_that_does_not_multiply_to_the_chips_is_left_to_the_search():
    assert layout_of(row(parallelism="tp=3 pp=5", chips="128"), read(row()).chip, None) is None


def test_a_tpu7x_micro_batch_is_per_device_and_a_chip_has_two():
    known = read(ROWS["T0116"])
    assert known.layout.micro_batch == 2 * float(ROWS["T0116"]["micro_batch"])


def test_lora_rows_freeze_the_base_weights():
    known = read(ROWS["T1077"])
    assert known.workload.train.lora_rank > 0


def test_recomputation_in_words():
    assert recompute_of("activation checkpointing=False; cpu_offload=False") == ("none", True)
    assert recompute_of("custom (decoder_layer_input:offload)") == ("offload", True)
    assert recompute_of("full activation checkpointing") == ("full", True)
    assert recompute_of("") == ("none", False)


def test_a_release_is_read_from_a_container_or_a_round():
    assert round(release_of("NVIDIA NeMo Framework mlcommons/training_results_v5.1"), 2) == 2025.85
    assert release_of("no year here") == 0.0


def test_a_row_without_a_rate_or_a_precision_is_not_eligible():
    assert eligible(row())
    assert not eligible(row(precision=""))
    assert not eligible(row(step_time_s="", tokens_per_s_per_chip="", samples_per_s=""))


def test_every_eligible_published_row_is_read():
    rows = [r for r in ROWS.values() if eligible(r)]
    assert len(rows) > 700
    for r in rows:
        known = read(r)
        assert known.observed_s > 0
        assert known.layout is None or known.layout.chips == known.chips, r["id"]


def test_the_header_tells_the_kind():
    assert read_rows(published()[0])[0] == "training"
    assert read_rows(published()[1])[0] == "kernel"


def test_old_releases_and_wide_precisions_do_not_fuse_attention():
    stack = load().stacks["pytorch"]
    assert traits(stack, load().chips["h100"], "bf16", 2026.0).flash
    assert not traits(stack, load().chips["h100"], "bf16", 2022.0).flash
    assert not traits(stack, load().chips["h100"], "fp32", 2026.0).flash
