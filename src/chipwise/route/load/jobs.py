"""The job file read: one job or a list of them, paths made absolute, workloads checked, nothing kept that is secret."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.catalog import exact_chip, load
from chipwise.catalog.economics import economics
from chipwise.errors import InputError
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.predict.estimate import Estimate
from chipwise.route.job import FAMILIES, Checkpoint, Constraints, Data, DeclaredRuntime, Job, Variant
from chipwise.route.load.explain import checked
from chipwise.route.load.secrecy import refuse_arguments, refuse_secrets, refuse_values
from chipwise.units import format_seconds
from chipwise.workload.load import load_any

if TYPE_CHECKING:
    from chipwise.route.spec.job import ConstraintSpec, GivenSpec, JobSpec, RunsSpec, VariantSpec
    from chipwise.workload.model import Workload
    from chipwise.workload.serve import ServingWorkload

RESERVED = "CHIPWISE_"  # variables that say where a program runs
MOST_BYTES, MOST_NODES = 5_000_000, 300_000  # of a file with ten thousand jobs, which takes seconds to parse
SUCH = "`name: hello`; several jobs are a list under `jobs:`"
EXACT = "as given, without low and high: taken as exact"


def load_jobs(source: str | Path, now: float) -> list[Job]:
    """The jobs of a file, or of YAML text; deadlines that are durations count from `now` (seconds since 1970).

    >>> [job] = load_jobs("name: hello\\ncommand: [echo, hello]\\nestimates: {cpu: 5s}", now=0.0)
    >>> job.variants[0].command, job.given[0].seconds.value, job.variants[0].family
    (('echo', 'hello'), 5.0, 'cpu')
    """
    raw, base = _read(source)
    return jobs_of(raw, base, now)


def jobs_of(raw: Mapping[str, Any], base: Path, now: float) -> list[Job]:
    """The jobs that a mapping holds: one, or several under `jobs`."""
    from chipwise.route.spec.job import MOST_JOBS, JobSpec, JobsSpec

    if "jobs" not in raw:
        return [_job(checked(JobSpec, raw, "job"), base, now, "")]
    listed = raw["jobs"]
    listable = (
        isinstance(listed, list) and 0 < len(listed) <= MOST_JOBS and all(isinstance(entry, dict) for entry in listed)
    )
    if set(raw) == {"jobs"} and listable:  # one by one, so that what is wrong is said of the first that has it
        return [
            _job(checked(JobSpec, entry, "job", f"jobs[{i}]"), base, now, f"jobs[{i}].")
            for i, entry in enumerate(listed)
        ]
    return [_job(entry, base, now, f"jobs[{i}].") for i, entry in enumerate(checked(JobsSpec, raw, "job").jobs)]


def job_documents(source: str | Path) -> list[dict[str, Any]]:
    """The jobs of a file as documents that need no other file: workloads inside, paths whole. For a service elsewhere.

    >>> job_documents("name: hello\\ncommand: [echo, hello]\\nestimates: {cpu: 5s}")
    [{'name': 'hello', 'command': ['echo', 'hello'], 'estimates': {'cpu': '5s'}}]
    """
    raw, base = _read(source)
    jobs_of(raw, base, time.time())  # what is wrong is said as it is without a service
    return [_complete(document, base) for document in raw.get("jobs", [raw])]


def _complete(document: Mapping[str, Any], base: Path) -> dict[str, Any]:
    out = dict(document)
    workload = out.get("workload")
    if isinstance(workload, str):
        path = base / workload
        out["workload"] = _absolute(json.loads(_parsed(read_text(path, MAX_YAML_BYTES), path.name)), path.parent)
    elif isinstance(workload, dict):
        out["workload"] = _absolute(workload, base)
    checkpoint = out.get("checkpoint")
    if isinstance(checkpoint, dict) and isinstance(folder := checkpoint.get("folder"), str) and "://" not in folder:
        out["checkpoint"] = {**checkpoint, "folder": os.path.normpath(base / Path(folder).expanduser())}
    return out


def _read(source: str | Path) -> tuple[dict[str, Any], Path]:
    if isinstance(source, str) and ("\n" in source or ": " in source):
        return parse_yaml(source, most=MOST_NODES, such=SUCH), Path.cwd()
    path = Path(source)
    return parse_yaml(read_text(path, MOST_BYTES), path.name, MOST_NODES, SUCH), path.parent.resolve()


def _job(spec: JobSpec, base: Path, now: float, where: str) -> Job:
    workload = _workload(spec, base, where)
    given = tuple(_given(on, estimate, f"{where}estimates.{on}") for on, estimate in (spec.estimates or {}).items())
    if not workload and not given:
        raise InputError(
            f"{where}workload",
            "nothing",
            "a workload to predict, or estimates of what it takes by pool, chip or family",
        )
    variants = _variants(spec, given, base, where)
    if workload:
        _check_variants(variants, workload, where)
    return Job(
        name=spec.name,
        variants=variants,
        owner=spec.owner or "",
        workload=workload,
        given=given,
        constraints=_constraints(spec.constraints, f"{where}constraints"),
        deadline=_deadline(spec.deadline, workload, now, f"{where}deadline"),
        confidence=spec.confidence,
        budget=inf if spec.budget is None else spec.budget,
        priority=spec.priority,
        checkpoint=_checkpoint(spec, base),
        retries=spec.retries,
        key=spec.key or "",
    )


# what it takes


def _workload(spec: JobSpec, base: Path, where: str) -> str:
    """A workload's contents as JSON, with the paths inside made absolute; empty where there is none."""
    if spec.workload is None:
        return ""
    raw = spec.workload
    if isinstance(raw, str):
        path = base / raw
        try:
            raw, base = json.loads(_parsed(read_text(path, MAX_YAML_BYTES), path.name)), path.parent
        except InputError as e:
            raise e.under(f"{where}workload") from None
    text = json.dumps(_absolute(raw, base), sort_keys=True)
    try:
        workload = _workload_of(text)
    except InputError as e:
        inside = "" if e.field == "workload" else f" {e.field}"
        raise e.under(f"{where}workload{inside}") from None
    serve = getattr(workload, "serve", None)
    if serve is not None and spec.estimates is None and (serve.arrival.kind != "offline" or not serve.requests):
        raise InputError(
            f"{where}workload",
            "a service without an end",
            "an end: serve.offline with its requests, or `estimates` that say how long it is to run",
        )
    return text


