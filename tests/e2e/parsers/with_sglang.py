"""SGLang's parser of its server's arguments."""

import argparse

from cases import answer
from sglang.srt.server_args import ServerArgs


def read(words: list[str]) -> None:
    """A command that starts with `python -m sglang.launch_server`."""
    assert words[:3] == ["python", "-m", "sglang.launch_server"], words
    parser = argparse.ArgumentParser(allow_abbrev=False)
    ServerArgs.add_cli_args(parser)
    parser.parse_args(words[3:])


answer(read)
