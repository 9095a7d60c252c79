"""Connections to PostgreSQL: the server's certificate is verified unless the URL says otherwise, and every wait ends.

A server that is stopped, or behind a network that drops packets, keeps a connection open and says nothing: its own
time-outs do not run, and TCP alone gives up after a quarter of an hour. So silence is counted here as well.
"""

from __future__ import annotations

import math
import os
import select
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import MissingCompiler
from chipwise.io.install import install_line
from chipwise.io.urls import is_loopback

if TYPE_CHECKING:
    import psycopg

    from chipwise.route.ledger.database import Row

CONNECT_S = 10  # longer than a server on the other side of the world takes; shorter than a person's patience
STATEMENT_S = 5.0  # beyond the longest wait for a lock: statements of the ledger take milliseconds
PATIENT_S = 1800.0  # for a statement that goes through the whole ledger: a migration, a check
SILENT_S = 5.0  # beyond that: the server has had its time to say that the statement took too long
HURRIED_S = 3.0  # of silence, for a process that has been told to stop
IDLE_S = 60  # in a transaction that its client has left open: then the server ends it, and its locks
# libpq's own, which a URL may set otherwise: a peer that is gone is noticed within 25 s (10 + 3 * 5)
LIBPQ: dict[str, str | int] = {
    "connect_timeout": CONNECT_S,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # ms until sent data must be acknowledged
    "application_name": "chipwise",
}
VERIFIED = "verify-full"
WEAK = {
    "verify-ca": "any host with a certificate of the same authority can pose as the server",
    "require": "encrypted, but anybody can pose as the server",
    "prefer": "neither encryption nor the server's identity is certain",
    "allow": "neither encryption nor the server's identity is certain",
    "disable": "not encrypted: jobs, their environments and the password are sent in clear",
}


def psycopg_module() -> Any:
    """The client library, or one line on how to get it."""
    try:
        import psycopg
    except ImportError:
        raise MissingCompiler("A ledger in PostgreSQL", "psycopg is not installed", install_line("postgres")) from None
    return psycopg


def connect(url: str, lock_s: float, hurried: Callable[[], bool]) -> psycopg.Connection[Row]:
    """A connection whose every statement ends: done, refused by the server in time, or given up as silent."""
    statement_s = lock_s + STATEMENT_S
    more = parameters(url) | ({"connect_timeout": round(HURRIED_S)} if hurried() else {})
    link = _bounded().connect(url, autocommit=True, **more)
    try:
        link.silent_s, link.hurried = statement_s + SILENT_S, hurried
        link.codec = link.info.encoding
        link.prepare_threshold = None  # plans are kept by ourselves: the library forgets all of them at a rollback
        link.execute(f"SET lock_timeout = {round(lock_s * 1000)}")
        link.execute(f"SET statement_timeout = {round(statement_s * 1000)}")
        link.execute(f"SET idle_in_transaction_session_timeout = {IDLE_S * 1000}")
        link.execute("SET synchronous_commit = on")  # a commit returns once it is on the disk
    except BaseException:
        link.close()
        raise
    return link  # type: ignore[no-any-return]


def allow(link: psycopg.Connection[Row], statement_s: float) -> float:
    """Let a statement take so long; how long it could before."""
    bounded: Any = link
    usual = float(bounded.silent_s) - SILENT_S
    bounded.silent_s = max(statement_s, usual) + SILENT_S  # for the next statement too, which may still be the usual
    link.execute(f"SET statement_timeout = {round(statement_s * 1000)}")
    bounded.silent_s = statement_s + SILENT_S
    return usual


def parameters(url: str) -> dict[str, str | int]:
    """What the URL leaves open: time-outs, and TLS with verification for servers that are not on this machine."""
    given = psycopg_module().conninfo.conninfo_to_dict(url)
    found: dict[str, str | int] = dict(LIBPQ)
    mode = given.get("sslmode") or ("" if _local(given) else VERIFIED)
    if mode == VERIFIED:
        found |= {"sslmode": VERIFIED} | _authorities(given)
    return {key: value for key, value in found.items() if not given.get(key)}


