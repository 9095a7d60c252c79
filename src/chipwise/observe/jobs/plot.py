"""A job as a picture: what each step took beside its prediction, or a server's windows; and what was found when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chipwise.errors import Refusal
from chipwise.observe.against import Ratio
from chipwise.observe.jobs.observation import Observation
from chipwise.observe.log import Log
from chipwise.observe.pace import Pace, pace_of
from chipwise.observe.records import ServingWindow
from chipwise.present import plots

MOST_FINDINGS = 6  # that are named in the picture, the gravest
HIGHEST = 5.0  # times the median: a step above it is drawn at the edge


def draw(observation: Observation, target: Path) -> None:
    """Write the picture, atomically."""
    log = observation.log
    pace = pace_of(log) if log is not None else None
    timed = pace is not None and any(step.seconds is not None for step in pace.steps)
    if log is None or not (timed or log.serving):
        why = observation.problem or "its output tells no time of a step and no window of serving"
        raise Refusal(f"job {observation.job.id} can't be drawn: {why}", "a job whose output tells steps or windows")
    title = f"job {observation.job.id} {observation.job.job.name}"
    with plots.drawing(words=True) as pyplot:
        if timed and pace is not None:
            figure, axes = pyplot.subplots(figsize=(9, 4.2), layout="constrained")
            _steps(axes, pace, observation)
        else:
            figure, (axes, tokens) = pyplot.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
            _windows(axes, tokens, log)
        axes.set_title(title)
        plots.save(figure, target)


def _steps(axes: Any, pace: Pace, observation: Observation) -> None:
    timed_steps = [step for step in pace.steps if step.seconds is not None and step.steps > 0]
    places = [step.step.step if step.step.step is not None else step.place for step in timed_steps]
    seconds = [(step.seconds or 0.0) / step.steps for step in timed_steps]
    usual = sorted(seconds)[len(seconds) // 2]
    top = min(max(seconds), HIGHEST * usual)
    for settled, color, label in ((True, plots.BLUE, "a step"), (False, plots.GREY, "first steps of a start")):
        chosen = [place for place, step in enumerate(timed_steps) if step.settled is settled]
        if chosen:
            drawn = [min(seconds[place], top) for place in chosen]
            axes.plot([places[place] for place in chosen], drawn, ".", color=color, markersize=4, label=label)
    _predicted(axes, observation.ratio)
    for finding in [f for f in observation.findings if f.step is not None][:MOST_FINDINGS]:
        axes.axvline(finding.step, color=plots.VERMILION, linewidth=1)
        axes.annotate(str(finding.condition), (finding.step, top), rotation=90, va="top", ha="right", fontsize=8)
    axes.set_xlabel("step")
    axes.set_ylabel("seconds a step")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower right")


def _predicted(axes: Any, ratio: Ratio | None) -> None:
    """The prediction with its interval, where it is of the time of a step."""
    if ratio is not None and not ratio.larger_is_faster:
        axes.axhspan(ratio.predicted.low, ratio.predicted.high, color=plots.SKY, alpha=0.25, label="predicted, 90 %")
        axes.axhline(ratio.predicted.value, color=plots.SKY, linewidth=1)


def _windows(axes: Any, tokens: Any, log: Log) -> None:
    at = range(1, len(log.serving) + 1)
    for name, color, label in (("running", plots.BLUE, "running"), ("waiting", plots.ORANGE, "waiting")):
        axes.plot(at, _values(log.serving, name), color=color, label=label)
    for name, color, label in (
        ("generation_tokens_per_s", plots.GREEN, "generated"),
        ("prompt_tokens_per_s", plots.PURPLE, "prompts"),
    ):
        tokens.plot(at, _values(log.serving, name), color=color, label=label)
    axes.set_ylabel("requests")
    tokens.set_ylabel("tokens/s")
    tokens.set_xlabel("window of the log")
    axes.legend()
    tokens.legend()


def _values(windows: Sequence[ServingWindow], name: str) -> list[float]:
    return [float("nan") if getattr(window, name) is None else getattr(window, name) for window in windows]
