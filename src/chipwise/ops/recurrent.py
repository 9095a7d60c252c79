"""State-space layers as operations: projections, a short convolution and a scan in chunks.

Training runs the scan in chunks of tokens: inside a chunk it is attention without a softmax over the chunk, between
chunks a state is built and read (Dao & Gu 2024, arXiv:2405.21060, section 6). Mamba-1 scans channel by channel, which
moves its states through fast memory and is bound by it.
"""

from __future__ import annotations

from chipwise.ops.operations import Attention, Matmul, Stream
from chipwise.workload.model import StateSpace

CHUNK = 256  # tokens of a chunk: the default of state-spaces/mamba (mamba_chunk_scan_combined, 2024-05)
SCANNED = (
    8  # times a Mamba-1 scan moves its inner width: inputs, step sizes, B, C, gates, output (its kernel's operands)
)


def matmuls(d: int, s: StateSpace, rows: float) -> list[Matmul]:
    """The projections in and out."""
    shared = s.groups * s.state
    if s.kind == "mamba1":
        return [
            Matmul("state_in", rows, 2 * s.inner, d, s.layers, "n"),
            Matmul("state_low", rows, s.dt_rank + 2 * s.state, s.inner, s.layers, "k"),
            Matmul("state_steps", rows, s.inner, s.dt_rank, s.layers, "n"),
            Matmul("state_out", rows, d, s.inner, s.layers, "k"),
        ]
    rates = 2 * s.heads if s.kind == "delta" else s.heads
    return [
        Matmul("state_in", rows, 2 * s.inner + 2 * shared + rates, d, s.layers, "n"),
        Matmul("state_out", rows, d, s.inner, s.layers, "k"),
    ]


def cores(s: StateSpace, rows: float) -> list[Attention]:
    """The scan: within chunks, and through the states between them, which each token writes to and reads once."""
    if s.kind == "mamba1":
        return []
    chunk = min(float(CHUNK), rows)
    # a product with the state is as much as attention to as many tokens as the state is wide; twice: written and read
    through = Attention(s.heads, s.groups, s.state, s.head_dim, rows, min(2.0 * s.state, rows), False, s.layers)
    return [Attention(s.heads, s.groups, s.state, s.head_dim, rows, chunk, True, s.layers), through]


def streams(s: StateSpace, rows: float) -> list[Stream]:
    """Element-wise traffic: the convolution, the gate with its norm, and the scan of Mamba-1."""
    mixed = s.inner if s.kind == "mamba1" else s.inner + 2 * s.groups * s.state
    made = [
        Stream("state_conv", rows, 2 * 2 * mixed, s.layers, 1, True),
        Stream("state_gate", rows, 2 * 3 * s.inner, s.layers, 2, True),
    ]
    if s.kind == "mamba1":
        made.append(Stream("state_scan", rows, 2 * SCANNED * s.inner, s.layers, 1, True))
    return made
