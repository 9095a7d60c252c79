"""Two decisions side by side: what changed between two comparisons, and why."""

from chipwise.compare.diff.difference import Difference, compared
from chipwise.compare.diff.document import Document, document

__all__ = ["Difference", "Document", "compared", "document"]
