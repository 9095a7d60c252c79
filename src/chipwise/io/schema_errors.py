"""What pydantic found wrong with a file, as one `InputError` that names the field, the value and what is accepted.

Every room that reads a file through a schema translates its errors here; what only one schema knows (the meaning of a
pattern, what a union accepts as a whole, whose values are secret) it says in a `Wording`.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from chipwise.errors import NOTHING, InputError, UnknownName

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    Spec = TypeVar("Spec", bound=BaseModel)

LONGEST_KEY = 60  # characters of a key that are shown
# pydantic's names for the sides of a union and for keys of a mapping, which are no part of a field's name
SIDES = frozenset({"[key]", "bool", "int", "float", "str", "literal['any']"})
SIDE_PREFIXES = ("function-", "list[", "dict[", "constrained-")
BOUNDS = {
    "greater_than_equal": "at least {ge:,}",
    "greater_than": "more than {gt:,}",
    "less_than_equal": "at most {le:,}",
    "less_than": "less than {lt:,}",
}
KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_too_short": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "missing": "a value",
}


@dataclass(frozen=True, slots=True)
class Wording:
    """What one schema's errors are worded with beyond what pydantic says of them."""

    schema: str = ""  # the command that prints the schema, shown beside unknown keys
    patterns: Mapping[str, str] = field(default_factory=dict)  # regular expression -> what it accepts
    kinds: Mapping[str, str] = field(default_factory=dict)  # pydantic's kind of error -> what is accepted
    fields: Mapping[str, str] = field(default_factory=dict)  # a whole field -> what it accepts
    secret: frozenset[str] = frozenset()  # sections whose values are never shown


PLAIN = Wording()


def validate(
    spec: type[Spec], raw: Any, wording: Wording = PLAIN, prefix: str = "", context: Mapping[str, Any] | None = None
) -> Spec:
    """The contents of a file as its schema; an `InputError` for the first thing that can't be used.

    `context` is what validators of fields are shown beside a value.
    """
    from pydantic import ValidationError

    try:
        return spec.model_validate(raw, context=context)
    except ValidationError as error:
        raise translate(error, spec, wording, prefix) from None


def translate(error: ValidationError, spec: type[BaseModel], wording: Wording = PLAIN, prefix: str = "") -> InputError:
    """The most telling error in one line: an unknown key first, since a typo explains what is missing."""
    errors = sorted(error.errors(include_url=False), key=lambda found: found["type"] != "extra_forbidden")
    first = _meant(errors, spec)
    place = _Place.of(spec, first["loc"])
    name = place.name(prefix) or "file"
    kind, context = first["type"], first.get("ctx", {})
    value = shown(first["input"], hidden=bool(wording.secret))
    if kind == "extra_forbidden":
        return UnknownName(name, one_line(str(first["loc"][-1])), place.keys, _see(wording), "key")
    if name in wording.fields and kind != "missing":
        return InputError(name, value, wording.fields[name])
    sides = {found["type"] for found in errors if _Place.of(spec, found["loc"]).parts == place.parts}
    if {"string_type", "dict_type"} <= sides:
        return InputError(name, value, "the name of a file, or keys and values")
    part = context.get("error")
    if (
        isinstance(part, ValueError) and (index := getattr(part, "index", None)) is not None
    ):  # a validator refused one part of a list
        return InputError(f"{name}[{index}]", shown(getattr(part, "value", value), bool(wording.secret)), str(part))
    if wording.secret & set(first["loc"]) and kind != "missing" and "[key]" not in first["loc"]:
        value = "its value"
    accepted = _accepted(kind, context, place, wording)
    return InputError(name, NOTHING if kind == "missing" else value, accepted + _near(kind, value, context))


def _see(wording: Wording) -> str:
    return f": see `{wording.schema}`" if wording.schema else ""


def one_line(word: str) -> str:
    r"""A key fit for one line, however odd it is.

    >>> one_line("two\nlines")
    'two\\nlines'
    """
    escaped = word.encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= LONGEST_KEY else escaped[: LONGEST_KEY - 3] + "..."


