"""The service's API: one function a request, from who asks and what for to a document. It knows nothing of sockets."""

from __future__ import annotations

import queue
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from chipwise.errors import ChipwiseError, InputError
from chipwise.route.access import Forbidden, Identity
from chipwise.route.attempt_log import attempt_of, read_log
from chipwise.route.attempt_output import read_outputs
from chipwise.route.job import Job
from chipwise.route.ledger import Ledger, LedgerError
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.codec import pack
from chipwise.route.ledger.records import JobRow
from chipwise.route.load import Pools
from chipwise.route.names import JOB_STATES
from chipwise.route.pool_nodes import check_names, check_nodes
from chipwise.route.router.status import status_at
from chipwise.route.submit import Submission
from chipwise.service.admission import submit_documents
from chipwise.service.limits import Failures, Limits
from chipwise.service.requests import ApiError, ApiRequest, ApiResponse, answered, refused

MOST_ROWS = 10_000  # of one answer
MOST_CHANGED = 10_000  # jobs of one command
SUBMISSION_S = 60.0  # for which a submission waits for those before it
MOST_PATH = 200  # characters of a path that are said or kept
CHAIN = "service "  # before the service's name, of its chain in the audit log
Handler = Callable[[ApiRequest, Ledger, tuple[str, ...]], ApiResponse]


