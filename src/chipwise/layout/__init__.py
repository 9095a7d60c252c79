"""Every way to split a workload over chips, timed as arrays."""

from chipwise.layout.enumerate import Enumeration, enumerate_layouts
from chipwise.layout.evaluate import evaluate
from chipwise.layout.headroom import HEADROOM
from chipwise.layout.results import SearchResult, TimedLayout
from chipwise.layout.search import search, search_in, smallest_that_holds
from chipwise.layout.splits import in_words
from chipwise.predict.model.memory import RESERVE

__all__ = [
    "HEADROOM",
    "RESERVE",
    "Enumeration",
    "SearchResult",
    "TimedLayout",
    "enumerate_layouts",
    "evaluate",
    "in_words",
    "search",
    "search_in",
    "smallest_that_holds",
]
