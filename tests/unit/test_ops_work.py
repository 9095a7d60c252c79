"""Work of a point: against counts done by hand, by the catalog of models, and by shape."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.errors import InputError
from chipwise.ops.point import KINDS, Point
from chipwise.ops.work import WIDTH, patch_side, work_of
from chipwise.workload.params import count
from chipwise.workload.presets import preset

LLAMA_8B = {"layers": 32, "d": 4096, "h": 32, "hk": 8, "f": 14336, "vocab": 128256}
SMALL = {
    "m": 8,
    "n": 16,
    "k": 32,
    "bytes": 1024,
    "b": 2,
    "h": 4,
    "hk": 2,
    "s": 17,
    "d": 64,
    "count": 100,
    "layers": 2,
    "f": 96,
    "vocab": 50,
    "devices": 4,
}


def point(kind: str, dtype: str = "bf16", *, causal: bool = True, **sizes: int) -> Point:
    return Point("kernels", kind, dtype, sizes, causal=causal)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", WIDTH)
def test_every_kind_and_precision_is_counted(kind: str, dtype: str) -> None:
    work = work_of(point(kind, dtype, **{name: SMALL[name] for name in KINDS[kind]}))
    assert work.items > 0
    assert work.moved_bytes > 0
    assert work.flops > 0 or kind in ("copy", "gather", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def test_a_product_of_int8_writes_int32_and_one_of_fp8_writes_bf16() -> None:
    sizes = {"m": 2, "n": 3, "k": 5}
    assert work_of(point("gemm", "int8", **sizes)).moved_bytes == 2 * 5 + 5 * 3 + 4 * 6
    assert work_of(point("gemm", "fp8", **sizes)).moved_bytes == 2 * 5 + 5 * 3 + 2 * 6
    assert work_of(point("gemm", "fp32", **sizes)).flops == 60


def test_causal_attention_counts_half_and_the_backward_pass_two_and_a_half_times() -> None:
    sizes = {"b": 2, "h": 8, "hk": 2, "s": 64, "d": 16}
    full = work_of(point("sdpa_fwd", causal=False, **sizes))
    half = work_of(point("sdpa_fwd", **sizes))
    both = work_of(point("sdpa_fwdbwd", **sizes))
    assert full.flops == 4 * 2 * 8 * 64 * 64 * 16 == 2 * half.flops
    assert both.flops == 3.5 * half.flops
    assert half.moved_bytes == (2 * 8 + 2 * 2) * 2 * 64 * 16 * 2
    assert both.moved_bytes == 3 * half.moved_bytes


@pytest.mark.parametrize(("kind", "name", "sizes"), [
    ("train", "llama-3.1-8b", {"b": 1, "s": 128, **LLAMA_8B}),
    ("resnet50_infer", "resnet-50", {"b": 1}),
    ("vit_infer", "vit-l-16", {"b": 1, "s": 197, "layers": 24, "d": 1024, "h": 16, "f": 4096}),
])  # fmt: skip
def test_parameters_are_those_of_the_catalog(kind: str, name: str, sizes: dict[str, Any]) -> None:
    assert work_of(point(kind, **sizes)).params == count(preset(name)).total


def test_training_is_six_flops_a_weight_and_token_and_the_attention() -> None:
    tokens, work = 2 * 1024, work_of(point("train", b=2, s=1024, **LLAMA_8B))
    weights = work.params - 4096 * 128256 - 65 * 4096  # without the embedding and the norms
    assert work.flops == 6 * weights * tokens + 3 * 32 * 4 * 2 * 1024**2 * 4096 / 2
    assert work.items == tokens


def test_a_decoded_token_reads_the_weights_and_the_whole_cache() -> None:
    work = work_of(point("decode", b=4, s=1000, **LLAMA_8B))
    cache = 2 * 32 * 4 * 1000 * 8 * 128 * 2
    assert work.moved_bytes == (work.params - 4096 * 128256) * 2 + cache
    assert work.items == 4


def test_prefill_gives_logits_of_the_last_position_alone() -> None:
    few, many = (work_of(point("prefill", b=1, s=512, **{**LLAMA_8B, "vocab": vocab})) for vocab in (1000, 2000))
    assert many.flops - few.flops == 2 * 4096 * 1000


def test_resnet50_is_4_09_billion_multiplications_an_image_and_training_three_times_that() -> None:
    assert work_of(point("resnet50_infer", b=1)).flops == pytest.approx(2 * 4.089e9, rel=1e-3)
    assert work_of(point("resnet50_train", b=8)).flops == 24 * work_of(point("resnet50_infer", b=1)).flops


@pytest.mark.parametrize(("kind", "sent"), [
    ("all_reduce", 1.5), ("all_gather", 3.0), ("reduce_scatter", 0.75), ("all_to_all", 0.75),
])  # fmt: skip
def test_collectives_count_what_each_device_must_send(kind: str, sent: float) -> None:
    assert work_of(point(kind, bytes=4096, devices=4)).moved_bytes == sent * 4096


def test_sizes_that_make_no_model_are_refused() -> None:
    with pytest.raises(InputError, match="a divisor of the model's width"):
        work_of(point("train", b=1, s=8, **{**LLAMA_8B, "h": 33}))
    with pytest.raises(InputError, match="a divisor of the query heads"):
        work_of(point("train", b=1, s=8, **{**LLAMA_8B, "hk": 5}))
    with pytest.raises(InputError, match="class token"):
        patch_side(196)
    with pytest.raises(InputError, match="kind"):
        work_of(Point("kernels", "fft", "bf16", {}))
    with pytest.raises(InputError, match="dtype"):
        work_of(point("gemm", "fp4", m=1, n=1, k=1))