def shown(value: Any, hidden: bool = False) -> Any:
    """A value as a message shows it; `hidden`: of what holds other values only the kind, since some may be secret.

    >>> shown({"a": 1}), shown({"a": 1}, hidden=True), shown([], hidden=True)
    ({'a': 1}, 'keys and values', [])
    """
    if isinstance(value, list | tuple | dict):
        return value if not (value and hidden) else "keys and values" if isinstance(value, dict) else "a list"
    return NOTHING if value is None else value if isinstance(value, str | int | float) else str(value)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error lies: the parts of its field's name, and the schema's section and field there."""

    parts: tuple[int | str, ...]
    section: type[BaseModel] | None  # that holds the last part
    annotation: Any  # of the last part; None where it isn't a field of a section
    description: str

    @classmethod
    def of(cls, spec: type[BaseModel], location: Sequence[int | str]) -> _Place:
        parts: list[int | str] = []
        section: type[BaseModel] | None = spec
        inside: type[BaseModel] | None = spec  # the section that the next part lies in
        sides: dict[str, type[BaseModel] | None] = {}  # of the union that the last field is, by their names
        annotation: Any = None
        description, keyed = "", False
        for part in location:
            if isinstance(part, str) and part in sides:
                inside, sides = sides[part], {}
                continue
            if _is_side(part):
                continue
            parts.append(part)
            if isinstance(part, int):
                continue
            section, key, keyed = inside, keyed, False
            known = section.model_fields.get(part) if section is not None and not key else None
            if known is not None:
                annotation, description = known.annotation, known.description or ""
                sides = dict(_sides(annotation))
                inside = next((side for side in sides.values() if side is not None), None)
                keyed = _is_mapping(annotation)
        return cls(tuple(parts), section, annotation, description)

    def name(self, prefix: str) -> str:
        """The field as people write it: ``pools[0].count``."""
        out = prefix
        for part in self.parts:
            out += f"[{part}]" if isinstance(part, int) else f".{one_line(part)}" if out else one_line(part)
        return out

    @property
    def keys(self) -> list[str]:
        """The keys there are in the section."""
        return [] if self.section is None else list(self.section.model_fields)


def _is_side(part: int | str) -> bool:
    """Whether a part of a location is pydantic's name for a side of a union, and not a key of the file."""
    return isinstance(part, str) and (part in SIDES or part.startswith(SIDE_PREFIXES))


def _sides(annotation: Any, tag: str = "") -> Iterable[tuple[str, type[BaseModel] | None]]:
    """The sides of a field's type by pydantic's name for them, each with its section where it is one."""
    from pydantic import BaseModel, Tag

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield tag or annotation.__name__, annotation
        return
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        tag = next((mark.tag for mark in inner[1:] if isinstance(mark, Tag)), tag)
        inner = inner[:1]
    for each in inner:
        yield from _sides(each, tag)
    if tag and not inner:
        yield tag, None


def _is_mapping(annotation: Any) -> bool:
    return any(get_origin(leaf) is dict for leaf in _leaves(annotation))


def _meant(errors: list[ErrorDetails], spec: type[BaseModel]) -> ErrorDetails:
    """Of the sides of a union that all failed, the error of the one that was meant."""
    first = errors[0]
    if first["type"] == "extra_forbidden":
        return first

    def place(error: ErrorDetails) -> tuple[int | str, ...]:
        return _Place.of(spec, error["loc"]).parts

    here = place(first)
    alike = [error for error in errors if place(error)[: len(here)] == here]
    if isinstance(first["input"], dict | list):
        return max(alike, key=lambda error: len(place(error)))
    refused = [error for error in alike if error["type"] == "value_error"]
    text = [error for error in alike if error["type"].startswith("string_") and isinstance(error["input"], str)]
    return next(iter(refused + text), first)


def _accepted(kind: str, context: Mapping[str, Any], place: _Place, wording: Wording) -> str:
    """What would have been accepted, in words."""
    if kind in wording.kinds:
        return wording.kinds[kind]
    if kind == "missing" and place.description:
        text = place.description.rstrip(".")
        return f"a value: {text[0].lower()}{text[1:]}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"one of {', '.join(_options(context))}"
    if kind in BOUNDS:
        number = "a whole number" if int in _leaves(place.annotation) else "a number"
        return f"{number} of {BOUNDS[kind].format(**context)}"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern", ""))
        return wording.patterns.get(pattern, f"text that matches {pattern}")
    if kind == "too_short":
        fewest = context.get("min_length", 1)
        return "at least one entry" if fewest == 1 else f"at least {fewest} entries"
    if kind == "too_long":
        return f"at most {context.get('max_length', 0):,} entries"
    if kind == "string_too_long":
        return f"text of at most {context.get('max_length', 0):,} characters"
    return KINDS.get(kind, "keys and values")


def _options(context: Mapping[str, Any]) -> list[str]:
    return str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")


def _near(kind: str, value: Any, context: Mapping[str, Any]) -> str:
    """The options nearest to a name that is none of them."""
    if kind != "literal_error" or not isinstance(value, str):
        return ""
    near = difflib.get_close_matches(value.lower(), _options(context), n=3, cutoff=0.5)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _leaves(annotation: Any) -> set[Any]:
    """The plain types that a field's type is made of."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _leaves(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return {leaf for side in get_args(annotation) for leaf in _leaves(side)}
    return {annotation}
