"""torchtitan's config manager: the model's own config with the options of the command on top."""

from cases import answer
from torchtitan.config import ConfigManager


def read(words: list[str]) -> None:
    """A command of torchrun."""
    assert words[0] == "torchrun", words
    ConfigManager().parse_args(words[words.index("torchtitan.train") + 1 :])


answer(read)
