"""How long one iteration of a serving replica takes: all that its scheduler's simulation needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StepTimeTable:
    """Seconds of an iteration, by what is in it.

    An iteration with n tokens, decoding sequences whose contexts add up to C and chunks of q new tokens each after
    c earlier ones takes ``tokens_s[n] + context_s * C + pair_s * sum(q * (c + q / 2)) + sequence_s * sequences``.
    Where prompts pass layers of their own, n counts the tokens that are written, and ``prompt_s[sum(q)]`` is added.
    """

    tokens_s: Array  # by tokens in the iteration, from 0 (unused) to the largest batch of tokens
    context_s: float = 0.0  # for each earlier token that a decoding sequence reads
    pair_s: float = 0.0  # for each pair of a new token of a prompt and a token before it
    sequence_s: float = 0.0  # for each sequence that gets a token: sampling, detokenizing, streaming
    watts_idle: float = 0.0  # all chips of the replica
    watts_busy: float = 0.0  # at full use of memory or matrix units
    prompt_s: Array | None = None  # on top, by the prompts' tokens, which `tokens_s` then has not: an encoder's pass
    drafted: int = 0  # tokens beside its own that an iteration checks of each decoding sequence: they count in n
    per_pass: float = 1.0  # tokens that such an iteration gives a sequence, on average
    draft_s: Array | None = None  # on top, by decoding sequences: what drafts
    draft_context_s: float = 0.0  # and for each earlier token that a decoding sequence reads
    draft_prompt_s: float = 0.0  # and for each new token of a prompt

    @property
    def most_tokens(self) -> int:
        """The largest batch of tokens there is a time for."""
        return len(self.tokens_s) - 1


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What a replica's operator sets."""

    most_sequences: int = 256  # vLLM --max-num-seqs, TensorRT-LLM max_batch_size, SGLang --max-running-requests
    most_tokens: int = 8192  # in one iteration: vLLM --max-num-batched-tokens, TensorRT-LLM max_num_tokens
    block: int = 16  # tokens of a block of the paged cache
    mixed: bool = True  # prompts' chunks ride along with decoding (vLLM, TensorRT-LLM); else they go first, alone
    reserve: bool = False  # admission keeps room for the whole answer (TensorRT-LLM's guaranteed no evict)
    chunked: bool = True  # prompts longer than the room in an iteration are cut
