"""The verbs in the panels that `chipwise --help` shows; a verb's module is imported when the verb is used."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from chipwise.cli.flags import name_flags
from chipwise.cli.numbers import take_numbers
from chipwise.cli.width import take_width

# a line each, as the verb's own help has it (held to that by a test): what `--help` shows without importing the verbs
PANELS: dict[str, dict[str, str]] = {
    "Decide": {
        "chips": "List the chips known, or show everything about one.",
        "models": "List the models known by name.",
        "prices": "List prices per chip-hour, and update them or read your own.",
        "predict": "Predict one workload on one set of chips.",
        "layouts": "Search every legal way to split the work over chips.",
        "compare": "Compare chips on a workload, and say what to pick.",
        "diff": "Hold two decisions against each other, and say what changed and why.",
        "serving": "Simulate a served model, and find its largest load.",
        "cost": "Estimate the cost under each pricing model, with the range of each.",
        "fleet": "Plan what to rent and buy over time.",
        "report": "Write a report: the decision on one page, then all it rests on.",
        "schema": "Print the JSON Schema of a kind of file.",
    },
    "Check and measure": {
        "check": "Compile a program for chips you don't have.",
        "numerics": "Train a program in each precision and say which are safe.",
        "bench": "Measure this machine, and compare measurements.",
        "doctor": "Show the compilers installed, what each enables, and what this node can be observed with.",
    },
    "Run": {
        "deploy": "Write a decision as the files that put its machines up, check them, and say why jobs wait there.",
        "jobs": "Submit jobs, see where they stand and why.",
        "pools": "List pools with their free capacity, and drain them.",
        "router": "Send the jobs of a ledger to the pools that suit them.",
        "ledger": "Check the ledger of jobs, and repair it.",
        "service": "Let people submit and see jobs as themselves, by a unix socket.",
        "audit": "Show who did what, and verify that the log of it was not changed.",
        "simulate": "Try policies on a trace before they are trusted with jobs.",
    },
    "Trust": {
        "observe": "Read what really happened, and hold it against what was predicted.",
        "validate": "Score predictions against published results.",
        "calibrate": "Let measurements correct the predictions.",
    },
}
VERBS: dict[str, str] = {verb: words for panel in PANELS.values() for verb, words in panel.items()}


class Commands(MutableMapping[str, Any]):
    """Verbs by name, each made of its module when it is first asked for.

    The module of a verb with verbs of its own has an `app`, any other a function of the verb's name and `EXAMPLES`.
    """

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def __getitem__(self, verb: str) -> Any:
        if verb not in self.made:
            if verb not in VERBS:
                raise KeyError(verb)
            self.made[verb] = _command(verb)
        return self.made[verb]

    def __setitem__(self, verb: str, command: Any) -> None:
        self.made[verb] = command

    def __delitem__(self, verb: str) -> None:
        del self.made[verb]

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


def _command(verb: str) -> Any:
    module = import_module(f"chipwise.cli.{verb}")
    app = getattr(module, "app", None)
    if app is not None:
        group = typer.main.get_group(app)
        group.name = verb
        return take_width(take_numbers(name_flags(group)))
    alone = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    alone.command(verb, epilog=module.EXAMPLES)(getattr(module, verb))
    return take_width(take_numbers(name_flags(typer.main.get_command(alone))))


class Verbs(TyperGroup):
    """The root of the command line: verbs by panel."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": None})
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs in the order of the panels."""
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The panels, a section each."""
        wide = max(map(len, VERBS))
        for panel, verbs in PANELS.items():
            with formatter.section(panel):
                formatter.write_dl([(verb.ljust(wide), words) for verb, words in verbs.items()])