@lru_cache(maxsize=64)
def _parsed(text: str, name: str) -> str:
    """A workload file as JSON; kept, since many jobs have one workload."""
    return json.dumps(parse_yaml(text, name))


@lru_cache(maxsize=64)
def _workload_of(text: str) -> Workload | ServingWorkload:
    return load_any(text)


def varied(text: str, batch: int | None, precision: str) -> Workload | ServingWorkload:
    """A job's workload with the batch and the precision of a variant."""
    changes: dict[str, Any] = {}
    section = "serve" if "serve" in json.loads(text) else "train"
    if batch is not None:
        changes["train.global_batch"] = batch
    if precision:
        changes[f"{section}.precision"] = precision
    return load_any(text, changes)


def _absolute(raw: Mapping[str, Any], base: Path) -> dict[str, Any]:
    out = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    for section, key in (("model", "hf"), ("serve", "trace")):
        inner = out.get(section)
        if isinstance(inner, dict) and isinstance(inner.get(key), str):
            inner[key] = str((base / inner[key]).resolve())
    return out


def _given(on: str, spec: GivenSpec | float, field: str) -> DeclaredRuntime:
    if isinstance(spec, float | int):
        return DeclaredRuntime(on, Estimate(spec, spec, spec, "given", EXACT))
    low, high = spec.low or spec.time, spec.high or spec.time
    if not low <= spec.time <= high:
        raise InputError(field, f"{low:g} to {high:g} s", f"an interval that holds {format_seconds(spec.time)}")
    because = "as given" if spec.low or spec.high else EXACT
    return DeclaredRuntime(on, Estimate(spec.time, low, high, "given", because), spec.watts)


# how it runs


def _variants(spec: JobSpec, given: Iterable[DeclaredRuntime], base: Path, where: str) -> tuple[Variant, ...]:
    if spec.variants is None:
        families = _families(given) if spec.workload is None else FAMILIES[:2]
        return tuple(_variant(family, family, spec, spec, base, where) for family in families)
    out = []
    for name, variant in spec.variants.items():
        family = variant.family or (name if name in FAMILIES else None)
        field = f"{where}variants.{name}"
        if family is None:
            raise InputError(f"{field}.family", "nothing", f"one of {', '.join(FAMILIES)}")
        if name in FAMILIES and family != name:
            raise InputError(
                f"{field}.family", family, f"{name}, as the variant is called, or a variant of another name"
            )
        out.append(_variant(name, family, spec, variant, base, f"{field}."))
    return tuple(out)


def _check_variants(variants: Iterable[Variant], workload: str, where: str) -> None:
    """Refuse what a variant changes of the workload and can't."""
    served = "serve" in json.loads(workload)
    for v in variants:
        field = f"{where}variants.{v.name}"
        if served and (v.batch is not None or v.layout):
            key, value = ("layout", v.layout) if v.layout else ("batch", str(v.batch))
            raise InputError(f"{field}.{key}", value, "nothing: how a model is served is searched")
        if v.batch is not None or v.precision:
            try:
                varied(workload, v.batch, v.precision)
            except InputError as e:
                key = "precision" if e.field.endswith("precision") else "batch"
                raise InputError(f"{field}.{key}", v.precision if key == "precision" else v.batch, e.accepted) from None


