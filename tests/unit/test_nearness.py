"""A step's interval is the wider the less it is like any published one."""

from math import log

import pytest

import chipwise as cw


def width(step):
    return log(step.high / step.low)


def step_of(on, stack, sequence, batch):
    workload = cw.load("llama-3.1-8b", tokens="10B", sequence=sequence, batch=batch, stack=stack)
    return cw.predict(workload, on=on).step


@pytest.mark.parametrize(("on", "stack"), [("v5p:64", "maxtext"), ("h100:64", "megatron")])
def test_far_from_published_steps_is_never_surer(on, stack):
    near, far = step_of(on, stack, 8192, 128), step_of(on, stack, 131072, 64)
    assert near.evidence == far.evidence == "modelled"
    assert width(far) >= width(near) * (1 - 1e-9)
    assert "none of them" in far.because


def test_stacks_without_flags_of_a_generation_are_slower_on_tpus():
    tuned = step_of("v6e:64", "maxtext", 8192, 64).value
    for stack in ("levanter", "axlearn"):
        assert step_of("v6e:64", stack, 8192, 64).value > tuned
