"""Formulas of single kernels and collectives: limits, shapes, monotone in the chip's figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.kernel_fits import trial
from chipwise.catalog import load
from chipwise.catalog.calibration import Calibration
from chipwise.errors import PrecisionMissing, Refusal
from chipwise.predict.learn.kernel_residuals import LIMIT, kernel_factor
from chipwise.predict.microbenchmark import Kernel, attention_flops, predict_kernel
from chipwise.predict.model.fabric import (
    LinkCoefficients,
    Wires,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
    send_seconds,
)
from chipwise.predict.model.kernels import (
    ComputeSpec,
    KernelCoefficients,
    attention_seconds,
    head_factor,
    matmul_seconds,
)
from chipwise.predict.model.shapes import Attention, Products

BARE = trial({}, {}, {})
H100, V7X = load().chips["h100"], load().chips["v7x"]
GPU = ComputeSpec(H100.peak["bf16"], H100.bandwidth, float(H100.cores), 0, KernelCoefficients())
TPU = ComputeSpec(V7X.peak["bf16"], V7X.bandwidth, float(V7X.cores), V7X.mxu, KernelCoefficients())


def a(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def with_residuals(residuals: dict) -> Calibration:
    return trial({}, {}, residuals)


@pytest.mark.parametrize("spec", [GPU, TPU])
def test_a_large_product_reaches_its_share_of_peak(spec: ComputeSpec) -> None:
    n = 16384.0
    seconds = matmul_seconds(spec, Products(a(n), a(n), a(n)))[0]
    share = 2 * n**3 / seconds / spec.peak
    assert 0.9 * spec.coefficients.matmul < share <= spec.coefficients.matmul


def test_a_thin_product_is_bound_by_memory() -> None:
    seconds = matmul_seconds(GPU, Products(a(8), a(65536), a(8192)))[0]
    stream = 2 * 65536 * 8192 / (GPU.bandwidth * GPU.coefficients.memory)
    assert seconds == pytest.approx(stream, rel=0.1)


def test_what_is_cached_takes_no_memory_time() -> None:
    thin = Products(a(8), a(4096), a(4096))
    assert matmul_seconds(GPU, thin, cached=0.6)[0] < matmul_seconds(GPU, thin)[0]


def test_a_partly_filled_tile_costs_a_whole_one() -> None:
    just, over = (matmul_seconds(GPU, Products(a(m), a(8192), a(8192)))[0] for m in (4096.0, 4097.0))
    assert over >= just


def test_longer_sequences_use_the_chip_better() -> None:
    def rate(seq: float) -> float:
        seconds = attention_seconds(GPU, Attention(a(16384 / seq), a(16), a(16), 128, 128, a(seq), a(seq)))[0]
        return 16384 * seq / seconds

    assert rate(512) < rate(2048) < rate(16384)


def test_attention_backward_takes_longer_than_forward() -> None:
    shape = Attention(a(4.0), a(16.0), a(16.0), 128.0, 128.0, a(4096.0), a(2048.0))
    assert attention_seconds(GPU, shape, backward=True)[0] > 2 * attention_seconds(GPU, shape)[0]


def test_small_heads_are_slower_and_128_is_the_reference() -> None:
    assert head_factor(64, 0, 0.4) < head_factor(128, 0, 0.4) == 1.0


def node(**changes: float) -> Wires:
    return Wires(H100.fabric, 8, (), (), replace(LinkCoefficients(), **changes))


def test_a_reducing_switch_beats_the_ring_on_eight_chips_only() -> None:
    size, one, data = a(2, 8), a(1, 1), a(1e9, 1e9)
    plain, switched = (reduce_seconds(node(in_switch=s), size, one, data) for s in (0.0, 0.6))
    assert switched[0] == plain[0] and switched[1] < plain[1]


def test_one_chip_needs_no_collective() -> None:
    for collective in (gather_seconds, reduce_seconds, exchange_seconds):
        assert collective(node(), a(1), a(1), a(1e9))[0] == 0


def test_reducing_costs_at_most_two_gathers() -> None:
    wires, args = node(), (a(8), a(1), a(1e8))
    gather, reduce = gather_seconds(wires, *args)[0], reduce_seconds(wires, *args)[0]
    assert gather < reduce <= 2 * gather


def test_a_limit_on_nodes_shortens_the_exchange() -> None:
    args = a(64), a(1), a(3e8), 8.0
    assert exchange_seconds(node(), *args, 4.0)[0] < exchange_seconds(node(), *args)[0]


def test_beyond_the_node_is_slower() -> None:
    near, far = send_seconds(node(), a(1, 8), a(1e8, 1e8))
    assert near < far


def test_a_precision_the_chip_lacks_is_refused() -> None:
    with pytest.raises(PrecisionMissing, match="h100 has no fp4 rate"):
        predict_kernel(Kernel("gemm", "fp4", m=8, n=8, k=8), H100, BARE)


def test_an_operation_without_a_model_is_refused() -> None:
    with pytest.raises(Refusal, match="no model of 'sort'"):
        predict_kernel(Kernel("sort"), H100, BARE)


def test_a_bench_adds_its_factor_and_its_host_work() -> None:
    kernel = Kernel("gemm", m=4096, n=4096, k=4096, bench="vidur")
    plain = predict_kernel(kernel, H100, BARE)
    eager = with_residuals({"benches": {"gemm/vidur": {"factor": 1.1, "add_s": 3e-6}}})
    assert predict_kernel(kernel, H100, eager) == pytest.approx(1.1 * plain + 3e-6)


def table(weight: float) -> dict:
    return {"chips": ["h100"], "designs": ["hopper"], "points": [[12.0, 12.0, 12.0, 0, 0, weight]]}


def test_a_residual_fades_with_distance_and_with_kinship() -> None:
    at = kernel_factor(table(0.1), "h100", "hopper", (4096, 4096, 4096))
    kin = kernel_factor(table(0.1), "h200", "hopper", (4096, 4096, 4096))
    other = kernel_factor(table(0.1), "a100-80gb", "ampere", (4096, 4096, 4096))
    far = kernel_factor(table(0.1), "h100", "hopper", (1, 64, 64))
    assert at == pytest.approx(np.exp(0.1))
    assert at > kin > other > 1.0
    assert far == pytest.approx(1.0, abs=1e-3)


def test_a_residual_has_a_limit() -> None:
    assert kernel_factor(table(9.0), "h100", "hopper", (4096, 4096, 4096)) == pytest.approx(np.exp(LIMIT))


def test_swapping_the_sides_of_a_product_changes_nothing() -> None:
    one, other = Kernel("gemm", m=16, n=7680, k=2560), Kernel("gemm", m=7680, n=16, k=2560)
    assert predict_kernel(one, H100, BARE) == predict_kernel(other, H100, BARE)


def test_half_of_a_tpu7x_chip_takes_twice_as_long_on_large_products() -> None:
    kernel = Kernel("gemm", m=16384, n=16384, k=16384, devices=1)
    ratio = predict_kernel(kernel, V7X, BARE) / predict_kernel(kernel.sized(devices=2), V7X, BARE)
    assert ratio == pytest.approx(2.0, rel=0.01)


def test_pairs_of_linked_cards_fall_back_to_pcie() -> None:
    kernel = Kernel("reduce", chips=4, data=1e8)
    assert predict_kernel(kernel.sized(pairs=True), H100, BARE) > 4 * predict_kernel(kernel, H100, BARE)


def test_low_latency_dispatch_matches_the_published_times() -> None:
    # deepseek-ai/DeepEP README, 2025-02: 128 tokens, hidden 7168, top-8, fp8
    for chips, published in ((8, 77e-6), (32, 155e-6), (256, 194e-6)):
        kernel = Kernel(
            "exchange",
            "fp8",
            chips=chips,
            data=128 * 8 * 7168 * 1.03125,
            copies=8,
            low_latency=True,
        )
        assert predict_kernel(kernel, load().chips["h800"], BARE) == pytest.approx(published, rel=0.05)


def test_attention_flops_follow_flash_attention() -> None:
    kernel = Kernel("attention", m=1024, batch=16, heads=16, head_dim=128)
    assert attention_flops(kernel) == 4 * 16 * 16 * 1024**2 * 128
    assert attention_flops(kernel.sized(causal=True, backward=True)) == attention_flops(kernel) * 0.5 * 3.5


def test_unfused_attention_is_slower_than_fused() -> None:
    fused = Kernel("attention", m=4096, batch=4, heads=16, head_dim=128)
    unfused = fused.sized(implementation="standard")
    assert predict_kernel(unfused, H100, BARE) > 2 * predict_kernel(fused, H100, BARE)
