"""Values that must not be written down: variables and arguments that look like secrets are refused and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.errors import InputError
from chipwise.route.secret import BEGINNINGS, KEY, RESERVED, VARIABLE, named_secret, reserved

HARMLESS = re.compile(r"(?:-?\d{1,6}(?:\.\d{1,6})?|true|false|yes|no|on|off)?", re.IGNORECASE)
# How secrets of well-known services begin, and passwords inside addresses
SECRET_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}"
    r"|ya29\.[0-9A-Za-z_-]{20,})|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@"
)
NAMED = ("secret", "secrets")  # of backends: names of objects that hold them
INSTEAD = "no value in the file: name it under `secrets`, and the backend fetches it when the job starts"


def refuse_secrets(environment: Mapping[str, str], field: str) -> None:
    """Refuse variables that look like secrets; the message never shows the value."""
    for name, value in environment.items():
        if (named_secret(name) and not HARMLESS.fullmatch(value)) or SECRET_FORMS.search(value):
            raise InputError(field, name, INSTEAD)


def refuse_values(names: Iterable[str], field: str) -> None:
    """Refuse values that stand where names of variables are meant; the message never shows them."""
    for i, name in enumerate(names):
        if not VARIABLE.fullmatch(name) or SECRET_FORMS.search(name):
            raise InputError(f"{field}[{i}]", "its value", "the name of a variable such as HF_TOKEN, never its value")


def refuse_names(settings: Mapping[str, Any], field: str) -> None:
    """Refuse settings whose `secrets` are no list of names that jobs may be handed.

    Lower-case letters beside digits are taken for a value and not shown: keys and passwords have both, names of
    variables hardly ever.
    """
    names = settings.get(KEY, [])
    if not isinstance(names, list):
        raise InputError(f"{field}.{KEY}", "its value", "a list of names of variables such as [HF_TOKEN]")
    refuse_values(names, f"{field}.{KEY}")
    for i, name in enumerate(names):
        if re.search("[a-z]", name) and re.search("[0-9]", name):
            raise InputError(
                f"{field}.{KEY}[{i}]",
                "its value",
                "the name of a variable such as HF_TOKEN, never its value: no lower-case letters beside digits",
            )
        if reserved(name):
            raise InputError(
                f"{field}.{KEY}[{i}]",
                name,
                f"a variable other than {', '.join(sorted(RESERVED))}, and "
                f"none that begins with {', '.join(BEGINNINGS)}",
            )


def refuse_settings(settings: Mapping[str, str], field: str) -> None:
    """Refuse settings of backends that hold a secret; `secret` may name where one lies, as Kubernetes' own do."""
    for key, value in settings.items():
        if (named_secret(key) and key not in NAMED) or SECRET_FORMS.search(value):
            raise InputError(field, key, "no secret in the file: the backend's own means, or a variable")


def refuse_arguments(arguments: Iterable[str], field: str) -> None:
    """Refuse arguments that hold what looks like a secret; the message never shows them."""
    for i, text in enumerate(arguments):
        if SECRET_FORMS.search(text):
            raise InputError(
                field,
                f"argument {i} looks like a secret",
                "no secret in a command: name a variable under `secrets`, and let the program read it",
            )
