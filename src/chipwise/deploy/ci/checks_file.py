"""The checks file: a team's programs, the targets of each, and how much slower one may become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from chipwise.errors import InputError
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.io.schema_errors import validate
from chipwise.units import parse_share
from chipwise.workload.fields import Strict

LIMIT = 0.05  # slower than the base branch: compilers are deterministic, a change of 5 % is one (own, 2026-11-20)
SUCH = "`checks: [{program: train.py:step, on: v5e:4x4}]`"


class CheckSpec(Strict):
    """One program as people write it."""

    program: str
    on: str | list[str]
    name: str = ""
    layout: str | None = None
    mode: str = "train"
    torch: bool | None = None
    axes: dict[str, int] | None = None
    choose: dict[str, str | int | float | bool] = Field(default_factory=dict)
    size: dict[str, int] = Field(default_factory=dict)
    option: dict[str, str | int | float | bool] = Field(default_factory=dict)
    with_: dict[str, str | int | float | bool] = Field(default_factory=dict, alias="with")


class ChecksSpec(Strict):
    """The file."""

    checks: list[CheckSpec] = Field(min_length=1, max_length=200)
    limit: str | float = LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The checks of a team."""

    checks: tuple[CheckSpec, ...]
    limit: float  # slower than the base branch, as a share

    @property
    def chips(self) -> list[str]:
        """The names of all chips that are compiled for."""
        return [target.partition(":")[0].strip() for check in self.checks for target in targets_of(check)]


def targets_of(check: CheckSpec) -> list[str]:
    """The targets of a check, one by one."""
    texts = [check.on] if isinstance(check.on, str) else check.on
    return [target.strip() for text in texts for target in text.split(",") if target.strip()]


def name_of(check: CheckSpec) -> str:
    """What a check is called: its name, else its program."""
    return check.name or check.program


def read_checks(path: Path) -> Checks:
    """The checks file; an `InputError` names the field that can't be used."""
    return checks_of(parse_yaml(read_text(path, MAX_YAML_BYTES), path.name, such=SUCH))


def checks_of(raw: Mapping[str, Any]) -> Checks:
    """The checks that a mapping holds."""
    spec = validate(ChecksSpec, raw)
    names = [name_of(check) for check in spec.checks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError("checks", twice, "each name once: `name: NAME` tells two checks of one program apart")
    empty = next((check for check in spec.checks if not targets_of(check)), None)
    if empty is not None:
        raise InputError("checks.on", str(empty.on), "chips and how many: v5e:4x4,h100:8")
    return Checks(checks=tuple(spec.checks), limit=parse_share(spec.limit, "limit"))
