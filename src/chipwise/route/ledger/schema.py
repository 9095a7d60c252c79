"""The tables, in SQL that SQLite and PostgreSQL both read."""

from __future__ import annotations

from chipwise.route.ledger.records import ENDS, OVER, UNDER_WAY

# 2: jobs are pending, running, succeeded, failed or cancelled
# 3: who submitted a job, what was launched and for how long it was seen to run, unreadable rows set aside, an audit log
# 4: nodes on which no job is to start; how long an attempt takes by its own steps
VERSION = 4


def _among(states: frozenset[str]) -> str:
    return "(" + ", ".join(f"'{s}'" for s in sorted(states)) + ")"


# in the words of the partial indexes below: SQLite uses one only for a query that repeats them
SQL_OPEN = "('running', 'pending')"
SQL_UNDER_WAY = _among(UNDER_WAY)
SQL_USER = "coalesce(nullif(owner, ''), submitter)"  # whose a job is


# {id} is a whole number that is the primary key: each database has its own word for the kind that costs no index
TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"""CREATE TABLE jobs (
        id {{id}},
        key TEXT UNIQUE,
        digest TEXT NOT NULL,
        name TEXT NOT NULL,
        owner TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN {_among(OVER | {"pending", "running"})}),
        submitted DOUBLE PRECISION NOT NULL,
        job TEXT NOT NULL,
        options TEXT NOT NULL,
        infeasible TEXT NOT NULL,
        done DOUBLE PRECISION NOT NULL DEFAULT 0 CHECK (done BETWEEN 0 AND 1),
        spent DOUBLE PRECISION NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '',
        failures INTEGER NOT NULL DEFAULT 0,
        failed_at TEXT,
        waits_for TEXT,
        not_before DOUBLE PRECISION NOT NULL DEFAULT 0,
        cancel INTEGER NOT NULL DEFAULT 0,
        changed DOUBLE PRECISION NOT NULL,
        submitter TEXT NOT NULL DEFAULT '',
        team TEXT NOT NULL DEFAULT ''
    )""",
    f"CREATE INDEX jobs_open ON jobs (id) WHERE state IN {SQL_OPEN}",
    "CREATE INDEX jobs_changed ON jobs (changed)",
    f"""CREATE TABLE attempts (
        id TEXT PRIMARY KEY,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        number INTEGER NOT NULL,
        pool TEXT NOT NULL,
        variant TEXT NOT NULL,
        chips INTEGER NOT NULL CHECK (chips > 0),
        plan TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN {_among(UNDER_WAY | ENDS)}),
        router TEXT NOT NULL,
        lease DOUBLE PRECISION NOT NULL,
        backend_id TEXT NOT NULL DEFAULT '',
        intended DOUBLE PRECISION NOT NULL,
        submitted DOUBLE PRECISION,
        started DOUBLE PRECISION,
        ended DOUBLE PRECISION,
        exit_code BIGINT,
        place TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        restarts INTEGER NOT NULL DEFAULT 0,
        stop TEXT NOT NULL DEFAULT '',
        spent DOUBLE PRECISION NOT NULL DEFAULT 0,
        digest TEXT NOT NULL DEFAULT '',
        seen DOUBLE PRECISION NOT NULL DEFAULT 0,
        expected TEXT NOT NULL DEFAULT '',
        UNIQUE (job_id, number)
    )""",
    "CREATE INDEX attempts_ended ON attempts (ended)",
    # the database itself refuses a second attempt beside one under way, whatever a program may do
    f"CREATE UNIQUE INDEX attempts_under_way ON attempts (job_id) WHERE state IN {SQL_UNDER_WAY}",
    f"CREATE INDEX attempts_held ON attempts (pool, chips) WHERE state IN {SQL_UNDER_WAY}",
    """CREATE TABLE decisions (
        id {id},
        at DOUBLE PRECISION NOT NULL,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        policy TEXT NOT NULL,
        router TEXT NOT NULL,
        kind TEXT NOT NULL,
        pool TEXT NOT NULL,
        decision TEXT NOT NULL
    )""",
    "CREATE INDEX decisions_job ON decisions (job_id, id)",
    """CREATE TABLE events (
        id {id},
        at DOUBLE PRECISION NOT NULL,
        job_id BIGINT NOT NULL REFERENCES jobs (id),
        attempt TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        data TEXT NOT NULL
    )""",
    "CREATE INDEX events_job ON events (job_id, id)",
    """CREATE TABLE routers (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        pid BIGINT NOT NULL,
        policy TEXT NOT NULL,
        started DOUBLE PRECISION NOT NULL,
        seen DOUBLE PRECISION NOT NULL,
        stopped DOUBLE PRECISION
    )""",
    """CREATE TABLE backends (
        name TEXT PRIMARY KEY,
        ok INTEGER NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        failures INTEGER NOT NULL,
        error TEXT NOT NULL,
        next_try DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE pools (
        name TEXT PRIMARY KEY,
        drained INTEGER NOT NULL,
        reason TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE nodes (
        pool TEXT NOT NULL,
        node TEXT NOT NULL,
        drained INTEGER NOT NULL,
        reason TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (pool, node)
    )""",
    # rows that could not be read, as they were, set aside by `ledger repair`
    """CREATE TABLE quarantine (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        reason TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (kind, id, at)
    )""",
    # one chain for each writer; `hash` is over the row and `previous`, the hash of the row before
    """CREATE TABLE audit (
        chain TEXT NOT NULL,
        number BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        who TEXT NOT NULL,
        role TEXT NOT NULL,
        command TEXT NOT NULL,
        job_id BIGINT,
        detail TEXT NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (chain, number)
    )""",
)
APPEND_ONLY = ("audit",)  # tables whose rows the database itself neither changes nor removes
