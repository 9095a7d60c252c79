"""What pydantic found wrong with a workload file, in one line that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chipwise.errors import InputError, UnknownName
from chipwise.workload.build import NOTHING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def explain(error: ErrorDetails) -> InputError:
    """The first thing pydantic found wrong, as one line."""
    loc = [str(part) for part in error["loc"]]
    tags = {"name", "hf", "preset", "spelled"}
    known = _keys_at(loc[:-1])
    if len(loc) > 1 and loc[0] == "model" and loc[1] in tags:
        del loc[1]
    field = ".".join(_plain(part) for part in loc) or "file"
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return UnknownName(field, _plain(loc[-1]), known, f" ({', '.join(known)})")
    if kind == "missing":
        return InputError(field, NOTHING, f"a value{_described(error)}")
    if kind == "literal_error":
        options = str(ctx["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        if isinstance(value, str):
            return UnknownName(field, value, options)
        return InputError(field, value, f"one of {', '.join(options)}")
    if field == "model":
        return InputError(field, value, "a model's name, {hf: path}, {preset: name, ...} or {family: ...}")
    return InputError(field, value, _accepted(kind, ctx))


def _accepted(kind: str, ctx: Mapping[str, Any]) -> str:
    if kind == "value_error":
        return str(ctx["error"])
    if kind == "greater_than_equal":
        return f"a whole number of at least {ctx['ge']}"
    if kind == "less_than_equal":
        return f"at most {ctx['le']:,}"
    return {
        "int_type": "a whole number",
        "bool_type": "true or false",
        "string_type": "text",
        "string_too_short": "a name",
        "string_too_long": "a shorter name",
        "string_pattern_mismatch": "a name of letters, digits, dots and dashes",
        "list_type": "a list",
        "too_short": "at least one entry",
        "too_long": "a shorter list",
    }.get(kind, "keys and values")


def _spec_at(loc: list[str]) -> Any:
    """The pydantic model a location lies in."""
    from chipwise.workload import serve_spec, spec

    tops = {"hf": spec.HfModel, "preset": spec.PresetModel, "spelled": spec.SpelledModel}
    inner = {
        "train": spec.TrainSpec, "lora": spec.LoraSpec, "experts": spec.ExpertsSpec,
        "latent": spec.LatentSpec, "convs": spec.ConvSpec, "serve": serve_spec.ServeSpec,
        "arrival": serve_spec.ArrivalSpec, "slo": serve_spec.SloSpec, "offline": serve_spec.OfflineSpec,
    }  # fmt: skip
    here: Any = spec.WorkloadSpec
    for part in loc:
        here = inner.get(part) or tops.get(part) or here
    return here


def _keys_at(loc: list[str]) -> list[str]:
    return list(_spec_at(loc).model_fields)


def _described(error: ErrorDetails) -> str:
    """What a missing field means, from its own description."""
    loc = [str(part) for part in error["loc"]]
    found = _spec_at(loc[:-1]).model_fields.get(loc[-1])
    text = str(found.description or "").rstrip(".") if found else ""
    return f": {text[0].lower()}{text[1:]}" if text else ""


def _plain(word: str) -> str:
    """A key fit for one line, however odd it is."""
    shown = word.encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= 60 else shown[:57] + "..."
