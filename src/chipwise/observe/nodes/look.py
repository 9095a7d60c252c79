"""Nodes by a store of telemetry, the pools that have them, and the ledger by which routers avoid them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from chipwise.errors import ChipwiseError
from chipwise.observe.nodes.records import Node, Step, Verdict
from chipwise.observe.nodes.symptoms import Symptom, symptom_of, worth_a_look
from chipwise.observe.nodes.view import NodeHealth
from chipwise.observe.records import SEVERITIES, Severity
from chipwise.observe.store.store import Newest, TelemetryStore, open_store
from chipwise.route.ledger import LedgerView, open_view
from chipwise.route.load import Pools
from chipwise.route.pool_nodes import node_names

MOST_SHARE = 0.2  # of a pool's nodes that findings may drain; more is rather the finding's fault (own, 2026-11-19)


def look_at_nodes(
    store: str = "", since_s: float = 3600.0, pools: Pools | None = None, ledger: str = "", drain: bool = False
) -> NodeHealth:
    """Every node that was heard of since then. `drain`: let routers start nothing on those that are sick."""
    with open_store(store, create=False) as telemetry:
        nodes, where = nodes_of(telemetry, int(time.time() - since_s)), telemetry.where
    if pools is None:
        return NodeHealth(store=where, nodes=nodes)
    if not drain:
        names, problems = names_by_pool(pools, "")
        return NodeHealth(store=where, nodes=[placed(node, names) for node in nodes], asked=True, problems=problems)
    with open_view(ledger) as book:
        names, problems = names_by_pool(pools, book.uid)
        after = drained([placed(node, names) for node in nodes], names, book, time.time())
        return NodeHealth(store=where, nodes=after, asked=True, ledger=book.where, problems=problems)


def nodes_of(telemetry: TelemetryStore, since: int) -> list[Node]:
    """Nodes by what was kept of them, the sickest first."""
    by_host: dict[str, list[Newest]] = defaultdict(list)
    for one in telemetry.newest(since):
        by_host[one.host].append(one)
    nodes = []
    for host, series in by_host.items():
        nodes.append(Node(host=host, seen=max(one.at for one in series), symptoms=_symptoms(telemetry, series, since)))
    ranks = {verdict: rank for rank, verdict in enumerate(Verdict)}
    return sorted(nodes, key=lambda node: (ranks[node.verdict], node.host))


def sick_by_pool(
    telemetry: TelemetryStore, pools: Pools, uid: str, since: int
) -> tuple[dict[str, list[str]], list[str]]:
    """Sick nodes of each pool, and why a backend does not tell its nodes."""
    names, problems = names_by_pool(pools, uid)
    sick: dict[str, list[str]] = defaultdict(list)
    for node in nodes_of(telemetry, since):
        if node.verdict is Verdict.SICK:
            for pool in placed(node, names).pools:
                sick[pool].append(node.host)
    return dict(sick), problems


def _symptoms(telemetry: TelemetryStore, series: Sequence[Newest], since: int) -> list[Symptom]:
    suspicious = [one for one in series if worth_a_look(one.series, one.value)]
    if not suspicious:
        return []
    looked_since = min((samples[0][0] for one in series if (samples := telemetry.samples(one, since))), default=since)
    symptoms = [
        symptom
        for one in suspicious
        if (symptom := symptom_of(one.series, one.device, one.labels, telemetry.samples(one, since), looked_since))
    ]
    return sorted(symptoms, key=lambda one: (SEVERITIES.index(one.severity), not one.confirmed, -one.last))


def names_by_pool(pools: Pools, uid: str) -> tuple[dict[str, Sequence[str]], list[str]]:
    """Nodes by pool, and why a backend does not tell its own."""
    names: dict[str, Sequence[str]] = {}
    problems = []
    for pool in pools.pools:
        try:
            names[pool.name] = node_names(pools, pool, uid)
        except ChipwiseError as error:
            problems.append(f"{pool.name}: {error}")
    return names, problems


def placed(node: Node, names: Mapping[str, Sequence[str]]) -> Node:
    """A node with the pools that have it: exporters tell the port with the host, and some the domain."""
    host = node.host.rpartition(":")[0] if node.host.rpartition(":")[2].isdigit() else node.host
    for spelling in (host, host.partition(".")[0]):
        pools = [pool for pool, theirs in names.items() if spelling in theirs]
        if pools:
            return replace(node, pools=pools, name=spelling)
    return node


def drained(nodes: Sequence[Node], names: Mapping[str, Sequence[str]], book: LedgerView, now: float) -> list[Node]:
    """Drain the sick ones, in every pool that has them; not one that somebody has resumed since its fault."""
    rows = {(row.pool, row.node): row for row in book.nodes()}
    out_of_use = Counter(row.pool for row in rows.values() if row.drained)
    done = []
    for node in nodes:
        steps = []
        for pool in node.pools if node.verdict is Verdict.SICK else ():
            row = rows.get((pool, node.name))
            if row is not None and row.drained:
                step = Step.ALREADY
            elif row is not None and row.since >= node.last_fault:
                step = Step.RESUMED
            elif out_of_use[pool] + 1 > max(1.0, MOST_SHARE * len(names[pool])):
                step = Step.TOO_MANY
            else:
                step = Step.DRAINED
                out_of_use[pool] += 1
                book.drain_nodes(pool, [node.name], True, reason_of(node), now)
            steps.append((pool, step))
        done.append(replace(node, steps=steps))
    return done


def reason_of(node: Node) -> str:
    """Why a node is drained, for people who ask why their job waits."""
    grave = next(one for one in node.symptoms if one.confirmed and one.severity is Severity.CRITICAL)
    what = f"Xid {grave.xid}: {grave.meaning}" if grave.xid is not None else grave.meaning
    last = datetime.fromtimestamp(grave.last, UTC)
    times = f", {grave.times} times" if grave.times > 1 else ""
    where = f"device {grave.device}" if grave.device.isdigit() else grave.device or "the host"
    return f"{where}: {what}{times}, last {last:%Y-%m-%d %H:%M} UTC; {grave.action}"
