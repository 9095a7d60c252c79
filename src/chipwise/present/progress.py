"""Progress on stderr, for work that takes longer than two seconds, and only for people."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chipwise.present.blocks import ASCII
from chipwise.present.safe import safe

AFTER_S = 2.0
LOG_AFTER_S = 5.0  # of what is announced in a log
AGAIN_S = 60.0  # between two lines in a log


class Progress:
    """Called with (done, total, what); writes one line that overwrites itself."""

    def __init__(self, verb: str) -> None:
        self.verb, self.start, self.width = verb, time.monotonic(), 0
        self.shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show how far the work is."""
        self.say(f"{self.verb} {done}/{total}: {what}")

    def say(self, line: str) -> None:
        """Show a line in place of the last."""
        if not self.shown or time.monotonic() - self.start < AFTER_S:
            return
        line = safe(line)
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def keep(self, line: str, style: str = "") -> None:
        """Show a line that stays, above the one that moves."""
        from chipwise.present.terminal import Terminal

        self.clear()
        self.width = 0
        Terminal.of(sys.stderr).line(line, style)
        sys.stderr.flush()

    def bar(self, done: int, total: int, what: str) -> None:
        """Show how far the work is, and when it will end at this pace."""
        from chipwise.present.text import bar
        from chipwise.units import format_seconds

        spent = time.monotonic() - self.start
        left = f", {format_seconds(spent / done * (total - done))} left" if done else ""
        self.say(f"{done}/{total} {bar(done / total if total else 1.0)}{left}: {what}".translate(ASCII))

    def clear(self) -> None:
        """Take the line away."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


@contextmanager
def progress(verb: str) -> Iterator[Progress]:
    """A progress line that is gone when the work ends."""
    line = Progress(verb)
    try:
        yield line
    finally:
        line.clear()


@contextmanager
def stages(verb: str) -> Iterator[Callable[[str, float], None]]:
    """A line for work known by stage and seconds, gone when the work ends."""
    line = Progress(verb)

    def shown(stage: str, seconds: float) -> None:
        line.say(f"{verb}: {stage}, {seconds:.0f} s")

    try:
        yield shown
    finally:
        line.clear()


@contextmanager
def target_stages(verb: str) -> Iterator[Callable[[str, str, float], None]]:
    """A line for work on one target after another, each known by stage and seconds.

    Where nobody watches, each target that takes longer is announced once, and told again every so often.
    """
    line, told = Progress(verb), dict[str, float]()

    def shown(target: str, stage: str, seconds: float) -> None:
        line.say(f"{verb} {target}: {stage}, {seconds:.0f} s")
        if line.shown or seconds < told.get(target, LOG_AFTER_S):
            return
        note = "" if target in told else "; a whole model takes minutes, and no time when it is asked again"
        told[target] = seconds + AGAIN_S
        sys.stderr.write(safe(f"{verb} {target}: {stage}, {seconds:.0f} s so far{note}") + "\n")
        sys.stderr.flush()

    try:
        yield shown
    finally:
        line.clear()


@contextmanager
def waiting(words: str, every_s: float = 0.0) -> Iterator[None]:
    """A line for work that can't say how far it is, such as compiling: shown after two seconds, gone when it ends.

    `every_s`: where nobody watches, a line so often instead, for the log of a service.
    """
    line, done, start = Progress(""), threading.Event(), time.monotonic()

    def tell() -> None:
        if not done.wait(AFTER_S + 0.1):
            line.say(words)
        while every_s and not line.shown and not done.wait(every_s):
            sys.stderr.write(safe(f"{words} ({time.monotonic() - start:.0f} s so far)") + "\n")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        line.clear()
