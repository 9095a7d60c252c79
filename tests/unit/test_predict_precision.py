"""What a training precision costs beside its products, in words."""

import pytest

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.predict.model.layouts import Layout
from chipwise.predict.prediction import predict
from chipwise.workload import load_workload


@pytest.mark.parametrize(
    ("on", "precision", "said"),
    [("h100:1", "tf32", True), ("h100:1", "fp32", True), ("h100:1", "bf16", False), ("v5p:1", "fp32", False)],
)
def test_a_wide_precision_says_why_it_is_slow(on, precision, said):
    text = f"model: gpt2\ntrain: {{steps: 1, global_batch: 8, sequence: 1024, precision: {precision}}}"
    prediction = predict(load_workload(text), parse(on), Layout(), load_calibration())
    assert any("fused kernels take 16 bits" in line for line in prediction.assumptions) is said


def test_tf32_takes_twice_the_products_and_attention_that_passes_through_memory():
    """As on an H200: its products are 2.2 times bf16's, its attention is many times slower (2026-11-19)."""
    parts = {}
    for precision in ("tf32", "bf16"):
        text = f"model: llama-3.1-8b\ntrain: {{steps: 1, global_batch: 8, sequence: 8192, precision: {precision}}}"
        parts[precision] = predict(
            load_workload(text), parse("h200:1"), Layout(micro_batch=1), load_calibration()
        ).parts
    products = parts["tf32"]["matmul"] / parts["bf16"]["matmul"]
    attention = [parts[p]["attention"] + parts[p]["stream"] for p in ("tf32", "bf16")]
    assert 1.8 < products < 2.6 and attention[0] > 4 * attention[1]
