"""Addresses that are asked by HTTP, and answers of a bounded size."""

from __future__ import annotations

from urllib.error import URLError
from urllib.parse import SplitResult, urlsplit
from urllib.request import Request, urlopen

from chipwise.errors import InputError

MAX_PAGE_BYTES = 64 * 2**20
UNANSWERED = (URLError, OSError, ValueError)  # what `fetch` raises where there is no answer


class TooLarge(ValueError):
    """An answer that is not read to its end."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is larger than {MAX_PAGE_BYTES // 2**20} MiB")


def http_url(text: str, field: str, expected: str) -> tuple[str, SplitResult]:
    """An address with its scheme, and its parts; http:// where it names none."""
    url = text if "://" in text else f"http://{text}"
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise InputError(field, text, expected)
    return url, parts


def fetch(request: Request, timeout_s: float, what: str) -> bytes:
    """The body of an answer; `TooLarge` says `what` is."""
    with urlopen(request, timeout=timeout_s) as answer:
        body: bytes = answer.read(MAX_PAGE_BYTES + 1)
    if len(body) > MAX_PAGE_BYTES:
        raise TooLarge(what)
    return body


def problem_of(error: Exception) -> str:
    """Why there is no answer, in words."""
    return str(getattr(error, "reason", None) or error)
