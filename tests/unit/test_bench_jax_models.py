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
AXES = {"data": 1, "fsdp": 1, "expert": 1, "tensor": 1}
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


@pytest.mark.slow
def test_a_decoder_learns_its_batches_over_20_steps_and_starts_at_the_loss_of_fp32(framework: JaxFramework) -> None:
    case = framework.build(model("train", remat=True, **DECODER))
    losses = [float(case.call(i)) for i in range(20)]  # type: ignore[arg-type]
    assert losses[0] == pytest.approx(np.log(61), abs=0.3)
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.02
    assert case.check is not None
    assert case.check() < 1e-2
    assert case.params == work_of(model("train", **DECODER)).params


def test_prefill_and_decode_agree_with_fp32(framework: JaxFramework) -> None:
    for kind in ("prefill", "decode"):
        case = framework.build(model(kind, **DECODER))
        assert case.check is not None
        assert case.check() < 0.03
        assert framework.sample(case.call, calls=2, first=0) > 0
        assert case.check() < 0.03  # also once the donated cache has gone round


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


@pytest.mark.parametrize(
    ("kind", "sizes"), [("train", DECODER), ("decode", DECODER), ("vit_train", VIT), ("resnet50_infer", {"b": 1})]
)
def test_parameters_are_those_counted(framework: JaxFramework, kind: str, sizes: dict[str, int]) -> None:
    from chipwise.bench.frameworks.jax_models import _mesh, inference_program, training_program

    point, build = model(kind, **sizes), training_program if kind.endswith("train") else inference_program
    held = build(point, _mesh(framework._context), "bf16", "cpu").args[0]
    assert count(held.get("weights", held)) == work_of(point).params


@pytest.mark.parametrize(
    "kind",
    ["train", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("prefill", "vit_train", "resnet50_train"))],
)
def test_what_is_measured_is_what_is_compiled(framework: JaxFramework, kind: str) -> None:
    """The programs of bench are the reference programs: those of `compiled`, lowered for the same device."""
    from chipwise.bench.frameworks.jax_models import _mesh, inference_program, model_of, training_program
    from chipwise.compiled.loaders.workload import load_workload
    from chipwise.compiled.reference import written

    sizes = {"b": 2} if kind.startswith("resnet") else VIT if kind.startswith("vit") else DECODER
    point = model(kind, **sizes)
    build = training_program if kind.endswith("train") else inference_program
    ours = build(point, _mesh(framework._context), "bf16", "cpu")
    data = {"model": written(model_of(point)), "platform": "cpu", "block": 512}
    if kind == "prefill":
        data |= {"mode": "prefill", "batch": 2, "context": sizes["s"], "precision": "bf16"}
    else:
        optimizer = "sgd" if kind.startswith("resnet") else "adamw"
        train = {"global_batch": 2, "sequence": sizes.get("s", 1), "state_precision": "bf16", "optimizer": optimizer}
        recompute = {"policy": "none", "keep": (), "offload": ()}
        data |= {"mode": "train", "train": train, "recompute": recompute, "micro_batch": 2, "accumulate": 1}
    theirs = load_workload(data, framework._context.local[:1], AXES)
    shapes, others = (jax.tree.map(lambda x: (x.shape, x.dtype), each.args) for each in (ours, theirs))
    assert shapes == others
    if kind != "train":  # there bench keeps the logits
        assert ours.lower().as_text() == theirs.lower().as_text()


@pytest.mark.slow
def test_a_vision_transformer_trains_and_infers(framework: JaxFramework) -> None:
    case = framework.build(model("vit_train", "fp32", **VIT))
    losses = [float(case.call(i)) for i in range(6)]  # type: ignore[arg-type]
    assert losses[-1] < losses[1]
    infer = framework.build(model("vit_infer", **VIT))
    assert infer.check is not None
    assert infer.check() < 0.03
    assert np.asarray(infer.call(0)).shape == (2, 1000)


@pytest.mark.slow
def test_a_residual_network_trains_and_infers(framework: JaxFramework, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.bench.frameworks import jax_models

    few = {"family": "cnn", "blocks": [1], "bottleneck": True, "image": 32, "classes": 1000}
    monkeypatch.setattr(jax_models, "RESNET50", few)  # the same blocks, few enough to compile in seconds
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
