"""The checks run: each program compiled for each of its targets; one that can't be read does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.compiled.check.check import Progress, Row
from chipwise.compiled.check.columns import compiled
from chipwise.compiled.check.request import ProgramOptions, read_request
from chipwise.compiled.check.run import run_check
from chipwise.compiled.job import Refused
from chipwise.deploy.ci.checks_file import Checks, CheckSpec, name_of, targets_of
from chipwise.deploy.ci.results import CALLS, Answer, TargetResult
from chipwise.errors import ChipwiseError
from chipwise.knowledge import Knowledge
from chipwise.prices import cheapest_of
from chipwise.units import HOUR

_ANSWERS = {"memory": Answer.DOES_NOT_FIT, "compiler": Answer.NOT_TRIED, "import": Answer.UNREADABLE}


def run_checks(checks: Checks, knowledge: Knowledge, progress: Progress | None = None) -> list[TargetResult]:
    """Every program on every target."""
    return [result for check in checks.checks for result in _run(check, knowledge, progress)]


def _run(check: CheckSpec, knowledge: Knowledge, progress: Progress | None) -> Sequence[TargetResult]:
    how = ProgramOptions(
        check.option or None,
        check.axes,
        check.choose or None,
        check.size or None,
        check.torch,
        check.layout,
        check.mode,
        check.with_,
    )
    out = []
    for target in targets_of(check):  # one by one: a target that can't be read is not the others' fault
        try:
            report = run_check(read_request(check.program, target, how, knowledge.calibration), progress=progress)
        except ChipwiseError as error:
            unread = TargetResult(
                check=name_of(check), program=check.program, target=target, answer=Answer.UNREADABLE, problem=str(error)
            )
            out.append(unread)
        else:
            out += [_result(check, row, knowledge) for row in report.rows]
    return out


def _result(check: CheckSpec, row: Row, knowledge: Knowledge) -> TargetResult:
    made = compiled(row)
    refused = row.outcome if isinstance(row.outcome, Refused) else None
    seconds = row.step.value if row.step is not None else None
    if refused is not None:
        answer = _ANSWERS.get(refused.stage, Answer.DOES_NOT_COMPILE)
    else:
        answer = Answer.OK if row.fits else Answer.DOES_NOT_FIT
    return TargetResult(
        check=name_of(check),
        program=check.program,
        target=str(row.question.accelerators),
        answer=answer,
        seconds=seconds,
        seconds_low=row.step.low if row.step is not None else None,
        seconds_high=row.step.high if row.step is not None else None,
        memory_bytes=row.memory.total if row.memory is not None else (refused.hbm_needed if refused else None),
        usable_bytes=row.memory.usable if row.memory is not None else (refused.hbm_available if refused else None),
        usd=None if seconds is None else _usd(row, seconds, knowledge),
        problem=refused.reason if refused is not None else "",
        versions=dict(made.versions) if made is not None else {},
    )


def _usd(row: Row, seconds: float, knowledge: Knowledge) -> float | None:
    """What a thousand calls cost at the cheapest offer that holds the chips."""
    on = row.question.accelerators
    rental = cheapest_of(on, today=knowledge.today, book=knowledge.prices)
    return None if rental is None else seconds * CALLS / HOUR * on.count * rental.price.usd_per_chip_hour
