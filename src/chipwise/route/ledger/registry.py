"""What a ledger knows of routers, backends and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.route.ledger import audit as _audit
from chipwise.route.ledger import backend_dirs as _homes
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.codec import storable
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.records import BackendRow, NodeRow, RouterRow
from chipwise.route.ledger.rows import text_of


class Registry:
    """The part of a ledger that says who works with it, and where."""

    _db: Database
    actor: Actor

    def heartbeat(self, router: str, host: str, pid: int, policy: str, now: float, stopped: bool = False) -> None:
        """A router is alive, or has stopped in good order."""
        with self._db.write() as db:
            self._beat(db, router, host, pid, policy, now, stopped)

    @staticmethod
    def _beat(db: Database, router: str, host: str, pid: int, policy: str, now: float, stopped: bool = False) -> None:
        db.run(
            "INSERT INTO routers (id, host, pid, policy, started, seen, stopped) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid, policy = excluded.policy, "
            "seen = excluded.seen, stopped = excluded.stopped",
            router,
            host,
            pid,
            policy,
            now,
            now,
            now if stopped else None,
        )

    def routers(self) -> list[RouterRow]:
        """Routers that have written to this ledger, the last seen first."""
        return [
            RouterRow(*row)
            for row in self._db.all(
                "SELECT id, host, pid, policy, started, seen, stopped FROM routers ORDER BY seen DESC, id"
            )
        ]

    def backend_health(self, name: str, ok: bool, error: str, next_try: float, now: float) -> BackendRow:
        """Note how a backend answered; how it has done so of late. Writes nothing while all stays well."""
        with self._db.write() as db:
            old = db.one("SELECT name, ok, since, failures, error, next_try FROM backends WHERE name = ?", name)
            since = now if old is None or bool(old[1]) != ok else old[2]
            failures = 0 if ok else 1 + (0 if old is None else old[3])
            new = (name, int(ok), since, failures, text_of(error), next_try)
            if new != old:
                db.run(
                    "INSERT INTO backends (name, ok, since, failures, error, next_try) VALUES (?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (name) DO UPDATE SET ok = excluded.ok, since = excluded.since, "
                    "failures = excluded.failures, error = excluded.error, next_try = excluded.next_try",
                    *new,
                )
            return _backend(new)

    def backends(self) -> list[BackendRow]:
        """How backends have answered of late."""
        return [
            _backend(row)
            for row in self._db.all("SELECT name, ok, since, failures, error, next_try FROM backends ORDER BY name")
        ]

    def settle(
        self,
        folders: Mapping[str, tuple[str, str]],
        router: str,
        host: str,
        pid: int,
        policy: str,
        now: float,
        silent_s: float,
    ) -> None:
        """Note that a router begins, and where attempts lie: of each backend the mark and the path of its folder.

        All routers of a ledger must see the same folders, or one would take the other's attempts for lost and run
        them again. `InputError` where the mark is another than before, while a router lives that has the old one, or
        an attempt is under way.
        """
        with self._db.write() as db:
            _homes.settle(db, folders, now - silent_s)
            self._beat(db, router, host, pid, policy, now)
            actor = replace(self.actor, chain=f"router {router}")
            _audit.append(db, actor, "router run", f"policy {policy}, pid {pid}", now)

    def backend_folders(self) -> dict[str, str]:
        """Where attempts lie, by backend, as its routers see it; their folders are in `attempts` there."""
        with self._db.read() as db:
            return _homes.folders_of(db)

    def drain(self, pool: str, on: bool, reason: str, now: float, actor: Actor | None = None) -> None:
        """Let no job start in a pool, or let them again. What runs there goes on."""
        with self._db.write() as db:
            db.run(
                "INSERT INTO pools (name, drained, reason, since) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET drained = excluded.drained, reason = excluded.reason, since = excluded.since",
                storable(pool),
                int(on),
                text_of(reason),
                now,
            )
            detail = f"{pool}: {reason}" if on else pool
            _audit.append(db, actor or self.actor, "drain" if on else "resume", detail, now)

    def drained(self) -> dict[str, str]:
        """Pools in which no job is to start, with the reason."""
        return dict(self._db.all("SELECT name, reason FROM pools WHERE drained = 1 ORDER BY name"))

    def drain_nodes(
        self, pool: str, nodes: Sequence[str], on: bool, reason: str, now: float, actor: Actor | None = None
    ) -> None:
        """Let no job start on some nodes of a pool, or let them again. What runs there goes on."""
        with self._db.write() as db:
            for node in nodes:
                db.run(
                    "INSERT INTO nodes (pool, node, drained, reason, since) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (pool, node) DO UPDATE "
                    "SET drained = excluded.drained, reason = excluded.reason, since = excluded.since",
                    storable(pool),
                    storable(node),
                    int(on),
                    text_of(reason),
                    now,
                )
                detail = f"node {node} of {pool}" + (f": {reason}" if on else "")
                _audit.append(db, actor or self.actor, "drain" if on else "resume", detail, now)

    def nodes(self) -> list[NodeRow]:
        """Nodes that were drained or resumed, as they stand now."""
        rows = self._db.all("SELECT pool, node, drained, reason, since FROM nodes ORDER BY pool, node")
        return [NodeRow(str(pool), str(node), bool(on), str(reason), since) for pool, node, on, reason, since in rows]


def _backend(row: Sequence[object]) -> BackendRow:
    name, ok, *rest = row
    return BackendRow(str(name), bool(ok), *rest)  # type: ignore[arg-type]