def weak_tls(url: str) -> str:
    """What a URL that asks for less than verification gives up, in one line; empty where it gives up nothing."""
    given = psycopg_module().conninfo.conninfo_to_dict(url)
    mode = given.get("sslmode") or ""
    if mode not in WEAK or _local(given):
        return ""
    return f"sslmode={mode} in the ledger's URL: {WEAK[mode]}; default: {VERIFIED}"


def _local(given: dict[str, Any]) -> bool:
    """Whether a server is reached over loopback or a unix socket alone."""
    if given.get("service") or (os.environ.get("PGSERVICE") and not given.get("host")):
        return False  # a file of its own says where
    hosts = given.get("hostaddr") or given.get("host") or os.environ.get("PGHOSTADDR") or os.environ.get("PGHOST") or ""
    names = [host.strip() for host in str(hosts).split(",")]
    return all(not name or name.startswith(("/", "@")) or is_loopback(name) for name in names)


def _authorities(given: dict[str, Any]) -> dict[str, str]:
    """The system's authorities, where neither the URL nor a file of the user's own (libpq's place) names any."""
    own = Path.home() / ".postgresql" / "root.crt"
    if given.get("sslrootcert") or os.environ.get("PGSSLROOTCERT") or own.exists():
        return {}
    bundle = ssl.get_default_verify_paths().cafile
    return {"sslrootcert": bundle} if bundle else {}


@cache
def _bounded() -> Any:
    """The client's connection with an end to each wait."""
    module = psycopg_module()

    class Bounded(module.Connection):  # type: ignore[misc, name-defined]
        silent_s = float(CONNECT_S)
        hurried: Callable[[], bool] = staticmethod(lambda: False)
        silent = False  # given up as such
        codec = "utf-8"  # of the texts that are sent

        def exchange(self, message: str, after: int = 0) -> list[Row]:
            """Send statements that hold their values, in one message; the rows of the last, or of one before others.

            What a cursor would find out about each of them takes the client longer than the server takes to answer.
            """
            with self.lock:
                results = self.wait(self._exchanged(message.encode(self.codec)))
            for result in results:
                if result.status == module.pq.ExecStatus.FATAL_ERROR:
                    raise module.errors.error_from_result(result, encoding=self.codec)
            rows = module.adapt.Transformer(self)
            answer = results[-1 - after]
            rows.set_pgresult(answer)
            return rows.load_rows(0, answer.ntuples, tuple)  # type: ignore[no-any-return]

        def notice_end(self) -> None:
            """See whether the server has closed the connection, between two messages; without a wait."""
            with suppress(module.OperationalError):  # where theirs is closed, ours is now
                while not self.closed and select.select([self.pgconn.socket], [], [], 0)[0]:
                    self.pgconn.consume_input()  # why it ends comes before the end

        def _exchanged(self, message: bytes) -> Generator[Any, Any, Any]:
            self.pgconn.send_query(message)
            return (yield from module.generators.execute(self.pgconn))

        def literals(self, values: Sequence[object]) -> list[str]:
            """Values as SQL has them: texts quoted by libpq, what is rarer by the client library."""
            codec, quote = self.codec, module.pq.Escaping(self.pgconn).escape_literal
            texts = []
            for value in values:
                if type(value) is str and "\0" not in value:
                    texts.append(quote(value.encode(codec)).decode(codec))
                elif type(value) is int or (type(value) is float and math.isfinite(value)):
                    texts.append(f" {value!r}")  # apart from a sign before it
                else:
                    texts.append("NULL" if value is None else module.sql.Literal(value).as_string(self))
            return texts

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            """Run an exchange with the server; give the connection up where the server is silent."""
            return super().wait(self._watched(gen), *arguments, **options)

        def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
            """Pass an exchange on. The client asks at least ten times a second, also when nothing has come."""
            heard = time.monotonic()
            try:
                waits_for = next(gen)
                while True:
                    ready = yield waits_for
                    longest = HURRIED_S if self.hurried() else self.silent_s
                    if ready:
                        heard = time.monotonic()
                    elif time.monotonic() - heard > longest:
                        self.silent = True
                        self.pgconn.finish()  # what it holds is unknown: never used again
                        raise module.OperationalError(f"nothing heard from it for {longest:g} s")
                    waits_for = gen.send(ready)
            except StopIteration as end:
                return end.value

    return Bounded
