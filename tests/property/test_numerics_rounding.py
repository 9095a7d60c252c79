"""Rounding: the definition against ml_dtypes, and both frameworks against the definition, bit by bit."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chipwise.numerics import jax_rounding, torch_rounding
from chipwise.numerics.formats import BF16, E4M3, E5M2, FP16, rounded

FORMATS = {FP16: np.float16, BF16: ml_dtypes.bfloat16, E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2}
floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_subnormal=False),
    st.sampled_from([0.0, -0.0, np.inf, -np.inf]),
    st.floats(-5, 5, width=32, allow_subnormal=False),
    st.floats(-7e4, 7e4, width=32, allow_subnormal=False),
    st.floats(-(2.0**-20), 2.0**-20, width=32, allow_subnormal=False),
)
values = arrays(np.float32, st.integers(1, 40), elements=floats)
each_format = pytest.mark.parametrize("to", FORMATS, ids=lambda to: to.name)


@each_format
@given(values)
def test_the_definition_is_the_cast_of_ml_dtypes(to, given_values):
    kept = given_values[np.isfinite(given_values)] if to.saturates else given_values
    inside = np.clip(kept, -to.largest, to.largest) if to.saturates else kept
    with np.errstate(over="ignore"):
        cast = inside.astype(FORMATS[to]).astype(np.float32)
    np.testing.assert_array_equal(rounded(kept, to), cast)


@each_format
@given(values)
def test_pytorch_rounds_as_defined(to, given_values):
    kept = given_values[np.isfinite(given_values)] if to.saturates else given_values
    np.testing.assert_array_equal(torch_rounding.rounded(torch.from_numpy(kept.copy()), to).numpy(), rounded(kept, to))


@each_format
def test_jax_rounds_as_defined_under_jit(to):
    chance = np.random.default_rng(0)
    sizes = np.concatenate([chance.normal(size=5000) * 10.0**k for k in range(-12, 8)])
    ties = np.array([(2 * k + 1) * to.smallest / 2 for k in range(64)])
    given_values = np.concatenate([sizes, ties, -ties, [0.0, 65519.9, 65520.0, 448.0, 1e30]]).astype(np.float32)
    function = jax.jit(lambda x: jax_rounding.rounded(x, to))
    np.testing.assert_array_equal(np.asarray(function(given_values)), rounded(given_values, to))


@each_format
@given(values)
def test_rounding_twice_changes_nothing(to, given_values):
    once = rounded(given_values, to)
    np.testing.assert_array_equal(rounded(once, to), once)


@given(arrays(np.float32, 32, elements=st.floats(-1e3, 1e3, width=32, allow_subnormal=False)))
def test_scaled_fp8_is_the_same_in_both_frameworks_and_never_far_off(given_values):
    ours = torch_rounding.scaled(torch.from_numpy(given_values.copy()), E4M3).numpy()
    theirs = np.asarray(jax_rounding.scaled(given_values, E4M3))
    top = np.abs(given_values).max()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * top)
    assert (np.abs(ours - given_values) <= np.abs(given_values) / 16 * 1.001 + top * E4M3.smallest / E4M3.largest).all()
