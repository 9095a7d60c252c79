"""A ledger behind the service: the same reads and commands, over a unix socket."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from chipwise.errors import ChipwiseError, InputError
from chipwise.io.closing import Closing
from chipwise.route.ledger.codec import unpack
from chipwise.route.ledger.error import Conflict
from chipwise.route.ledger.link import Link
from chipwise.route.ledger.records import AttemptRow, BackendRow, DecisionRow, Event, JobRow, NodeRow, RouterRow
from chipwise.route.ledger.rows import job_number

T = TypeVar("T")
READ_S, SUBMIT_S = 60.0, 900.0  # for an answer: a large submission is estimated for minutes
REMOTE = "unix://"


def is_remote(url: str) -> bool:
    """Whether a ledger's URL is that of a service."""
    return url.startswith(REMOTE)


class ServiceError(ChipwiseError):
    """What the service refuses or can't do, in its own words."""


class RemoteLedger(Closing):
    """The ledger of a service, as far as the user's role lets it be seen and changed."""

    def __init__(self, url: str) -> None:
        self.where, self.uid, self._link = url, "", Link(url)
        self.bad_rows: dict[str, Exception] = {}  # the service's to tell its operator

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    # jobs

    def job(self, job_id: str) -> JobRow:
        """One job."""
        return self._one(f"/v1/jobs/{job_number(job_id)}", "job", JobRow)

    def jobs(
        self, state: str | None = None, owner: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[JobRow]:
        """Jobs, newest first."""
        filters = {"state": state, "owner": owner, "name": name, "limit": limit}
        query = urlencode({key: value for key, value in filters.items() if value is not None})
        return self._many(f"/v1/jobs?{query}" if query else "/v1/jobs", "jobs", JobRow)

    def submit(self, documents: Sequence[Mapping[str, Any]], policy: str | None) -> dict[str, Any]:
        """Submit the documents of jobs, all or none; the submission as the service packs it."""
        body = {"jobs": list(documents), "policy": policy}
        return dict(self._ask("POST", "/v1/jobs", body, SUBMIT_S)["submission"])

    def change(self, what: str, job_ids: Sequence[str], now: float) -> None:
        """Cancel several jobs, or try them again: all of them, or none."""
        self._ask("POST", f"/v1/jobs/{what}", {"jobs": [str(job_number(job)) for job in job_ids]})

    def attempts(self, job_id: str | None = None) -> list[AttemptRow]:
        """The attempts of a job."""
        return self._of_job(job_id, "attempts", AttemptRow)

    def decisions(self, job_id: str, limit: int | None = None) -> list[DecisionRow]:
        """Decisions about a job, oldest first; the last `limit` of them."""
        return self._of_job(job_id, "decisions", DecisionRow, "" if limit is None else f"?limit={limit}")

    def events(self, job_id: str | None = None) -> list[Event]:
        """The events of a job, oldest first."""
        return self._of_job(job_id, "events", Event)

    def printed(self, job_id: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        """What failed attempts of a job printed last: by attempt the file and its last lines."""
        outputs = self._ask("GET", f"/v1/jobs/{job_number(job_id)}/output")["output"]
        return {attempt: (one["path"], tuple(one["last"])) for attempt, one in outputs.items()}

    def log(self, job_id: str, attempt: int, start: int) -> tuple[str, int, bytes, int] | None:
        """A part of what an attempt printed: its file, where the part begins, the bytes, and the file's size."""
        part = self._ask("GET", f"/v1/jobs/{job_number(job_id)}/log?attempt={attempt}&start={start}")["log"]
        return part and (part["path"], part["start"], b64decode(part["data"]), part["size"])

    # routers, backends, pools

    def routers(self) -> list[RouterRow]:
        """Routers that have written to this ledger, the last seen first."""
        return self._many("/v1/routers", "routers", RouterRow)

    def backends(self) -> list[BackendRow]:
        """How backends have answered of late."""
        return self._many("/v1/backends", "backends", BackendRow)

    def drain(self, pool: str, on: bool, reason: str, now: float) -> None:
        """Let no job start in a pool, or let them again."""
        self._ask("POST", f"/v1/pools/{quote(pool, safe='')}/{'drain' if on else 'resume'}", {"reason": reason})

    def drained(self) -> dict[str, str]:
        """Pools in which no job is to start, with the reason."""
        return dict(self._ask("GET", "/v1/pools")["drained"])

    def drain_nodes(self, pool: str, nodes: Sequence[str], on: bool, reason: str, now: float) -> None:
        """Let no job start on some nodes of a pool, or let them again."""
        body = {"reason": reason, "nodes": list(nodes)}
        self._ask("POST", f"/v1/pools/{quote(pool, safe='')}/{'drain' if on else 'resume'}", body)

    def nodes(self) -> list[NodeRow]:
        """Nodes that were drained or resumed, as they stand now."""
        return self._many("/v1/pools", "nodes", NodeRow)

    def totals(self) -> dict[str, dict[str, float]]:
        """Sums: jobs and attempts by state, chips held by pool, dollars spent by pool; of one's own jobs, or of all."""
        return dict(self._ask("GET", "/v1/totals")["totals"])

    def check(self) -> list[str]:
        """What is inconsistent in the ledger, one line each."""
        return list(self.status()["inconsistencies"])

    def status(self) -> dict[str, Any]:
        """How routing stands, as the service packs it."""
        return {"inconsistencies": [], **self._ask("GET", "/v1/status")["status"]}

    def identity(self) -> dict[str, str]:
        """Who the service takes us for."""
        return dict(self._ask("GET", "/v1/identity")["identity"])

    def _of_job(self, job_id: str | None, what: str, kind: type[T], query: str = "") -> list[T]:
        if job_id is None:
            raise InputError("job", "nothing", "the number of a job: a service shows them one by one")
        return self._many(f"/v1/jobs/{job_number(job_id)}/{what}{query}", what, kind)

    def _one(self, path: str, key: str, kind: type[T]) -> T:
        return self._unpacked(kind, self._ask("GET", path)[key])

    def _many(self, path: str, key: str, kind: type[T]) -> list[T]:
        return [self._unpacked(kind, one) for one in self._ask("GET", path)[key]]

    def _unpacked(self, kind: type[T], document: Any) -> T:
        try:
            return unpack(kind, document)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ServiceError(f"service {self.where}: its answer can't be read; is it of another version?") from None

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, limit_s: float = READ_S) -> Any:
        status, text = self._link.ask(
            method, path, None if body is None else json.dumps(body).encode(), time.monotonic() + limit_s
        )
        try:
            answer = json.loads(text)
            if not isinstance(answer, dict):
                raise ValueError(text)
        except (ValueError, RecursionError):
            raise ServiceError(f"service {self.where}: its answer (status {status}) is none of chipwise's") from None
        if status != 200:
            raise _error(answer.get("error"), self.where, status)
        return answer


def _error(told: Any, where: str, status: int) -> ChipwiseError:
    """The error that a service answered with, as the verb would raise it on the ledger itself."""
    told = told if isinstance(told, dict) else {}
    message = told.get("message")
    if told.get("kind") == "input" and all(isinstance(told.get(key), str) for key in ("field", "value", "accepted")):
        return InputError(told["field"], told["value"], told["accepted"])
    if told.get("kind") == "conflict" and isinstance(message, str):
        return Conflict(message)
    return ServiceError(message if isinstance(message, str) else f"service {where}: status {status}")
