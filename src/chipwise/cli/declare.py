"""How options, arguments and groups of verbs are declared: a name, a placeholder, a line of help, what completes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from chipwise.cli.completion import one_of
from chipwise.errors import InputError

Complete = Callable[..., list[str]]


def option(name: str, metavar: str, help: str, complete: Complete | None = None, **settings: Any) -> Any:
    """An option that takes a value, for `Annotated`; `settings` as of `typer.Option`."""
    return typer.Option(name, metavar=metavar, help=help, autocompletion=complete, **settings)


def argument(metavar: str, help: str, complete: Complete | None = None, **settings: Any) -> Any:
    """An argument, for `Annotated`; `settings` as of `typer.Argument`."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=complete, **settings)


def output_format(help: str, *names: str) -> Any:
    """The option `-o`, for `Annotated`: one of the formats named, any other is refused."""

    def known(context: typer.Context, name: str) -> str:
        if name not in names and not context.resilient_parsing:  # what the shell completes may be half typed
            raise InputError("--output", name, f"one of {', '.join(names)}")
        return name

    return typer.Option("-o", "--output", metavar="FORMAT", help=help, autocompletion=one_of(*names), callback=known)


def group(name: str, help: str, examples: str, cls: type[TyperGroup] | None = None) -> typer.Typer:
    """A verb with verbs of its own, as plain text without rich's panels and tracebacks."""
    app = typer.Typer(
        name=name,
        help=help,
        epilog=examples,
        rich_markup_mode=None,
        no_args_is_help=False,
        cls=cls,
        pretty_exceptions_enable=False,
    )
    app.callback()(lambda: None)  # with it, a group of a single verb stays a group
    return app


def refuse(given: Mapping[str, str | None], expected: str) -> None:
    """Refuse the first option that has a value."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise InputError(name, str(given[name]), expected)
