"""What is wrong with a run by its log: found where it is, not found where it isn't, and what it has cost."""

import json
import random
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.health import false_alarms, named_stragglers, slow_downs
from hypothesis import given
from hypothesis import strategies as st

import chipwise as cw
from chipwise.observe.against import ratios
from chipwise.observe.faults import xids
from chipwise.observe.health.changes import levels
from chipwise.observe.health.diagnosis import Setting, diagnose, unjudged
from chipwise.observe.health.playbook import advice_on, device_series
from chipwise.observe.health.records import Condition, Unjudged
from chipwise.observe.health.stragglers import stragglers
from chipwise.observe.log import read_lines
from chipwise.observe.records import Fault, FaultClass, Severity
from lane import ALL

START = 1793610000.0  # 2026-11-02 09:00 UTC


def stamp(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def run(seconds, first=1, at=START, stamps=True):
    """Lines of Megatron of steps that took so long, and when the last of them was printed."""
    lines = []
    for number, took in enumerate(seconds, first):
        at += took
        head = f" [{stamp(at)}]" if stamps else ""
        lines.append(
            f"{head} iteration {number}/ 500 | elapsed time per iteration (ms): {took * 1e3:.1f} | lm loss: 2.5E+00 |"
        )
    return lines, at


def found(lines, **setting):
    return diagnose(read_lines(lines), Setting(**setting))


def noisy(count, seconds=5.0, seed=1):
    rng = random.Random(seed)
    return [seconds * (1 + rng.gauss(0, 0.02)) for _ in range(count)]


def test_a_steady_run_has_nothing():
    lines, _ = run(noisy(200))
    assert found(lines) == []


def test_a_slow_down_is_dated_and_priced():
    seconds = noisy(100) + noisy(80, 5.6, seed=2)
    lines, _ = run(seconds)
    (finding,) = found(lines, chips=64, usd_per_chip_hour=3.0)
    assert finding.condition is Condition.SLOWED and finding.severity is Severity.WARNING
    assert abs(finding.step - 101) <= 3 and finding.called_step <= 150 and finding.until_step is None
    assert finding.ratio == pytest.approx(1.12, abs=0.02)
    lost = sum(seconds[100:]) - 80 * 5.0
    assert finding.cost.seconds == pytest.approx(lost, rel=0.1)
    assert finding.cost.chip_hours == pytest.approx(finding.cost.seconds * 64 / 3600)
    assert finding.cost.usd == pytest.approx(finding.cost.chip_hours * 3.0)


def test_a_slow_down_that_ends_is_over():
    lines, _ = run(noisy(100) + noisy(60, 5.8, seed=2) + noisy(100, seed=3))
    (finding,) = found(lines)
    assert abs(finding.until_step - 160) <= 3 and finding.cost.seconds == pytest.approx(48, rel=0.15)


def test_a_run_that_gets_faster_is_not_sick():
    lines, _ = run(noisy(100) + noisy(100, 4.4, seed=2))
    assert found(lines) == []


def test_checkpoints_and_a_few_slow_steps_are_no_slow_down():
    seconds = [
        took * (6 if n % 40 == 39 else 1.7 if n % 100 in range(50, 56) else 1) for n, took in enumerate(noisy(400))
    ]
    lines, _ = run(seconds)
    assert found(lines) == []


def test_a_slow_down_since_a_restart_says_so():
    first, at = run(noisy(100))
    again, _ = run([40.0, *noisy(80, 5.7, seed=4)], first=81, at=at + 300)
    (finding,) = found([*first, *again])
    assert finding.step == 84 and "started again" in finding.evidence


@given(
    st.lists(st.floats(0.1, 10.0), min_size=0, max_size=120),
    st.integers(0, 3),
)
def test_levels_cover_the_series_in_order(values, times):
    series = np.array(values * (times + 1))
    out = levels(series)
    assert sum(level.end - level.start for level in out) == len(series)
    assert all(a.end == b.start and a.called <= b.called for a, b in pairwise(out))


def test_a_rate_is_judged_like_a_time():
    line = "step: {}  loss:  3.0  memory: 45.1GiB(57%)  tps: {}  mfu: 30.0%"
    rng = random.Random(5)
    rates = [10_000 * (1 + rng.gauss(0, 0.01)) / (1 if n < 60 else 1.2) for n in range(120)]
    findings = found([line.format(n, f"{rate:,.0f}") for n, rate in enumerate(rates)])
    assert [f.condition for f in findings] == [Condition.SLOWED] and findings[0].cost is None  # nothing says seconds


def test_a_run_that_says_nothing_for_long_is_hung():
    lines, at = run(noisy(60))
    late = f"[{stamp(at + 1900)}] [E] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"
    findings = found([*lines, late], chips=8, usd_per_chip_hour=2.0)
    assert {f.condition for f in findings} == {Condition.HUNG, Condition.FAULT}
    hung = next(f for f in findings if f.condition is Condition.HUNG)
    assert hung.severity is Severity.CRITICAL and hung.step == 60
    assert hung.cost.seconds == pytest.approx(1900, abs=1) and hung.cost.usd == pytest.approx(
        1900 * 8 / 3600 * 2, rel=0.01
    )
    assert found(lines) == [] and found(lines, until=at + 500) == []
    assert [f.condition for f in found(lines, until=at + 700)] == [Condition.HUNG]


def test_a_pause_that_the_run_came_back_from_is_a_stall():
    seconds = noisy(60)
    seconds[40] += 1500.0
    (finding,) = found(run(seconds)[0])
    assert finding.condition is Condition.STALLED and finding.step == 41
    assert finding.cost.seconds == pytest.approx(1500, abs=2)


def test_without_stamps_nothing_is_said_of_silence():
    log = read_lines(run(noisy(60), stamps=False)[0])
    assert diagnose(log, Setting()) == [] and Unjudged.SILENCE in unjudged(log, Setting())


def test_a_run_slow_from_its_first_step_is_seen_by_its_prediction():
    job = cw.load("llama-3.1-8b", batch=64, sequence="8k", steps=100)
    prediction = cw.predict(job, on="h100:8")
    step = prediction.step
    lines, _ = run(noisy(100, step.value))
    log = read_lines(lines)
    assert diagnose(log, Setting(ratios=ratios(log, prediction.prediction))) == []
    slow = read_lines(run(noisy(100, step.high * 1.3))[0])
    (finding,) = diagnose(slow, Setting(ratios=ratios(slow, prediction.prediction), chips=8))
    assert finding.condition is Condition.SLOW and finding.ratio == pytest.approx(
        1.3 * step.high / step.value, rel=0.01
    )
    expected = 97 * (step.high * 1.3 - step.value)
    assert finding.cost.seconds == pytest.approx(expected, rel=0.02)
    assert Unjudged.PREDICTION in unjudged(slow, Setting())


def ranks(steps, count, slow, since=0, times=1.2):
    """Megatron's tables of timers."""
    rng = random.Random(3)
    lines = []
    for step in range(1, steps + 1):
        lines += [run([5.0], first=step, at=START + 5 * step)[0][0], "times across ranks (ms):", "  forward-backward:"]
        lines += [f"     rank {rank:2d}: 5000.00" for rank in range(count)]
        lines.append("  forward-compute:")
        for rank in range(count):
            took = 1000 * (1 + rng.gauss(0, 0.02)) * (times if rank in slow and step > since else 1)
            lines.append(f"     rank {rank:2d}: {took:.2f}")
    return lines


def test_a_straggler_is_named_by_its_own_work():
    (finding,) = found(ranks(60, 16, {5}, since=30))
    assert (finding.condition, finding.where) == (Condition.STRAGGLER, "rank 5") and 31 < finding.step <= 50
    assert finding.ratio == pytest.approx(1.2, abs=0.02)
    assert finding.cost.seconds == pytest.approx(30 * 0.2, rel=0.2)


def test_a_node_whose_ranks_are_slow_is_named_whole():
    (finding,) = found(ranks(40, 32, set(range(8, 16))), chips_of_host=8)
    assert finding.where == "node 1 (ranks 8 to 15)"
    assert len(found(ranks(40, 32, set(range(8, 16))))) == 8


def test_ranks_that_wait_for_each_other_show_no_straggler():
    line = "[rank{}]:[titan] 2026-11-02 09:{:02d}:00,000 - root - INFO - step: {}  loss:  3.0  tps: {}  mfu: 1.0%"
    rows = [line.format(rank, step, step, 900 if step > 30 else 1000) for step in range(1, 50) for rank in range(8)]
    log = read_lines(rows)
    assert len(log.ranks) == 49 and stragglers(log.ranks) == []


@pytest.mark.sampled
def test_a_slow_down_is_found_soon_and_a_steady_run_is_left_alone():
    slow = slow_downs(1000 if ALL else 150)
    assert slow.in_time >= 0.95 * slow.runs and slow.too_soon == 0
    assert false_alarms(1000 if ALL else 20) <= 1


@pytest.mark.sampled
def test_a_straggler_is_named_soon_and_no_other_rank():
    named = named_stragglers(1000 if ALL else 60)
    assert named.in_time >= 0.95 * named.runs and named.innocent <= named.runs // 100


@pytest.mark.parametrize("number", sorted(xids()))
def test_an_xid_is_as_grave_as_what_it_calls_for(number):
    xid = xids()[number]
    at_once = (
        any(word in xid.action for word in ("drain", "reset the GPU", "reset the node")) and "idle" not in xid.action
    )
    assert (xid.severity is Severity.CRITICAL) == at_once, xid.action


@pytest.mark.parametrize("kind", FaultClass)
def test_every_class_of_fault_has_advice(kind):
    assert advice_on(Fault(kind=kind)).action and advice_on(Fault(kind=kind)).severity


def test_a_preemption_costs_the_wait_and_the_steps_done_again():
    first, at = run(noisy(60))
    note = f"[{stamp(at + 3)}] slurmstepd: error: *** JOB 4711 ON n1 CANCELLED DUE TO PREEMPTION ***"
    again, _ = run([41.0, *noisy(40, seed=6)], first=41, at=at + 600)
    (finding,) = found([*first, note, *again], chips=8)
    assert (finding.fault, finding.severity, finding.step) == (FaultClass.PREEMPTED, Severity.NOTICE, 60)
    assert finding.cost.seconds == pytest.approx(641 + 20 * 5.0, rel=0.02)


def test_a_fault_that_nothing_follows_costs_what_is_known():
    lines, at = run(noisy(60))
    (finding,) = found(
        [*lines, f"[{stamp(at + 90)}] torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate"]
    )
    assert finding.fault is FaultClass.OOM and finding.cost.seconds == pytest.approx(90, abs=0.1)


def test_a_page_of_metrics_tells_of_devices():
    page = [
        "# TYPE DCGM_FI_DEV_ROW_REMAP_FAILURE gauge",
        'DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="0",Hostname="n1"} 0',
        'DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="1",Hostname="n1"} 1',
        "# TYPE DCGM_FI_DEV_XID_ERRORS gauge",
        'DCGM_FI_DEV_XID_ERRORS{gpu="2",Hostname="n1"} 79',
        "# TYPE nvidia_smi_clocks_event_reasons_hw_thermal_slowdown gauge",
        'nvidia_smi_clocks_event_reasons_hw_thermal_slowdown{uuid="GPU-1"} 1',
        "# TYPE gpu_health gauge",
        'gpu_health{gpu_id="3",hostname="n2"} 0',
    ]
    findings = found(page)
    assert [(f.severity.value, f.condition.value, f.where) for f in findings] == [
        ("critical", "fault", "n1 GPU 1"),
        ("critical", "fault", "n2 GPU 3"),
        ("warning", "throttled", "GPU-1"),
        ("notice", "fault", "n1 GPU 2"),  # it keeps the last Xid for ever
    ]
    assert findings[3].xid == 79 and {series.series for series in device_series()} >= {"gpu_health"}


def test_the_report_is_a_document_and_rows():
    report = cw.diagnose("examples/logs/slow.log", on="h100:8")
    document = json.loads(json.dumps(report.to_dict()))
    assert document["worst"] == "warning" and [f["condition"] for f in document["findings"]] == ["slowed", "fault"]
    assert document["findings"][0]["cost_usd"] == pytest.approx(report.findings[0].cost.usd)
    assert [row["fault"] for row in report.flat_rows()] == [None, "preempted"]
    with pytest.raises(cw.InputError, match=r"until.*now, or a moment"):
        cw.diagnose("examples/logs/slow.log", until="tomorrow")