def _families(given: Iterable[DeclaredRuntime]) -> list[str]:
    """Families that estimates speak of; all where one names something else, which must be a pool."""
    families = {chip.id: chip.family for chip in load().chips.values()} | {family: family for family in FAMILIES}
    named = {families.get(declared.on) for declared in given}
    return [family for family in FAMILIES if None in named or family in named] or list(FAMILIES)


def _variant(name: str, family: str, job: JobSpec, spec: RunsSpec, base: Path, where: str) -> Variant:
    own: VariantSpec | None = spec if spec is not job else None  # type: ignore[assignment]
    command = spec.command or job.command
    if command is None:
        raise InputError(f"{where}command", "nothing", "a list such as [python, train.py], here or for the whole job")
    chips = spec.chips or job.chips
    if chips is None:
        if job.workload is not None:
            raise InputError(f"{where}chips", "nothing", "how many chips, here or for the whole job")
        chips = 1  # a plain command
    refuse_arguments(command, f"{where}command")
    refuse_arguments(own.flags if own else (), f"{where}flags")
    environment = {**job.environment, **spec.environment}
    refuse_secrets(environment, f"{where}environment")
    secrets = tuple(dict.fromkeys([*job.secrets, *spec.secrets]))
    refuse_values(secrets, f"{where}secrets")
    for variable in (*environment, *secrets):
        if variable.startswith(RESERVED):
            raise InputError(
                f"{where}environment",
                variable,
                f"a variable that does not begin with {RESERVED}: those tell a program where it runs",
            )
    twice = next((name for name in secrets if name in environment), None)
    if twice is not None:
        raise InputError(f"{where}secrets", twice, "either a secret or a value under environment")
    return Variant(
        name,
        family,
        chips,
        frozenset(_chips(own.on, family, f"{where}on")) if own and own.on else frozenset(),
        tuple(command),
        spec.image or job.image or "",
        tuple(environment.items()),
        secrets,
        (own.layout if own else None) or "",
        own.batch if own else None,
        (own.precision if own else None) or "",
        tuple(own.flags) if own else (),
        _program((own.program if own else None) or "", base),
    )


def _program(text: str, base: Path) -> str:
    """A program whose file lies relative to the job file, by its whole path; packages and other names as they are."""
    module, colon, function = text.rpartition(":")
    if colon and module.endswith(".py"):
        return f"{(base / module).resolve()}:{function}"
    return text


def _chips(names: Iterable[str], family: str, field: str) -> list[str]:
    out = []
    for name in names:
        try:
            chip = exact_chip(name)
        except InputError as e:
            raise InputError(field, name, e.accepted) from None
        if family and chip.family != family:
            raise InputError(field, name, f"a chip of the family {family}")
        out.append(chip.id)
    return out


# constraints, deadline, checkpoints


def _constraints(spec: ConstraintSpec, field: str) -> Constraints:
    chips = (
        ["cpu"]
        if spec.chips == ["cpu"]
        else _chips([c for c in spec.chips or () if c != "cpu"], "", f"{field}.chips")
        + ["cpu"] * ("cpu" in (spec.chips or ()))
    )
    data = None
    if spec.data is not None:
        if spec.data.move and spec.data.size is None:
            raise InputError(f"{field}.data.size", "nothing", "bytes that would be moved, such as 500G")
        data = Data(tuple(spec.data.regions), float(spec.data.size or 0), spec.data.move)
    return Constraints(frozenset(chips), frozenset(spec.pools or ()), frozenset(spec.regions or ()), spec.spot, data)


def _deadline(value: float | str | None, workload: str, now: float, field: str) -> float:
    """Seconds since 1970: what the job says, else the deadline of its offline workload after submission."""
    if value is None:
        serve = getattr(_workload_of(workload), "serve", None) if workload else None
        return now + serve.deadline_s if serve is not None and serve.deadline_s else inf
    if not isinstance(value, str):
        return now + value
    when = datetime.fromisoformat(value).timestamp()
    if when <= now:
        raise InputError(field, value, "a time that is not over")
    return when


def _checkpoint(spec: JobSpec, base: Path) -> Checkpoint:
    restart = economics().value("restart_s")
    c = spec.checkpoint
    if c is None:
        return Checkpoint(restart=restart)
    folder = c.folder or ""
    if folder and "://" not in folder:
        folder = os.path.normpath(base / Path(folder).expanduser())
    return Checkpoint(
        c.restartable, inf if c.every is None else c.every, folder, restart if c.restart is None else c.restart
    )
