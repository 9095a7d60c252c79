"""Models in JAX at tiny sizes: parameters counted, agreement with fp32, training that learns, a cache that is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chipwise.bench.frameworks.interface import Unsupported
from chipwise.bench.frameworks.jax_device import JaxFramework, open_jax
from chipwise.ops.point import Point
from chipwise.ops.work import work_of

pytestmark = pytest.mark.thorough

jax = pytest.importorskip("jax")
jnp = jax.numpy

DECODER = {"b": 2, "s": 16, "layers": 2, "d": 32, "h": 4, "hk": 2, "f": 48, "vocab": 61}
VIT = {"b": 2, "s": 5, "layers": 1, "d": 16, "h": 2, "f": 24}


@pytest.fixture(scope="module")
def framework() -> JaxFramework:
    opened = open_jax("cpu")
    assert isinstance(opened, JaxFramework)
    return opened


def model(kind: str, dtype: str = "bf16", *, remat: bool = False, **sizes: int) -> Point:
    return Point("train", kind, dtype, sizes, compile=True, remat=remat)


def count(tree: Any) -> int:
    return sum(int(np.prod(x.shape)) for x in jax.tree.leaves(tree))


def test_a_decoder_learns_its_batches_over_20_steps_and_starts_at_the_loss_of_fp32(framework: JaxFramework) -> None:
    case = framework.build(model("train", remat=True, **DECODER))
    losses = [float(case.call(i)) for i in range(20)]  # type: ignore[arg-type]
    assert losses[0] == pytest.approx(np.log(61), abs=0.3)
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.02
    assert case.check is not None
    assert case.check() < 1e-2
    assert case.params == work_of(model("train", **DECODER)).params


@pytest.mark.slow
def test_recomputation_changes_no_gradient() -> None:
    from chipwise.bench.frameworks.jax_models import init_decoder, loss_of

    weights = init_decoder(DECODER, jnp.float32)
    tokens = jnp.arange(16).reshape(1, 16) % 61
    kept, again = (
        jax.jit(
            jax.grad(lambda w, remat=remat: loss_of(w, tokens, tokens, width=8, implementation="xla", remat=remat))
        )(weights)
        for remat in (False, True)
    )
    for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_prefill_and_decode_agree_with_fp32(framework: JaxFramework) -> None:
    for kind in ("prefill", "decode"):
        case = framework.build(model(kind, **DECODER))
        assert case.check is not None
        assert case.check() < 0.03
        assert framework.sample(case.call, calls=2, first=0) > 0
        assert case.check() < 0.03  # also once the donated cache has gone round


def test_decoding_continues_a_prefill() -> None:
    from chipwise.bench.frameworks.jax_models import decode, init_decoder, prefill

    weights = init_decoder(DECODER, jnp.float32)
    tokens = (jnp.arange(2 * 9).reshape(2, 9) * 7) % 61
    whole, (keys, values) = jax.jit(lambda t: prefill(weights, t, width=8, implementation="xla"))(tokens)
    unrolled = weights | {"blocks": [jax.tree.map(lambda x, i=i: x[i], weights["blocks"]) for i in range(2)]}
    cache = [(keys[i].at[:, -1].set(7.0), values[i].at[:, -1].set(7.0)) for i in range(2)]  # the last is written anew
    found, filled = jax.jit(lambda c: decode(unrolled, c, tokens[:, -1], width=8, implementation="xla"))(cache)
    np.testing.assert_allclose(found, whole, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(filled[1][0], keys[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["train", "prefill", "decode", "resnet50_train", "vit_infer"])
def test_models_op_by_op_are_unsupported(framework: JaxFramework, kind: str) -> None:
    with pytest.raises(Unsupported, match="JAX runs models compiled"):
        framework.build(Point("train", kind, "bf16", {**DECODER, **({} if kind == "train" else VIT)}))


def test_models_in_whole_numbers_or_tf32_on_a_cpu_are_unsupported(framework: JaxFramework) -> None:
    for dtype, why in (("int8", "isn't written"), ("tf32", "GPUs only")):
        with pytest.raises(Unsupported, match=why):
            framework.build(model("train", dtype, **DECODER))
    with pytest.raises(Unsupported, match="without recomputation"):
        framework.build(model("resnet50_train", b=1, remat=True))


def test_parameters_are_those_counted() -> None:
    from chipwise.bench.frameworks.jax_models import init_decoder
    from chipwise.bench.frameworks.jax_vision import init_resnet50
    from chipwise.bench.frameworks.jax_vit import init_vit

    assert count(init_decoder(DECODER, jnp.bfloat16)) == work_of(model("train", **DECODER)).params
    assert count(init_vit(VIT, jnp.bfloat16)) == work_of(model("vit_train", **VIT)).params
    weights, stats = jax.eval_shape(lambda: init_resnet50(jnp.bfloat16))
    assert count(weights) == work_of(model("resnet50_train", b=1)).params
    assert {x.dtype for x in jax.tree.leaves(stats)} == {jnp.dtype(jnp.float32)}


def test_patches_are_cut_row_by_row() -> None:
    from chipwise.bench.frameworks.jax_vit import tokens_of

    image = jnp.arange(224 * 224 * 3).reshape(1, 224, 224, 3)
    assert tokens_of(image, 112).shape == (1, 4, 3 * 112**2)
    np.testing.assert_array_equal(tokens_of(image, 112)[0, 1].reshape(112, 112, 3), image[0, :112, 112:])


def test_a_vision_transformer_trains_and_infers(framework: JaxFramework) -> None:
    case = framework.build(model("vit_train", "fp32", **VIT))
    losses = [float(case.call(i)) for i in range(6)]  # type: ignore[arg-type]
    assert losses[-1] < losses[1]
    infer = framework.build(model("vit_infer", **VIT))
    assert infer.check is not None
    assert infer.check() < 0.03
    assert np.asarray(infer.call(0)).shape == (2, 1000)


def test_a_residual_network_trains_and_infers(framework: JaxFramework, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.bench.frameworks import jax_vision

    monkeypatch.setattr(jax_vision, "STAGES", (1,))  # the same blocks, few enough to compile in seconds
    monkeypatch.setattr(jax_vision, "IMAGE", 32)
    case = framework.build(model("resnet50_train", "fp32", b=2))
    losses = [float(case.call(i)) for i in range(10)]  # type: ignore[arg-type]
    assert losses[-1] < losses[1]
    infer = framework.build(model("resnet50_infer", b=2))
    assert infer.check is not None
    assert infer.check() < 0.05
    assert np.asarray(infer.call(1)).shape == (2, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["resnet50_infer", "resnet50_train"])
def test_resnet50_runs_whole(framework: JaxFramework, kind: str) -> None:
    case = framework.build(model(kind, b=1))
    assert np.isfinite(np.asarray(case.call(0)).astype(np.float64)).all()
    assert case.check is not None
    assert case.check() < (0.2 if kind.endswith("train") else 0.05)
