"""The audit log: an append-only hash chain of every command and decision, one chain for each writer.

Each row's hash is over the row and the hash of the row before it; the first is over the ledger's own name. A row is
written in the transaction of what it records, so that there is neither without the other. A scheduling pass is one row
with a digest over its decisions, a submission one with a digest over its jobs: both are computed again from the tables
when the log is verified. Where a repair has replaced rows, it writes their digests down again, with its name. Who can
write the database can write a whole new log; heads that were kept elsewhere tell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.codec import storable
from chipwise.route.ledger.database import Database, Row

COLUMNS = "chain, number, at, who, role, command, job_id, detail, previous, hash"
JOB_COLUMNS = "id, owner, submitter, team, job"
DECIDED, SUBMITTED, REPLACED = "decide", "submit", "replace"
_REPLACED_EACH = 100  # entries that one of a repair is about
MOST_DETAIL = 20_000  # characters
_BATCH = 5_000  # rows that are read at once when the log is verified


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry of a chain."""

    chain: str
    number: int
    at: float  # seconds since 1970
    who: str
    role: str
    command: str
    job_id: int | None
    detail: str
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a chain."""

    chain: str
    number: int
    hash: str


def append(db: Database, actor: Actor, command: str, detail: str, now: float, job: int | None = None) -> None:
    """Write the next entry of the actor's chain, inside the transaction of what it records."""
    last = db.one("SELECT number, hash FROM audit WHERE chain = ? ORDER BY number DESC LIMIT 1", storable(actor.chain))
    append_after(db, last, actor, command, detail, now, job)


