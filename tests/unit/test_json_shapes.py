"""A key means one thing in all documents: an estimate here is no bare number there, and no key is a sentence."""

import re
from collections import defaultdict

import pytest

from chipwise import api
from chipwise.catalog.calibration import load_calibration
from chipwise.knowledge import Knowledge

KNOWN = Knowledge(load_calibration(bench=False))
NAMED = {  # objects whose keys are names, of chips or of parts
    *("parts_seconds", "collectives_seconds", "figures", "peak", "split_usd", "costs", "mix", "usd_per"),
}
# keys with a second meaning that stay: what holds them says which
SEVERAL = {
    *("usd", "words", "workload", "slices", "chips", "block", "options", "p50", "p90", "storage", "migration"),
    *("optimizer", "recompute", "commitments", "runs", "service"),
}
KEY = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
DEMAND = {
    "start": "2027-01",
    "months": 1,
    "workloads": [
        {
            "name": "run",
            "workload": {"model": "llama-3.1-8b", "train": {"steps": 100, "global_batch": 256, "sequence": 4096}},
            "train": {"chips": [16]},
        },
        {
            "name": "chat",
            "workload": {
                "model": "llama-3.1-8b",
                "serve": {"input": 500, "output": 100, "slo": {"ttft": "2s"}},
            },
            "serve": {"rate": 2},
        },
    ],
    "candidates": [{"chip": "h100", "clouds": ["gcp"], "terms": ["ondemand"]}],
}


@pytest.fixture(scope="module")
def documents():
    run = api.load("llama-3.1-8b", tokens="1B", batch=64, sequence=4096)
    chat = api.load("llama-3.1-8b", input_len=500, output_len=100, rate=2, ttft="2s")
    results = [
        api.predict(run, on="h100:8", knowledge=KNOWN),
        api.layouts(run, on="h100:8", knowledge=KNOWN),
        api.compare(run, on="h100,v100", knowledge=KNOWN),
        api.compare(chat, on="h100", knowledge=KNOWN),
        api.cost(run, on="h100:8", knowledge=KNOWN),
        api.cost(chat, on="h100", knowledge=KNOWN),
        api.serve(chat, on="h100:2", knowledge=KNOWN),
        api.capacity(chat, on="h100:2", knowledge=KNOWN),
        api.plan_fleet(DEMAND, sensitivity=False),
        api.chips("h100"),
        api.prices(on="h100"),
    ]
    return {f"{result.VERB} {i}": result.to_dict() for i, result in enumerate(results)}


def shape(value):
    if isinstance(value, dict):
        return "estimate" if {"value", "low", "high", "evidence"} <= set(value) else "object"
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "list"}
    return kinds.get(type(value))  # null has no shape


def entries(value, path=""):
    """Every key with its value and where it is; keys that are names are left out."""
    if isinstance(value, list):
        for item in value:
            yield from entries(item, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key, item, path
            if key not in NAMED:
                yield from entries(item, f"{path}.{key}")


def test_a_key_has_one_shape_in_all_documents(documents):
    shapes = defaultdict(lambda: defaultdict(set))
    for name, document in documents.items():
        for key, value, path in entries(document):
            if shape(value):
                shapes[key][shape(value)].add(name + path)
    several = {key: {kind: sorted(where)[0] for kind, where in kinds.items()} for key, kinds in shapes.items()}
    assert {key: kinds for key, kinds in several.items() if len(kinds) > 1 and key not in SEVERAL} == {}
    assert all(shapes[key] for key in ("split", "accelerators", "joules_per_unit", "capacity", "step_seconds", "quote"))


def test_keys_are_snake_case_and_no_sentences(documents):
    assert {key for d in documents.values() for key, _, _ in entries(d) if not KEY.fullmatch(key)} == set()
