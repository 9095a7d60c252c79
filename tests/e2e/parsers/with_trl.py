"""accelerate's parser of `accelerate launch`, and TRL's of its SFT script."""

from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from cases import answer
from trl.scripts.sft import make_parser


def read(words: list[str]) -> None:
    """A command that starts with `accelerate launch`."""
    assert words[:2] == ["accelerate", "launch"], words
    arguments = launch_command_parser().parse_args(words[2:])
    assert arguments.module and arguments.training_script == "trl.scripts.sft", arguments
    _validate_launch_command(arguments)  # what it refuses before it starts anything
    # bf16 is refused where there is no GPU
    make_parser().parse_args_and_config([*arguments.training_script_args, "--use_cpu", "true"])


answer(read)
