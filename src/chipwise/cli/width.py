"""--width, which people write before the verb and behind it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer

from chipwise.cli.numbers import take_numbers
from chipwise.present.width import WIDTH


def _fold(columns: int | None) -> int | None:
    if columns is not None:
        WIDTH.set(columns)
    return columns


def _option(*, hidden: bool) -> Any:
    return typer.Option(
        "--width",
        metavar="N",
        min=40,
        help="Fold tables to N columns, in pipes and files too.",
        show_default=False,
        callback=_fold,
        hidden=hidden,
    )


Width = Annotated[int | None, _option(hidden=False)]
HiddenWidth = Annotated[int | None, _option(hidden=True)]


def take_width(command: Any) -> Any:
    """The command with --width, and its verbs with it; `--help` of the root alone shows it."""
    verbs = getattr(command, "commands", None)
    if verbs is None:
        command.params.append(_behind_the_verb())
    else:
        for verb in verbs.values():
            take_width(verb)
    return command


@cache
def _behind_the_verb() -> Any:
    app = typer.Typer(add_completion=False)

    @app.command()
    def alone(width: HiddenWidth = None) -> None:
        """It has the one option."""

    command = typer.main.get_command(app)
    parameter = next(one for one in command.params if one.name == "width")
    take_numbers(command)
    parameter.expose_value = False  # no verb is told: its tables are folded where they are written
    return parameter
