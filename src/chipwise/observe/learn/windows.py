"""Windows of a server against its prediction: the time between a sequence's tokens, by how many it had at once.

By Little's law a server that has so many sequences and writes so many tokens a second takes the one over the other for
each token of a sequence. What an iteration takes with so many sequences, and with the prompts that came meanwhile, is
predicted by the table of the replica's times: the tokens that it would have written are held against those it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import median

import numpy as np

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.errors import Refusal
from chipwise.observe.health.changes import SLACK
from chipwise.observe.records import ServingWindow
from chipwise.present.numbers import plural
from chipwise.serving.service import ServingTarget, corrections, replica_with_corrections, serving_target
from chipwise.serving.split import Split
from chipwise.serving.step_times import StepTimeTable
from chipwise.workload.serve import Serve, ServingWorkload

WARM_UP = 3  # windows that compile, or fill the cache
BLOCK = 6  # windows that are held against their prediction together: the count at a window's end says little of it
FARTHEST = 4.0  # standard deviations, by the median absolute deviation, beyond which a block is of something else
SURE = 4.5  # standard deviations: about one run in a thousand at the best of a hundred splits, where nothing changes
FEWEST_BLOCKS = 3  # on either side of a change
_ROBUST = 1.4826  # a standard deviation in median absolute deviations, of a normal distribution


def engines_in(windows: Sequence[ServingWindow]) -> list[list[ServingWindow]]:
    """Windows by the engine that printed them."""
    out: dict[str, list[ServingWindow]] = {}
    for window in windows:
        out.setdefault(window.engine, []).append(window)
    return list(out.values())


def busy_windows(windows: Sequence[ServingWindow]) -> list[ServingWindow]:
    """Windows in which a server wrote; their count of sequences is the mean of both ends."""
    out = []
    for before, window in zip(windows[WARM_UP - 1 :], windows[WARM_UP:], strict=False):
        rate = window.generation_tokens_per_s
        if before.running is not None and window.running is not None and rate and before.running + window.running > 0:
            mean = (before.running + window.running) / 2
            out.append(replace(window, running=mean))
    return out


def times_as_long(
    windows: Sequence[ServingWindow],
    workload: ServingWorkload,
    on: Accelerators,
    split: Split,
    plain: Calibration,
    engines: int = 1,
) -> tuple[list[float], float, str]:
    """Of each block of one of so many engines: observed over predicted; what a token takes by prediction; the stack."""
    if split.chips * engines != on.count:
        replicas = on.count // split.chips
        raise Refusal(
            f"{on} is {replicas} replicas of {split}: which of them a line of {plural(engines, 'engine')} is of is not "
            "known",
            "the log of one replica, on its own chips; or of all, each line with its engine",
        )
    if not workload.model.writes or workload.model.family != "decoder":
        raise Refusal(f"{workload.model.name} writes no tokens one by one", "a model that does")
    target = serving_target(workload, on.chip, plain)
    running = median(window.running or 0.0 for window in windows)
    replica, near = replica_with_corrections(target, split)
    here = _corrected(target, split, running)
    table = replica.slower(here / near["tpot"].factor).step_times()
    blocks = [windows[start : start + BLOCK] for start in range(0, len(windows) - BLOCK + 1, BLOCK)]
    pairs = [_observed_and_predicted(block, table, workload.serve, replica.config.most_tokens) for block in blocks]
    ratios = [observed / predicted for observed, predicted in pairs]
    return ratios, median(predicted for _, predicted in pairs), target.stack.id


def _corrected(target: ServingTarget, split: Split, running: float) -> float:
    return corrections(target, split, max(running, 1.0))["tpot"].factor


def _observed_and_predicted(
    block: Sequence[ServingWindow], table: StepTimeTable, serve: Serve, most_tokens: int
) -> tuple[float, float]:
    """Seconds for each token of a sequence, from its prompt on: as they were, and as iterations like those would take.

    A prompt comes whole, as far as an iteration takes it: it rides along in few iterations, and makes those long. How
    many of them have one follows from what an iteration took, so that a slower chip is not held for a busier one.
    """
    running = sum(window.running or 0.0 for window in block) / len(block)
    prompts = sum(window.prompt_tokens_per_s or 0.0 for window in block) / len(block)
    observed = running / (sum(window.generation_tokens_per_s or 0.0 for window in block) / len(block))
    tokens = np.arange(len(table.tokens_s))
    fixed = table.context_s * running * (serve.input.mean + serve.output.mean / 2) + table.sequence_s * running
    alone = float(np.interp(running, tokens, table.tokens_s)) + fixed
    answer = max(serve.output.mean, 1.0)
    passes = max(
        1.0, float(np.ceil(serve.input.mean / most_tokens))
    )  # that read a prompt, and end with its first token
    iteration, predicted = observed, alone
    for _ in range(20):
        new = min(prompts * iteration, float(most_tokens))  # tokens of prompts in an iteration, on average
        chunk = min(max(serve.input.mean, new), float(most_tokens))
        share = new / chunk  # of the iterations
        with_prompt = float(np.interp(min(running + chunk, tokens[-1]), tokens, table.tokens_s)) + fixed
        usual = (1 - share) * alone + share * with_prompt + table.pair_s * new * serve.input.mean / 2
        predicted = usual + (passes * with_prompt - usual) / answer
        iteration = observed * usual / predicted
    return observed, predicted


def changed(ratios: Sequence[float]) -> tuple[int, float] | None:
    """The block from which on a server took another time than before, and how many times as long; None: none is.

    The split at which both parts differ most surely (a likelihood ratio): a run of a server is judged once, when it is
    read, so that no alarm of each day has to be kept rare.
    """
    logs, best = np.log(ratios), (0.0, 0, 0.0)
    for place in range(FEWEST_BLOCKS, len(logs) - FEWEST_BLOCKS + 1):
        before, after = logs[:place], logs[place:]
        spread = float(np.sqrt((before.var() * len(before) + after.var() * len(after)) / max(len(logs) - 2, 1)))
        shift = float(after.mean() - before.mean())
        sureness = abs(shift) / max(spread * float(np.sqrt(1 / len(before) + 1 / len(after))), 1e-9)
        best = max(best, (sureness, place, shift))
    sureness, place, shift = best
    return (place, exp(shift)) if sureness > SURE and abs(shift) > SLACK else None


def typical(ratios: Sequence[float]) -> float:
    """What a run's blocks say together: the mean, without those that are far from the median."""
    logs = np.log(ratios)
    middle = float(np.median(logs))
    spread = _ROBUST * float(np.median(np.abs(logs - middle)))
    return exp(float(logs[np.abs(logs - middle) <= FARTHEST * spread].mean()))
