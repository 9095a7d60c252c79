"""State-space layers as operations: projections, a short convolution and a scan in chunks.

Training runs the scan in chunks of tokens: inside a chunk it is attention without a softmax over the chunk's earlier
tokens, between chunks a state is built and read (Dao & Gu 2024, arXiv:2405.21060, section 6). A gated delta net solves
for what to write as well (Yang et al. 2024, arXiv:2412.06464, section 3.3). Mamba-1 scans channel by channel, which
moves its states through fast memory and is bound by it.
"""

from __future__ import annotations

from chipwise.ops.operations import Attention, Matmul, Stream
from chipwise.workload.model import StateSpace

CHUNK = 256  # tokens of a chunk: the default of state-spaces/mamba (mamba_chunk_scan_combined, 2024-05)
DELTA_CHUNK = 64  # of fla-org/flash-linear-attention (chunk_gated_delta_rule, 2025-09)
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
    """The scan: within chunks, and through the states between them.

    As attention over so many tokens that it has as many multiply-adds a token: of a product over a chunk half is
    masked, and one with the state of N x P is as much as attention with heads of N and P to NP / (N + P) tokens.
    """
    if s.kind == "mamba1":
        return []
    if s.kind == "delta":
        # within: scores of queries and of keys with keys, both solved vectors of keys and values, and the output;
        # through: the state is read by queries and by keys, and written
        return _cores(s, rows, DELTA_CHUNK, 3 * s.state + 2 * s.head_dim, through=3)
    # heads of a group share their scores; through: the state is written and read
    return _cores(s, rows, CHUNK, s.state * s.groups / s.heads + s.head_dim, through=2)


def _cores(s: StateSpace, rows: float, chunk: float, within: float, through: int) -> list[Attention]:
    """`within` multiply-adds for each pair of tokens of a chunk, and so many products with the state."""
    both = s.state + s.head_dim
    spans = min(chunk, rows) / 2 * within / both, through * s.state * s.head_dim / both
    return [Attention(s.heads, s.groups, s.state, s.head_dim, rows, min(span, rows), False, s.layers) for span in spans]


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
