"""What is believed about a training step before any published step is seen, and how firmly.

Values are factors on the kernels' own times, seconds, or shares; spreads are standard deviations of their
logarithms (of the logit for the overlaps). The fit moves them only as far as the rows insist.
"""

from __future__ import annotations

# coefficient: (value, spread)
BASE: dict[str, tuple[float, float]] = {
    # a burst of one kernel against a chip at sustained clocks: MAMF (mean of 100) is 0.93 of the burst best on
    # A100 and H100 (stas00/ml-engineering against ai-dynamo/aiconfigurator, 2026-08)
    "matmul": (1.15, 0.15),
    # routing imbalance, padding and small groups; grouped products reach about half of a plain one's rate
    # (ai-dynamo/aiconfigurator moe tables, 2026-08)
    "expert": (2.0, 0.5),
    # guesses, held loosely: kernels in a step are a little slower than alone, streams are fused or not
    "attention": (1.2, 0.3),
    "stream": (1.3, 0.4),
    "launch_s": (4e-6, 0.5),  # one kernel launch from a graph or a compiled program
    # guesses, held loosely: gathers are prefetched by every stack, the others overlap as stacks choose to
    "overlap_shard": (0.85, 1.0),
    "overlap_reduce": (0.60, 1.0),
    "overlap_tensor": (0.10, 1.0),
    "overlap_expert": (0.20, 1.0),
    "overlap_pipe": (0.50, 1.0),
    "overlap_context": (0.70, 1.0),
    "fixed_s": (5e-3, 1.0),  # a guess: data loading, logging and synchronization of a step
    "optimizer": (1.2, 0.3),
}

# coefficient -> kind of label -> spread. A stack on TPUs without flags and block sizes of a generation's own may lose
# a third at anything the compiler schedules (held loosely, before its steps were looked at, 2026-11-19)
EFFECTS: dict[str, dict[str, float]] = {
    "matmul": {
        "arch": 0.05,
        "family": 0.05,
        "dtype": 0.05,
        "arch/dtype": 0.05,
        "stack": 0.06,
        "power": 0.15,
        "untuned": 0.3,
        "release": 0.015,
    },
    "attention": {"arch": 0.075, "family": 0.10, "stack": 0.125, "flash1": 0.1, "flash2": 0.1, "untuned": 0.3},
    "stream": {
        "arch": 0.05,
        "family": 0.15,
        "dtype": 0.075,
        "stack": 0.15,
        "eager": 0.15,
        "untuned": 0.3,
        "release": 0.05,
    },
    "expert": {"family": 0.15, "stack": 0.10, "untuned": 0.5, "release": 0.05},
    "launch_s": {"eager": 0.2, "stack": 0.2, "release": 0.05},
    "overlap_shard": {"family": 0.5, "stack": 0.5, "untuned": 0.5},
    "overlap_tensor": {"stack": 0.5},
    "overlap_reduce": {"stack": 0.5},
    "overlap_pipe": {"stack": 0.5},
    "overlap_expert": {"stack": 0.4},
    "fixed_s": {"stack": 0.25},
}

# (coefficient, label) -> what is believed of it
MEANS: dict[tuple[str, str], float] = {
    # an eager layer launches about twice the kernels counted (transposes, biases, dropout, casts), each through
    # Python and autograd: about 50 us for each counted one
    ("launch_s", "eager"): 2.6,
    # TPUs hold their clock, and their tables come from the compiler, not from a burst: no factor
    ("matmul", "family:tpu"): -0.14,
    # rate against watts: a chip held at its power limit slows in proportion
    ("matmul", "power"): 0.8,
    # FlashAttention-2 against FlashAttention-3 and cuDNN on H100: log ratio 0.46 (Dao-AILab/flash-attention
    # figures, validation/rows/kernels.csv)
    ("attention", "flash2"): 0.46,
    # FlashAttention-2 is "around 2x" FlashAttention (arXiv 2307.08691, abstract)
    ("attention", "flash1"): 0.69,
    # what stacks document: Megatron-Core overlaps tensor-parallel collectives with products, XLA does so with
    # collective matmuls, Megatron-DeepSpeed overlaps neither those nor the gradient reduction
    ("overlap_tensor", "stack:megatron"): 1.0,
    ("overlap_tensor", "stack:maxtext"): 1.5,
    ("overlap_tensor", "stack:megatron-deepspeed"): -2.0,
    ("overlap_reduce", "stack:megatron-deepspeed"): -1.5,
}


def kind_of(label: str) -> str:
    """The kind of a label: ``arch:hopper/dtype:fp8`` is ``arch/dtype``.

    >>> kind_of("arch:hopper/dtype:fp8"), kind_of("stack:fsdp"), kind_of("power")
    ('arch/dtype', 'stack', 'power')
    """
    return "/".join(part.partition(":")[0] for part in label.split("/"))
