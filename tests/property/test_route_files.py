"""Job and pools files over random input: schema and reader agree, words stay as they are, stretching is monotone."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chipwise.catalog.economics import economics
from chipwise.errors import ChipwiseError, InputError
from chipwise.predict.estimate import Estimate
from chipwise.route.estimates.stretch import stretched
from chipwise.route.job import Checkpoint
from chipwise.route.load import load_jobs, schema
from chipwise.route.load.jobs import jobs_of
from chipwise.route.load.pools import pools_of
from chipwise.route.load.secret_forms import looks_secret
from chipwise.route.pool import Pool
from chipwise.route.secret import named_secret

NOW = 1_800_000_000.0
BASE = Path("/somewhere")


@cache
def validator(file: str) -> Draft202012Validator:
    return Draft202012Validator(schema(file))


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
lines = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True).filter(
    lambda name: not named_secret(name) and not name.startswith("CHIPWISE_")
)
plain_words = words.filter(lambda text: not looks_secret(text))
durations = st.one_of(st.integers(1, 10**6), st.floats(0.01, 1e6), st.sampled_from(["90s", "12h", "3d", "1.5 h", "2w"]))
commands = st.lists(plain_words, min_size=1, max_size=4).filter(lambda argv: bool(argv[0].strip()))
variants = st.dictionaries(
    names,
    st.fixed_dictionaries(
        {"family": st.sampled_from(["gpu", "tpu", "cpu"]), "command": commands, "chips": st.integers(1, 10**6)},
        optional={
            "image": lines,
            "environment": st.dictionaries(variables, plain_words | st.integers() | st.booleans(), max_size=3),
            "flags": st.lists(lines, max_size=2),
            "batch": st.integers(1, 10**6),
            "precision": lines,
        },
    ),
    min_size=1,
    max_size=3,
).filter(lambda v: not {"gpu", "tpu", "cpu"} & set(v))
jobs = st.fixed_dictionaries(
    {"name": lines, "variants": variants, "estimates": st.dictionaries(names, durations, min_size=1, max_size=3)},
    optional={
        "owner": lines,
        "deadline": durations | st.just("2027-02-01T00:00Z"),
        "budget": st.floats(0.01, 1e9),
        "priority": st.floats(0.001, 1e6),
        "retries": st.integers(0, 100),
        "key": lines,
        "confidence": st.floats(0.01, 0.99),
        "checkpoint": st.fixed_dictionaries(
            {}, optional={"every": durations, "restartable": st.booleans(), "restart": durations}
        ),
        "constraints": st.fixed_dictionaries(
            {},
            optional={
                "pools": st.lists(names, min_size=1, max_size=3),
                "spot": st.booleans(),
                "regions": st.lists(lines, min_size=1, max_size=2),
            },
        ),
    },
)
pools = st.fixed_dictionaries(
    {
        "pools": st.lists(
            st.fixed_dictionaries(
                {
                    "name": names,
                    "backend": st.sampled_from(["local", "slurm", "ray", "kubernetes"]),
                    "chip": st.sampled_from(["h100", "v5e", "cpu", "mi300x"]),
                    "count": st.integers(1, 10**6),
                    "price": st.floats(0, 1e5),
                },
                optional={
                    "terms": st.sampled_from(["ondemand", "spot", "reserved", "owned"]),
                    "region": lines,
                    "watts": st.floats(0, 1e5),
                    "power_kw": st.floats(0.1, 1e5),
                    "max_time": durations,
                    "address": st.dictionaries(names, lines | st.integers() | st.booleans(), max_size=3),
                },
            ),
            min_size=1,
            max_size=4,
            unique_by=lambda pool: str(pool["name"]),
        )
    }
)


@given(jobs)
@settings(max_examples=60, deadline=None)
def test_a_job_that_is_read_is_one_that_the_schema_accepts(raw: dict[str, Any]) -> None:
    try:
        jobs_of(raw, BASE, NOW)
    except InputError:
        return
    assert validator("job").is_valid(raw), next(validator("job").iter_errors(raw)).message
    assert validator("job").is_valid({"jobs": [raw]})


@given(pools)
@settings(max_examples=60, deadline=None)
def test_pools_that_are_read_are_ones_that_the_schema_accepts(raw: dict[str, Any]) -> None:
    found = pools_of(raw, BASE)
    assert validator("pools").is_valid(raw), next(validator("pools").iter_errors(raw)).message
    assert [pool.name for pool in found.pools] == [pool["name"] for pool in raw["pools"]]
    for pool in found.pools:
        taken = pool.takes(1)
        assert taken is None or 1 <= taken[0] <= pool.count


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every mapping of a document."""
    if isinstance(node, dict):
        return [path, *(found for key, child in node.items() for found in places(child, (*path, key)))]
    if isinstance(node, list):
        return [found for i, child in enumerate(node) for found in places(child, (*path, i))]
    return []