def append_after(
    db: Database, last: Row | None, actor: Actor, command: str, detail: str, now: float, job: int | None = None
) -> None:
    """The same, where the number and the hash of the chain's last entry are known; None: it has none."""
    chain = storable(actor.chain)
    number, previous = (1, _genesis(db, chain)) if last is None else (int(last[0]) + 1, str(last[1]))
    who = _person(actor)
    detail = storable(detail)
    detail = detail if len(detail) <= MOST_DETAIL else f"{detail[: MOST_DETAIL - 20]} ... (cut short)"
    row = (chain, number, float(now), who, actor.role, command, job, detail, previous)
    db.run(f"INSERT INTO audit ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row, _hash(row))


def _person(actor: Actor) -> str:
    return storable(f"{actor.who} ({actor.source})" if actor.source else actor.who)


def _genesis(db: Database, chain: str) -> str:
    uid = db.one("SELECT value FROM meta WHERE name = 'uid'")
    return _first(str(uid[0]) if uid else "", chain)


def _first(uid: str, chain: str) -> str:
    """What stands for the hash before the first entry of a chain."""
    return hashlib.sha256(f"{uid} {chain}".encode()).hexdigest()


def _hash(row: Sequence[object]) -> str:
    """The hash of an entry: of all its columns before, which JSON keeps apart."""
    return hashlib.sha256(_compact(row).encode()).hexdigest()


def _compact(values: Sequence[object]) -> str:
    return json.dumps(list(values), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def append_last_job(uid: str, actor: Actor, columns: Row, now: float) -> tuple[str, tuple[object, ...]]:
    """A statement for a database that makes hashes itself: the entry of the submission of the last job there is.

    It gives the entry's detail. `columns`: of JOB_COLUMNS all after the id, which is not known here, as little as the
    number of the entry and the hash before it: so nobody waits for them to be read.
    """
    chain = storable(actor.chain)
    at, who = float(now), _person(actor)
    job = ", " + json.dumps(list(columns))[1:]
    # the text that is hashed, but for the entry's number, the job's twice, its digest and the hash before
    head = _compact([chain])[:-1]
    middle = _compact([at, who, actor.role, SUBMITTED, None, '{"jobs": '])[1:-2]
    digest, end = json.dumps(', "sha256": "')[1:-1], _compact(['"}', ""])[2:-2]
    values = (chain, _first(uid, chain), job, chain, at, who, actor.role, head, middle, digest, end)
    return _APPEND_LAST_JOB, values


# As `_digest`, `submission_detail` and `_hash` write it, to the letter: `verify` reckons all of it again.
_APPEND_LAST_JOB = f"""
    WITH job AS (SELECT max(id) AS id FROM jobs),
    last AS (SELECT number, hash FROM audit WHERE chain = ? ORDER BY number DESC LIMIT 1),
    entry AS (SELECT coalesce((SELECT number FROM last), 0) + 1 AS number,
        coalesce((SELECT hash FROM last), ?) AS previous,
        '[' || id || ', ' || id || ']' AS ids,
        encode(sha256(convert_to('[' || id || ? || chr(10), 'UTF8')), 'hex') AS digest FROM job)
    INSERT INTO audit ({COLUMNS})
    SELECT ?, number, CAST(? AS DOUBLE PRECISION), ?, ?, '{SUBMITTED}', NULL,
        '{{"jobs": ' || ids || ', "sha256": "' || digest || '"}}', previous,
        encode(sha256(convert_to(
            ? || ',' || number || ',' || ? || ids || ? || digest || ? || previous || '"]', 'UTF8')), 'hex') FROM entry
    RETURNING detail"""


def submission_ids(detail: str) -> tuple[int, int]:
    """The first and the last job of a submission, from what is kept of it."""
    first, last = json.loads(detail)["jobs"]
    return int(first), int(last)


def submission_detail(jobs: Sequence[Row]) -> str:
    """What is kept of a submission: its jobs, which have numbers in a row, and a digest over them as JOB_COLUMNS."""
    return json.dumps({"jobs": [jobs[0][0], jobs[-1][0]], "sha256": _digest(jobs)})


def decisions_detail(db: Database, first: int, last: int) -> str:
    """What is kept of a scheduling pass: its decisions, and a digest over them as they were written."""
    return json.dumps({"decisions": [first, last], "sha256": _decisions_digest(db, first, last)})


@dataclass(slots=True)
class Replaced:
    """Numbers of the rows that a repair has put other rows in the place of."""

    jobs: set[int] = field(default_factory=set)
    decisions: set[int] = field(default_factory=set)


def append_replaced(db: Database, actor: Actor, replaced: Replaced, now: float) -> None:
    """Write down that a repair has replaced rows, and the digests now of what they were kept in."""
    changed: list[tuple[str, int, str]] = []
    if replaced.jobs or replaced.decisions:
        sql = "SELECT chain, number, command, detail FROM audit WHERE command IN (?, ?) ORDER BY chain, number"
        for chain, number, command, detail in db.all(sql, SUBMITTED, DECIDED):
            try:
                kind, first, last, _ = _kept(command, detail)
            except (ValueError, KeyError, TypeError):  # which `verify` names
                continue
            if any(first <= one <= last for one in (replaced.jobs if kind == "jobs" else replaced.decisions)):
                changed.append((str(chain), int(number), _digest_now(db, kind, first, last)))
    for at in range(0, len(changed), _REPLACED_EACH):
        append(db, actor, REPLACED, json.dumps(changed[at : at + _REPLACED_EACH]), now)


def _kept(command: str, detail: str) -> tuple[str, int, int, str]:
    """What an entry keeps a digest of: jobs or decisions, the first, the last, the digest."""
    kind, kept = "decisions" if command == DECIDED else "jobs", json.loads(detail)
    first, last = kept[kind]
    return kind, int(first), int(last), str(kept["sha256"])


def _digest_now(db: Database, kind: str, first: int, last: int) -> str:
    return (_decisions_digest if kind == "decisions" else _jobs_digest)(db, first, last)


def _jobs_digest(db: Database, first: int, last: int) -> str:
    return _digest(db.all(f"SELECT {JOB_COLUMNS} FROM jobs WHERE id BETWEEN ? AND ? ORDER BY id", first, last))


def _decisions_digest(db: Database, first: int, last: int) -> str:
    return _digest(
        db.all(
            "SELECT id, at, job_id, policy, router, kind, pool, decision FROM decisions WHERE id BETWEEN ? AND ? "
            "ORDER BY id",
            first,
            last,
        )
    )


def _digest(rows: Sequence[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(list(row), ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()


def entries(db: Database, chain: str | None = None, job: int | None = None, limit: int = 100) -> list[AuditRow]:
    """The latest entries, newest first."""
    filters = {"chain": chain, "job_id": job}
    conditions = {name: value for name, value in filters.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in conditions) or "1 = 1"
    rows = db.all(
        f"SELECT {COLUMNS} FROM audit WHERE {where} ORDER BY at DESC, chain, number DESC LIMIT ?",
        *conditions.values(),
        limit,
    )
    return [AuditRow(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at the whole log has found."""

    heads: tuple[Head, ...]
    problems: tuple[str, ...]  # of each chain the first entry that is not as it was written
    notes: tuple[str, ...]  # entries whose rows a repair has replaced


@dataclass(frozen=True, slots=True)
class _Repairs:
    """Digests that repairs have written, by the entry that they are of, and who did."""

    digests: Mapping[tuple[str, int], tuple[str, str]]
    notes: list[str] = field(default_factory=list)


def verify(db: Database, kept: Mapping[str, Head] | None = None) -> Verified:
    """The heads of all chains, and what is wrong: of each chain the first entry that is not as it was written.

    `kept`: heads of before, by chain. An entry that one of them names must be there, with its hash.
    """
    heads, problems, repairs = [], [], _repairs(db)
    chains = [str(name) for (name,) in db.all("SELECT DISTINCT chain FROM audit ORDER BY chain")]
    for chain in chains:
        head, problem = _verify_chain(db, chain, (kept or {}).get(chain), repairs)
        heads.append(head)
        problems += [problem] if problem else []
    for chain in (kept or {}).keys() - set(chains):
        problems.append(f"chain {chain}: it is gone; its head was entry {(kept or {})[chain].number}")
    return Verified(tuple(heads), tuple(problems), tuple(repairs.notes))


def _repairs(db: Database) -> _Repairs:
    """What repairs have written down; the latest word on an entry counts. Their chains are verified as all are."""
    digests = {}
    for chain, number, who, detail in db.all(
        "SELECT chain, number, who, detail FROM audit WHERE command = ? ORDER BY at, chain, number", REPLACED
    ):
        try:
            for of_chain, of_number, digest in json.loads(detail):
                digests[str(of_chain), int(of_number)] = str(digest), f"{who}, chain {chain}, entry {number}"
        except (ValueError, TypeError):  # nothing is taken from it: what it is about is a problem then
            continue
    return _Repairs(digests)


def _verify_chain(db: Database, chain: str, kept: Head | None, repairs: _Repairs) -> tuple[Head, str]:
    number, previous = 0, _genesis(db, chain)
    problem = ""
    for row in _rows_of(db, chain):
        if problem:
            number, previous = int(row[1]), str(row[9])
            continue
        why = _broken(db, row, number + 1, previous, repairs)
        if not why and kept is not None and kept.number == row[1] and kept.hash != row[9]:
            why = "its hash is another than in the heads kept before"
        if why:
            problem = f"chain {chain}, entry {row[1]}: {why}"
        number, previous = int(row[1]), str(row[9])
    if not problem and kept is not None and kept.number > number:
        problem = f"chain {chain}, entry {number + 1}: it is gone; the head kept before was entry {kept.number}"
    return Head(chain, number, previous), problem


def _rows_of(db: Database, chain: str) -> Iterator[Row]:
    last = -(2**62)
    while True:
        rows = db.all(
            f"SELECT {COLUMNS} FROM audit WHERE chain = ? AND number > ? ORDER BY number LIMIT ?", chain, last, _BATCH
        )
        yield from rows
        if len(rows) < _BATCH:
            return
        last = int(rows[-1][1])


def _broken(db: Database, row: Row, number: int, previous: str, repairs: _Repairs) -> str:
    """What is wrong with an entry; empty where nothing is."""
    if row[1] != number:
        return f"entry {number} is missing before it"
    if row[8] != previous:
        return "it does not follow the entry before it"
    if _hash(row[:9]) != row[9]:
        return "it was changed after it was written"
    if row[5] not in (DECIDED, SUBMITTED):
        return ""
    try:
        kind, first, last, digest = _kept(row[5], row[7])
    except (ValueError, KeyError, TypeError):
        return "its detail can't be read"
    found, what = _digest_now(db, kind, first, last), f"{kind} {first} to {last}"
    if found == digest:
        return ""
    repaired, by = repairs.digests.get((str(row[0]), int(row[1])), ("", ""))
    if found == repaired:
        repairs.notes.append(f"chain {row[0]}, entry {row[1]}: a repair has replaced rows of {what} ({by})")
        return ""
    return f"{what} are not as they were {'made' if kind == 'decisions' else 'submitted'}"
