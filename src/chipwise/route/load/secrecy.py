"""Values that must not be written down: variables and arguments that look like secrets are refused, unseen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chipwise.errors import InputError

# Words of a variable's name that mean its value is a secret; PATH and FILE at the end mean it only says where one lies
WORDS = frozenset({"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "SECRETS", "TOKEN", "CREDENTIAL", "CREDENTIALS",
                   "APIKEY"})
KEYS = frozenset({"API", "ACCESS", "PRIVATE", "AUTH", "ENCRYPTION", "SIGNING", "SSH", "ACCOUNT", "SERVICE"})  # ..._KEY
WHERE = frozenset({"PATH", "FILE", "DIR", "FOLDER", "NAME", "URL", "ID"})
HARMLESS = re.compile(r"(?:-?\d{1,6}(?:\.\d{1,6})?|true|false|yes|no|on|off)?", re.IGNORECASE)
# How secrets of well-known services begin, and passwords inside addresses
LOOKS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}"
    r"|ya29\.[0-9A-Za-z_-]{20,})|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@")
NAMED = ("secret", "secrets")  # of engines: names of objects that hold them
INSTEAD = "no value in the file: name it under `secrets`, and the engine fetches it when the job starts"


def named_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a secret.

    >>> [named_secret(name) for name in ("HF_TOKEN", "TOKENIZERS_PARALLELISM", "AWS_SECRET_ACCESS_KEY", "KEY_FILE")]
    [True, False, True, False]
    """
    words = re.split(r"[^A-Z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper())
    if words[-1] in WHERE or name == "GOOGLE_APPLICATION_CREDENTIALS":  # that one holds a path
        return False
    return bool(WORDS & set(words)) or any(
        word == "KEY" and words[i - 1] in KEYS for i, word in enumerate(words) if i)


def refuse_secrets(environment: Mapping[str, str], field: str) -> None:
    """Refuse variables that look like secrets; the message never shows the value."""
    for name, value in environment.items():
        if (named_secret(name) and not HARMLESS.fullmatch(value)) or LOOKS.search(value):
            raise InputError(field, name, INSTEAD)


def refuse_settings(settings: Mapping[str, str], field: str) -> None:
    """Refuse settings of engines that hold a secret; `secret` may name where one lies, as Kubernetes' own do."""
    for key, value in settings.items():
        if (named_secret(key) and key not in NAMED) or LOOKS.search(value):
            raise InputError(field, key, "no secret in the file: the engine's own means, or a variable")


def refuse_arguments(arguments: Iterable[str], field: str) -> None:
    """Refuse arguments that hold what looks like a secret; the message never shows them."""
    for i, text in enumerate(arguments):
        if LOOKS.search(text):
            raise InputError(field, f"argument {i} looks like a secret",
                             "no secret in a command: name a variable under `secrets`, and let the program read it")
