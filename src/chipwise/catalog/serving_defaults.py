"""How a stack serves unless told otherwise: its scheduler's settings and its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ServingDefaults:
    """A serving stack's defaults, as its documentation has them."""

    most_sequences: int  # at once: vLLM's max_num_seqs
    most_tokens: int  # of one iteration: vLLM's max_num_batched_tokens
    source: str
    date: str
    block: int = 16  # tokens of a block of the paged cache
    mixed: bool = True  # chunks of prompts ride along with decoding; else they go first, alone
    reserve: bool = False  # a request is let in when its whole answer has room
    memory_share: float = 0.90  # of a chip's memory
    share_of_free: bool = False  # the share is of what weights and activations leave, not of the whole chip
    fixed_slots: bool = False  # programs of one shape: attention runs over a slot's whole cache
    pads_heads: bool = False  # heads that tensor parallelism does not divide are filled up with empty ones
    graph_tokens: float = 512.0  # up to which an iteration replays a captured graph
    drafts: tuple[str, ...] = ()  # what it speculates with, on GPUs: "ngram", "mtp", "model"
    grouped_since: float = 0.0  # the release from which decoding reads keys once for all heads that share them
    grouped_of_8_since: float = 0.0  # the same where eight heads share them


def serving_defaults(table: Mapping[str, Any]) -> ServingDefaults:
    """`ServingDefaults` from the ``serving`` table of a stack."""
    return ServingDefaults(**{**table, "drafts": tuple(table.get("drafts", ()))})
