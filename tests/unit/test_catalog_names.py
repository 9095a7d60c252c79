"""What people write, and what they must not get away with."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog import Accelerators, default_stack, find_chip, find_stack, load, parse
from chipwise.errors import ChipwiseError, InputError, UnknownName


@pytest.mark.parametrize(
    ("text", "chip", "count", "shape", "slices"),
    [
        ("h100", "h100", 1, (), 1),
        ("h100:8", "h100", 8, (), 1),
        ("H100 SXM 80GB:8", "h100", 8, (), 1),
        ("h100:8x8", "h100", 64, (), 1),
        ("8xh100", "h100", 8, (), 1),
        ("A100-80GB:16", "a100-80gb", 16, (), 1),
        ("gb200:72", "gb200", 72, (), 1),
        ("rtx-pro-6000:8", "rtx-pro-6000", 8, (), 1),
        ("v5e", "v5e", 1, (1, 1), 1),
        ("v5e:16", "v5e", 16, (4, 4), 1),
        ("v5e-16", "v5e", 16, (4, 4), 1),
        ("v5litepod-16", "v5e", 16, (4, 4), 1),
        ("tpu-v5e:16x8", "v5e", 128, (8, 16), 1),
        ("trillium:256", "v6e", 256, (16, 16), 1),
        ("v5p:4x4x4", "v5p", 64, (4, 4, 4), 1),
        ("v5p:8x4x4", "v5p", 128, (4, 4, 8), 1),
        ("v5p:1x2x2", "v5p", 4, (2, 2, 1), 1),
        ("v5p-128", "v5p", 64, (4, 4, 4), 1),
        ("v5p:128", "v5p", 128, (4, 4, 8), 1),
        ("v4-8", "v4", 4, (2, 2, 1), 1),
        ("v3-32", "v3", 16, (4, 4), 1),
        ("tpu7x-128", "v7x", 64, (4, 4, 4), 1),
        ("ironwood:64", "v7x", 64, (4, 4, 4), 1),
        ("v5p:2*4x4x4", "v5p", 128, (4, 4, 4), 2),
        ("2xv5p:4x4x4", "v5p", 128, (4, 4, 4), 2),
        ("v5e:8192", "v5e", 8192, (16, 16), 32),
        ("v5p:8960", "v5p", 8960, (8, 20, 28), 2),
    ],
)
def test_what_people_write(text, chip, count, shape, slices):
    found = parse(text)
    assert (found.chip.id, found.count, found.shape, found.slices) == (chip, count, shape, slices)
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "h100:8"),
        ("   ", "h100:8"),
        (":8", "before the colon"),
        ("h100:", "after the colon"),
        ("h100:0", "from 1 to 1,000,000"),
        ("h100:-1", "from 1 to 1,000,000"),
        ("h100:1e9", "from 1 to 1,000,000"),
        ("h100:1000001", "from 1 to 1,000,000"),
        ("h100:nan", "from 1 to 1,000,000"),
        ("h100:8.5", "from 1 to 1,000,000"),
        ("h100:8:8", "from 1 to 1,000,000"),
        ("h100:10000x1000", "from 1 to 1,000,000"),
        ("999999xh100:8", "from 1 to 1,000,000"),
        ("h100:１", "from 1 to 1,000,000"),
        ("h100:" + "9" * 5000, "from 1 to 1,000,000"),
        ("h100:2x2x2", "h100:4x8"),
        ("h100-8", "h100:8"),
        ("v5e:3", "1 (1x1), 4 (2x2), 8 (2x4)"),
        ("v5e:3x5", "2x2, 2x4, 4x4"),
        ("v5e:0x4", "the nearest are"),
        ("v5e:4x4x4", "2 axes"),
        ("v5p:2x4x4x4", "3 axes"),
        ("v5p-7", "counts cores"),
        ("v5e:300", "2*16x16"),
        ("v5e:16x16x", "2 axes"),
    ],
)
def test_bad_counts_and_shapes_are_refused_with_what_is_accepted(text, says):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "near"), [("h10:8", "h100"), ("a100-80:8", "a100-80gb"), ("tpu-v5x:4", "tpu-v5")])
def test_unknown_names_suggest_the_nearest(text, near):
    with pytest.raises(UnknownName) as caught:
        parse(text)
    assert near in str(caught.value)


@pytest.mark.parametrize("text", ["h100 banana:8", "rtx 3090", "h1000", "\x00", "💥:8", "a100 h100:8"])
def test_a_typo_never_becomes_another_chip(text):
    with pytest.raises(UnknownName):
        parse(text)


@pytest.mark.parametrize("value", [None, 8, 3.5, ["h100:8"]])
def test_other_types_are_refused(value):
    with pytest.raises(InputError):
        parse(value)


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_chips_or_one_clear_line(text):
    try:
        found = parse(text)
    except ChipwiseError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(found, Accelerators) and 1 <= found.count <= 1_000_000


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        ("NVIDIA H100 SXM 80GB", "h100"),
        ("NVIDIA H100 SXM5 80GB", "h100"),
        ("NVIDIA H100 SXM 80GB (vidur)", "h100"),
        ("NVIDIA H100 (DGX, NVLink)", "h100"),
        ("NVIDIA H100 (pairwise NVLink)", "h100"),
        ("NVIDIA Hopper SM90", "h100"),
        ("NVIDIA H100 PCIe 80GB", "h100-pcie"),
        ("NVIDIA H100 NVL 94GB", "h100-nvl"),
        ("NVIDIA H100 96GB HBM2e 2.4TB/s, 500W (Meta Grand Teton)", "h100-96gb-hbm2e"),
        ("NVIDIA H800 (CX7 400Gb/s)", "h800"),
        ("NVIDIA H800 (~160 GB/s NVLink, CX7 400Gb/s)", "h800"),
        ("NVIDIA H200 SXM 141GB (CTS 1000W custom thermal)", "h200"),
        ("NVIDIA A100 SXM (memory size not stated)", "a100-80gb"),
        ("NVIDIA A100 (DGX, NVLink)", "a100-80gb"),
        ("NVIDIA A100 (SXM, 4x A100 node in the paper)", "a100-80gb"),
        ("NVIDIA A100 SXM 40GB", "a100-40gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ("NVIDIA V100", "v100"),
        ("NVIDIA V100 SXM3 32GB (DGX-2)", "v100-32gb"),
        ("Tesla V100-PCIE-32GB", "v100-pcie"),
        ("NVIDIA P100 (DeepBench)", "p100"),
        ("Tesla P4", "p4"),
        ("NVIDIA T4 (DeepBench)", "t4"),
        ("NVIDIA L40S 48GB", "l40s"),
        ("NVIDIA B200 SXM 180GB", "b200"),
        ("NVIDIA GB200 192GB", "gb200"),
        ("NVIDIA B300 SXM", "b300"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA GH200-GraceHopper-Superchip", "gh200"),
        ("NVIDIA GH200 Grace Hopper Superchip 144GB", "gh200-144gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server", "rtx-pro-6000"),
        ("AMD Instinct MI300X 192GB", "mi300x"),
        ("AMD MI355X", "mi355x"),
        ("Intel Gaudi 2", "gaudi2"),
        ("TPU v4", "v4"),
        ("TPU v6e (Trillium)", "v6e"),
        ("TPU v7x (Ironwood)", "v7x"),
    ],
)
def test_free_text_names(text, chip):
    assert find_chip(text).id == chip


@pytest.mark.parametrize("text", ["", "   ", "NVIDIA", "GeForce RTX 3090", "CPU", "H100 or A100"])
def test_free_text_that_names_no_single_chip_is_refused(text):
    with pytest.raises(UnknownName):
        find_chip(text)


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        ("Megatron-DeepSpeed", "megatron-deepspeed"),
        ("Megatron-Bridge, NeMo container 26.04.01", "megatron"),
        ("NVIDIA NeMo Framework Release 24.04", "megatron"),
        ("NVIDIA NEMO", "megatron"),
        ("Megatron-LM (Megatron-Core r0.8.0)", "megatron"),
        ("MaxText (JAX)", "maxtext"),
        ("llm-foundry (Composer, PyTorch FSDP)", "fsdp"),
        ("torchtitan (PyTorch)", "torchtitan"),
        ("DeepSpeed 0.19.2 ZeRO-3 + Liger, PyTorch 2.13/cu130", "deepspeed"),
        ("PyTorch NVIDIA Release 24.04", "pytorch"),
        ("PyTorch 2.1 eager (HF model)", "pytorch"),
        ("DGL NVIDIA Release 24.09", "pytorch"),
        ("TF-research", "tensorflow"),
        ("tf2.0", "tensorflow"),
        ("MxNet NVIDIA Release 24.04", "mxnet"),
        ("MaxDiffusion (JAX)", "jax"),
        ("TensorRT-LLM v1.0 (trtllm-bench, PyTorch backend)", "tensorrt-llm"),
        ("TensorRT 10.2.0, CUDA 12.4", "tensorrt"),
        ("vLLM 0.4.3+rocm614, PyTorch 2.3.0", "vllm"),
        ("JetStream-PyTorch (2024-03-28)", "jetstream"),
    ],
)
def test_free_text_stacks(text, stack):
    found = find_stack(text)
    assert found is not None and found.id == stack


def test_text_that_names_no_stack_gives_none():
    assert find_stack("CUDA 12.3") is None
    assert find_stack("") is None


@pytest.mark.parametrize("stack", load().stacks)
def test_every_stack_is_found_by_its_id(stack):
    found = find_stack(stack)
    assert found is not None and found.id == stack


def test_default_stacks():
    assert default_stack(find_chip("v5p"), "serve").id == "vllm"
    with pytest.raises(InputError):
        default_stack(find_chip("h100"), "bake")
