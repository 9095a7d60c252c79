"""How wide tables may be where nobody's terminal says: in pipes and files."""

from contextvars import ContextVar

WIDTH: ContextVar[int] = ContextVar("WIDTH", default=0)  # columns; 0: as wide as they are
