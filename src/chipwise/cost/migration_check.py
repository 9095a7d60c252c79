"""The answer of `chipwise check -o json`, read back: which chips' compilers took a program, and what others refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import BrokenFile

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """What came of one chip."""

    chip: str
    compiles: bool
    refusals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a program on every target; of a chip asked for more than once, the best."""

    program: str
    rows: tuple[CheckedRow, ...]

    def of(self, chip: str) -> CheckedRow | None:
        """What came of a chip; None where it wasn't asked for."""
        found = [row for row in self.rows if row.chip == chip]
        return next((row for row in found if row.compiles), found[0] if found else None)


def read_check(path: Path) -> Checked:
    """The file that `chipwise check -o json` wrote."""
    from pydantic import ValidationError

    from chipwise.io.files import read_json
    from chipwise.io.schema_errors import translate

    raw = read_json(path)
    if raw.get("command") != "check":
        raise BrokenFile("check", str(path), "a file written by `chipwise check -o json`")
    schema = _schema()
    try:
        document: Any = schema.model_validate(raw)
    except ValidationError as error:
        wrong = translate(error, schema)
        raise BrokenFile(f"{path}: {wrong.field}", wrong.value, wrong.accepted) from None
    rows = tuple(
        CheckedRow(row.accelerators.chip, row.compiles, (row.refused.reason,) if row.refused else ())
        for row in document.rows
        if row.compiles is not None
    )
    return Checked(document.program, rows)


def _schema() -> type[BaseModel]:
    from pydantic import BaseModel

    class Chips(BaseModel):
        chip: str

    class Refused(BaseModel):
        stage: str
        reason: str

    class Row(BaseModel):
        accelerators: Chips
        compiles: bool | None  # null where no compiler was at hand: that says nothing of the program
        refused: Refused | None

    class Document(BaseModel):
        program: str
        rows: list[Row]

    return Document
