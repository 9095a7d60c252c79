"""The entry point: every failure is one line on stderr. Exit 2 for input, 1 for a defect of chipwise.

A verb's module is imported when the verb is run, and heavy modules (numpy, pydantic, yaml) inside the verbs, so that
`--help` stays fast.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from chipwise.cli.numbers import take_numbers_of
from chipwise.cli.verbs import Verbs
from chipwise.cli.width import Width
from chipwise.errors import ChipwiseError
from chipwise.present.output import PipeClosed
from chipwise.present.safe import safe
from chipwise.present.width import WIDTH
from chipwise.version import __version__

BAD_INPUT, DEFECT, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141
START = "chipwise compare llama-3.1-8b --tokens 1T --batch 1024 --sequence 8192 --on h100,h200,v5p,v6e"

app = typer.Typer(
    name="chipwise",
    cls=Verbs,
    help="Which accelerator, how many, split how, at what price: predictions for GPUs and TPUs with error bars.",
    epilog=f"\b\nStart with:\n  {START}",
    rich_markup_mode=None,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"chipwise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    width: Width = None,
) -> None:
    """Which accelerator, how many, split how, at what price: GPUs and TPUs, with error bars."""
    if width is None:
        WIDTH.set(0)


@cache
def command() -> Any:
    """All verbs and options as click has them, made once in a process."""
    root = typer.main.get_command(app)
    take_numbers_of(root)
    return root


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    status = run(words)
    if status == 0 and {"-h", "--help", "--version"}.isdisjoint(words):
        from chipwise.cli.warming import begin

        begin()
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """The exit status of a command line; whatever went wrong is one line on stderr."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that can't show a character shows another
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = command()(arguments or ["--help"], standalone_mode=False, prog_name="chipwise")
        sys.stdout.flush()
        if status == INTERRUPTED:
            return _fail("interrupted", INTERRUPTED)
        return status if isinstance(status, int) else 0
    except ChipwiseError as error:
        return _fail(str(error), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except typer.Exit as leaving:
        return leaving.exit_code
    except (BrokenPipeError, PipeClosed):
        _mute()
        return PIPE_CLOSED
    except OSError as error:
        _mute()
        return _fail(f"output: {error.strerror or error}", BAD_INPUT)
    except Exception as error:
        context = getattr(error, "ctx", None)
        if hasattr(error, "possibilities") and context is not None and hasattr(error, "option_name"):
            from chipwise.cli.flags import command_instead, options_that_mean

            if instead := command_instead(str(context.command_path), error.option_name):
                return _fail(f"No such option: {error.option_name}; {instead}", BAD_INPUT)
            error.possibilities = list(options_that_mean(error.option_name, context.command))
        usage: Callable[[], str] | None = getattr(error, "format_message", None)
        if usage is not None:  # typer's own errors, whichever version of click it is built on
            return _fail(f"{usage().rstrip('.')}; see `{_path(error)} --help`", BAD_INPUT)
        if os.environ.get("CHIPWISE_DEBUG"):
            raise
        how = "this is a defect: please report it with the command and its output under CHIPWISE_DEBUG=1"
        return _fail(f"unexpected {type(error).__name__}: {error}; {how}", DEFECT)


def _path(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return str(context.command_path) if context is not None else "chipwise"


def _fail(message: str, status: int) -> int:
    line = safe(" ".join(message.split()))  # names and paths in it are anybody's
    try:
        sys.stderr.write(f"chipwise: {line}\n")
        sys.stderr.flush()
    except OSError:
        pass
    return status


def _mute() -> None:
    """Nothing more can be written: keep the interpreter from trying when it leaves."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
