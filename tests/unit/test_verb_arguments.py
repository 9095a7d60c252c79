"""Arguments of the verbs: one name for one thing, defaults in one place, and what is missing for which verb."""

import inspect

import pytest

import chipwise as cw
from chipwise.cli.main import command
from chipwise.cost.answer import CostAssumptions
from chipwise.cost.sampling import DRAWS
from chipwise.fleet.planned import PlanOptions
from chipwise.numerics.study import StudySettings
from chipwise.route.simulate.events import TICK_S
from chipwise.route.simulate.random_events import REPAIR_S
from chipwise.units import parse_duration
from chipwise.verbs import defaults

SERVED, TRAINED = "examples/llama-3.1-70b-serve.yaml", "examples/llama-3.1-8b-pretrain.yaml"
COMMANDS = {  # verb -> the command of it
    "predict": "predict",
    "layouts": "layouts",
    "compare": "compare",
    "cost": "cost",
    "serve": "serving simulate",
    "capacity": "serving capacity",
    "plan_fleet": "fleet plan",
    "check": "check",
    "numerics": "numerics",
    "simulate": "simulate",
    "submit": "jobs submit",
    "validate": "validate",
    "report": "report",
    "chips": "chips",
    "models": "models",
    "prices": "prices",
}
OF_THE_SHELL = {"check": {"tune"}}  # a flag there, how many compiles here


def options(path):
    found = command()
    for name in path.split():
        found = found.commands[name]
    return {parameter.name: parameter.default for parameter in found.params}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_has_the_defaults_of_its_verb(verb):
    given = options(COMMANDS[verb])
    taken = inspect.signature(getattr(cw, verb)).parameters
    shared = [name for name in taken if name in given and name not in OF_THE_SHELL.get(verb, ())]
    stated = {name: given[name] for name in shared if given[name] not in (None, ..., "")}
    assert stated == {name: taken[name].default for name in stated}


def test_the_plan_of_a_bench_has_the_defaults_of_the_command():
    taken = inspect.signature(cw.bench.plan).parameters
    assert options("bench all")["device"] == taken["device"].default == defaults.DEVICE


def test_the_rooms_have_the_defaults_of_the_verbs():
    rooms = (CostAssumptions, PlanOptions, StudySettings)
    cost, fleet, study = ({f.name: f.default for f in room.__dataclass_fields__.values()} for room in rooms)
    assert (cost["years"], cost["runs"], cost["draws"]) == (defaults.YEARS, defaults.RUNS, defaults.DRAWS)
    assert DRAWS == defaults.DRAWS
    assert (fleet["gap"], fleet["time_limit"]) == (defaults.GAP, parse_duration(defaults.TIME_LIMIT))
    assert (study["static"], study["share"]) == (defaults.LOSS_SCALE, defaults.MARGIN)
    assert (parse_duration(defaults.REPAIR), parse_duration(defaults.TICK)) == (REPAIR_S, TICK_S)


@pytest.mark.parametrize("verb", [cw.serve, cw.capacity])
def test_a_model_alone_lacks_what_is_served(verb):
    with pytest.raises(cw.MissingInput, match=r"^missing: input_len, output_len, rate or users$"):
        verb("llama-3.1-8b", on="h100:1")
    with pytest.raises(cw.InputError, match="this one is trained: use predict, layouts or compare"):
        verb(TRAINED, on="h100:8")


@pytest.mark.parametrize("verb", [cw.predict, cw.layouts])
def test_a_model_alone_lacks_how_it_is_trained(verb):
    with pytest.raises(cw.MissingInput, match=r"^missing: batch or batch_tokens, sequence, tokens or steps$"):
        verb("llama-3.1-8b", on="h100:1")
    for workload in (SERVED, cw.load(SERVED)):
        with pytest.raises(cw.InputError, match="this one is served: use serve, capacity or compare"):
            verb(workload, on="h100:8")


def test_a_budget_decides_the_count_of_a_bill_as_of_a_comparison():
    job = cw.load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    bill = cw.cost(job, on="h100", budget="200k", pricing="ondemand", draws=100)
    comparison = cw.compare(job, on="h100", budget="200k", by="cost")
    assert bill.statements[0].accelerators == comparison.pick.accelerators
    assert comparison.pick.accelerators != cw.compare(job, on="h100", budget="130k").pick.accelerators


def test_a_simulation_draws_by_the_seed_of_what_is_known():
    gavel, known = "examples/traces/gavel-seed0", cw.Knowledge(seed=-1)
    with pytest.raises(cw.InputError, match=r"^seed: -1 is not accepted"):
        cw.simulate(gavel, random=True, knowledge=known)
    assert cw.simulate(gavel, knowledge=known).jobs == 300


def test_what_is_published_leaves_the_chips_measured_aside():
    known, published = cw.Knowledge.default(), cw.Knowledge.published()
    assert known.calibration.bench.used and not published.calibration.bench.used
    assert known.calibration.training.date == published.calibration.training.date
    assert not published.calibration.training.refits and cw.Knowledge.published(refits=True).calibration.training.refits


def test_validation_takes_a_calibration_with_refits_alone():
    scores = cw.validate(ids=["T0039"])
    assert scores.rows == cw.validate(ids=["T0039"], knowledge=cw.Knowledge.published(refits=True)).rows
    with pytest.raises(cw.InputError, match=r"^knowledge: .* has refits"):
        cw.validate(ids=["T0039"], knowledge=cw.Knowledge.default())
