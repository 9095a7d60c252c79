"""Published kernel rows: what each convention means in seconds, and why a row is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.errors import InputError, Refusal
from chipwise.validate import kernel_rows
from chipwise.validate.kernel_rows import COLUMNS, KernelRow, eligible, read, try_read, why_not

ROWS = Path(__file__).parents[2] / "validation" / "rows" / "kernels.csv"


def row(**cells: str) -> dict[str, str]:
    return {
        "id": "k1",
        "source_repo": "somebody/bench",
        "accelerator": "NVIDIA H100 SXM",
        "chips": "1",
        "op": "GEMM",
        "M": "4096",
        "N": "4096",
        "K": "4096",
        "precision": "bf16",
        "time_ms": "0.2",
        "variant": "",
        "library": "",
        "batch_or_groups": "",
        "bytes": "",
        "tflops": "",
        "gb_per_s": "",
        **cells,
    }


def reduce(**cells: str) -> dict[str, str]:
    return row(op="all-reduce", chips="8", bytes="1000000000", time_ms="", M="", N="", K="", precision="", **cells)


def test_the_published_file_has_the_columns() -> None:
    with ROWS.open(encoding="utf-8", newline="") as file:
        assert set(csv.DictReader(file).fieldnames or ()) >= COLUMNS


def test_every_eligible_published_row_is_read() -> None:
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = [r for r in rows if eligible(r)]
    assert len(wanted) > 1000
    assert all(isinstance(try_read(r), KernelRow) for r in wanted)


def test_words_of_a_row_become_fields_of_its_kernel() -> None:
    gathered = read(
        row(
            accelerator="TPU v7x",
            op="all-gather (ICI)",
            chips="8",
            bytes="1e6",
            variant="topology 2x2x2; f32[64,8,128] -> f32[256,8,128]",
        )
    ).kernel
    assert (gathered.topology, gathered.group, gathered.over_slices) == ((2, 2, 2), 4.0, False)
    off = read(reduce(gb_per_s="100", variant="algo NVLS off (Ring)", library="nccl-tests")).kernel
    chosen = read(reduce(gb_per_s="100", variant="algo Ring", library="nccl-tests")).kernel
    plain = read(reduce(gb_per_s="100", variant="algo NVLS", library="torch NCCL")).kernel
    assert (off.in_switch, off.nvls_off, off.bench) == (False, True, "")
    assert (chosen.in_switch, chosen.nvls_off) == (False, False)
    assert (plain.in_switch, plain.nvls_off, plain.bench) == (True, False, "torch-nccl")


@pytest.mark.parametrize(
    ("variant", "implementation"),
    [("FlashAttention-2", "fa2"), ("Standard attention (PyTorch)", "standard"), ("cuDNN 9", "cudnn"), ("", "")],
)
def test_the_attention_kernel_that_ran_is_read_from_the_variant(variant: str, implementation: str) -> None:
    sizes = {"batch_or_groups": "16", "seq_len": "1024", "heads": "16", "head_dim": "128"}
    assert read(row(op="attention", variant=variant, **sizes)).kernel.implementation == implementation


def test_a_stated_time_wins() -> None:
    assert read(row(tflops="1")).observed_s == pytest.approx(2e-4)


def test_a_rate_becomes_a_time() -> None:
    assert read(row(time_ms="", tflops="500")).observed_s == pytest.approx(2 * 4096**3 / 500e12)


def test_bus_bandwidth_of_an_all_reduce() -> None:
    assert read(reduce(gb_per_s="400")).observed_s == pytest.approx(2 * 7 / 8 * 1e9 / 400e9)


def test_a_copy_counts_reading_and_writing_on_every_device() -> None:
    found = read(
        row(
            op="HBM copy",
            accelerator="TPU v7x (Ironwood)",
            bytes="33554432",
            time_ms="",
            gb_per_s="6000",
            M="",
            N="",
            K="",
            precision="",
        )
    )
    assert found.observed_s == pytest.approx(2 * 2 * 33554432 / 6000e9)


def test_an_all_gather_states_what_a_chip_receives() -> None:
    found = read(
        row(
            op="all-gather (ICI)",
            accelerator="TPU v7x (Ironwood)",
            chips="4",
            bytes="1572864",
            time_ms="",
            gb_per_s="70",
            variant="topology 2x2x1; f32[64,8,128] -> f32[256,8,128]",
            precision="f32",
        )
    )
    assert found.observed_s == pytest.approx(1572864 / 70e9)


def test_dispatch_bytes_come_from_the_tokens() -> None:
    found = read(
        row(
            op="MoE dispatch all-to-all",
            accelerator="NVIDIA H800",
            chips="64",
            precision="fp8",
            batch_or_groups="4096 tokens, hidden 7168, top-8 experts, top-4 groups",
            time_ms="",
            gb_per_s="51",
            variant="normal kernels, bottleneck RDMA",
        )
    )
    assert found.kernel.data == pytest.approx(4096 * 8 * 7168 * (1 + 4 / 128))
    assert found.observed_s == pytest.approx(4096 * 4 * 7168 * (1 + 4 / 128) / 51e9)


def test_tpu7x_products_are_those_of_one_core() -> None:
    assert read(row(accelerator="TPU v7x (Ironwood)")).kernel.devices == 1
    assert read(row(accelerator="TPU v7x (Ironwood)", notes="per chip")).kernel.devices == 2


def test_grouped_products_have_groups() -> None:
    assert read(row(op="grouped GEMM (contiguous)", batch_or_groups="8")).kernel.batch == 8


def test_fp16_inputs_with_fp32_arithmetic() -> None:
    kernel = read(row(accelerator="NVIDIA P100", precision="fp16 inputs, fp32 math")).kernel
    assert (kernel.dtype, kernel.in_dtype) == ("fp32", "fp16")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"accelerator": ""}, "accelerator not named"),
        ({"accelerator": "NVIDIA Z9000"}, "is not in the catalog"),
        ({"op": "convolution"}, "'convolution' is not modelled"),
        ({"time_ms": ""}, "no time or rate"),
        ({"K": ""}, "M, N or K not given"),
        ({"precision": ""}, "precision not given"),
        ({"op": "all-reduce", "chips": "", "bytes": "8"}, "chip count unknown"),
        ({"op": "all-reduce", "chips": "8"}, "bytes not given"),
        ({"op": "MoE dispatch all-to-all", "chips": "16"}, "neither bytes nor tokens given"),
        ({"op": "attention"}, "batch, sequence, heads or head size not given"),
    ],
)
def test_a_row_is_refused_with_a_reason(cells: dict[str, str], reason: str) -> None:
    assert reason in why_not(row(**cells))
    with pytest.raises(Refusal, match="row k1"):
        read(row(**cells))


@pytest.mark.parametrize(
    ("cells", "field"), [({"M": "many"}, "M"), ({"M": "-4"}, "M"), ({"N": "0"}, "N"), ({"time_ms": "nan"}, "time_ms")]
)
def test_a_bad_number_names_its_field(cells: dict[str, str], field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}: "):
        read(row(**cells))


def test_a_rate_of_zero_is_no_rate() -> None:
    assert "above zero" in str(try_read(row(time_ms="0", gb_per_s="0")))


def test_operations_are_told_apart() -> None:
    names = {"GEMM": "gemm", "all-reduce": "reduce", "HBM copy": "copy", "MoE combine all-to-all": "exchange"}
    assert {name: kernel_rows.op_of(name) for name in names} == names
