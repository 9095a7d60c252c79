"""Laws of the kernel formulas over random shapes and chips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.calibrate.kernel_fits import trial
from chipwise.catalog import load, scaled
from chipwise.predict.microbenchmark import Kernel, predict_kernel
from chipwise.predict.model.fabric import LinkCoefficients, Wires, exchange_seconds, gather_seconds, reduce_seconds
from chipwise.predict.model.kernels import AT_ONCE, ComputeSpec, KernelCoefficients, attention_seconds, matmul_seconds
from chipwise.predict.model.shapes import Attention, Products

BARE = trial({}, {}, {})
CHIPS = st.sampled_from(sorted(c.id for c in load().chips.values() if "bf16" in c.peak))
SIZES = st.integers(1, 16384)


def spec(name: str) -> ComputeSpec:
    chip = load().chips[name]
    return ComputeSpec(chip.peak["bf16"], chip.bandwidth, float(chip.cores), chip.mxu, KernelCoefficients())


@settings(max_examples=150)
@given(CHIPS, SIZES, SIZES, SIZES)
def test_no_product_beats_the_peak_or_the_memory(name: str, m: int, n: int, k: int) -> None:
    e = spec(name)
    seconds = float(matmul_seconds(e, Products(*(np.array([float(x)]) for x in (m, n, k))))[0])
    assert seconds >= 2 * m * n * k / e.peak
    assert seconds >= 2 * (m * k + n * k + m * n) / e.bandwidth


@settings(max_examples=10)
@given(CHIPS, st.integers(0, 2**32 - 1))
def test_many_products_at_once_take_what_each_takes_alone(name: str, seed: int) -> None:
    e = spec(name)
    m, n, k, batch = np.random.default_rng(seed).integers(1, 16384, (4, 3, AT_ONCE)).astype(float)
    together = matmul_seconds(e, Products(m, n, k, batch))
    assert together.shape == m.shape
    for at in ((0, 0), (0, AT_ONCE - 1), (1, 0), (2, seed % AT_ONCE), (2, AT_ONCE - 1)):
        alone = matmul_seconds(e, Products(*(np.array([x[at]]) for x in (m, n, k, batch))))[0]
        np.testing.assert_allclose(together[at], alone, rtol=1e-12)


@settings(max_examples=150)
@given(CHIPS, SIZES, SIZES, SIZES, st.floats(1.0, 4.0))
def test_a_faster_chip_is_never_slower(name: str, m: int, n: int, k: int, factor: float) -> None:
    chip = load().chips[name]
    kernel = Kernel("gemm", m=m, n=n, k=k, devices=chip.devices)
    slow = predict_kernel(kernel, chip, BARE)
    assert predict_kernel(kernel, scaled(chip, factor), BARE) <= slow * (1 + 1e-9)
    assert predict_kernel(kernel, replace(chip, bandwidth=chip.bandwidth * factor), BARE) <= slow * (1 + 1e-9)


@settings(max_examples=100)
@given(CHIPS, st.integers(1, 64), st.integers(1, 64), st.sampled_from([64.0, 128.0, 256.0]), st.integers(64, 32768))
def test_attention_grows_with_everything(name: str, batch: int, heads: int, dim: float, seq: int) -> None:
    e = spec(name)

    def seconds(b: float, h: float, s: float) -> float:
        batches, heads, keys = (np.array([x]) for x in (b, h, s))
        return float(attention_seconds(e, Attention(batches, heads, heads, dim, dim, keys, keys))[0])

    base = seconds(batch, heads, seq)
    assert seconds(2 * batch, heads, seq) >= base
    assert seconds(batch, 2 * heads, seq) >= base
    assert seconds(batch, heads, 2 * seq) >= base
    assert base >= 4 * batch * heads * seq * seq * dim / e.peak


@settings(max_examples=150)
@given(
    st.sampled_from(["h100", "gb200", "mi300x", "l40s", "v100"]),
    st.integers(1, 10),
    st.floats(1e2, 1e10),
    st.floats(1.0, 8.0),
    st.sampled_from([0.0, 0.3, 0.6, 0.8]),
)
def test_collectives_grow_with_data_and_shrink_with_bandwidth(
    name: str, power: int, data: float, factor: float, share: float
) -> None:
    fabric = load().chips[name].fabric
    wires = Wires(fabric, 1024, (), (), LinkCoefficients(in_switch=share))
    wide = replace(
        wires, fabric=replace(fabric, scale_up=fabric.scale_up * factor, scale_out=fabric.scale_out * factor)
    )
    size, one = np.array([2.0**power]), np.array([1.0])
    for collective in (gather_seconds, reduce_seconds, exchange_seconds):
        seconds = collective(wires, size, one, np.array([data]))[0]
        assert np.isfinite(seconds) and seconds > 0
        assert collective(wires, size, one, np.array([2 * data]))[0] >= seconds
        assert collective(wide, size, one, np.array([data]))[0] <= seconds * (1 + 1e-9)
