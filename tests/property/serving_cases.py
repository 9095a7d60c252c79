"""Random fleets and requests; every time is a multiple of a power of two, so that sums are exact in any order."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from chipwise.serving.limits import ROUTERS
from chipwise.serving.requests import Requests, given
from chipwise.serving.simulate import Fleet, Prefill
from chipwise.serving.step_times import EngineConfig, StepTimeTable

TICK = 1 / 1024


@st.composite
def step_time_tables(draw: st.DrawFn) -> StepTimeTable:
    base, each = draw(st.integers(1, 40)), draw(st.integers(0, 6))
    tokens = draw(st.integers(1, 48))
    return StepTimeTable(
        tokens_s=(base + each * np.arange(tokens + 1)) * TICK,
        context_s=draw(st.integers(0, 3)) * TICK / 8,
        pair_s=draw(st.integers(0, 2)) * TICK / 16,
        sequence_s=draw(st.integers(0, 2)) * TICK,
        watts_idle=100.0,
        watts_busy=400.0,
    )


@st.composite
def config(draw: st.DrawFn) -> EngineConfig:
    return EngineConfig(
        most_sequences=draw(st.integers(1, 8)),
        most_tokens=draw(st.integers(1, 40)),
        block=draw(st.integers(1, 5)),
        mixed=draw(st.booleans()),
        reserve=draw(st.booleans()),
        chunked=draw(st.booleans()),
    )


@st.composite
def streams(draw: st.DrawFn) -> Requests:
    count = draw(st.integers(1, 25))
    tokens = st.lists(st.integers(1, 24), min_size=count, max_size=count)
    inputs, outputs = np.array(draw(tokens)), np.array(draw(tokens))
    shared = group = None
    if draw(st.booleans()):
        shared = inputs // 2
        group = np.array(draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count)))
    kind = draw(st.sampled_from(("open", "closed", "offline")))
    at, users = None, 0
    if kind == "open":
        gaps = draw(st.lists(st.integers(0, 200), min_size=count, max_size=count))
        at = np.cumsum(gaps) * TICK
    elif kind == "closed":
        users = draw(st.integers(1, 9))
    return given(at, inputs, outputs, shared=shared, group=group, users=users)


@st.composite
def cases(draw: st.DrawFn, split: bool | None = None) -> tuple[Requests, Fleet]:
    """A fleet whose cache holds any one of the requests, often little more."""
    requests, set_to = draw(streams()), draw(config())
    longest = int((requests.input + requests.output).max())
    prefill = None
    if draw(st.booleans()) if split is None else split:
        prefill = Prefill(
            draw(step_time_tables()),
            -(-longest // set_to.block) + draw(st.integers(0, 12)),
            draw(st.integers(1, 3)),
            draw(st.none() | st.just(set_to)),
            transfer_s_per_token=draw(st.integers(0, 3)) * TICK,
            transfer_latency_s=draw(st.integers(0, 9)) * TICK,
        )
    return requests, Fleet(
        draw(step_time_tables()),
        -(-longest // set_to.block) + draw(st.integers(0, 30)),
        set_to,
        draw(st.integers(1, 4)),
        draw(st.sampled_from(ROUTERS)),
        prefill,
    )
