"""Waiting for what takes a moment on an idle machine. The limit is for what hangs: no test depends on a machine's speed."""

import time

PATIENCE_S = 600.0


def until(true, what="it never became true", *, step=0.02):
    """Ask again and again until the answer is true, and give it; fails with `what`, words or what makes them."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := true()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what() if callable(what) else what} within {PATIENCE_S:g} s")
        time.sleep(step)
    return answer
