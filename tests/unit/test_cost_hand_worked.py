"""Cases worked by hand, to the cent, with the arithmetic beside them."""

from dataclasses import replace
from math import exp, inf, sqrt

import pytest

from chipwise.catalog import Commitment, load
from chipwise.catalog.economics import economics, servers, site, site_with
from chipwise.cost import onprem
from chipwise.cost.checkpoint import state, write_seconds
from chipwise.cost.commitment import break_even, useful_usd_per_chip_hour
from chipwise.cost.onprem import HOURS_MONTH, Owned, owned
from chipwise.cost.spot import Hazard, daly, expected, young
from chipwise.prices import listed, run_cost
from chipwise.workload import preset
from chipwise.workload.model import Train, Workload


def cents(usd):
    return round(usd, 2)


def test_a_run_on_demand_is_chip_hours_by_price():
    # 64 chips x 36 h = 2,304 chip-hours; x $2.49 = $5,736.96
    assert cents(run_cost(64, 36 * 3600, 2.49)) == 5736.96


def test_a_commitment_breaks_even_where_its_price_over_the_use_is_that_on_demand():
    # AWS p4d, us-east-1, 2025-03-02: on demand $4.10, three years $1.45 a chip-hour
    found = listed().commitments_for("a100-40gb", 3, ["aws"])[0]
    assert isinstance(found, Commitment) and (found.usd_per_chip_hour, found.ondemand_usd_per_chip_hour) == (1.45, 4.10)
    # 1.45 / 4.10 = 0.353658...: below 35.37 % of the hours the commitment is dearer
    use = break_even(found.usd_per_chip_hour, found.ondemand_usd_per_chip_hour)
    assert round(use, 6) == 0.353659
    # at that use a used hour costs 1.45 / 0.353658 = $4.10; at 60 % 1.45 / 0.6 = $2.4167
    assert cents(useful_usd_per_chip_hour(1.45, use)) == 4.10
    assert round(useful_usd_per_chip_hour(1.45, 0.6), 4) == 2.4167


def flat(server, place, **changes):
    """Servers without staff, insurance, installation or interest unless told."""
    none = {
        "installation": 0.0,
        "insurance": 0.0,
        "interest": 0.0,
        "maintenance": 0.0,
        "staff_fte_first": 0.0,
        "staff_fte_server": 0.0,
        "network_usd_node": 0.0,
        "residual_value": 0.0,
        "colocation_usd_kw_month": 0.0,
    }
    return owned(load().chips[server], 8, place, economics().changed({**none, **changes}), 3.0)


def test_on_premises_amortisation_without_interest():
    # an 8 x H100 server of $310,000 worth 30 % = $93,000 after three years: $217,000 / 36 months = $6,027.78 a month
    mine = flat("h100", site("us-average"), residual_value=0.3)
    assert (mine.capex_usd, cents(mine.residual_usd)) == (310_000.0, 93_000.0)
    assert cents(mine.payment_usd_month) == 6027.78


def test_on_premises_financing_is_an_annuity():
    # 7 % a year is 0.07/12 a month; v = (1 + 0.07/12)^-36 = 0.811079
    # ($310,000 - $93,000 x 0.811079) x (0.07/12) / (1 - 0.811079) = $234,569.65 x 0.03087710 = $7,242.83 a month
    mine = flat("h100", site("us-average"), residual_value=0.3, interest=0.07)
    assert cents(mine.payment_usd_month) == 7242.83


def test_on_premises_energy_with_pue():
    # chips at 600 W and 3,000 W beside them: 8 x 600 + 3,000 = 7,800 W; x 1.5 PUE = 11.7 kW; x $0.10 = $1.17 an hour
    mine = replace(flat("h100", site_with(site("us-average"), 0.10, 1.5)), overhead_w=3000.0)
    assert cents(mine.energy_usd_per_hour(600.0)) == 1.17


def test_on_premises_a_useful_chip_hour_and_its_break_even():
    mine = Owned(
        load().chips["h100"],
        servers()["h100"],
        1,
        1,
        site_with(site("us-average"), 0.10, 1.5),
        3.0,
        0,
        0,
        6027.78,
        1291.67,
        1877.41,
        0.0,
        0.10,
        3000.0,
        100.0,
    )
    # a month: 6,027.78 + 1,291.67 + 1,877.41 = $9,196.86; over 730.5 h = $12.5898 an hour of the server
    assert HOURS_MONTH == 730.5 and cents(mine.month_usd) == 9196.86
    # energy: busy (8 x 600 + 3,000) W x 1.5 x $0.10 = $1.17; idle (800 + 3,000) W x 1.5 x $0.10 = $0.57
    # used 60 %: (12.5898 + 0.6 x 1.17 + 0.4 x 0.57) / 0.6 / 8 = 13.5198 / 4.8 = $2.8166 a used chip-hour
    assert round(mine.usd_per_chip_hour(0.6, 600.0), 4) == 2.8166
    # against $2.49 a chip-hour: (12.5898 + 0.57) / (8 x 2.49 - 1.17 + 0.57) = 13.1598 / 19.32 = 0.68115
    even = mine.break_even(2.49, 600.0)
    assert round(even, 5) == 0.68115
    assert cents(mine.usd_per_chip_hour(even, 600.0)) == 2.49
    # against $1.00: 13.1598 / (8 - 0.60) = 1.778: never
    assert round(mine.break_even(1.0, 600.0), 3) == 1.778


