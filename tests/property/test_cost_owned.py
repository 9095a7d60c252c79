"""Owned servers, checkpoints and statements: what must hold whatever the numbers are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import load
from chipwise.catalog.economics import economics, servers, site, site_with
from chipwise.cost.checkpoint import state, write_seconds
from chipwise.cost.commitment import break_even, useful_usd_per_chip_hour
from chipwise.cost.onprem import network_usd, owned, payment, racks, residual_usd
from chipwise.workload import preset
from chipwise.workload.model import OPTIMIZER_STATES, Train, Workload

USD = st.floats(1e3, 1e7)
SHARE = st.floats(0.0, 1.0)
USE = st.floats(0.02, 1.0)
SOLD = st.sampled_from(sorted(servers()))
YEARS = st.floats(0.5, 10.0)


def mine(chip, chips=8, years=3.0, usd_kwh=0.1, pue=1.4):
    return owned(load().chips[chip], chips, site_with(site("us-average"), usd_kwh, pue), economics(), years)


@given(USD, SHARE, st.floats(0.0, 0.3), YEARS)
def test_payments_cover_the_loss_of_value_and_more_with_interest(capex, share, interest, years):
    kept = residual_usd(capex, share, years)
    paid = float(payment(capex, kept, interest, years)) * years * 12
    assert paid >= (capex - kept) * (1 - 1e-9)
    assert float(payment(capex, kept, interest + 0.01, years)) >= float(payment(capex, kept, interest, years)) * (
        1 - 1e-9
    )


@given(USD, st.floats(0.001, 0.3), YEARS)
def test_the_present_value_of_the_payments_and_of_the_rest_is_the_price(capex, interest, years):
    kept, months, rate = capex * 0.3, years * 12, interest / 12
    paid = float(payment(capex, kept, interest, years))
    discount = (1 + rate) ** -months
    assert paid * (1 - discount) / rate + kept * discount == pytest.approx(capex, rel=1e-6)


@given(SOLD, USE, USE, st.floats(50.0, 1500.0))
def test_a_used_hour_is_cheaper_the_more_hours_are_used(chip, one, other, watts):
    low, high = sorted((one, other))
    assert mine(chip).usd_per_chip_hour(high, watts) <= mine(chip).usd_per_chip_hour(low, watts) * (1 + 1e-9)


@given(SOLD, st.floats(0.05, 50.0), st.floats(50.0, 1500.0))
def test_break_even_is_where_a_used_hour_costs_as_much(chip, usd_per_chip_hour, watts):
    own = mine(chip)
    use = own.break_even(usd_per_chip_hour, watts)
    if 0 < use <= 1:
        assert own.usd_per_chip_hour(use, watts) == pytest.approx(usd_per_chip_hour, rel=1e-9)
    else:
        assert own.usd_per_chip_hour(1.0, watts) >= usd_per_chip_hour * (1 - 1e-9)


@given(SOLD, st.integers(1, 20_000))
def test_whole_servers_hold_the_chips_and_no_server_is_idle(chip, chips):
    own = mine(chip, chips)
    assert own.chips >= chips > own.chips - own.server.chips
    assert own.mean_w(min(chips, own.chips), 500.0) <= max(500.0, own.chip.idle_w) * (1 + 1e-9)


@given(st.integers(1, 30_000), st.integers(1, 30_000))
def test_the_network_of_a_node_never_gets_cheaper_in_a_larger_cluster(one, other):
    small, large = sorted((one, other))
    assert network_usd(economics(), small) <= network_usd(economics(), large)


@given(SOLD, st.integers(1, 5_000))
def test_racks_hold_all_servers(chip, many):
    server = servers()[chip]
    got = racks(server, many, economics())
    assert 1 <= got <= many and got * max(1, 42 // server.rack_units) >= many


@given(SOLD, st.floats(0.0, 1.0), st.floats(1.0, 3.0), st.floats(50.0, 1500.0))
def test_energy_grows_with_price_pue_and_watts(chip, usd_kwh, pue, watts):
    own = mine(chip, usd_kwh=usd_kwh, pue=pue)
    assert own.energy_usd_per_hour(watts) == pytest.approx(own.server_w(watts) / 1e3 * pue * usd_kwh)
    assert own.energy_usd_per_hour(watts + 1) >= own.energy_usd_per_hour(watts)


@given(USD, USD, USE)
def test_a_commitment_is_cheaper_exactly_above_its_break_even(committed, ondemand, use):
    even = break_even(committed, ondemand)
    dearer = useful_usd_per_chip_hour(committed, use) > ondemand
    assert dearer == (use < even) or use == pytest.approx(even)


@given(
    st.sampled_from(sorted(OPTIMIZER_STATES)),
    st.sampled_from(["fp32", "bf16", "fp8"]),
    st.sampled_from(["fp32", "bf16"]),
)
def test_a_checkpoint_holds_weights_and_state_and_lora_far_less(optimizer, precision, kept):
    train = {
        "global_batch": 8,
        "sequence": 1024,
        "optimizer": optimizer,
        "precision": precision,
        "state_precision": kept,
    }
    whole = state(Workload("w", preset("llama-3.1-8b"), Train(**train)))
    lora = state(Workload("w", preset("llama-3.1-8b"), Train(**train, lora_rank=8)))
    each = whole.total / (whole.weights / (4 if precision == "fp32" else 2))
    assert 2 <= each <= 16 and lora.total < whole.total / 100
    assert whole.total == whole.weights + whole.master + whole.optimizer


@given(st.floats(1e6, 1e14), st.integers(1, 5_000), st.floats(1e8, 1e11), st.floats(1e9, 1e13))
def test_more_nodes_never_write_slower_and_storage_sets_the_limit(size, nodes, each, every):
    seconds = write_seconds(size, nodes, each, every)
    assert write_seconds(size, nodes + 1, each, every) <= seconds
    assert seconds >= size / every * (1 - 1e-9)
