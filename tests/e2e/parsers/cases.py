"""What every parser's script shares: cases come as JSON on standard input, what was refused goes out as JSON."""

import contextlib
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any


def answer(read: Callable[[Any], None]) -> None:
    """Read every case; print, as the last line, what each was refused for: "" where it was accepted."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    cases = json.load(sys.stdin)
    refusals = [_refusal(read, case) for case in cases]
    print("\n" + json.dumps(refusals))


def _refusal(read: Callable[[Any], None], case: Any) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            read(case)
    except SystemExit as end:
        return "" if end.code in (0, None) else (said.getvalue() or f"exit {end.code}")[-600:]
    except Exception as refused:  # whatever the tool raises is its refusal
        return f"{type(refused).__name__}: {refused} {said.getvalue()}"[:600]
    return ""
