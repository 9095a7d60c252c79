"""Every verb answers the same layout for the same work on the same chips, of a stack that exists there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import chipwise as cw
from chipwise.catalog import default_stack, find_chip, load, parse, plain_stack
from chipwise.catalog.stacks import AXES, runs_on
from chipwise.errors import Refusal
from chipwise.route.estimates.predicted import Predictor
from chipwise.route.job import Variant
from chipwise.route.load.jobs import load_jobs
from chipwise.route.pool import Pool
from chipwise.workload.read import read_workload

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORK = (
    "llama-2-70b-lora",
    "llama-3.1-8b-pretrain",
    "mixtral-8x7b-pretrain",
    "bert-large-pretrain",
    "vit-b-16-imagenet",
    "dit-xl-2-imagenet",
    "resnet-50-imagenet",
)
CHIPS = ("h100:8", "h200:16", "b200:64", "mi300x:32", "v5p:64", "trainium2:64", "gaudi3:64")


@pytest.mark.parametrize("on", CHIPS)
@pytest.mark.parametrize("name", WORK)
def test_verbs_agree_on_the_layout(name, on):
    work = read_workload(str(EXAMPLES / f"{name}.yaml"), {})
    acc = parse(on)
    try:
        searched = cw.layouts(work, on=on)
    except Refusal as refusal:
        for verb in (cw.predict, cw.compare, cw.cost):
            with pytest.raises(Refusal) as other:
                verb(work, on=on)
            assert refusal.reason in str(other.value)
        return
    layout = searched.best.layout
    assert searched.result.top[0].layout == layout
    assert cw.predict(work, on=on).layout == layout
    (row,) = cw.compare(work, on=on).rows
    assert row.prediction.layout == layout
    if row.ondemand is not None:
        (statement,) = cw.cost(work, on=on, pricing="ondemand", draws=100).statements
        assert statement.answer.prediction.layout == layout
    contents = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    job = replace(load_jobs(EXAMPLES / "jobs" / "llama-lora.yaml", 0.0)[0], workload=json.dumps(contents))
    pool = Pool("pool", "local", acc.chip.id, acc.chip.family, acc.count)
    topology = "x".join(map(str, acc.shape))
    variant = Variant("any", acc.chip.family, acc.count)
    assert Predictor().predicted(job, variant, pool, acc.count, topology).layout == str(layout)


def test_the_stack_named_for_a_chip_exists_there():
    wanted = {"trainium1": "optimum-neuron", "trainium2": "optimum-neuron", "inferentia2": "optimum-neuron"}
    wanted |= {"gaudi2": "optimum-habana", "gaudi3": "optimum-habana"}
    for chip, stack in wanted.items():
        assert {default_stack(find_chip(chip)).id, plain_stack(find_chip(chip)).id} == {stack}
        assert plain_stack(find_chip(chip), "serve").id == stack
    for chip in load().chips.values():
        assert all(
            runs_on(stack(chip, work), chip) for stack in (default_stack, plain_stack) for work in ("train", "serve")
        )
    with pytest.raises(Refusal, match="inferentia2 does not train"):
        cw.predict(cw.load("llama-3.1-8b", tokens="1T", batch=64, sequence=4096), on="inferentia2:16")


def test_a_stack_of_another_vendor_is_refused():
    job = cw.load("llama-3.1-8b", tokens="1T", batch=64, sequence=4096, stack="optimum-habana")
    with pytest.raises(Refusal, match="does not run on trainium2; it runs on other chips of intel"):
        cw.predict(job, on="trainium2:16")


def test_a_stack_without_published_steps_says_so():
    job = cw.load("llama-3.1-8b", tokens="1T", batch=64, sequence=4096)
    said = cw.predict(job, on="trainium2:16").prediction.assumptions
    assert any(line.startswith("optimum-neuron") and "no published step" in line for line in said)
    assert not any("no published step" in line for line in cw.predict(job, on="h100:16").prediction.assumptions)


def test_stacks_that_train_say_their_axes_and_where_from():
    for stack in load().stacks.values():
        if "train" in stack.work:
            has = stack.parallel
            assert has.source and has.date.startswith("20"), stack.id
            assert has.axes <= set(AXES) and 0 in has.zero and set(has.zero) <= {0, 1, 2, 3}
            assert "vpp" not in has.axes or "pp" in has.axes
