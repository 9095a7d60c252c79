"""A decision as `compare -o json` saved it: its rows, what they were ranked by, and what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.errors import BrokenFile, InputError
from chipwise.io.files import read_json
from chipwise.present.numbers import rate
from chipwise.present.result import SCHEMA, Result
from chipwise.units import format_money, format_seconds

Json = Mapping[str, Any]
EXPECTED = "a decision that `chipwise compare -o json` saved"
QUESTION = ("workload", "demand", "terms", "objective")  # parts of a decision that say what was asked
WORDED = ("terms.words", "workload.name")  # that say another way what other keys say


@dataclass(frozen=True, slots=True)
class Document:
    """A saved decision, with the name it is spoken of by."""

    name: str
    data: Json

    @property
    def objective(self) -> str:
        """What the rows were ranked by: cost, time or energy."""
        return str(self.data["objective"])

    @property
    def pick(self) -> str | None:
        """The chips picked, if any."""
        pick = self.data["pick"]
        return None if pick is None else str(pick)

    @property
    def rows(self) -> list[Json]:
        """The rows, best first."""
        return list(self.data["rows"])

    @property
    def serving(self) -> bool:
        """Whether a model is served."""
        return "demand" in self.data

    def row(self, name: str | None) -> Json | None:
        """The row of these chips."""
        return next((row for row in self.rows if row["accelerators"]["name"] == name), None)

    def refusal(self, chip: str) -> str:
        """Why a chip was refused; empty where it was not."""
        reasons = (str(refused["reason"]) for refused in self.data.get("refused", ()) if refused["chip"] == chip)
        return next(reasons, "")

    def value(self, row: Json | None) -> float | None:
        """What a row was ranked by; None where it has no price."""
        if row is None:
            return None
        return _value(row.get(self._key(), {}) if self.objective == "cost" else row.get(self._key()))

    def _key(self) -> str:
        job = self.serving and self.data["demand"]["kind"] == "job"
        if self.objective == "cost":
            return "ondemand_usd_per_million_units" if job else "ondemand"
        if self.objective == "energy":
            return "joules_per_unit" if self.serving else "kwh"
        return "duration_seconds" if job or not self.serving else "unloaded_seconds"

    def shown(self, value: float | None) -> str:
        """What the rows were ranked by, for people."""
        if value is None:
            return "no price" if self.objective == "cost" else "-"
        if self.objective == "cost":
            return format_money(value)
        return format_seconds(value) if self.objective == "time" else f"{rate(value)} {'J' if self.serving else 'kWh'}"

    def question(self) -> dict[str, Any]:
        """What was asked, key by key."""
        asked = {key: value for part in QUESTION for key, value in _flat(part, self.data.get(part)).items()}
        return {key: value for key, value in asked.items() if key not in WORDED}


def document(source: str | Path | Json | Result, field: str) -> Document:
    """A decision from a file, a comparison, or what its `to_dict` gave."""
    if isinstance(source, Result):
        return _checked(Document(field, source.to_dict()), field, source.VERB)
    if isinstance(source, Mapping):
        return _checked(Document(field, source), field, source.get("command"))
    try:
        data = read_json(Path(source))
    except BrokenFile as error:
        raise error.under(field) from None
    return _checked(Document(str(source), data), field, str(source))


def _checked(made: Document, field: str, value: object) -> Document:
    data = made.data
    if data.get("command") != "compare":
        verb = data.get("command")
        raise InputError(field, value, f"{EXPECTED}, not one of {verb}" if isinstance(verb, str) else EXPECTED)
    if data.get("schema") != SCHEMA:
        raise InputError(f"{field} schema", data.get("schema"), f"{SCHEMA}, the one that this version writes")
    whole = all(key in data for key in ("objective", "pick", "rows", "workload", "terms"))
    rows = data.get("rows") if whole else None
    named = isinstance(rows, list) and all(isinstance(row, Mapping) and _has_name(row) for row in rows)
    if not named:
        raise InputError(field, value, EXPECTED)
    return made


def _has_name(row: Json) -> bool:
    chips = row.get("accelerators")
    return isinstance(chips, Mapping) and isinstance(chips.get("name"), str) and isinstance(chips.get("chip"), str)


def _value(estimate: Any) -> float | None:
    """The value of an estimate, or of a quote in US dollars."""
    while isinstance(estimate, Mapping):
        estimate = estimate.get("usd", estimate.get("value"))
    return float(estimate) if isinstance(estimate, int | float) else None


def _flat(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {name: cell for k, v in value.items() for name, cell in _flat(f"{key}.{k}", v).items()}
    return {key: value}
