"""Waiting for what takes a moment on an idle machine. The limit is for what hangs: no test depends on a machine's speed."""

import signal
import subprocess
import threading
import time

PATIENCE_S = 1500.0
ENDS_S = 180.0  # for a call that must end by itself after one or two


def until(true, what="it never became true", *, step=0.02):
    """Ask again and again until the answer is true, and give it; fails with `what`, words or what makes them."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := true()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what() if callable(what) else what} within {PATIENCE_S:g} s")
        time.sleep(step)
    return answer


def leave(process, number=signal.SIGTERM):
    """Send a process a signal and wait until it has left; its status. One that stays is killed, and fails the test."""
    process.send_signal(number)
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def raised_by(call):
    """What a call raises, in a thread of its own: one that never comes back fails the test and not the machine."""
    errors = []

    def work():
        try:
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(ENDS_S)
    assert not thread.is_alive(), "it waits without end"
    return errors[0] if errors else None
