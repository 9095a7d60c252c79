"""JAX as a framework: opening it, kernels and attention against float64, rotation, memory, errors."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from chipwise.bench.frameworks import jax_device
from chipwise.bench.frameworks.interface import Device, OutOfMemory, Unsupported
from chipwise.bench.frameworks.jax_device import JaxFramework, open_jax
from chipwise.bench.frameworks.jax_probe import _cpu_cache, probe
from chipwise.errors import ChipwiseError, InputError
from chipwise.ops.point import KINDS, Point
from chipwise.ops.work import work_of
from patience import PATIENCE_S

pytestmark = pytest.mark.thorough

jax = pytest.importorskip("jax")

HEADS = {"b": 2, "h": 4, "hk": 2, "s": 16, "d": 8}
EXACT, FP32, FP16, BF16 = 0.0, 1e-6, 1e-3, 6e-3


@pytest.fixture(scope="module")
def framework() -> JaxFramework:
    opened = open_jax("cpu")
    assert isinstance(opened, JaxFramework)
    opened.device = opened._context.device = replace(opened.device, cache_bytes=20_000.0)
    return opened


def point(kind: str, dtype: str, *, causal: bool = True, **sizes: int) -> Point:
    return Point("kernels", kind, dtype, sizes, causal=causal)


@pytest.mark.parametrize(("made", "limit"), [
    (point("gemm", "fp32", m=24, n=16, k=40), FP32),
    (point("gemm", "bf16", m=24, n=16, k=40), BF16),
    (point("gemm", "fp16", m=24, n=16, k=40), FP16),
    (point("gemm", "int8", m=24, n=16, k=40), EXACT),
    (point("copy", "bf16", bytes=1024), EXACT),
    (point("copy", "int8", bytes=1024), EXACT),
    (point("add", "fp32", bytes=1024), FP32),
    (point("rmsnorm", "bf16", m=8, n=64), BF16),
    (point("softmax", "fp32", m=8, n=64), FP32),
    (point("gather", "bf16", m=16, n=32, k=24), EXACT),
    (point("adamw", "bf16", count=500), BF16),
    (point("sdpa_fwd", "bf16", **HEADS), BF16),
    (point("sdpa_fwd", "fp32", causal=False, **HEADS), FP32),
    (point("sdpa_fwdbwd", "fp32", **HEADS), FP32),
], ids=lambda value: f"{value.kind}-{value.dtype}" if isinstance(value, Point) else "")  # fmt: skip
def test_kernels_agree_with_float64(framework: JaxFramework, made: Point, limit: float) -> None:
    case = framework.build(made)
    assert case.check is not None
    assert case.check() <= limit
    assert framework.sample(case.call, calls=3, first=0) > 0
    assert (case.flops, case.moved_bytes) == (work_of(made).flops, work_of(made).moved_bytes)


def test_every_kind_has_a_builder() -> None:
    assert set(jax_device._BUILDERS) == set(KINDS)


def test_inputs_rotate_past_twice_the_cache_and_are_never_zero(framework: JaxFramework) -> None:
    case = framework.build(point("copy", "fp32", bytes=10_000))
    outputs = [np.asarray(case.call(i)) for i in range(8)]
    assert all(np.count_nonzero(out) == out.size for out in outputs)
    assert not any(np.array_equal(a, b) for i, a in enumerate(outputs[:4]) for b in outputs[i + 1 : 4])
    assert all(np.array_equal(outputs[i], outputs[i + 4]) for i in range(4))  # 4 x 10 kB = 2 x 20 kB


def test_the_adamw_update_threads_its_state(framework: JaxFramework) -> None:
    case = framework.build(point("adamw", "fp32", count=2500))  # one set passes twice the cache
    first = np.asarray(case.call(0)[0])
    second = np.asarray(case.call(1)[0])
    assert np.isfinite(second).all()
    assert not np.array_equal(first, second)


def test_large_results_are_not_checked(framework: JaxFramework) -> None:
    assert framework.build(point("copy", "int8", bytes=2**22 + 8)).check is None


def test_large_inputs_are_drawn_on_the_device() -> None:
    from chipwise.bench.frameworks.jax_common import integers, normal

    drawn = np.asarray(normal(3, (2**18 + 2,), jax.numpy.bfloat16, 0.5, 2.0)).astype(np.float64)
    assert (drawn.mean(), drawn.std()) == pytest.approx((2, 0.5), abs=0.02)
    whole = np.asarray(integers(3, (2**18 + 2,), 10, low=-5))
    assert (whole.min(), whole.max(), whole.dtype) == (-5, 4, np.int32)


@pytest.mark.parametrize(("made", "why"), [
    (point("gemm", "tf32", m=8, n=8, k=8), "tf32 exists on GPUs only"),
    (point("gemm", "fp8", m=8, n=8, k=8), "has no fp8 matrix units"),
    (point("rmsnorm", "int8", m=8, n=8), "vector operation"),
    (point("copy", "fp32", bytes=2), "hold no element"),
    (point("add", "int8", bytes=64), "overflows"),
    (point("sdpa_fwd", "fp8", **HEADS), "isn't written for JAX"),
    (point("copy", "fp8", bytes=64), "JAX has no copy in fp8"),
    (point("all_reduce", "bf16", bytes=64, devices=4), "over 4 devices needs 4; JAX has 1 here"),
    (point("all_reduce", "bf16", bytes=64, devices=1), "at least 2 devices"),
], ids=lambda value: f"{value.kind}-{value.dtype}" if isinstance(value, Point) else "")  # fmt: skip
def test_what_the_device_lacks_is_unsupported_with_the_reason(framework: JaxFramework, made: Point, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        framework.build(made)


def test_the_fp8_product_reads_e4m3_and_gives_bf16() -> None:
    from chipwise.bench.frameworks.jax_common import float64, normal, relative_error
    from chipwise.bench.frameworks.jax_kernels import product

    a, b = (normal(i, (16, 32), jax.numpy.float8_e4m3fn) for i in range(2))
    out = jax.jit(product("fp8"))(a, b)
    assert out.dtype == jax.numpy.bfloat16
    assert relative_error(out, float64(a) @ float64(b).T) < BF16


@pytest.mark.parametrize(("platform", "capability", "name", "dtype"), [
    ("cuda", "9.0", "NVIDIA H100", "float8_e4m3fn"), ("cuda", "8.0", "NVIDIA A100", None),
    ("rocm", "gfx942", "MI300X", "float8_e4m3fnuz"), ("rocm", "gfx950", "MI355X", "float8_e4m3fn"),
    ("rocm", "gfx90a", "MI250X", None), ("tpu", "", "TPU7x", "float8_e4m3fn"), ("tpu", "", "TPU v6 lite", None),
])  # fmt: skip
def test_fp8_is_what_the_matrix_units_read(platform: str, capability: str, name: str, dtype: str | None) -> None:
    from chipwise.bench.frameworks.jax_common import Context
    from chipwise.bench.frameworks.jax_kernels import fp8_dtype

    context = Context(Device(platform, name, 1e9, 1), [SimpleNamespace(compute_capability=capability)])
    if dtype is None:
        with pytest.raises(Unsupported, match="fp8"):
            fp8_dtype(context)
    else:
        assert jax.numpy.dtype(fp8_dtype(context)).name == dtype


def test_attention_falls_back_to_xla_where_cudnn_refuses_and_says_so() -> None:
    from chipwise.bench.frameworks.jax_attention import with_attention
    from chipwise.bench.frameworks.jax_common import Context

    def build(implementation: str) -> str:
        if implementation == "cudnn":
            raise NotImplementedError("head dim 512")
        return implementation

    context = Context(Device("cuda", "x", 1e9, 1), [])
    assert with_attention(point("sdpa_fwd", "bf16"), context, build) == "xla"
    assert context.notes == ["sdpa_fwd (bf16): attention by XLA, not cuDNN: head dim 512"]
    assert with_attention(point("sdpa_fwd", "bf16"), context, str) == "cudnn"
    assert with_attention(point("sdpa_fwd", "fp32"), context, str) == "xla"


def test_running_out_of_memory_is_told_apart(framework: JaxFramework, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.bench.frameworks import jax_kernels

    def fail(*_: Any) -> None:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 99 bytes.\nmore")

    monkeypatch.setattr(jax_kernels, "build_gemm", fail)
    with pytest.raises(OutOfMemory, match=r"gemm doesn't fit .* 99 bytes$"):
        framework.build(point("gemm", "bf16", m=8, n=8, k=8))
    assert not framework.out_of_memory(RuntimeError("INTERNAL: something else"))


def test_the_peak_is_the_allocators_or_the_compilers_plan(framework: JaxFramework) -> None:
    assert framework.peak_bytes() is None  # a CPU's allocator counts nothing
    stats = {"peak_bytes_in_use": 100}
    gpu = JaxFramework(jax, "tpu", [SimpleNamespace(memory_stats=lambda: stats, device_kind="x")])
    gpu.reset()
    gpu._context.planned_bytes = 60.0
    assert gpu.peak_bytes() == 60
    stats["peak_bytes_in_use"] = 150
    assert gpu.peak_bytes() == 150
    gpu.reset()
    assert gpu.peak_bytes() is None


def test_programs_are_dropped_once_there_are_many(framework: JaxFramework, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[int] = []
    monkeypatch.setattr(framework, "_jax", SimpleNamespace(clear_caches=lambda: cleared.append(1)))
    monkeypatch.setattr(framework, "_built", 3)
    framework.reset()
    framework._built = 64
    framework.reset()
    assert cleared == [1]


def test_versions_name_what_ran(framework: JaxFramework) -> None:
    versions = framework.versions()
    assert {"python", "jax", "jaxlib", "numpy", "runtime"} <= set(versions)
    assert framework.device.platform == "cpu"
    assert framework.device.count >= 1


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_a_missing_device_is_refused_in_one_line_that_names_what_is_there(platform: str) -> None:
    jax.devices("cpu")
    with pytest.raises(InputError, match=f"device: '{platform}' is not accepted; expected a device.*cpu") as caught:
        open_jax(platform)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_missing_driver_is_refused_in_one_line_from_the_start(platform: str) -> None:
    program = (
        "from chipwise.bench.frameworks.jax_device import open_jax\nfrom chipwise.errors import InputError\n"
        f"try:\n    open_jax({platform!r})\nexcept InputError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.count("\n") == 1
    assert "finds here: cpu" in done.stdout


def test_an_unknown_platform_and_kind_are_refused(framework: JaxFramework) -> None:
    with pytest.raises(InputError, match="cuda, rocm, tpu, cpu"):
        open_jax("gpu")
    with pytest.raises(InputError, match=r"^kind: "):
        framework.build(point("fft", "bf16"))


def test_without_jax_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ChipwiseError, match=r"pip install 'jax\[cuda13\]'"):
        open_jax("cuda")
    with pytest.raises(ChipwiseError, match=r"pip install jax$"):
        open_jax("cpu")


def test_what_jax_logs_is_kept_for_the_message(caplog: pytest.LogCaptureFixture) -> None:
    with jax_device._collected_log("a.logger") as lines:
        try:
            raise RuntimeError("cuDNN not found.\nmore")
        except RuntimeError:
            logging.getLogger("a.logger").exception("plugin")
    assert lines == ["cuDNN not found."]
    assert not caplog.records
    assert jax_device._reason(AssertionError(), lines) == "cuDNN not found"


def test_the_largest_cache_counts(tmp_path: Path) -> None:
    for index, size in enumerate(("48K", "2048K", "32M")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    assert _cpu_cache(tmp_path) == 32 * 2**20
    assert _cpu_cache(tmp_path / "none") == 0
    assert probe("tpu", 0).cache_bytes == 0
    assert probe("rocm", 0).cache_bytes == 256 * 2**20
