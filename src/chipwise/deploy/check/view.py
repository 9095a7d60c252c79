"""What a check found, as every face shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.deploy.check.findings import Finding
from chipwise.deploy.check.run import Checked
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe


def _place(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}" if finding.line else finding.file


FINDING_COLUMNS: tuple[Column[Finding], ...] = (
    Column("", None, "where", lambda f: safe(_place(f)), words=True),
    Column("file", lambda f: f.file),
    Column("line", lambda f: f.line or None),
    Column("field", lambda f: f.field or None, "field", lambda f: safe(f.field) or "–", words=True),
    Column("defect", lambda f: str(f.defect), help="the kind of finding"),
    Column("what", lambda f: f.what, "what", lambda f: safe(f.what), words=True),
    Column("fix", lambda f: f.fix, "fix", lambda f: safe(f.fix), words=True),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TreeCheck(Result):
    """A tree checked."""

    VERB: ClassVar[str] = "deploy check"
    CSV_HEADER: ClassVar[tuple[str, ...]] = ("file", "line", "field", "defect", "what", "fix")
    folder: Path
    checked: Checked

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return not self.checked.findings

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "folder": str(self.folder),
            "good": self.good,
            "pools": self.checked.pools,
            "objects": self.checked.objects,
            "ran": list(self.checked.ran),
            "left_out": list(self.checked.left_out),
            "findings": [record(FINDING_COLUMNS, finding) for finding in self.checked.findings],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a finding."""
        return [flat(FINDING_COLUMNS, finding) for finding in self.checked.findings]

    def blocks(self) -> list[Block]:
        """For people."""
        checked = self.checked
        counts = f"{plural(checked.pools, 'pool')}, {plural(checked.objects, 'object')} of Kubernetes"
        verdict = "no findings" if self.good else plural(len(checked.findings), "finding")
        out: list[Block] = [Text(f"{safe(str(self.folder))}: {verdict} ({counts})")]
        if checked.findings:
            out.append(table(FINDING_COLUMNS, checked.findings))
        out.append(Text(f"ran: {'; '.join(checked.ran)}"))
        out.extend(Text(f"not run: {words}") for words in checked.left_out)
        return out
