"""Job, pools and trace files against their schemas; what is wrong with one is a line that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from chipwise.io.schema_errors import Wording, validate

if TYPE_CHECKING:
    from pydantic import BaseModel

    Spec = TypeVar("Spec", bound=BaseModel)


def checked(kind: type[Spec], raw: Mapping[str, Any], file: str, prefix: str = "") -> Spec:
    """The contents of a file as its spec; an `InputError` for the first thing that can't be used."""
    from chipwise.route.spec.fields import NAME, PLAIN, VARIABLE
    from chipwise.route.spec.pools import SHAPE

    wording = Wording(
        schema=f"chipwise schema {file}",
        patterns={
            NAME: "a name of at most 63 letters, digits, dots, dashes and underscores",
            VARIABLE: "the name of a variable: letters, digits and underscores",
            PLAIN: "one line without control characters or marks of text direction",
            SHAPE: "a shape such as 2x4",
        },
        secret=frozenset({"environment", "secrets"}),
    )
    return validate(kind, raw, wording, prefix)
