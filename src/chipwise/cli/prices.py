"""chipwise prices: what a chip-hour costs, where and on which terms; and prices of your own from other files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from chipwise.cli.completion import complete_chips, complete_clouds, one_of
from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import NO_PRICE_FLAGS, FxOpt, OutFile, PriceFlags, TableJson, TableJsonCsv, with_price_flags

if TYPE_CHECKING:
    from chipwise.prices.imported import Imported

EXAMPLES = """\b
Examples:
  chipwise prices
  chipwise prices h100
  chipwise prices --on v5p,h100 --all
  chipwise prices --on h100 --cloud gcp,aws --pricing spot
  chipwise prices --on h200 --fabric known --max-age 120d
  chipwise prices --on v6e --prices own.csv -o csv --out v6e.csv
  chipwise prices update
  chipwise prices import skypilot catalogs/v8/gcp/vms.csv --out own.csv
  chipwise prices import focus billing.csv --years 1 --out own.csv
"""
IMPORT_EXAMPLES = """\b
Examples:
  chipwise prices import skypilot examples/prices/skypilot/gcp/vms.csv --date 2026-08-21 --out own.csv
  chipwise prices import focus examples/prices/focus-aws.csv --years 1 --out own.csv
"""
SKYPILOT_EXAMPLES = """\b
Examples:
  chipwise prices import skypilot catalogs/v8/gcp/vms.csv catalogs/v8/aws/vms.csv --out own.csv
  chipwise prices import skypilot vms.csv --cloud lambda --date 2026-08-03 --out lambda.csv
"""
FOCUS_EXAMPLES = """\b
Examples:
  chipwise prices import focus examples/prices/focus-aws.csv --years 1 --out own.csv
  chipwise prices import focus billing-*.csv.gz --years 3 --fx EUR=1.08 --out own.csv
"""
UPDATE_EXAMPLES = """\b
Examples:
  chipwise prices update examples/prices/skypilot
  chipwise prices update examples/prices/skypilot/lambda/vms.csv --date 2026-08-21
"""
TERMS = ("ondemand", "spot", "1y", "3y")


class ChipsOrVerb(TyperGroup):
    """Verbs of prices, and before them chips by name: ``prices h100`` is ``prices --on h100``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take a first word that is no verb as the chips asked about."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["--on", *args]
        return super().parse_args(ctx, args)


app = group("prices", "List prices per chip-hour, and update them or read your own.", EXAMPLES, ChipsOrVerb)
importing = group("import", "Make a file of own prices from another.", IMPORT_EXAMPLES)
app.add_typer(importing, name="import")

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False)]
OwnFile = Annotated[Path, option("--out", "FILE", "The file of own prices to write.")]


@app.callback(invoke_without_command=True)
@with_price_flags
def prices(
    context: typer.Context,
    on: Annotated[
        str | None, option("--on", "LIST", "Chips, such as v5p,h100; `prices h100` is the same.", complete_chips)
    ] = None,
    pricing: Annotated[
        str | None,
        option(
            "--pricing",
            "NAME",
            f"Only offers by this pricing model, ranked by its price: {', '.join(TERMS)}.",
            one_of(*TERMS),
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every offer, not the cheapest of each cloud.")] = False,
    offers: PriceFlags = NO_PRICE_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List offers per chip-hour: on demand, spot, committed for one and three years.

    The cheapest of each cloud first, each with its age; * marks prices older than 90 days. With --fabric known only
    offers known to be joined by a fast fabric.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import show

    if context.invoked_subcommand is not None:
        given = {"on": on, "pricing": pricing, **offers}
        for name, value in given.items():
            if value:
                raise InputError(
                    f"--{name.replace('_', '-')}", str(value), f"nothing: give it after {context.invoked_subcommand}"
                )
        return
    known = Knowledge.default(**offers)
    show(api.prices(on, pricing=pricing, every=every, fabric=offers["fabric"], knowledge=known), output, out)


@app.command("update", epilog=UPDATE_EXAMPLES)
def update(
    source: Annotated[
        str, argument("[URL|FOLDER|FILE]", "Where from. Default: the public SkyPilot catalog.", show_default=False)
    ] = "",
    cloud: Annotated[
        str, option("--cloud", "NAME", "This cloud alone; the cloud of a file.", complete_clouds, show_default=False)
    ] = "",
    dated: Annotated[
        str, option("--date", "DATE", "The day of the prices, where the source says none.", show_default=False)
    ] = "",
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Fetch newer list prices, and use them from now on.

    The public SkyPilot catalog, another address, a checkout or a file of it. Checked like the list shipped; the list
    before is kept beside the new one in your data folder ($CHIPWISE_DATA); what changed is listed by chip.
    """
    from chipwise import api
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("prices update") as line:
        made = api.update_prices(source, cloud=cloud or None, date=dated or None, progress=line.say)
    show(made, output, out)


@importing.command("skypilot", epilog=SKYPILOT_EXAMPLES)
def skypilot(
    files: Files,
    out: OwnFile,
    cloud: Annotated[
        str,
        option(
            "--cloud",
            "NAME",
            "The cloud, where the folder of the file isn't named after it.",
            complete_clouds,
            show_default=False,
        ),
    ] = "",
    dated: Annotated[
        str,
        option(
            "--date", "DATE", "The day of the prices: 2026-08-22. Default: the time of the file.", show_default=False
        ),
    ] = "",
    output: TableJson = "table",
) -> None:
    """Read vms.csv files of a SkyPilot catalog.

    A region's price is that of its cheapest zone; Google's GPUs get the price of their hosts. Rows that can't be
    used are counted by reason.
    """
    from chipwise.prices import day_of
    from chipwise.prices.skypilot import read_skypilot

    if dated:
        dated = day_of(dated, "--date")
    _write(read_skypilot(files, cloud.strip().lower(), dated), "skypilot", files, out, output)


@importing.command("focus", epilog=FOCUS_EXAMPLES)
def focus(
    files: Files,
    out: OwnFile,
    years: Annotated[int | None, option("--years", "N", "How long the commitments in the bill run: 1 or 3.")] = None,
    fx: FxOpt = None,
    output: TableJson = "table",
) -> None:
    """Read a FOCUS billing export (1.0 to 1.2): what you really paid per chip-hour.

    The sum of EffectiveCost over chip-hours by cloud, region, instance and terms. Taxes, credits, purchases, idle
    commitments and lines without an accelerator are left out, counted with what they cost.
    """
    from chipwise.catalog.currencies import exchange_rates
    from chipwise.errors import InputError
    from chipwise.present.progress import progress
    from chipwise.prices.focus_import import read_focus

    if years is not None and years not in (1, 3):
        raise InputError("--years", years, "1 or 3")
    with progress("reading") as shown:
        imported = read_focus(files, exchange_rates(fx), years, lambda rows: shown.say(f"reading: {rows:,} rows"))
    _write(imported, "focus", files, out, output)


def _write(imported: Imported, kind: str, files: Sequence[Path], out: Path, output: str) -> None:
    """The file of own prices, and on stdout what is in it."""
    from chipwise.present.output import show, write
    from chipwise.prices.custom_prices import custom_prices_csv
    from chipwise.prices.import_view import ImportedPrices

    write(custom_prices_csv(imported.rows), out)
    show(ImportedPrices(imported, kind, tuple(map(str, files)), str(out)), output)
