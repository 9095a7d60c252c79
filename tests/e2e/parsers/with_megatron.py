"""Megatron-LM's parser, and what it refuses together."""

import sys
import typing

import typing_extensions

typing.override = getattr(typing, "override", typing_extensions.override)  # new in Python 3.12, and all it needs of it

from cases import answer  # noqa: E402
from megatron.training.arguments import parse_args  # noqa: E402


def read(words: list[str]) -> None:
    """A command of torchrun."""
    assert words[0] == "torchrun", words
    sys.argv = words[words.index("pretrain_gpt.py") :]
    parse_args()


answer(read)
