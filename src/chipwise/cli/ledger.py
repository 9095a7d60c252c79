"""chipwise ledger: whether a ledger is sound, and its repair."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.declare import group
from chipwise.cli.options import OutFile, TableJson
from chipwise.cli.router import LedgerOpt

EXAMPLES = """\b
Examples:
  chipwise ledger check
  chipwise ledger repair --dry-run
"""
CHECK_EXAMPLES = """\b
Examples:
  chipwise ledger check
  chipwise ledger check --ledger postgresql://router@db/chipwise -o json
"""
REPAIR_EXAMPLES = """\b
Examples:
  chipwise ledger repair --dry-run
  chipwise ledger repair
"""
NOT_SOUND = 1

app = group("ledger", "Check the ledger of jobs, and repair it.", EXAMPLES)


@app.command("check", epilog=CHECK_EXAMPLES)
def check(ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """Whether a ledger is sound: its file, each row, and rows that contradict others. Exit status 1: it is not.

    A ledger of an older version is brought to this one when it is opened, by any verb; the old file is kept beside it.
    """
    from chipwise.present import output as present
    from chipwise.route.ledger_view import check_ledger

    checked = check_ledger(ledger)
    present.show(checked, output, out)
    if not checked.sound:
        raise typer.Exit(NOT_SOUND)


@app.command("repair", epilog=REPAIR_EXAMPLES)
def repair(
    ledger: LedgerOpt = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")] = False,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Repair a ledger that no router works with: all in one transaction, and nothing is thrown away.

    Rows that can't be read go to the table `quarantine` as they were; their jobs fail, unless they run. Rows that
    contradict their attempts and events are made to agree with them. Of a damaged file every row that can be read is
    saved to a new one, and the damaged file is kept. Exit status 1: something is left that needs a person.
    """
    from chipwise.io.atomic import check_writable
    from chipwise.present import output as present
    from chipwise.route.ledger_view import repair_ledger

    check_writable(out)
    repaired = repair_ledger(ledger, dry_run=dry_run)
    present.show(repaired, output, out)
    if repaired.left:
        raise typer.Exit(NOT_SOUND)
