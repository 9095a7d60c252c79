"""What a series shows of a node: facts at once, states once they hold, and nothing that was there before anybody looked."""

import pytest

from chipwise.observe.exporters import mapping
from chipwise.observe.nodes.records import Node, Verdict
from chipwise.observe.nodes.symptoms import node_series, symptom_of, worth_a_look

T = 1_795_000_000


def every(seconds, *values):
    return [(T + n * seconds, float(value)) for n, value in enumerate(values)]


def judged(series, samples, looked_since=T, **labels):
    """The verdict on a node that shows this alone, and the symptom."""
    one = symptom_of(series, "gpu 3", labels, samples, looked_since)
    return Node(host="n", seen=T, symptoms=(one,) if one else ()).verdict, one


def test_every_series_is_one_that_something_is_mapped_to():
    assert set(node_series()) <= {mapped.series for mapped in mapping().values()}


@pytest.mark.parametrize(
    ("xid", "verdict", "fault"),
    [("79", "sick", "bus"), ("95", "sick", "memory"), ("145", "sick", "link"), ("119", "sick", "driver"),
     ("13", "suspect", "program"), ("63", "suspect", "memory"), ("45", "suspect", "program")],
)  # fmt: skip
def test_an_xid_in_the_kernels_log_is_a_fact_by_its_meaning(xid, verdict, fault):
    shown, one = judged("host_faults", every(10, 1, 1), T - 600, fault="driver", xid=xid)
    assert (shown, one.fault, one.xid, one.times, one.first) == (verdict, fault, int(xid), 1, T)
    assert one.action and one.confirmed


def test_a_fault_without_a_number_is_judged_by_its_class():
    assert judged("host_faults", every(10, 0, 2), fault="bus")[0] is Verdict.SICK
    assert judged("host_faults", every(10, 0, 2), fault="oom")[0] is Verdict.SUSPECT
    assert judged("host_faults", every(10, 0, 2), fault="preempted")[1].severity == "notice"


def test_what_was_counted_before_anybody_looked_is_old():
    assert judged("host_faults", every(10, 5, 5, 5), fault="bus") == (Verdict.WELL, None)
    assert judged("device_uncorrected_errors", every(10, 2, 2, 2)) == (Verdict.WELL, None)
    assert judged("device_last_xid", every(10, 79, 79, 79)) == (Verdict.WELL, None)


def test_a_counter_that_begins_again_counts_what_comes_after():
    shown, one = judged("device_uncorrected_errors", every(10, 5, 0, 0, 2))
    assert (shown, one.times, one.last) == ("sick", 2, T + 30)
    assert judged("device_uncorrected_errors", every(10, 5, 0, 0, 0)) == (Verdict.WELL, None)


def test_a_sticky_xid_counts_when_it_turns():
    shown, one = judged("device_last_xid", every(10, 0, 0, 79, 79))
    assert (shown, one.xid, one.first, one.last) == ("sick", 79, T + 20, T + 20)
    assert judged("device_last_xid", every(10, 79, 31, 31))[0] is Verdict.SUSPECT
    assert judged("device_last_xid", every(10, 79, 0, 0)) == (Verdict.WELL, None)
    late = [(T + 500, 48.0), (T + 510, 48.0)]  # a series that comes once there is one
    assert judged("device_last_xid", late)[1].xid == 48
    assert judged("device_last_xid", every(10, 0, 7777))[1].fault == "driver"  # a number nobody knows


@pytest.mark.parametrize(
    ("series", "grave", "seconds"),
    [("device_remap_failed", 1, 30), ("device_lost", 1, 30), ("device_link_health", 10, 60)],
)
def test_a_state_has_to_hold(series, grave, seconds):
    once = judged(series, every(10, 0, 0, grave))
    assert once[0] is Verdict.SUSPECT and not once[1].confirmed  # one noisy sample
    assert judged(series, every(10, grave, grave, 0))[1] is None  # over
    few = judged(series, [(T, grave), (T + 500, grave)])
    assert few[0] is Verdict.SUSPECT  # in too few samples
    holds = judged(series, every(seconds / 2, grave, grave, grave))
    assert holds[0] is Verdict.SICK and holds[1].times == 3
    flickers = judged(series, every(seconds / 2, grave, grave, 0, grave, grave))
    assert flickers[0] is Verdict.SUSPECT


def test_what_is_not_grave_makes_nobody_sick():
    shown, one = judged("device_throttled_by_heat", every(60, *[1] * 10))
    assert (shown, one.condition, one.severity, one.confirmed) == ("suspect", "throttled", "warning", True)
    assert judged("device_link_health", every(60, *[7] * 10))[0] is Verdict.SUSPECT


def test_no_samples_are_no_symptom():
    assert all(symptom_of(series, "", {}, [], T) is None for series in node_series())
    assert symptom_of("device_busy", "", {}, every(10, 1), T) is None
    assert not worth_a_look("device_busy", 1.0) and not worth_a_look("device_link_health", 5.0)