def test_on_premises_staff_and_colocation_of_a_server():
    # 8 chips: one server; colocation 10.2 kW x $184.06 = $1,877.41; half a person of $175,000 a year / 12 = $7,291.67
    mine = flat(
        "h100", site("us-average"), colocation_usd_kw_month=184.06, staff_fte_first=0.5, staff_usd_year=175_000.0
    )
    assert (cents(mine.colocation_usd_month), cents(mine.staff_usd_month)) == (1877.41, 7291.67)
    # 64 servers: 0.5 + 63 x 0.02 = 1.76 people: 1.76 x 175,000 / 12 / 64 = $401.04 a server
    many = owned(
        load().chips["h100"],
        512,
        site("us-average"),
        economics().changed({"staff_fte_first": 0.5, "staff_fte_server": 0.02, "staff_usd_year": 175_000.0}),
    )
    assert cents(many.staff_usd_month) == 401.04


def test_the_network_share_grows_with_the_cluster():
    # one node needs none; 64 nodes $15,060 each; between 2 and 64 by the logarithm: at 8 nodes
    # 6,480 + (15,060 - 6,480) x ln(8/2) / ln(64/2) = 6,480 + 8,580 x 0.4 = $9,912
    assert onprem.network_usd(economics(), 1) == 0
    assert onprem.network_usd(economics(), 64) == 15_060
    assert cents(onprem.network_usd(economics(), 8)) == 9912.00


def test_youngs_and_dalys_interval():
    # checkpoints of 2 min, interruptions a day apart: sqrt(2 x 120 x 86,400) = sqrt(20,736,000) = 4,553.68 s
    assert round(young(120.0, 86_400.0), 2) == 4553.68
    # Daly: r = 120 / 172,800 = 1/1,440; 4,553.68 x (1 + sqrt(r)/3 + r/9) - 120
    #     = 4,553.68 x (1 + 0.008784 + 0.0000772) - 120 = 4,594.03 - 120 = 4,474.03 s
    assert round(daly(120.0, 86_400.0), 2) == 4474.03
    assert daly(200.0, 100.0) == 100.0  # a checkpoint of twice the time between interruptions or more


@pytest.mark.parametrize(("mean_h", "minutes"), [(24.0, 117.0), (6.0, 57.0), (0.25, 9.1)])
def test_dalys_own_cases(mean_h, minutes):
    # Daly, Future Generation Computer Systems 22 (2006), figures 3 to 5: checkpoints of 5 min
    assert daly(300.0, mean_h * 3600) / 60 == pytest.approx(minutes, abs=0.5 if minutes > 10 else 0.05)


def test_the_expected_time_of_one_segment():
    # an hour of work and 5 min to write, an interruption every 10 h, 10 min to restart, 20 min to wait:
    # rate 0.1/h; segment 1.083333 h: failed attempts e^0.1083333 - 1 = 0.114419
    # lost 0.114419/0.1 - 1.083333 = 0.060857 h; restarts 0.114419 x (e^(0.1/6) - 1)/0.1 = 0.019230 h
    # interruptions 0.114419 x e^(0.1/6) = 0.116342; wait 0.116342/3 = 0.038781 h
    got = expected(3600.0, Hazard(36_000.0, 300.0, 600.0, 1200.0), 3600.0)
    assert round(got.lost_s / 3600, 5) == 0.06086
    assert round(got.restarts_s / 3600, 5) == 0.01923
    assert round(got.interruptions, 5) == 0.11634
    assert round(got.wait_s / 3600, 5) == 0.03878
    # all: 1 + 0.083333 + 0.060857 + 0.019230 + 0.038781 = 1.202202 h, which is (e^0.108333 - 1) e^0.016667 (10 + 1/3) h
    assert round(got.wall_s / 3600, 5) == 1.20220
    assert got.wall_s == pytest.approx((exp(3900 / 36_000) - 1) * exp(600 / 36_000) * (36_000 + 1200))


def test_a_checkpoint_of_an_8b_model():
    # 8,030,261,248 parameters x (2 bf16 + 4 master + 2 x 4 moments) = 14 bytes each = 112.42 GB
    run = Workload("run", preset("llama-3.1-8b"), Train(global_batch=8, sequence=4096))
    assert round(state(run).total / 1e9, 2) == 112.42
    # 8 hosts at 2 GB/s are 16 GB/s: 7.03 s; storage that takes 10 GB/s in all: 11.24 s
    assert round(write_seconds(state(run).total, 8, 2e9), 2) == 7.03
    assert round(write_seconds(state(run).total, 8, 2e9, 10e9), 2) == 11.24


def test_the_state_of_lora_is_that_of_the_adapters():
    # rank 16 on attention of llama-2-70b: 65,536,000 parameters x 14 bytes = 917.5 MB
    run = Workload("run", preset("llama-2-70b"), Train(global_batch=8, sequence=4096, lora_rank=16))
    assert round(state(run).total / 1e6, 1) == 917.5


def test_without_interruptions_the_optimum_is_one_checkpoint_at_the_end():
    got = expected(7200.0, Hazard(inf, 60.0, 300.0))
    assert (got.wall_s, got.segments, got.interruptions) == (7260.0, 1, 0.0)
    assert sqrt(got.stretch) < 1.01
