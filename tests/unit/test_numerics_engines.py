"""What the engines round and count, on models of a few weights."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from chipwise.numerics.formats import BF16, FP16, rounded
from chipwise.numerics.jax_engine import JaxEngine
from chipwise.numerics.jax_rounding import Rounded
from chipwise.numerics.optimizers import Optimizer
from chipwise.numerics.programs import Program
from chipwise.numerics.recipes import RECIPES
from chipwise.numerics.torch_engine import TorchEngine

pytestmark = pytest.mark.thorough

BY_NAME = {recipe.name: recipe for recipe in RECIPES}
HERE = Path(__file__)
X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
FACTOR = 1e-7


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3, bias=False)
        self.fc.weight.data = torch.from_numpy(W.T.copy())

    def forward(self, x):
        return self.fc(x)


def torch_loss(net, batch):
    return net(batch).square().mean() * FACTOR


def jax_loss(params, batch):
    with jax.named_scope("fc"):
        out = batch @ params["fc"]["w"]
    return jnp.square(out).mean() * FACTOR


SGD = Optimizer("sgd", 1000.0)
TORCH = Program("small", HERE, "torch", Small, torch_loss, lambda seed: iter(()), SGD, 10)
JAX = Program("small", HERE, "jax", lambda seed: {"fc": {"w": W}}, jax_loss, lambda seed: iter(()), SGD, 10)


def engines():
    return {"torch": (TorchEngine(TORCH, True), torch.from_numpy(X)), "jax": (JaxEngine(JAX, True), X)}


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_fp32_gradients_are_those_of_calculus(framework):
    engine, batch = engines()[framework]
    engine.begin(BY_NAME["fp32"], 0)
    found = engine.backward(batch, 1.0, 0)
    gradient = 2 * X.T @ (X @ W) / 24 * FACTOR
    assert found.loss == pytest.approx(np.square(X @ W).mean() * FACTOR, rel=1e-5)
    assert found.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-5) and found.finite


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_fp16_loses_small_gradients_and_a_scale_keeps_them(framework):
    engine, batch = engines()[framework]
    share = {}
    for name, scale in (("fp16", 1.0), ("fp16+static", 65536.0)):
        engine.begin(BY_NAME[name], 0)
        found = engine.backward(batch, scale, 0)
        share[name] = max(count.share_zeroed for (_, kind), count in engine.counts().items() if kind == "gradients")
        true = np.linalg.norm(2 * X.T @ (X @ W) / 24 * FACTOR) if scale > 1 else 0.0
        assert found.gradient_norm == pytest.approx(true, rel=1e-2)
    assert share == {"fp16": 1.0, "fp16+static": 0.0}


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_scale_too_large_overflows_and_is_seen(framework):
    engine, batch = engines()[framework]
    engine.begin(BY_NAME["fp16+static"], 0)
    found = engine.backward(batch, 2.0**60, 0)
    assert not found.finite and sum(count.overflowed for count in engine.counts().values()) > 0


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_pure_bf16_keeps_weights_in_bf16_and_counts_lost_updates(framework):
    engine, batch = engines()[framework]
    for name, lost in (("bf16", 1.0), ("bf16+master", 0.0)):
        engine.begin(BY_NAME[name], 0)
        engine.backward(batch, 1.0, 0)
        before = np.asarray(engine.flat).copy()
        engine.update()
        after = np.asarray(engine.flat)
        count = engine.counts()["fc", "updates"]
        assert count.elements == 12
        if name == "bf16":
            np.testing.assert_array_equal(after, rounded(after, BF16))
            assert count.share_zeroed == lost and (before == after).all()
        else:
            assert count.share_zeroed == lost and (before != after).all()


def test_both_frameworks_give_the_same_rounded_loss():
    losses = {}
    for engine, batch in engines().values():
        for name in ("bf16+master", "fp16", "fp8"):
            engine.begin(BY_NAME[name], 0)
            losses.setdefault(name, []).append(engine.backward(batch, 1.0, 0).loss)
    for name, (one, other) in losses.items():
        assert one == pytest.approx(other, rel=1e-3), name


def test_torch_rounds_activations_to_the_format():
    seen = {}

    class Watch(Small):
        def forward(self, x):
            seen["out"] = self.fc(x)
            return seen["out"] + 1.0

    program = Program("watch", HERE, "torch", Watch, torch_loss, lambda seed: iter(()), SGD, 10)
    engine = TorchEngine(program, True)
    engine.begin(BY_NAME["fp16"], 0)
    engine.backward(torch.from_numpy(X), 1.0, 0)
    out = seen["out"].detach().numpy()
    np.testing.assert_array_equal(out, rounded(out, FP16))
    assert (out != X @ W).any()


def test_torch_sees_weights_behind_a_transpose_and_tied_weights_get_one_gradient():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.from_numpy(W.copy()))

        def forward(self, x):
            return x @ self.table @ self.table.T

    program = Program("tied", HERE, "torch", Tied, torch_loss, lambda seed: iter(()), SGD, 10)
    engine = TorchEngine(program, True)
    engine.begin(BY_NAME["fp8"], 0)
    assert engine.backward(torch.from_numpy(X), 1.0, 0).finite
    assert engine.counts()["table", "weights"].elements == 2 * W.size


def test_jax_rounds_inside_scan_cond_and_remat_and_leaves_fp32_scopes_alone():
    def deep(params, batch):
        def body(carry, weight):
            with jax.named_scope("inner"):
                return jnp.tanh(carry @ weight), None

        out, _ = jax.lax.scan(jax.checkpoint(body), batch, params["stack"])
        out = jax.lax.cond(True, lambda x: x * 1.01, lambda x: x, out)
        with jax.named_scope("fp32"):
            return jnp.square(out).mean()

    params = {"stack": jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 4)), jnp.float32)}
    rounding = Rounded(deep, BY_NAME["fp16"], HERE)
    sites = rounding.sites(params, X)
    assert ("inner", "activations") in sites and ("stack", "weight gradients") in sites
    probes = {site: jnp.zeros(3) for site in sites}
    value, seen = jax.value_and_grad(lambda p: rounding(params, X, p))(probes)
    assert float(value) == pytest.approx(float(deep(params, X)), rel=1e-2) and float(value) != float(deep(params, X))
    assert float(seen["inner", "activations"][0]) == 3 * 2 * 8 * 4  # a product and a tanh in each of three layers


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("name", ["bf16", "bf16+master", "fp16", "fp16+static"])
def test_native_formats_train_and_are_held_against_fp32(framework, name, monkeypatch):
    engine, batch = engines()[framework]
    monkeypatch.setattr(engine, "native", lambda recipe: recipe.products is None)
    engine.begin(BY_NAME[name], 0)
    found = engine.backward(batch, 2.0**14 if name == "fp16+static" else 1.0, 0)
    engine.update()
    lost, true = engine.counts()["fc", "weight gradients"], np.linalg.norm(2 * X.T @ (X @ W) / 24 * FACTOR)
    assert lost.elements == 12 and found.finite
    if name == "fp16":
        assert lost.share_zeroed > 0.5
    else:
        near = 0.25 if (framework, name) == ("jax", "fp16+static") else 0.03  # the factor itself becomes fp16 there
        assert lost.share_zeroed == 0 and found.gradient_norm == pytest.approx(true, rel=near)
    kept = "bfloat16" if name == "bf16" else "float32"
    assert str(engine.flat.dtype).endswith(kept)
