"""Names that Kubernetes accepts, made from any; and strings that arrive as they are."""

from __future__ import annotations

import hashlib
import re

from chipwise.route.backend import BackendRefused

# KubeRay accepts names of RayJobs up to 47 characters (53 for the cluster's services, less 6 that it adds:
# ray-operator/controllers/ray/utils/constant.go of ray-project/kuberay, 2026-11-15), and JobSet makes host names of 63
# out of its own plus "-w-0-NNNN"; 40 leaves room for both
NAME_LIMIT = 40
LABEL_LIMIT = 63  # of a label's value: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")  # RFC 1035: begins with a letter, as services' names must
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
# accepted by every version that has JobSet; 1.34 takes more
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def object_name(attempt: str) -> str:
    """The name of an attempt's object: always the same for the same attempt, never for another.

    >>> object_name("cw1-17-2"), object_name("7F-Ü")
    ('cw1-17-2', 'cw-7f-747a27842d19')
    """
    if len(attempt) <= NAME_LIMIT and _NAME.fullmatch(attempt):
        return attempt
    plain = re.sub(r"[^a-z0-9]+", "-", attempt.lower()).strip("-")
    return f"cw-{plain[:20]}".rstrip("-") + "-" + _digest(attempt)


def label_value(text: str) -> str:
    """A label's value that stands for a text, and for no other.

    >>> label_value("team-a"), label_value("a b")
    ('team-a', 'a-b-c8687a08aa5d')
    """
    if len(text) <= LABEL_LIMIT and _LABEL.fullmatch(text):
        return text
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-_.")
    return f"{plain[:40]}".rstrip("-_.") + ("-" if plain else "") + _digest(text)


def annotation(text: str) -> str:
    """A text as an annotation: what is no UTF-8 is written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def literal(text: str, what: str) -> str:
    """A string that a program gets unchanged: Kubernetes puts variables for $(NAME), and $ for $$.

    >>> literal("echo $(HOME) $$", "an argument")
    'echo $$(HOME) $$$$'
    """
    if "\0" in text:
        raise BackendRefused(f"kubernetes: {what} has a NUL, which no program can be given")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BackendRefused(f"kubernetes: {what} is no UTF-8, and Kubernetes carries nothing else") from None
    return text.replace("$", "$$")


def variable(name: str) -> str:
    """A variable's name, if Kubernetes takes it."""
    if not _VARIABLE.fullmatch(name):
        raise BackendRefused(f"kubernetes: variable {name!r} is not accepted; expected letters, digits, -, _ and .")
    return name


def secret_key(name: str) -> str:
    """A key of a Secret, if Kubernetes takes it."""
    if not _KEY.fullmatch(name):
        raise BackendRefused(f"kubernetes: secret {name!r} is not accepted; expected letters, digits, -, _ and .")
    return variable(name)


def pairs(text: str, field: str) -> dict[str, str]:
    """KEY=VALUE, several by commas, as in the pools file.

    >>> pairs("a=b, example.com/c=d", "selector")
    {'a': 'b', 'example.com/c': 'd'}
    """
    labels = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not _LABEL.fullmatch(value.strip()) or len(value.strip()) > LABEL_LIMIT:
            raise BackendRefused(f"kubernetes: {field} {part!r} is not accepted; expected KEY=VALUE")
        labels[key.strip()] = value.strip()
    return labels


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
