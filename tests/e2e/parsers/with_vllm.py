"""vLLM's parser of `vllm serve`, and the engine arguments that it makes."""

import vllm.platforms
from cases import answer
from vllm.platforms.cpu import CpuPlatform

vllm.platforms.current_platform = CpuPlatform()  # the wheel is one for CUDA, and looks for a driver

from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: E402
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args  # noqa: E402
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402


def read(words: list[str]) -> None:
    """A command that starts with `vllm serve`."""
    assert words[:2] == ["vllm", "serve"], words
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(words[2:])
    validate_parsed_serve_args(arguments)
    AsyncEngineArgs.from_cli_args(arguments)


answer(read)
