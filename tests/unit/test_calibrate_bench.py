"""What bench files teach: runs taken together, files of another chip refused, known coefficients found again."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from bench_files import bench_file, spread, timed
from bench_numpy import copy, gemm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from chipwise.bench.file import read
from chipwise.bench.frameworks.interface import Device
from chipwise.bench.plan import DECODERS
from chipwise.bench.plan import spread as sizes_over
from chipwise.calibrate.bench import chip_of, fit_bench, pooled
from chipwise.calibrate.bench_steps import EXPECTED, nonnegative
from chipwise.catalog import load
from chipwise.catalog.bench_files import packaged_folder
from chipwise.errors import InputError, Refusal
from chipwise.ops.point import Point
from chipwise.ops.work import work_of
from chipwise.predict.learn.bench_calibration import BenchCalibration
from chipwise.predict.learn.point_memory import predict_peak, training_peak
from chipwise.predict.learn.points import point_id, predict_point, terms

pytestmark = pytest.mark.thorough

H200 = load().chips["h200"]
CPU = {"device": Device("cpu", "Abacus 3000", 1e10, 1), "chip": ""}
NAMES = ("layers", "d", "h", "hk", "f", "vocab")
LENGTHS = ((4, 1024), (1, 4096), (8, 512), (2, 2048))


def attention(kind, b, h, s, d):
    return Point("kernels", kind, "bf16", {"b": b, "h": h, "hk": h, "s": s, "d": d})


def step(kind, model, b, s, **more):
    suite = "train" if kind == "train" else "serve"
    return Point(suite, kind, "bf16", {"b": b, "s": s, **dict(zip(NAMES, DECODERS[model], strict=True))}, **more)


def product_seconds(point):
    """A chip of 700 TFLOP/s and 4 TB/s with 3 us a launch, and nothing in between."""
    work = work_of(point)
    return max(work.flops / 700e12, work.moved_bytes / 4e12) + 3e-6


def attention_seconds(point):
    return work_of(point).flops / (400e12 if point.kind == "sdpa_fwd" else 350e12) + 8e-6


def products(count, first=0):
    drawn = list(sizes_over(first + count, (512, 12288, 128), (512, 12288, 128), (512, 8192, 128)))[first:]
    return [gemm(m, n, k, "bf16") for m, n, k in drawn]


def kernels():
    found = [timed(point, *spread(product_seconds(point))) for point in products(80)]
    for kind in ("sdpa_fwd", "sdpa_fwdbwd"):
        shapes = [(4, 16, s, d) for s in (512, 1024, 2048, 4096) for d in (64, 128)]
        found += [timed(p, *spread(attention_seconds(p))) for p in (attention(kind, *shape) for shape in shapes)]
    return found


KERNELS = kernels()


@pytest.fixture(scope="module")
def of_kernels():
    return fit_bench({"kernels.json": bench_file(*KERNELS)}, "torch")


def summed(point, bench, weights, host_s):
    """Seconds of a step by known weights: the device's, or the host's where it is slower."""
    parts = terms(point, H200, bench)
    device = sum(weights[name] * value for name, value in parts.items())
    return (device**6 + (host_s * point.sizes["layers"]) ** 6) ** (1 / 6)


def off(points, bench, wanted):
    return [abs(predict_point(point, H200, bench).value / wanted(point) - 1) for point in points]


def test_a_kernel_takes_the_median_of_its_runs_and_a_step_the_least():
    step_point = step("train", "small", 8, 1024)
    (product, train) = pooled(
        [
            *(timed(gemm(64, 64, 64, "bf16"), *spread(t)) for t in (2e-5, 9e-5, 3e-5)),
            *(timed(step_point, *spread(t)) for t in (0.03, 0.02, 0.05)),
        ]
    )
    assert product.seconds.median == pytest.approx(3e-5) and train.seconds.median == pytest.approx(0.02)


def test_a_pooled_point_is_as_wide_as_all_its_runs():
    for point in (gemm(64, 64, 64, "bf16"), step("train", "small", 8, 1024)):
        (found,) = pooled([timed(point, *spread(0.02)), timed(point, *spread(0.03))])
        seconds = found.seconds
        assert seconds.low <= 0.99 * 0.02 and seconds.high >= 1.01 * 0.03 and seconds.samples == 22
        assert seconds.median * (1 - seconds.spread) <= 0.02 and seconds.median * (1 + seconds.spread) >= 0.03


def test_a_point_of_one_run_is_left_as_it_is():
    one = timed(gemm(64, 64, 64, "bf16"), *spread(2e-5), peak_bytes=1e6)
    assert pooled([one]) == [one]


def test_peaks_of_several_runs_are_pooled_where_they_are_known():
    point = step("train", "small", 8, 1024)
    (found,) = pooled([timed(point, *spread(0.02), peak_bytes=peak) for peak in (3e9, None, 1e9, 2e9)])
    assert found.peak_bytes == 2e9


def test_the_chip_is_the_one_that_the_files_name():
    assert chip_of({"a.json": bench_file()}, "").id == "h200"
    assert chip_of({"a.json": bench_file()}, "h200").id == "h200"


@pytest.mark.parametrize(
    "files, named, words",
    [
        (
            {
                "a.json": bench_file(),
                "b.json": bench_file(chip="h100", device=replace(bench_file().device, name="NVIDIA H100")),
            },
            "",
            "bench file: 'b.json' is not accepted; expected one of the same device as the others, NVIDIA H200 (it is of NVIDIA H100)",
        ),
        (
            {"a.json": bench_file(**CPU), "b.json": bench_file()},
            "",
            "bench file: 'a.json' is not accepted; expected one measured on an accelerator",
        ),
        (
            {"a.json": bench_file(**CPU)},
            "h200",
            "bench file: 'a.json' is not accepted; expected one measured on an accelerator",
        ),
        ({"a.json": bench_file()}, "zzz", "chip: 'zzz' is not accepted; expected a chip of the catalog"),
        (
            {"a.json": bench_file()},
            "h100",
            "chip: 'h100' is not accepted; expected h200: a.json was measured on a NVIDIA H200",
        ),
        (
            {"a.json": bench_file(chip="", device=replace(bench_file().device, name="Abacus 3000"))},
            "",
            "the catalog's name of 'Abacus 3000'",
        ),
    ],
    ids=[
        "another device among the files",
        "a CPU among the files",
        "a CPU",
        "no chip of that name",
        "another than measured",
        "no name in the catalog",
    ],
)
def test_a_chip_that_cannot_be_told_is_refused(files, named, words):
    with pytest.raises(InputError) as raised:
        chip_of(files, named)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_framework_without_usable_points_is_refused_with_the_files_names():
    points = [timed(p, *spread(1e-4), status="unstable") for p in products(3)]
    with pytest.raises(
        InputError, match=r"framework: 'torch' is not accepted; expected one with usable points in a\.json, b\.json"
    ):
        fit_bench({"a.json": bench_file(*points), "b.json": bench_file()}, "torch")
    with pytest.raises(InputError, match="framework: 'jax'"):
        fit_bench({"a.json": bench_file(*KERNELS)}, "jax")


def test_what_a_calibration_says_of_its_files():
    early = bench_file(*KERNELS, created="2026-11-13T08:00:00Z", frameworks={"torch": {"torch": "2.12.0"}})
    found = fit_bench({"new.json": bench_file(*KERNELS[:3]), "old.json": early}, "torch")
    assert (found.chip, found.framework, found.date) == ("h200", "torch", "2026-11-15")
    assert found.source == "new.json, old.json" and found.versions == {"torch": "2.13.0"}
    assert len(found.measured) == len(KERNELS)


def test_unstable_and_failed_points_are_not_used():
    wild = [timed(p, *spread(1.0), status="unstable") for p in products(20, 500)]
    found = fit_bench({"a.json": bench_file(*KERNELS, *wild)}, "torch")
    clean = fit_bench({"a.json": bench_file(*KERNELS)}, "torch")
    assert found.as_json() == clean.as_json()
    assert not any(point_id(each.point) in found.measured for each in wild)


def test_points_of_another_framework_are_not_used(of_kernels):
    others = [timed(p, *spread(1.0), framework="jax") for p in products(20, 500)]
    assert fit_bench({"kernels.json": bench_file(*KERNELS, *others)}, "torch").as_json() == of_kernels.as_json()


def test_products_of_a_simple_chip_are_predicted_at_other_shapes(of_kernels):
    others = products(60, 1000)
    assert not any(point_id(point) in of_kernels.measured for point in others)
    errors = off(others, of_kernels, product_seconds)
    assert np.mean(errors) < 0.04 and max(errors) < 0.2, (np.mean(errors), max(errors))
    assert of_kernels.tables["gemm/bf16"].points == 80 and of_kernels.tables["gemm/bf16"].error < 0.05


def test_attention_of_a_simple_chip_is_predicted_at_other_shapes(of_kernels):
    for kind in ("sdpa_fwd", "sdpa_fwdbwd"):
        errors = off(
            [attention(kind, 4, 16, s, d) for s in (768, 1536, 3072) for d in (64, 128)], of_kernels, attention_seconds
        )
        assert np.mean(errors) < 0.05, (kind, errors)


def test_a_measured_point_is_what_was_measured(of_kernels):
    point = products(1)[0]
    made = predict_point(point, H200, of_kernels)
    assert made.evidence == "measured" and made.value == pytest.approx(product_seconds(point))
    assert made.low < made.value < made.high and "kernels.json" in made.because
    assert predict_point(products(1, 900)[0], H200, of_kernels).evidence == "modelled"


def test_no_kernel_is_faster_than_the_fastest_measured(of_kernels):
    least = min(each.seconds.median for each in KERNELS)
    assert predict_point(gemm(1, 64, 64, "bf16"), H200, of_kernels).value == pytest.approx(least, rel=1e-6)


def test_a_precision_of_few_points_leans_on_its_twin():
    few = [timed(gemm(*(p.sizes[x] for x in "mnk"), "fp16"), *spread(product_seconds(p))) for p in products(2)]
    found = fit_bench({"a.json": bench_file(*KERNELS, *few)}, "torch")
    others = [gemm(*(p.sizes[x] for x in "mnk"), "fp16") for p in products(20, 300)]
    assert found.tables["gemm/fp16"].points == 2 and np.mean(off(others, found, product_seconds)) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, models",
    [
        ("prefill", ("small", "medium", "llama-1b", "llama-3b", "llama-8b")),
        ("train", ("small", "medium", "llama-1b", "llama-8b", "llama-13b")),
    ],
)
def test_a_step_of_known_terms_and_a_known_host_is_found_again(of_kernels, kind, models):
    weights = {name: 1.15 * value for name, value in EXPECTED[kind].items()}
    host_s = 9e-4 if kind == "train" else 4e-4

    def seconds(point):
        return summed(point, of_kernels, weights, host_s)

    fitted = [step(kind, model, b, s) for model in models for b, s in LENGTHS]
    small = [step(kind, "small", b, s) for b, s in ((1, 128), (2, 128), (1, 256))]  # the host is slower than these
    file = bench_file(*KERNELS, *(timed(p, *spread(seconds(p))) for p in (*fitted, *small)))
    found = fit_bench({"a.json": file}, "torch")
    fitted = found.steps[f"{kind}/bf16"]
    others = [step(kind, model, b, s) for model in models for b, s in ((3, 1536), (6, 768))]
    errors = off(others, found, seconds)
    assert max(errors) < 0.05, errors
    assert fitted.host_s == pytest.approx(host_s, rel=0.05) and fitted.error < 0.05
    assert max(off([step(kind, "small", 1, 64)], found, seconds)) < 0.05
    assert fitted.coefficients["products"] == pytest.approx(weights["products"], rel=0.1)
    assert all(value >= 0 for value in fitted.coefficients.values())


@pytest.mark.slow
def test_decode_is_found_again_without_any_kernel():
    weights = {"weights": 1.5, "cache": 1.2, "padded": 2.0, "padded_layers": 30.0, "rows": 2.5, "layers": 80.0}
    models = ("small", "llama-1b", "llama-8b", "openllama-3b")
    bare = BenchCalibration("h200", "torch", "", "", {}, {}, {})

    def seconds(point):
        return summed(point, bare, weights, 0.0)

    fitted = [step("decode", model, b, s) for model in models for b, s in ((1, 512), (16, 2048), (64, 1024), (4, 8192))]
    found = fit_bench({"a.json": bench_file(*(timed(p, *spread(seconds(p))) for p in fitted))}, "torch")
    assert (
        max(off([step("decode", model, b, s) for model in models for b, s in ((8, 1024), (32, 3072))], found, seconds))
        < 0.05
    )
    assert set(found.steps) == {"decode/bf16"} and found.tables == {}


def test_a_step_whose_kernels_were_not_measured_is_kept_as_points_alone():
    points = [timed(step("train", "small", b, s), *spread(0.01 * b)) for b, s in LENGTHS]
    found = fit_bench({"a.json": bench_file(*points)}, "torch")
    assert found.steps == {} and len(found.measured) == 4
    assert predict_point(points[0].point, H200, found).evidence == "measured"
    with pytest.raises(
        Refusal, match="train/bf16 was not measured on h200 with torch; measure it with `chipwise bench`"
    ):
        predict_point(step("train", "small", 3, 256), H200, found)


def test_a_kernel_that_was_not_measured_is_refused(of_kernels):
    with pytest.raises(
        Refusal, match="copy in fp32 was not measured on h200 with torch; measure it with `chipwise bench kernels`"
    ):
        predict_point(copy(2**20), H200, of_kernels)


def test_collectives_are_kept_as_points_alone():
    point = Point("collectives", "all_reduce", "bf16", {"bytes": 2**20, "devices": 8})
    found = fit_bench({"a.json": bench_file(timed(point, *spread(1e-4)))}, "torch")
    assert found.steps == {} and point_id(point) in found.measured


def test_peaks_are_a_ratio_to_the_bookkeeping_by_the_way_a_step_runs():
    eager, compiled = step("train", "small", 8, 1024), step("train", "small", 8, 1024, compile=True)
    points = [
        timed(eager, *spread(0.02), peak_bytes=1.1 * training_peak(eager)),
        timed(compiled, *spread(0.01), peak_bytes=0.9 * training_peak(compiled)),
        timed(step("prefill", "small", 8, 1024), *spread(0.01), peak_bytes=1e9),
    ]
    found = fit_bench({"a.json": bench_file(*points)}, "torch")
    assert found.peaks["eager"][0] == pytest.approx(1.1) and found.peaks["compiled"][0] == pytest.approx(0.9)
    assert set(found.peaks) == {"eager", "compiled"}
    other = step("train", "llama-1b", 2, 2048)
    made = predict_peak(other, found)
    assert made.value == pytest.approx(1.1 * training_peak(other)) and made.low < made.value < made.high
    unmeasured = predict_peak(other, replace(found, peaks={}))
    assert unmeasured.value == training_peak(other) and "no such step was measured" in unmeasured.because


def test_a_bench_calibration_is_read_back_from_json():
    point = step("decode", "small", 1, 512)
    decode = [timed(step("decode", "small", b, 512), *spread(1e-3 * b)) for b in (1, 2, 4)]
    train = timed(step("train", "small", 2, 512), *spread(0.02), peak_bytes=5e9)
    found = fit_bench({"a.json": bench_file(*KERNELS, *decode, train)}, "torch")
    text = json.dumps(found.as_json())
    back = BenchCalibration.from_json(json.loads(text))
    assert json.dumps(back.as_json()) == text and back.peaks == found.peaks and back.steps == found.steps
    for each in (*products(20, 700), point, step("decode", "medium", 3, 700)):
        before, after = predict_point(each, H200, found), predict_point(each, H200, back)
        assert after.value == pytest.approx(before.value, rel=1e-3) and after.evidence == before.evidence


NUMBERS = st.integers(-40, 40).map(lambda n: n / 8)
SHAPES = st.tuples(st.integers(1, 8), st.integers(1, 4))
SYSTEMS = SHAPES.flatmap(
    lambda shape: st.tuples(
        st.lists(NUMBERS, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda x: np.reshape(x, shape)
        ),
        st.lists(NUMBERS, min_size=shape[0], max_size=shape[0]).map(np.array),
    )
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(SYSTEMS)
def test_weights_are_never_negative_and_fit_as_well_as_scipys(system):
    x, y = system
    weights = nonnegative(x, y)
    assert (weights >= 0).all() and np.isfinite(weights).all()
    residual = np.linalg.norm(x @ weights - y)
    assert residual <= np.linalg.norm(y) * (1 + 1e-9)
    assert residual <= nnls(x, y)[1] + 1e-6


def alike(shipped, fresh, path=""):
    """Where two documents differ by more than one in a million (numbers of a process are rounded to six digits)."""
    if isinstance(shipped, dict):
        assert set(shipped) == set(fresh), path
        return [place for key in shipped for place in alike(shipped[key], fresh[key], f"{path}/{key}")]
    if isinstance(shipped, list):
        assert len(shipped) == len(fresh), path
        return [
            place for i, (a, b) in enumerate(zip(shipped, fresh, strict=True)) for place in alike(a, b, f"{path}/{i}")
        ]
    if isinstance(shipped, float) and isinstance(fresh, float):
        rounded = 2e-6 if "/process/" in path else 0.0
        return [] if math.isclose(shipped, fresh, rel_tol=1e-6, abs_tol=rounded) else [path]
    return [] if shipped == fresh else [path]


@pytest.mark.slow
def test_the_calibration_shipped_is_the_fit_of_the_files_shipped(request):
    folder = request.config.rootpath / "examples" / "bench"
    files = {path.name: read(path) for path in sorted(folder.glob("h200-*.json.gz"))}
    assert len(files) == 3
    for framework in ("torch", "jax"):
        (path,) = packaged_folder().glob(f"h200-{framework}-*.json")
        shipped = json.loads(path.read_text(encoding="utf-8"))
        shipped.pop("schema")
        fresh = json.loads(json.dumps(fit_bench(files, framework).as_json()))
        assert path.name == f"h200-{framework}-{fresh['date']}.json"
        assert alike(shipped, fresh) == []
