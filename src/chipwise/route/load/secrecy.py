"""Values that must not be written down: variables and arguments that look like secrets are refused and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.errors import InputError
from chipwise.route.load.secret_forms import looks_secret
from chipwise.route.secret import BEGINNINGS, KEY, RESERVED, VARIABLE, named_secret, reserved

HARMLESS = re.compile(r"(?:-?\d{1,6}(?:\.\d{1,6})?|true|false|yes|no|on|off)?", re.IGNORECASE)
NAMED = ("secret", "secrets")  # of backends: names of objects that hold them
INSTEAD = (
    "no value in the file: name it under the job's `secrets: [{name}]`, allow it by `secrets: [{name}]` of the pool or "
    "backend in the pools file (kubernetes: `secret:` names the Secret that has it), and the backend fetches it"
)
FLAG = re.compile(r"--?([A-Za-z][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)


def refuse_secrets(environment: Mapping[str, str], field: str) -> None:
    """Refuse variables that look like secrets; the message never shows the value."""
    for name, value in environment.items():
        if (named_secret(name) and not HARMLESS.fullmatch(value)) or looks_secret(value):
            raise InputError(field, name, INSTEAD.format(name=name))


def refuse_values(names: Iterable[str], field: str) -> None:
    """Refuse values that stand where names of variables are meant; the message never shows them."""
    for i, name in enumerate(names):
        if not VARIABLE.fullmatch(name) or looks_secret(name):
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
        if (named_secret(key) and key not in NAMED) or looks_secret(value):
            raise InputError(field, key, "no secret in the file: the backend's own means, or a variable")


def refuse_arguments(arguments: Iterable[str], field: str) -> None:
    """Refuse arguments that hold what looks like a secret; the message never shows them."""
    for i, text in enumerate(arguments):
        flag = FLAG.fullmatch(text)
        named = flag is not None and named_secret(flag[1]) and not HARMLESS.fullmatch(flag[2])
        if named or looks_secret(text):
            raise InputError(
                field,
                f"argument {i} looks like a secret",
                "no secret in a command: name a variable under `secrets`, which the pools file allows, and let the "
                "program read it",
            )
