"""chipwise observe: what really happened."""

from __future__ import annotations

from typing import Annotated

from chipwise.cli.completion import complete_chips, one_of
from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import NO_FLAGS, Flags, OutFile, TableJsonCsv, with_workload_flags

EXAMPLES = """\b
Examples:
  chipwise observe read examples/logs/maxtext.log
  chipwise observe read examples/logs/titan.log --against examples/llama-3.1-8b-pretrain.yaml --batch 64 --on h100:8
"""
READ_EXAMPLES = """\b
Examples:
  chipwise observe read examples/logs/vllm.log
  chipwise observe read examples/logs/kernel.log -o json
  chipwise observe read examples/logs/titan.log --against examples/llama-3.1-8b-pretrain.yaml --batch 64 --on h100:8
"""
FORMATS = (
    "maxtext", "torchtitan", "megatron", "nemo", "deepspeed", "hf-trainer", "lightning", "levanter", "mlperf", "steps",
    "vllm", "sglang", "tensorrt-llm", "prometheus", "kernel", "vllm-bench", "llm-d", "json",
)  # fmt: skip

app = group("observe", "Read what really happened, and hold it against what was predicted.", EXAMPLES)


@app.command("read", epilog=READ_EXAMPLES)
@with_workload_flags
def read(
    file: Annotated[str, argument("FILE", "A log, or a page of metrics (gzip as well); - for standard input.")],
    format: Annotated[
        str | None,
        option("--format", "NAME", f"One of {', '.join(FORMATS)}. Default: found by what it says.", one_of(*FORMATS)),
    ] = None,
    against: Annotated[
        str | None,
        option("--against", "WORKLOAD", "Hold it against the prediction of this workload: a file or a model."),
    ] = None,
    on: Annotated[
        str | None, option("--on", "CHIPS", "The chips it ran on, with --against: h100:64, v5e:8x8.", complete_chips)
    ] = None,
    layout: Annotated[
        str | None, option("--layout", "AXES", "How it was split, with --against: fsdp=128. Default: the best.")
    ] = None,
    flags: Flags = NO_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Read a log: steps of training, windows of serving, faults and metrics, in the format it is found to have.

    Steps told by several ranks count once; Xid 45 and time-outs beside the fault that caused them do not count. With
    --against and --on, actual over predicted with the prediction's 90 % interval.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.present.output import show
    from chipwise.workload.read import read_workload

    if against is None and (
        lost := next((name for name, value in (("--on", on), ("--layout", layout)) if value), None)
    ):
        raise InputError(lost, str(on or layout), "--against WORKLOAD beside it")
    changed = next(((name, value) for name, value in flags.items() if value is not None), None)
    if against is None and changed is not None:
        raise InputError(f"--{changed[0].replace('_', '-')}", changed[1], "--against WORKLOAD beside it")
    if against is not None and on is None:
        raise InputError("--against", against, "--on CHIPS beside it: what it ran on")
    prediction = None
    if against is not None and on is not None:
        prediction = api.predict(read_workload(against, flags), on, layout=layout)
    show(api.read_log(file, format=format, against=prediction), output, out)
