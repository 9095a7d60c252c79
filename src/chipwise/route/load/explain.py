"""What pydantic found wrong with a job or pools file, in one line that names the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from chipwise.errors import InputError, UnknownName

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    Spec = TypeVar("Spec", bound=BaseModel)

SIDES = frozenset(
    {  # pydantic's names for the sides of a union and for keys
        "constrained-str",
        "dict[str,any]",
        "[key]",
        "GivenSpec",
        "literal['any']",
        "bool",
        "int",
        "float",
        "str",
    }
)
BOUNDS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
}


def checked(kind: type[Spec], raw: Mapping[str, Any], file: str, prefix: str = "") -> Spec:
    """The contents of a file as its spec; an `InputError` for the first thing that can't be used."""
    from pydantic import ValidationError

    try:
        return kind.model_validate(raw)
    except ValidationError as e:
        errors = sorted(e.errors(include_url=False), key=lambda error: error["type"] != "extra_forbidden")
        raise _explained(errors, kind, file, prefix) from None


def _explained(errors: list[ErrorDetails], spec: type[BaseModel], file: str, prefix: str) -> InputError:
    from chipwise.route.spec.fields import BadPart

    error = _telling(errors)
    field = prefix
    for part in (part for part in error["loc"] if not _side(part)):
        shown = part if isinstance(part, int) else _plain(str(part))
        field += f"[{part}]" if isinstance(part, int) else f".{shown}" if field else str(shown)
    field = field or "file"
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        key = _plain(str(error["loc"][-1]))
        near = _keys(spec, error["loc"])
        return UnknownName(field, key, near, f": see `chipwise schema {file}`")
    sides = {e["type"] for e in errors if _place(e) == _place(error)}
    if {"string_type", "dict_type"} <= sides:
        return InputError(field, _shown(value), "the name of a file, or keys and values")
    inside = ctx.get("error")
    if isinstance(inside, BadPart):
        return InputError(f"{field}[{inside.index}]", _shown(inside.value), str(inside))
    if {"environment", "secrets"} & set(error["loc"]) and kind != "missing" and "[key]" not in error["loc"]:
        value = "its value"  # which may be a secret
    return InputError(field, "nothing" if kind == "missing" else _shown(value), _accepted(kind, ctx))


def _telling(errors: list[ErrorDetails]) -> ErrorDetails:
    """Of the sides of a union that all failed, the error of the one that was meant."""
    first = errors[0]
    if first["type"] == "extra_forbidden":
        return first
    alike = [e for e in errors if _place(e)[: len(_place(first))] == _place(first)]
    if isinstance(first["input"], dict | list):
        return max(alike, key=lambda e: len(_place(e)))
    said = [e for e in alike if e["type"] == "value_error"]
    text = [e for e in alike if e["type"].startswith("string_") and isinstance(e["input"], str)]
    return next(iter(said + text), first)


def _place(error: ErrorDetails) -> list[int | str]:
    return [part for part in error["loc"] if not _side(part)]


def _side(part: object) -> bool:
    return isinstance(part, str) and (part in SIDES or part.startswith(("function-", "list[", "dict[", "constrained-")))


def _keys(spec: type[BaseModel], loc: Iterable[int | str]) -> list[str]:
    """The keys there are where a wrong one stands."""
    from pydantic import BaseModel

    here: Any = spec
    for part in list(loc)[:-1]:
        if isinstance(part, str) and hasattr(here, "model_fields") and part in here.model_fields:
            inner = _models(here.model_fields[part].annotation)
            here = inner[0] if inner else here
    return list(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _models(annotation: Any) -> list[Any]:
    """The sections that a field's type is made of."""
    from typing import get_args

    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for each in get_args(annotation) for found in _models(each)]


def _accepted(kind: str, ctx: Mapping[str, Any]) -> str:
    if kind == "missing":
        return "a value"
    if kind == "value_error":
        return str(ctx["error"])
    if kind == "literal_error":
        return f"one of {str(ctx['expected']).replace(' or ', ', ').replace(chr(39), '')}"
    if kind in BOUNDS:
        return "a number of " + BOUNDS[kind].format(**ctx)
    if kind == "string_pattern_mismatch":
        return _pattern(str(ctx.get("pattern", "")))
    fewest = ctx.get("min_length", 1)
    plain = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "float_parsing": "a number",
        "string_type": "text",
        "bool_type": "true or false",
        "list_type": "a list",
        "too_short": "at least one entry" if fewest == 1 else f"at least {fewest} entries",
        "too_long": f"at most {ctx.get('max_length', 0):,} entries",
        "string_too_short": "text",
        "string_too_long": f"text of at most {ctx.get('max_length', 0):,} characters",
    }
    return plain.get(kind, "keys and values")


def _pattern(pattern: str) -> str:
    from chipwise.route.spec.fields import NAME, PLAIN, VARIABLE

    return {
        NAME: "a name of at most 63 letters, digits, dots, dashes and underscores",
        VARIABLE: "the name of a variable: letters, digits and underscores",
        PLAIN: "one line without control characters",
    }.get(pattern, "a shape such as 2x4")


def _plain(word: str) -> str:
    """A key fit for one line, however odd it is."""
    shown = word.encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _shown(value: Any) -> Any:
    """A value, or what kind of thing it is where it would be long, or is no one's to see."""
    if isinstance(value, list | tuple | dict):
        return value if not value else "keys and values" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else value if isinstance(value, str | int | float) else str(value)
