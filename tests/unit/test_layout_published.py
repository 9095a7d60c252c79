"""Every layout of a published run can be named, and is one that the search looks at."""

import csv
from collections import defaultdict
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import chipwise as cw
from chipwise.catalog.stacks import EVERY_AXIS
from chipwise.errors import NoLayout
from chipwise.layout.enumerate import enumerate_layouts
from chipwise.layout.named import legal
from chipwise.layout.shards import resharded
from chipwise.layout.splits import micro_batches
from chipwise.predict.model.layouts import RECOMPUTE, parse_layout
from chipwise.predict.site import slice_for
from chipwise.validate.score import published
from chipwise.validate.training_rows import eligible, read

COLUMNS = ("dp", "tp", "pp", "cp", "ep", "vpp", "micro_batch", "zero", "shard")


@lru_cache
def rows():
    """Published runs whose layout is stated, by the space they are searched in: model, batch, chips and stack."""
    with published()[0].open(newline="", encoding="utf-8") as file:
        runs = [read(row) for row in csv.DictReader(file) if eligible(row)]
    spaces = defaultdict(list)
    for run in runs:
        train = run.workload.train
        # BERT rows of NVIDIA/DeepLearningExamples print a global batch that is no whole number of their micro-batches
        if run.layout is None or run.layout.micro_batch not in micro_batches(run.workload.model, train, run.layout.dp):
            continue
        alike = replace(train, precision="bf16", state_precision="fp32", lora_rank=0, recompute="auto")
        acc = slice_for(run.chip, run.chips, run.slices)
        stack = run.stack.id if run.stack else ""
        domain = acc.shape or acc.chip.fabric.domain
        spaces[run.workload.model, alike, acc.count, domain, acc.slices, stack].append((run, acc, alike))
    return spaces


def parallel_of(run):
    return run.stack.parallel if run.stack else EVERY_AXIS


def test_rows_that_no_search_could_hold_are_few():
    with published()[0].open(newline="", encoding="utf-8") as file:
        stated = [run for run in map(read, filter(eligible, csv.DictReader(file))) if run.layout is not None]
    assert sum(map(len, rows().values())) >= len(stated) - 6 and len(stated) > 700


def test_every_published_layout_can_be_named():
    for run, acc, train in (each for space in rows().values() for each in space):
        named = parse_layout(str(run.layout), acc.count, train.global_batch, run.workload.model.heads)
        assert named == run.layout, run.id
        if run.stack is not None:
            legal(named, replace(run.workload, train=train), acc, str(run.layout), run.stack)


def test_every_published_layout_is_searched():
    for (model, train, *_), space in rows().items():
        run, acc, _ = space[0]
        listed = enumerate_layouts(model, train, acc, parallel_of(run)).layouts
        columns = np.stack([np.asarray(getattr(listed, name), float) for name in COLUMNS])
        ways = {RECOMPUTE[int(way)] for way in np.unique(listed.recompute)}
        for run, _, _ in space:
            # one replica shares its state with nobody, whatever its ZeRO stage
            x = run.layout if run.layout.dp * run.layout.cp > 1 else replace(run.layout, zero=0, shard=1)
            assert x.recompute in ways
            around = [x, *(y for y in resharded(x, parallel_of(run)) if y.zero == x.zero)]
            wanted = np.array([[getattr(y, name) for name in COLUMNS] for y in around], float)
            assert any(np.all(columns == row[:, None], axis=0).any() for row in wanted), (run.id, str(x))


@pytest.mark.parametrize(
    ("model", "batch", "sequence", "on", "layout"),
    [
        ("deepseek-v3", 4096, 4096, "gb200:256", "pp=4,vp=4,ep=64"),
        ("qwen3-235b-a22b", 8192, 4096, "gb200:64", "pp=8,vp=3,ep=8"),
        ("llama-3.1-405b", 512, 8192, "h100:1024", "tp=8,pp=8,vp=8,cp=2"),
        ("llama-3.1-8b", 60, 8192, "h100:20", "pp=5,vp=2"),
        ("llama-3.1-8b", 60, 8192, "h100:20", "pp=10"),
    ],
)
def test_named_stages_of_different_sizes_are_answered_and_the_search_is_no_worse(model, batch, sequence, on, layout):
    work = cw.load(model, batch=batch, sequence=sequence, steps=10)
    named, best = cw.predict(work, on=on, layout=layout), cw.predict(work, on=on)
    axes = dict(part.split("=") for part in layout.replace("vp=", "vpp=").split(","))
    assert {name: str(getattr(named.layout, name)) for name in axes} == axes
    assert best.step.value <= named.step.value * 1.01


def test_the_search_finds_about_what_people_run_of_a_model_of_61_layers():
    published_s = 13.342  # validation/rows/training.csv T0241: pp=4, vp=4, ep=64 on 256 GB200, MXFP8
    work = cw.load("deepseek-v3", batch=4096, sequence=4096, steps=100, precision="fp8")
    step = cw.predict(work, on="gb200:256").step
    assert step.low <= published_s <= step.high and abs(step.value / published_s - 1) < 0.15


def test_interleaved_stages_take_micro_batches_in_rounds():
    work = cw.load("llama-3.1-8b", batch=48, sequence=8192, steps=10)
    with pytest.raises(NoLayout, match=r"in rounds of pp: 6 % pp\(4\) != 0"):
        cw.predict(work, on="h100:32", layout="pp=4,vpp=2,mbs=1")
    assert cw.predict(work, on="h100:32", layout="pp=4,mbs=1").layout.pp == 4


@pytest.mark.parametrize(("layout", "why"), [("pp=4,vpp=9", "more than 32 layers"), ("pp=64", "pp > 32 layers")])
def test_more_stages_than_layers_are_refused(layout, why):
    work = cw.load("llama-3.1-8b", batch=64, sequence=8192, steps=10)
    with pytest.raises(NoLayout, match=why):
        cw.predict(work, on="h100:64", layout=layout)
