"""Points through PyTorch on the CPU: right results, training that learns, and clear words where it can't."""

from dataclasses import replace

import pytest

from chipwise.bench.frameworks.interface import Unsupported
from chipwise.errors import InputError
from chipwise.ops.point import Point
from chipwise.ops.work import decoder_weights

torch = pytest.importorskip("torch")

from chipwise.bench.frameworks.torch_device import open_torch  # noqa: E402
from chipwise.bench.method import TOLERANCES  # noqa: E402

pytestmark = pytest.mark.thorough

DECODER = {"layers": 2, "d": 64, "h": 4, "hk": 2, "f": 96, "vocab": 128}
VIT = {"s": 17, "layers": 2, "d": 32, "h": 2, "f": 64}


@pytest.fixture(scope="module")
def framework():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield open_torch("cpu")
    torch.set_num_threads(threads)


def kernel(kind, dtype="fp32", **sizes):
    return Point("kernels", kind, dtype, sizes)


CHECKED = [
    *(kernel("gemm", dtype, m=33, n=48, k=32) for dtype in ("fp32", "bf16", "fp16", "int8")),
    *(kernel(kind, "bf16", bytes=4096) for kind in ("copy", "add")),
    *(kernel(kind, m=16, n=48) for kind in ("rmsnorm", "softmax")),
    *(kernel(kind, b=2, h=4, hk=2, s=24, d=16) for kind in ("sdpa_fwd", "sdpa_fwdbwd")),
    Point("kernels", "sdpa_fwd", "fp32", {"b": 1, "h": 2, "hk": 2, "s": 16, "d": 8}, causal=False),
    kernel("gather", m=8, n=64, k=16),
    *(
        Point("serve", kind, dtype, {"b": 2, "s": 12, **DECODER})
        for kind in ("prefill", "decode")
        for dtype in ("fp32", "bf16")
    ),
    Point("train", "train", "fp32", {"b": 2, "s": 16, **DECODER}),
    Point("train", "train", "bf16", {"b": 2, "s": 16, **DECODER}, remat=True),
]


@pytest.mark.parametrize("point", CHECKED, ids=lambda p: f"{p.kind}-{p.dtype}{'-remat' * p.remat}")
def test_results_are_those_of_float64(framework, point):
    case = framework.build(point)
    assert case.check is not None
    assert case.check() <= TOLERANCES[point.dtype]
    assert framework.sample(case.call, 2, 0) > 0


@pytest.mark.parametrize("remat", [False, True])
def test_a_decoder_learns_what_it_sees_again_and_again(framework, remat):
    case = framework.build(Point("train", "train", "fp32", {"b": 2, "s": 16, **DECODER}, remat=remat))
    first = [float(case.call(i)) for i in range(4)]  # four batches taken in turn
    for i in range(4, 60):
        last = case.call(i)
    assert float(last) < min(first) - 0.1
    assert case.params == decoder_weights(DECODER).total


@pytest.mark.parametrize("kind", ["vit_train", "vit_infer"])
def test_images_pass(framework, kind):
    case = framework.build(Point("vision", kind, "fp32", {"b": 2, **VIT}))
    assert framework.sample(case.call, 1, 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["resnet50_train", "resnet50_infer"])
def test_resnet50_passes(framework, kind):
    case = framework.build(Point("vision", kind, "fp32", {"b": 2}))
    assert framework.sample(case.call, 1, 0) > 0
    assert case.params == 25_557_032  # as torchvision counts it


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch, about itself
def test_a_compiled_step_gives_the_eager_loss(framework):
    point = Point("train", "train", "fp32", {"b": 2, "s": 16, **DECODER}, compile=True)
    assert framework.build(point).check() <= TOLERANCES["fp32"]


def test_inputs_are_rotated_past_the_cache(framework):
    from chipwise.bench.frameworks.torch_kernels import sets

    one, device = (torch.zeros(2**20),), replace(framework.device, cache_bytes=50e6)
    assert sets(one, device) * 4 * 2**20 > 2 * device.cache_bytes
    assert sets(one, replace(device, memory_bytes=2**24)) == 1  # no more than a share of a small memory


@pytest.mark.parametrize(
    "point",
    [
        kernel("gemm", "fp8", m=16, n=16, k=16),
        kernel("gemm", "tf32", m=16, n=16, k=16),
        Point("train", "train", "fp8", {"b": 1, "s": 8, **DECODER}),
        Point("vision", "vit_infer", "fp32", {"b": 1, **VIT, "s": 18}),
        Point("collectives", "all_reduce", "fp32", {"bytes": 64, "devices": 1}),
    ],
    ids=lambda p: f"{p.kind}-{p.dtype}",
)
def test_what_it_cannot_run_is_said(framework, point):
    with pytest.raises((Unsupported, InputError)):
        framework.build(point)


def test_a_training_check_sees_a_wrong_gradient(framework, monkeypatch):
    from chipwise.bench.frameworks import torch_models

    case = framework.build(Point("train", "train", "fp32", {"b": 2, "s": 16, **DECODER}))
    assert case.check() < 1e-4
    true = torch_models.gradients
    monkeypatch.setattr(
        torch_models,
        "gradients",
        lambda model: true(model) * (1.1 if next(model.parameters()).dtype == torch.float32 else 1),
    )
    assert case.check() > 0.05


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"^device: "):
        open_torch("cuda")
    with pytest.raises(InputError, match="JAX"):
        open_torch("tpu")


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather"])
def test_collectives_between_processes_are_right(framework, kind):
    case = framework.build(Point("collectives", kind, "fp32", {"bytes": 4096, "devices": 2}))
    assert case.check() <= TOLERANCES["fp32"]
    assert framework.sample(case.call, 2, 0) > 0
