"""chipwise audit: the log of every command and decision, and whether it is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import files
from chipwise.cli.declare import group, option
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.cli.router import LedgerOpt

EXAMPLES = """\b
Examples:
  chipwise audit list --job 1
  chipwise audit verify -o json --out heads.json
  chipwise audit verify --heads heads.json
"""
LIST_EXAMPLES = """\b
Examples:
  chipwise audit list
  chipwise audit list --job 1 -o csv
"""
VERIFY_EXAMPLES = """\b
Examples:
  chipwise audit verify -o json --out heads.json
  chipwise audit verify --heads heads.json
"""
CHANGED = 1  # exit status: the log is not as it was written

app = group("audit", "Show who did what, and verify that the log of it was not changed.", EXAMPLES)


@app.command("list", epilog=LIST_EXAMPLES)
def list_(
    ledger: LedgerOpt = "",
    chain: Annotated[str | None, option("--chain", "NAME", "Only of this router, service or user.")] = None,
    job: Annotated[str | None, option("--job", "ID", "Only about this job.")] = None,
    limit: Annotated[int, option("--limit", "N", "The newest so many.", min=1)] = 100,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Commands and decisions, the newest first: who, in which role, what, about which job."""
    from chipwise.present import output as present
    from chipwise.route.audit_view import list_audit

    present.show(list_audit(ledger, chain, job, limit), output, out)


@app.command("verify", epilog=VERIFY_EXAMPLES)
def verify(
    ledger: LedgerOpt = "",
    heads: Annotated[
        Path | None,
        option(
            "--heads",
            "FILE",
            "Heads that `audit verify -o json` wrote before: what is gone shows.",
            files(".json"),
        ),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Compute every chain of the log again, with the decisions and jobs it vouches for. Exit status 1: not as written.

    The heads that are printed name the last entry of every chain. Kept where the ledger's users can't write, they
    show later that nothing was cut off or written again.
    """
    from chipwise.present import output as present
    from chipwise.route.audit_view import verify_audit

    verification = verify_audit(ledger, heads)
    present.show(verification, output, out)
    if not verification.sound:
        raise typer.Exit(CHANGED)
