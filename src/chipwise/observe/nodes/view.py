"""Nodes and what is wrong with them, as every face shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from chipwise.observe.nodes.records import Node, Step, Verdict
from chipwise.observe.nodes.symptoms import Symptom
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe

Row = tuple[Node, Symptom]


def _clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%m-%d %H:%M:%S}"


def _what(symptom: Symptom) -> str:
    return f"Xid {symptom.xid}: {symptom.meaning}" if symptom.xid is not None else symptom.meaning


SYMPTOM_COLUMNS: tuple[Column[Row], ...] = (
    Column("host", lambda r: r[0].host, "node", lambda r: safe(r[0].host), words=True),
    Column("verdict", lambda r: r[0].verdict, "verdict", words=True),
    Column("pools", lambda r: list(r[0].pools), nested=True),
    Column("device", lambda r: r[1].device, "device", lambda r: safe(r[1].device) or "–", words=True),
    Column("severity", lambda r: r[1].severity, "severity", words=True),
    Column("condition", lambda r: r[1].condition),
    Column("fault", lambda r: r[1].fault),
    Column("xid", lambda r: r[1].xid),
    Column("meaning", lambda r: r[1].meaning, "what", lambda r: _what(r[1]), words=True),
    Column("times", lambda r: r[1].times, "times"),
    Column(
        "confirmed", lambda r: r[1].confirmed, "certain", lambda r: "yes" if r[1].confirmed else "not yet", words=True
    ),
    Column("first", lambda r: r[1].first, help="seconds since 1970"),
    Column("last", lambda r: r[1].last, "last (UTC)", lambda r: _clock(r[1].last), words=True),
    Column("action", lambda r: r[1].action, "what to do", words=True),
)
_WORDS = {
    Step.DRAINED: "drained: no job starts there",
    Step.ALREADY: "is drained already",
    Step.RESUMED: "was resumed since its fault was last seen: it stays in use",
    Step.TOO_MANY: "stays in use: so many nodes of the pool are drained by now that somebody has to look",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodeHealth(Result):
    """Nodes with what is wrong with them."""

    VERB: ClassVar[str] = "observe nodes"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in SYMPTOM_COLUMNS if not column.nested)
    store: str
    nodes: Sequence[Node]
    asked: bool = False  # whether pools were asked for their nodes
    ledger: str = ""  # in which nodes were drained
    problems: Sequence[str] = ()  # backends that did not tell their nodes

    @property
    def rows(self) -> list[Row]:
        """A row a symptom."""
        return [(node, symptom) for node in self.nodes for symptom in node.symptoms]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "store": self.store,
            "ledger": self.ledger or None,
            "nodes": [
                {
                    "host": node.host,
                    "verdict": node.verdict,
                    "seen": node.seen,
                    "pools": list(node.pools),
                    "symptoms": [
                        {k: v for k, v in record(SYMPTOM_COLUMNS, (node, one)).items() if k not in _OF_NODE}
                        for one in node.symptoms
                    ],
                    "steps": [{"pool": pool, "step": step} for pool, step in node.steps],
                }
                for node in self.nodes
            ],
            "problems": list(self.problems),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a symptom."""
        return [flat(SYMPTOM_COLUMNS, row) for row in self.rows]

    def blocks(self) -> list[Block]:
        """For people."""
        counts = Counter(node.verdict for node in self.nodes)
        heard = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        lost = [node.host for node in self.nodes if self.asked and node.symptoms and not node.pools]
        if not self.nodes:
            return [Text(f"store {safe(self.store)}: no node so new")]
        return [
            Text(f"{plural(len(self.nodes), 'node')}: {heard}"),
            *([table(SYMPTOM_COLUMNS, self.rows)] if self.rows else []),
            *(
                Text(f"{safe(node.name)} of {safe(pool)} {_WORDS[step]}")
                for node in self.nodes
                for pool, step in node.steps
            ),
            *([Text(f"in no pool by that name: {', '.join(map(safe, lost))}")] if lost else []),
            *(Text(f"its nodes are not known: {safe(line)}") for line in self.problems),
        ]


_OF_NODE = ("host", "verdict", "pools")
