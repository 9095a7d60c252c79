"""What `serve` and `capacity` return: the JSON of the commands, flat rows, tables and pictures."""

import json
import re

import pytest
from typer.testing import CliRunner

from chipwise import api
from chipwise.cli.serving import app
from chipwise.errors import ChipwiseError, InputError, Refusal
from chipwise.knowledge import Knowledge
from chipwise.serving.sizing import ServiceRequest

CHAT = {"input_len": 500, "output_len": 100, "rate": 2, "ttft": "500ms", "tpot": "30ms"}


def chat(**changes):
    return api.load("llama-3.1-8b", **{**CHAT, **changes})


@pytest.fixture(scope="module")
def simulation():
    return api.serve(chat(), on="h100:2", tp=1, requests=400)


@pytest.fixture(scope="module")
def largest():
    return api.capacity(chat(rate=200), on="h100:2")


def command(*arguments):
    flags = "--input-len 500 --output-len 100 --ttft 500ms --tpot 30ms --on h100:2"
    done = CliRunner().invoke(app, [arguments[0], "llama-3.1-8b", *flags.split(), *arguments[1:]])
    assert done.exit_code == 0
    return done.stdout


def test_a_result_is_the_json_of_its_command(simulation, largest):
    said = command("simulate", "--rate", "2", "--tp", "1", "--requests", "400", "-o", "json")
    assert json.loads(said) == simulation.to_dict()
    assert json.loads(command("capacity", "--rate", "200", "-o", "json")) == largest.to_dict()


def test_a_simulation_has_its_figures_as_attributes(simulation):
    record = simulation.to_dict()
    assert record["slo_met"] is simulation.slo_met is True
    assert record["ttft_seconds"]["p99"]["value"] == simulation.ttft.p99.value
    assert [row["met"] for row in record["slo"]] == [True, True]
    assert record["workload"]["slo"][0] == {"metric": "ttft", "percentile": 99.0, "seconds": 0.5}


def test_a_simulation_is_one_flat_row(simulation):
    (row,) = simulation.flat_rows()
    assert row["ttft_seconds_p99_low"] <= row["ttft_seconds_p99"] <= row["ttft_seconds_p99_high"]
    assert row["service_split_tp"] == 1 and "assumptions" not in row
    assert all(value is None or isinstance(value, str | int | float) for value in row.values())


def test_the_workloads_own_load_says_how_many_chips(largest):
    assert largest.to_dict()["needed_chips"] == largest.needed_chips > 2


def test_a_capacity_has_a_row_for_every_split_and_the_refused():
    tight = api.capacity(chat(precision="fp32", ttft="100s", tpot="1s"), on="l4:4")
    record, rows = tight.to_dict(), tight.flat_rows()
    assert [row["split_tp"] for row in rows if row["refused"]] == [1]
    assert len(rows) == len(record["rows"]) + len(record["refused"])
    assert [row["split_tp"] for row in rows] == [row["split"]["tp"] for row in record["rows"] + record["refused"]]
    assert len({tuple(row) for row in rows}) == 1


def test_results_are_tables_in_a_notebook(simulation, largest):
    for result, words in ((simulation, "first token (TTFT)"), (largest, "Pareto front")):
        assert words in result._repr_html_() and words in str(result)
        assert re.search(r"<t[dh][^>]*>", result._repr_html_())


def test_the_seed_is_part_of_what_is_known(simulation):
    again, other = (
        api.serve(chat(), on="h100:2", tp=1, requests=400, knowledge=Knowledge(seed=seed)) for seed in (0, 1)
    )
    assert again.ttft == simulation.ttft != other.ttft and other.to_dict()["seed"] == 1


def test_a_picture_takes_a_curve(simulation, tmp_path):
    with pytest.raises(InputError, match="curve=True"):
        simulation.plot(tmp_path / "load.svg")
    drawn = api.serve(chat(), on="h100:1", tp=1, requests=300, curve=True)
    drawn.plot(tmp_path / "load.svg")
    assert "<svg" in (tmp_path / "load.svg").read_text(encoding="utf-8")
    assert [point["load"] for point in drawn.to_dict()["curve"]] == [point.load for point in drawn.curve.points]


def test_an_offline_job_has_no_curve():
    with pytest.raises(Refusal, match="an offline job has one load"):
        api.serve("examples/llama-3.1-8b-offline.yaml", on="h200:8", curve=True)


def test_more_than_the_chips_sustain_is_refused_with_what_they_sustain():
    with pytest.raises(
        InputError, match=r"serve\.arrival\.rate: '500' .* h100:1 sustains as 1 replica of tp=1, .* SLO"
    ):
        api.serve(chat(rate=500), on="h100:1", tp=1, requests=400)


def test_a_training_run_is_not_served():
    with pytest.raises(InputError, match="a workload that is served"):
        api.capacity(api.load("llama-3.1-8b", tokens="1B", batch=64, sequence=4096), on="h100:8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"router": "best"}, "round_robin"),
        ({"replicas": 0}, "replicas: 0"),
        ({"max_batch": 20_000}, "from 1 to 16,384"),
        ({"chunk": 0}, "^chunk: "),
        ({"replicas": 2, "disaggregate": (1, 1)}, "can't combine replicas with disaggregate"),
    ],
)
def test_requests_that_make_no_sense(options, words):
    with pytest.raises(ChipwiseError, match=words):
        ServiceRequest(**options)


def test_sizes_and_counts_that_make_no_sense():
    with pytest.raises(InputError, match="tp: 0"):
        api.capacity(chat(), on="h100:1", tp=0)
    with pytest.raises(InputError, match="requests: 0"):
        api.serve(chat(), on="h100:1", tp=1, requests=0)
