"""A source told by what it holds: YAML is a pools file, JSON a comparison or a fleet plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.deploy.deployment import Term
from chipwise.deploy.read.compare import read_comparison
from chipwise.deploy.read.fleet import read_plan
from chipwise.deploy.read.pools import read_pools_file
from chipwise.deploy.read.requests import Source
from chipwise.errors import BrokenFile, InputError, NoSuchFile
from chipwise.io.files import read_json
from chipwise.knowledge import Knowledge

EXPECTED = "a pools file (YAML), or what `compare -o json` or `fleet plan -o json` saved"


def read_source(
    source: str | Path | Mapping[str, Any],
    *,
    row: str | None = None,
    period: str | None = None,
    terms: Mapping[str, Term] | None = None,
    knowledge: Knowledge | None = None,
) -> Source:
    """The pools that a source asks for; `terms` by pool, or of all under an empty name, choose a comparison's offer."""
    if isinstance(source, Mapping):
        return _document(source, "source", row, period, terms or {})
    path = Path(source)
    if path.suffix.lower() in (".yaml", ".yml"):
        _refuse({"row": row, "period": period}, "a comparison's row" if row else "a fleet plan's period")
        try:
            return read_pools_file(path, knowledge)
        except NoSuchFile as error:
            raise error.under("source") from None
    try:
        document = read_json(path)
    except BrokenFile as error:
        if error.field == "file":
            raise error.under("source") from None
        if path.suffix.lower() != ".json":
            raise InputError("source", str(path), EXPECTED) from None
        raise
    return _document(document, str(path), row, period, terms or {})


def _document(
    document: Mapping[str, Any], name: str, row: str | None, period: str | None, terms: Mapping[str, Term]
) -> Source:
    try:
        return _of_verb(document, name, row, period, terms)
    except (KeyError, TypeError, AttributeError, ValueError) as error:  # a part is missing, or is something else
        raise BrokenFile("source", name, f"a document as chipwise wrote it ({type(error).__name__}: {error})") from None


def _of_verb(
    document: Mapping[str, Any], name: str, row: str | None, period: str | None, terms: Mapping[str, Term]
) -> Source:
    verb = document.get("command")
    if verb == "compare":
        _refuse({"period": period}, "a fleet plan's period")
        return read_comparison(document, row, terms)
    if verb == "fleet plan":
        _refuse({"row": row}, "a comparison's row")
        return read_plan(document, period)
    raise InputError("source", name, EXPECTED + (f", not one of {verb}" if isinstance(verb, str) else ""))


def _refuse(options: Mapping[str, str | None], what: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(name, value, f"nothing: it names {what}, which this source has not")
