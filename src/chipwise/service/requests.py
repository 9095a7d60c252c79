"""Requests and responses of the service's API: plain data, whatever carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.errors import ChipwiseError, InputError
from chipwise.route.access import Forbidden, Identity
from chipwise.route.ledger import Conflict, LedgerError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What an identity asks for."""

    method: str
    path: str  # without the query
    identity: Identity
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # of JSON

    @property
    def parts(self) -> tuple[str, ...]:
        """The path's parts, decoded."""
        from urllib.parse import unquote

        return tuple(unquote(part) for part in self.path.strip("/").split("/"))


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A status of HTTP's, and a JSON document."""

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class ApiError(ChipwiseError):
    """A request that can't be answered, with the status of HTTP's that says why."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.headers = status, headers or {}
        super().__init__(message)


def answered(**document: Any) -> ApiResponse:
    """The answer to a request that was carried out."""
    return ApiResponse(200, {"schema": SCHEMA, **document})


def refused(error: ChipwiseError) -> ApiResponse:
    """The answer to a request that was not: the line that the command prints, with its parts."""
    status, kind = 400, "refused"
    details: dict[str, str] = {}
    headers: Mapping[str, str] = {}
    if isinstance(error, ApiError):
        status, headers = error.status, error.headers
    elif isinstance(error, Forbidden):
        status, kind = 403, "forbidden"
    elif isinstance(error, InputError):
        kind = "input"
        details = {"field": error.field, "value": str(error.value), "accepted": error.accepted}
    elif isinstance(error, Conflict):
        status, kind = 409, "conflict"
    elif isinstance(error, LedgerError):
        # where the ledger lies is not the client's business
        return ApiResponse(
            503, {"schema": SCHEMA, "error": {"kind": "ledger", "message": "the service's ledger can't be used now"}}
        )
    return ApiResponse(status, {"schema": SCHEMA, "error": {"kind": kind, "message": str(error), **details}}, headers)