FREE = {"environment", "address", "estimates", "variants"}  # whose keys are the user's own


@given(st.data(), st.one_of(jobs.map(lambda raw: ("job", raw)), pools.map(lambda raw: ("pools", raw))))
@settings(max_examples=60, deadline=None)
def test_a_key_that_is_not_there_is_refused_by_both(data: st.DataObject, made: tuple[str, dict[str, Any]]) -> None:
    file, good = made
    raw = deepcopy(good)
    path = data.draw(st.sampled_from([p for p in places(raw) if not p or p[-1] not in FREE]))
    node: Any = raw
    for part in path:
        node = node[part]
    node["no_such_key"] = 1
    assert not validator(file).is_valid(raw)
    with pytest.raises(InputError, match="no_such_key"):
        jobs_of(raw, BASE, NOW) if file == "job" else pools_of(raw, BASE)


@given(
    jobs,
    st.sampled_from(["name", "variants", "retries", "priority", "confidence", "constraints", "checkpoint"]),
    st.sampled_from([None, [], -1, 3.7, {"a": 1}, [[]], "\n"]),
)
@settings(max_examples=100, deadline=None)
def test_nonsense_is_one_line(raw: dict[str, Any], key: str, value: Any) -> None:
    try:
        jobs_of({**raw, key: value}, BASE, NOW)
    except ChipwiseError as error:
        assert "\n" not in str(error) and ": " in str(error)


class Quoting(yaml.SafeDumper):
    """Text in quotes: what looks like a number to us, such as 0E0, does not to PyYAML."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@given(jobs)
@settings(max_examples=60, deadline=None)
def test_text_and_mapping_are_the_same_job(raw: dict[str, Any]) -> None:
    text = yaml.dump(raw, Dumper=Quoting, sort_keys=False)
    try:
        expected = jobs_of(raw, Path.cwd(), NOW)
    except InputError:
        with pytest.raises(InputError):
            load_jobs(text, NOW)
        return
    assert load_jobs(text, NOW) == expected


@given(commands, st.dictionaries(variables, plain_words, max_size=3))
@settings(max_examples=100, deadline=None)
def test_arguments_and_values_are_never_changed(argv: list[str], environment: dict[str, str]) -> None:
    raw = {"name": "x", "command": argv, "environment": environment, "estimates": {"cpu": 1}}
    [variant] = jobs_of(raw, BASE, NOW)[0].variants
    assert list(variant.command) == argv and dict(variant.environment) == environment


work = st.tuples(st.floats(10, 1e5), st.floats(0, 1), st.floats(0, 1)).map(
    lambda t: Estimate(t[0], t[0] * (1 - t[1] / 2), t[0] * (1 + t[2]), "modelled")
)
checkpoints = st.builds(Checkpoint, st.booleans(), st.floats(60, 1e4) | st.just(inf), st.just(""), st.floats(0, 600))


@given(work, checkpoints, st.floats(0, 0.05), st.floats(0, 0.05), st.floats(0, 60))
@settings(max_examples=200, deadline=None)
def test_more_interruptions_never_make_a_run_shorter(
    e: Estimate, keeps: Checkpoint, few: float, more: float, write: float
) -> None:
    pool = Pool("p", "slurm", "h100", "gpu", 64, 8, terms="spot", interruptions=few)
    calm = stretched(e, pool, 8, keeps, write, economics()).seconds
    rough = stretched(e, replace(pool, interruptions=few + more), 8, keeps, write, economics()).seconds
    assert calm is None or (calm.low <= calm.value <= calm.high and calm.value >= e.value * (1 - 1e-9))
    if calm is None:
        assert rough is None
    elif rough is not None:
        assert rough.value >= calm.value * (1 - 1e-9) and rough.high >= calm.high * (1 - 1e-9)
