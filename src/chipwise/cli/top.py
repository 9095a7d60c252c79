"""chipwise observe top: jobs, devices and pools on one screen."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.completion import one_of
from chipwise.cli.declare import option
from chipwise.cli.options import OutFile, TableJsonCsv
from chipwise.cli.router import LedgerOpt, PoolsOpt
from chipwise.cli.telemetry import StoreOpt

EXAMPLES = """\b
Examples:
  chipwise observe top
  chipwise observe top --pools examples/pools/local.yaml --interval 5s --jobs-by health
  chipwise observe top --once --devices-by idle
"""
JOB_ORDERS = ("newest", "slowest", "health", "left", "goodput")
LEAST_S = 0.5  # between two looks: each reads the ledger and what jobs printed
DEVICE_ORDERS = ("host", "busy", "idle", "power", "hot", "memory")


def top(
    ledger: LedgerOpt = "",
    pools: PoolsOpt = None,
    store: StoreOpt = "",
    interval: Annotated[str, option("--interval", "TIME", "Between two looks.")] = "5s",
    jobs_by: Annotated[
        str, option("--jobs-by", "ORDER", f"Sort jobs: {', '.join(JOB_ORDERS)}.", one_of(*JOB_ORDERS))
    ] = "newest",
    devices_by: Annotated[
        str, option("--devices-by", "ORDER", f"Sort devices: {', '.join(DEVICE_ORDERS)}.", one_of(*DEVICE_ORDERS))
    ] = "host",
    once: Annotated[
        bool, typer.Option("--once", help="Look once, as plain text; so it is without a terminal.")
    ] = False,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Jobs under way, devices and pools on one screen, drawn again and again.

    Jobs of the ledger as they really run, devices of the store of telemetry, pools of the pools file.
    Keys: q ends it, j and d change the order of jobs and devices, 1, 2, 3 show jobs, devices or pools alone, 0 all of
    them, space looks at once. What can't be read is said, and does not end it.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.io.paths import data_folder
    from chipwise.observe.top.look import watch
    from chipwise.observe.top.view import DeviceOrder, JobOrder, Top
    from chipwise.present.live import Screen
    from chipwise.present.output import show
    from chipwise.verbs.arguments import seconds_of

    every = seconds_of(interval, "interval")
    if every < LEAST_S:
        raise InputError("--interval", interval, f"{LEAST_S:g} s or more")
    named = store if store or (data_folder() / "telemetry.db").exists() else None

    def look() -> Top:
        return api.observe_top(ledger, pools=pools, store=named, jobs_by=jobs_by, devices_by=devices_by)

    first = look()
    if once or output != "table" or out is not None or not Screen.possible():
        show(first, output, out)
        return
    watch(look, every, JobOrder(jobs_by), DeviceOrder(devices_by))