class Api:
    """Answers requests on a ledger. `ledgers`: connections, each used by one request at a time."""

    def __init__(
        self,
        ledgers: list[Ledger],
        pools: Callable[[], Pools],
        name: str,
        clock: Callable[[], float] = time.time,
        say: Callable[[str], None] = lambda line: None,
        refusals: Failures | None = None,
    ) -> None:
        self._pools, self.name, self.clock, self.say = pools, name, clock, say
        self._refusals = refusals or Failures(Limits().refusals, Limits().failures_s)
        self._notes: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._places, self._submitting, self._most = threading.Condition(), set[str](), max(1, len(ledgers) // 2)
        self._ledgers: queue.SimpleQueue[Ledger] = queue.SimpleQueue()
        for ledger in ledgers:
            self._ledgers.put(ledger)
        # a star stands for one part of the path
        self._routes: Mapping[tuple[str, str], Handler] = {
            ("GET", "v1/identity"): self._identity,
            ("GET", "v1/jobs"): self._jobs,
            ("POST", "v1/jobs"): self._submit,
            ("POST", "v1/jobs/cancel"): self._change,
            ("POST", "v1/jobs/retry"): self._change,
            ("GET", "v1/jobs/*"): self._job,
            ("GET", "v1/jobs/*/attempts"): self._attempts,
            ("GET", "v1/jobs/*/decisions"): self._decisions,
            ("GET", "v1/jobs/*/events"): self._events,
            ("GET", "v1/jobs/*/output"): self._output,
            ("GET", "v1/jobs/*/log"): self._log,
            ("GET", "v1/totals"): self._totals,
            ("GET", "v1/routers"): self._routers,
            ("GET", "v1/backends"): self._backends,
            ("GET", "v1/pools"): self._drained,
            ("POST", "v1/pools/*/drain"): self._drain,
            ("POST", "v1/pools/*/resume"): self._drain,
            ("GET", "v1/status"): self._status,
        }

    def answer(self, request: ApiRequest) -> ApiResponse:
        """Carry a request out, as far as its identity may; whatever is wrong with it is an answer too."""
        try:
            handler = self._handler(request)
            with self._submission(handler, request.identity.user), self._ledger() as ledger:
                self._write_notes(ledger)
                try:
                    self._check_refusals(request)
                    return handler(request, ledger, request.parts)
                except Forbidden as error:
                    self._note_refusal(ledger, request, str(error))
                    raise
        except ChipwiseError as error:
            return refused(error)

    def note(self, command: str, detail: str) -> None:
        """Something for the audit log that the service itself does or sees; written before the next request."""
        self._notes.put((command, detail))

    def _write_notes(self, ledger: Ledger) -> None:
        with suppress(queue.Empty):
            while True:
                command, detail = self._notes.get_nowait()
                actor = replace(ledger.actor, chain=CHAIN + self.name)
                try:
                    ledger.note_command(actor, command, detail, self.clock())
                except LedgerError:
                    self.note(command, detail)
                    raise

    def close(self) -> None:
        """Write what is left to be noted."""
        with self._ledger() as ledger:
            try:
                self._write_notes(ledger)
            except LedgerError as error:
                self.say(f"the audit log lacks the service's last entries: {error}")

    def _check_refusals(self, request: ApiRequest) -> None:
        """Hear nobody out whose commands are refused all the time: each is an entry of the audit log."""
        wait = self._refusals.wait_s(request.identity.user) if request.method != "GET" else 0.0
        if wait:
            raise ApiError(
                429, "too many commands that your role forbids; try again later", {"Retry-After": str(int(wait) + 1)}
            )

    def _handler(self, request: ApiRequest) -> Handler:
        allowed = []
        for (method, pattern), handler in self._routes.items():
            parts = pattern.split("/")
            if len(parts) == len(request.parts) and all(
                want in ("*", part) for want, part in zip(parts, request.parts, strict=True)
            ):
                if method == request.method:
                    return handler
                allowed.append(method)
        if allowed:
            raise ApiError(405, f"{request.method} is not accepted here; expected {', '.join(allowed)}")
        raise ApiError(404, "there is nothing at this path; the API is under /v1/")

    @contextmanager
    def _ledger(self) -> Iterator[Ledger]:
        ledger = self._ledgers.get()
        try:
            yield ledger
        finally:
            self._ledgers.put(ledger)

    @contextmanager
    def _submission(self, handler: Handler, user: str) -> Iterator[None]:
        """A place among the submissions, which are estimated for seconds: one for each user, so that none takes those
        of others. Reads never wait for them."""
        if handler != self._submit:
            yield
            return
        with self._places:
            if not self._places.wait_for(
                lambda: user not in self._submitting and len(self._submitting) < self._most, SUBMISSION_S
            ):
                raise ApiError(503, "too many submissions at once; try again", {"Retry-After": "10"})
            self._submitting.add(user)
        try:
            yield
        finally:
            with self._places:
                self._submitting.discard(user)
                self._places.notify_all()

    def actor(self, identity: Identity) -> Actor:
        """An identity as the audit log has it."""
        return Actor(CHAIN + self.name, identity.user, identity.role, identity.source)

    def _note_refusal(self, ledger: Ledger, request: ApiRequest, why: str) -> None:
        path = request.path[:MOST_PATH]
        self.say(f"refused {request.identity.user} ({request.identity.source}): {request.method} {path}: {why[:400]}")
        if request.method != "GET":
            self._refusals.note(request.identity.user)
            ledger.note_command(self.actor(request.identity), "refused", f"{path}: {why}"[:400], self.clock())

    # reads

    def _identity(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        return answered(identity=pack(request.identity))

    def _jobs(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        request.identity.check("read")
        state, owner, name = (request.query.get(key) for key in ("state", "owner", "name"))
        if state is not None and state not in JOB_STATES:
            raise InputError("state", state, f"one of {', '.join(JOB_STATES)}")
        if not request.identity.reads_all:
            if owner not in (None, request.identity.user):
                return answered(jobs=[])
            owner = request.identity.user
        rows = ledger.jobs(state, owner, name, _limit(request, MOST_ROWS))
        return answered(jobs=[pack(_shown(row)) for row in rows])

    def _job(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        return answered(job=pack(_shown(_own(request, ledger, parts[2]))))

    def _attempts(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        row = _own(request, ledger, parts[2])
        return answered(attempts=[pack(attempt) for attempt in ledger.attempts(row.id)])

    def _decisions(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        row = _own(request, ledger, parts[2])
        return answered(decisions=[pack(one) for one in ledger.decisions(row.id, _limit(request, MOST_ROWS))])

    def _events(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        row = _own(request, ledger, parts[2])
        return answered(events=[pack(event) for event in ledger.events(row.id, limit=MOST_ROWS)])

    def _output(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        row = _own(request, ledger, parts[2])
        outputs = read_outputs(ledger, ledger.attempts(row.id))
        return answered(output={name: {"path": one.path, "last": one.last} for name, one in outputs.items()})

    def _log(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        row = _own(request, ledger, parts[2])
        attempt = attempt_of(row, ledger.attempts(row.id), _whole(request.query, "attempt"))
        part = read_log(ledger, attempt, _whole(request.query, "start") or 0)
        if part is None:
            return answered(log=None)
        data = b64encode(part.data).decode("ascii")
        return answered(log={"path": part.path, "start": part.start, "size": part.size, "data": data})

    def _totals(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        request.identity.check("read")
        return answered(totals=ledger.totals(None if request.identity.reads_all else request.identity.user))

    def _routers(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        request.identity.check("read")
        return answered(routers=[pack(row) for row in ledger.routers()])

    def _backends(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        request.identity.check("read")
        return answered(backends=[pack(row) for row in ledger.backends()])

    def _drained(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        request.identity.check("read")
        nodes = [pack(row) for row in ledger.nodes()]
        return answered(drained=ledger.drained(), nodes=nodes, pools=[pool.name for pool in self._pools().pools])

    def _status(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        request.identity.check("status")
        status = status_at(ledger, self.clock())
        oldest = None if status.oldest is None else _shown(status.oldest)
        return answered(status=pack(replace(status, oldest=oldest, ledger="")))

    # commands

    def _submit(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        identity = request.identity
        identity.check("submit")
        body = _object(request)
        submission: Submission = submit_documents(
            ledger, body.get("jobs"), body.get("policy"), self._pools(), identity, self.actor(identity), self.clock()
        )
        ids = ", ".join(job.row.id for job in submission.jobs[:5]) + (", ..." if len(submission.jobs) > 5 else "")
        self.say(f"{identity.user} ({identity.source}) submitted {len(submission.jobs)}: {ids}")
        shown = tuple(replace(job, row=_shown(job.row)) for job in submission.jobs)
        return answered(submission=pack(replace(submission, jobs=shown, ledger="", assumptions=())))

    def _change(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        what, jobs = parts[2], _object(request).get("jobs")
        request.identity.check(what)
        if not isinstance(jobs, list) or not 0 < len(jobs) <= MOST_CHANGED or not all(isinstance(j, str) for j in jobs):
            raise InputError("jobs", _brief(jobs), f'a list of 1 to {MOST_CHANGED} numbers of jobs as text: ["1", "2"]')
        for job in jobs:
            _own(request, ledger, job, what)
        ledger.change(what, list(dict.fromkeys(jobs)), self.clock(), self.actor(request.identity))
        self.say(f"{request.identity.user} ({request.identity.source}): {what} {', '.join(jobs[:5])}")
        return answered(jobs=jobs)

    def _drain(self, request: ApiRequest, ledger: Ledger, parts: tuple[str, ...]) -> ApiResponse:
        name, what = parts[2], parts[3]
        request.identity.check(what)
        pool, body = self._pools().pool(name), _object(request)
        reason, nodes = body.get("reason", ""), body.get("nodes")
        if not isinstance(reason, str) or (what == "drain" and not reason.strip()):
            raise InputError("reason", _brief(reason), "why, in a few words")
        actor, place = self.actor(request.identity), name
        if nodes is None:
            ledger.drain(name, what == "drain", reason, self.clock(), actor)
        else:
            nodes = check_names(nodes)
            if what == "drain":
                check_nodes(self._pools(), pool, nodes, ledger.uid)
            ledger.drain_nodes(name, nodes, what == "drain", reason, self.clock(), actor)
            place = f"{', '.join(nodes[:5])} of {name}"
        self.say(f"{request.identity.user} ({request.identity.source}): {what} {place}")
        return answered(drained=ledger.drained(), nodes=[pack(row) for row in ledger.nodes()])


def _own(request: ApiRequest, ledger: Ledger, job: str, command: str = "read") -> JobRow:
    """A job that the identity may do this to. Another's is answered as one that does not exist."""
    identity = request.identity
    identity.check(command)
    try:
        row = ledger.job(job)
    except InputError:
        if identity.reads_all:
            raise
        identity.check(command, "", job)
        raise
    identity.check(command, row.user, job)
    return row


def _shown(row: JobRow) -> JobRow:
    """A job as it is sent: of its environment the names alone, as the verbs show it."""
    return replace(row, job=_bare(row.job)) if any(variant.environment for variant in row.job.variants) else row


def _bare(job: Job) -> Job:
    variants = (replace(v, environment=tuple((name, "") for name, _ in v.environment)) for v in job.variants)
    return replace(job, variants=tuple(variants))


def _limit(request: ApiRequest, most: int) -> int:
    text = request.query.get("limit")
    if text is None:
        return most
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise InputError("limit", text, f"a whole number from 1 to {most}")
    return min(int(text), most)


def _whole(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is not None and not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise InputError(name, text[:80], "a whole number")
    return None if text is None else int(text)


def _object(request: ApiRequest) -> Mapping[str, Any]:
    if not isinstance(request.body, dict):
        raise InputError("body", _brief(request.body), "a JSON object")
    return request.body


def _brief(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__ if isinstance(value, (dict, list)) else str(value)[:80]
