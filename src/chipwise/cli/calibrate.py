"""chipwise calibrate: measurements become what predictions are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_yaml
from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.cli.router import LedgerOpt, PoolsOpt
from chipwise.cli.telemetry import StoreOpt

EXAMPLES = """\b
Examples:
  chipwise calibrate bench examples/bench/h200-1.json.gz --folder calibration
  chipwise calibrate telemetry examples/observe/runs.yaml
"""
BENCH_EXAMPLES = """\b
Examples:
  chipwise calibrate bench examples/bench/h200-1.json.gz --folder calibration
  chipwise calibrate bench monday.json tuesday.json --framework torch
  chipwise calibrate bench card.json --chip rtx-4090 --folder calibration
"""

TELEMETRY_EXAMPLES = """\b
Examples:
  chipwise calibrate telemetry examples/observe/runs.yaml
  chipwise calibrate telemetry examples/observe/runs.yaml --accept
  chipwise calibrate telemetry --jobs --pools pools.yaml
  chipwise calibrate telemetry
"""

app = group("calibrate", "Let measurements correct the predictions.", EXAMPLES)


@app.command("bench", epilog=BENCH_EXAMPLES)
def bench(
    files: Annotated[list[Path], argument("FILE...", "Bench files of one chip.")],
    framework: Annotated[
        str | None, option("--framework", "NAME", "Only that framework's points; default: all in the files.")
    ] = None,
    chip: Annotated[
        str, option("--chip", "NAME", "The catalog's name of the chip, where the file doesn't say.", show_default=False)
    ] = "",
    folder: Annotated[
        Path | None, option("--folder", "FOLDER", "Where to keep the calibration; default: your data folder.")
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Fit a chip's tables and overheads to bench files.

    Predictions for that chip use them at once, and say `measured` where the very point was measured. Errors are
    those of points left out of the fit. Runs on several machines, taken together, even out how fast their hosts were.
    """
    from chipwise.calibrate.measured import calibrate_bench
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("fitting") as shown:
        calibrations = calibrate_bench(files, framework, chip, folder, shown)
    show(calibrations, output, out)


@app.command("telemetry", epilog=TELEMETRY_EXAMPLES)
def telemetry(
    file: Annotated[
        Path | None,
        argument("FILE", "Runs (YAML): logs, with the workload and the chips of each.", complete_yaml),
    ] = None,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Learn from what the jobs of a ledger printed; --pools says of which chips.")
    ] = False,
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    store: StoreOpt = "",
    accept: Annotated[bool, typer.Option("--accept", help="Let predictions count it from now on.")] = False,
    revert: Annotated[bool, typer.Option("--revert", help="Take back what was accepted last.")] = False,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Learn from runs that were observed: what they say of a chip, a stack and a kind of program, as a difference.

    Runs of a FILE, or of a ledger's jobs (--jobs). Sick runs and outliers are left out, and jobs whose devices were
    throttled or faulty by a store of telemetry. Nothing changes before --accept; --revert takes it back.
    Without runs: what is accepted.
    """
    from chipwise import api
    from chipwise.errors import Conflict, InputError
    from chipwise.present.output import show

    if file is not None and jobs:
        raise Conflict("--jobs", "FILE")
    if jobs and pools is None:
        raise InputError("--jobs", "given", "--pools FILE beside it: the chips that jobs ran on")
    if file is None and not jobs:
        if accept:
            raise InputError("--accept", "given", "runs to accept: a FILE, or --jobs")
        show(api.accepted_telemetry(revert=revert), output, out)
        return
    if revert:
        raise Conflict("--revert", "--jobs" if jobs else "FILE")
    chosen = pools if jobs else None
    show(api.learn_from_runs(file, pools=chosen, ledger=ledger, store=store or None, accept=accept), output, out)
