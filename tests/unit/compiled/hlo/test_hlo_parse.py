"""The parser over modules that libtpu and XLA:GPU really printed."""

import pytest
from hlo_samples import EXPECTED, NAMES, instructions, module, of_opcode, text

from chipwise.compiled import hlo
from chipwise.errors import ChipwiseError

SMALL = """HloModule small, is_scheduled=true, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,4]) -> f32[4] {
  %x = f32[8,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[4]{0} reduce(%x, %zero), dimensions={0}, to_apply=%add, metadata={op_name="jit(f)/sum" source_file="f.py" source_line=3}
}
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_line_that_defines_a_name_is_one_instruction(name: str) -> None:
    lines = [line.lstrip() for line in text(name).split("\n") if line.startswith("  ")]
    assert len(instructions(name)) == sum(line.startswith(("%", "ROOT %")) for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_every_computation_of_the_text_is_there(name: str) -> None:
    headers = [line for line in text(name).split("\n") if line.startswith(("%", "ENTRY "))]
    assert len(module(name).computations) == len(headers)
    assert sum(c.is_entry for c in module(name).computations.values()) == 1
    assert module(name).entry.is_entry


@pytest.mark.parametrize("name", NAMES)
def test_operands_and_calls_resolve(name: str) -> None:
    whole = module(name)
    for computation in whole.computations.values():
        for instruction in computation:
            assert all(operand in computation.by_name for operand in instruction.operands)
            assert all(called in whole.computations for called in instruction.calls)


@pytest.mark.parametrize("name", NAMES)
def test_entry_parameters_hold_the_bytes_the_compiler_counts(name: str) -> None:
    held = sum(p.shape.tiled_bytes for p in module(name).entry.parameters)
    assert held == EXPECTED[name]["argument_bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_header_names_the_devices_and_the_schedule(name: str) -> None:
    assert module(name).devices == EXPECTED[name]["devices"]
    assert module(name).attributes["is_scheduled"] is True


@pytest.mark.parametrize("name", NAMES)
def test_roots_and_parameters(name: str) -> None:
    for computation in module(name).computations.values():
        assert computation.root.is_root
        assert [p.number for p in computation.parameters] == list(range(len(computation.parameters)))
        assert computation.thread == "main" or "sparsecore" in name


def test_donated_arguments_are_named() -> None:
    assert "{0}: (0, {}, may-alias)" in module("fsdp_scan_v5e").raw["input_output_alias"]


def test_matmuls_carry_cycles_and_collectives_do_not() -> None:
    products = [
        i for i in instructions("fsdp_gathers_v5e") if i.name.startswith("fusion.") and i.raw["kind"] == "kOutput"
    ]
    assert any((i.estimated_cycles or 0) > 100_000 for i in products)
    assert all(i.estimated_cycles is None for i in of_opcode("moe_v5p", "all-to-all", "all-reduce"))


@pytest.mark.parametrize(
    ("cycles", "expected"), [("123", 123), ("9223372036854775807", None), ("-1", None), ("x", None)]
)
def test_unknown_cycles_are_none(cycles: str, expected: int | None) -> None:
    for config in (
        f'{{"window_config":{{"estimated_cycles":"{cycles}"}}}}',
        f'"{{\\"window_config\\":{{\\"estimated_cycles\\":\\"{cycles}\\"}}}}"',
    ):
        parsed = hlo.parse(SMALL.replace("to_apply=%add", f"to_apply=%add, backend_config={config}"))
        assert parsed.entry.root.estimated_cycles == expected


def test_splash_kernels_tell_their_blocks_over_several_lines() -> None:
    kernels = [i for i in of_opcode("splash_v6e", "custom-call") if i.custom_call_target == "tpu_custom_call"]
    assert len(kernels) == 3
    assert all('"block_' in k.kernel_metadata["xprof_metadata"] for k in kernels)
    assert all("splash_attention" in k.metadata.op_name for k in kernels)
    assert kernels[0].backend_config["custom_call_config"]["needs_layout_passes"] is True


def test_source_lines_come_from_the_tables_of_frames() -> None:
    (product,) = [
        i
        for i in instructions("tensor_parallel_v5p")
        if i.metadata.op_name.endswith("/dot_general") and i.opcode == "fusion"
    ][:1]
    assert product.metadata.source_file.endswith("make_samples.py")
    assert product.metadata.source_line > 0
    functions = [frame.function for frame in product.metadata.frames]
    assert functions[0].endswith("layer")
    assert any(function.endswith("forward") for function in functions)


def test_source_lines_printed_in_place() -> None:
    found = hlo.parse(SMALL).entry.root.metadata
    assert (found.op_name, found.source_file, found.source_line) == ("jit(f)/sum", "f.py", 3)


def test_attributes_are_values() -> None:
    root = hlo.parse(SMALL).entry.root
    assert root.attributes["dimensions"] == [0]
    assert root.attributes["to_apply"] == "add"
    assert root.attributes["metadata"] == {"op_name": "jit(f)/sum", "source_file": "f.py", "source_line": 3}
    (convolution,) = [i for i in of_opcode("convnet_v4", "convolution") if i.raw["window"].startswith("{size=7x7")][:1]
    assert convolution.attributes["window"]["size"] == "7x7"


def test_names_need_no_percent_sign_and_operands_may_carry_shapes() -> None:
    bare = hlo.parse(SMALL.replace("%", ""))
    shaped = hlo.parse(SMALL.replace("reduce(%x, %zero)", "reduce(f32[8,4]{1,0} %x, f32[] %zero)"))
    both = hlo.parse(SMALL.replace("reduce(%x, %zero)", "reduce(f32[8,4]{1,0} %x, f32[] %zero)").replace("%", ""))
    for other in (bare, shaped, both):
        assert other.entry.root.operands == ("x", "zero")
        assert other.entry.root.calls == ("add",)


def test_threads_of_computations() -> None:
    parsed = hlo.parse(SMALL.replace("add(%a, %b)\n}", 'add(%a, %b)\n}, execution_thread="host"'))
    assert parsed.computations["add"].thread == "host"


def test_constants_keep_their_value() -> None:
    parsed = hlo.parse(SMALL.replace("f32[] constant(0)", "s32[] constant(-7)").replace("%zero)", "%zero)"))
    assert parsed.entry["zero"].integer == -7
    assert parsed.entry["zero"].literal == "-7"
    assert parsed.entry.root.integer is None


@pytest.mark.parametrize(
    ("broken", "line", "expected"),
    [
        ("", 1, "HloModule"),
        ("module @jit_f attributes {}", 1, "HloModule"),
        (SMALL.replace("add(%a, %b)", "add(%a, %c)"), 6, "operands defined above, not c"),
        (SMALL.replace("to_apply=%add", "to_apply=%sub"), 12, "computation defined above, not sub"),
        (SMALL.replace("f32[4]{0} reduce", "q32[4]{0} reduce"), 12, "element type"),
        (SMALL.replace("f32[4]{0} reduce", "f32[4]{1} reduce"), 12, "a shape"),
        (SMALL.replace("dimensions={0}", "dimensions=}0{"), 12, "attribute=value"),
        (SMALL.replace("%zero = ", "%x = "), 11, "a new name"),
        (SMALL.replace("ENTRY ", ""), 14, "ENTRY"),
        (SMALL[:-2], 13, "an instruction"),
    ],
)
def test_text_that_is_not_hlo_is_refused_in_one_line_naming_the_line(broken: str, line: int, expected: str) -> None:
    with pytest.raises(ChipwiseError) as refused:
        hlo.parse(broken)
    assert f"line {line}:" in str(refused.value)
    assert expected in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
