"""No layout that can be named is better than what the search answers on the same chips, by more than a tie."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from layout_cases import UNCALIBRATED, cases

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import DoesNotFit, InputError, NoLayout
from chipwise.layout import search
from chipwise.layout.headroom import HEADROOM, allocatable, required
from chipwise.layout.named import read_layout
from chipwise.layout.results import TIE
from chipwise.layout.splits import divisors
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.setup import set_up

CALIBRATIONS = st.sampled_from((UNCALIBRATED, load_calibration(bench=False)))


@st.composite
def named(draw, chips, batch):
    """A layout as people might write it: any divisors, in any combination."""
    tp = draw(st.sampled_from([n for n in divisors(chips) if n <= 16]))
    pp = draw(st.sampled_from([n for n in divisors(chips // tp) if n <= 64]))
    cp = draw(st.sampled_from([n for n in divisors(chips // tp // pp) if n <= 4]))
    dp = chips // (tp * pp * cp)
    assume(batch % dp == 0)
    parts = [f"tp={tp}", f"pp={pp}", f"cp={cp}"]
    if pp > 1 and draw(st.booleans()):
        parts.append(f"vpp={draw(st.integers(1, 8))}")
    if draw(st.booleans()):
        parts.append(f"ep={draw(st.sampled_from([n for n in divisors(dp * cp) if n <= 64]))}")
    state = draw(st.sampled_from(("", "fsdp", "zero")))
    if state == "fsdp":
        parts.append(f"fsdp={draw(st.sampled_from(divisors(dp)))}")
    elif state == "zero":
        zero = draw(st.integers(0, 3))
        parts += [f"zero={zero}"] + ([f"shard={draw(st.sampled_from(divisors(dp)))}"] if zero else [])
    if draw(st.booleans()):
        parts.append(f"mbs={draw(st.sampled_from(divisors(batch // dp)))}")
    if draw(st.booleans()):
        parts.append(f"pipe={draw(st.sampled_from(('inner', 'outer')))}")
    return ",".join(parts)


@pytest.mark.hypothesis
@settings(max_examples=500, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(cases(chips=(4, 8, 16, 64)), CALIBRATIONS, st.data())
def test_no_named_layout_is_better_than_the_answer(case, calibration, data):
    workload, acc = case[0], parse(case[1])
    text = data.draw(named(acc.count, workload.train.global_batch))
    try:
        layout = read_layout(text, workload, acc, calibration, None)
        best = search(workload, acc, calibration).best
    except (InputError, NoLayout, DoesNotFit):
        assume(False)
        raise
    work = set_up(workload, acc, calibration)
    x = Layouts.of([layout])
    limit = allocatable(acc.chip) - required(acc.chip, HEADROOM)
    assume(float(work.memory(x).total[0]) <= limit)
    (seconds,) = work.seconds([layout])
    assert best.seconds <= seconds * (1 + TIE) * (1 + 1e-9), (text, str(layout), str(best.layout), str(acc))
