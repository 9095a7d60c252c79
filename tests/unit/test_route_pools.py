"""The pools file: what it says, what is filled in and said, and one clear line for what can't be used."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from datetime import date
from math import inf
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import InputError, UnknownName
from chipwise.route.backends.named import backends_of
from chipwise.route.job_table import JobTable
from chipwise.route.load import Pools, load_pools
from chipwise.route.load.pools import default_folder, pools_of
from chipwise.route.pool import Pool
from chipwise.route.secret import listed

TODAY = date(2026, 11, 15)
BASE = Path("/somewhere")
GOOD: dict[str, Any] = {
    "folder": "shared",
    "backends": {"slurm": {"conf": "etc/slurm.conf", "timeout": 5}, "local": {"cwd": "."}},
    "pools": [
        {
            "name": "h100",
            "backend": "slurm",
            "chip": "H100",
            "count": 16,
            "unit": 8,
            "price": 2.5,
            "terms": "reserved",
            "region": "here",
            "watts": 1000,
            "power_kw": 20,
            "max_time": "2d",
            "address": {"partition": "gpu", "label": {"a": "b", "c": 1}, "exclusive": True},
        },
        {"name": "v5e", "backend": "local", "chip": "v5e", "count": 8},
    ],
}


def made(raw: dict[str, Any]) -> Pools:
    return pools_of(raw, BASE, today=TODAY)


def only(**keys: Any) -> dict[str, Any]:
    return {"pools": [{"name": "p", "backend": "kubernetes", "chip": "h100", "count": 16, **keys}]}


def changed(path: str, value: Any) -> dict[str, Any]:
    raw = deepcopy(GOOD)
    node: Any = raw
    *outer, last = path.split(".")
    for part in outer:
        node = node[int(part)] if part.isdigit() else node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return raw


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        made(raw)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_key_of_a_pool_is_kept() -> None:
    pools = made(GOOD)
    h100 = pools.pool("h100")
    assert (h100.chip, h100.family, h100.count, h100.unit, h100.usd_per_chip_hour) == ("h100", "gpu", 16, 8, 2.5)
    assert (h100.terms, h100.region, h100.watts_chip, h100.power_cap) == ("reserved", "here", 1000, 20_000)
    assert h100.max_seconds == 2 * 86_400 and h100.price_source == "the pools file" and not h100.spot
    assert (
        h100.setting("partition") == "gpu"
        and h100.setting("label") == "a=b,c=1"
        and h100.setting("exclusive") == "true"
    )


def test_pools_share_what_their_backend_says_and_paths_start_at_the_file() -> None:
    pools = made(GOOD)
    assert (
        pools.pool("h100").setting("conf") == "/somewhere/etc/slurm.conf"
        and pools.pool("h100").setting("timeout") == "5"
    )
    assert pools.pool("v5e").setting("conf") == "" and pools.pool("v5e").setting("cwd") == "/somewhere"
    assert pools.folder == BASE / "shared" and [p.name for p in pools.of("slurm")] == ["h100"]
    own = made(changed("pools.0.address", {"conf": "/other"}))
    assert own.pool("h100").setting("conf") == "/other"


def test_an_address_may_name_where_secrets_lie() -> None:
    assert (
        made(changed("pools.0.address", {"secret": "training-keys"})).pool("h100").setting("secret") == "training-keys"
    )


def test_pools_may_hand_over_what_their_backend_lists_or_what_they_list_themselves() -> None:
    raw = changed("backends.slurm.secrets", ["HF_TOKEN", "WANDB_API_KEY"])
    assert listed(made(raw).pool("h100")) == {"HF_TOKEN", "WANDB_API_KEY"} and listed(made(raw).pool("v5e")) == set()
    raw["pools"][0]["address"] = {"secrets": ["OTHER"]}
    assert listed(made(raw).pool("h100")) == {"OTHER"}
    raw["pools"][0]["address"] = {"secrets": []}
    assert listed(made(raw).pool("h100")) == set()


@pytest.mark.parametrize("backend", ["local", "slurm", "ray"])
@pytest.mark.parametrize(
    "name", ["PATH", "IFS", "ENV", "BASH_ENV", "LD_PRELOAD", "SLURM_JWT", "SBATCH_ACCOUNT", "CHIPWISE_METRICS_TOKEN"]
)
def test_reserved_names_are_refused_where_they_are_listed(backend: str, name: str) -> None:
    said = refused({**GOOD, "backends": {backend: {"secrets": ["HF_TOKEN", name]}}})
    assert said.startswith(f"backends.{backend}.secrets[1]: '{name}' is not accepted; expected a variable other than ")
    own = {**GOOD["pools"][1], "backend": backend, "price": 1, "address": {"secrets": [name]}}
    assert refused({"pools": [own]}).startswith(f"pools[0].address.secrets[0]: '{name}' is not accepted")


@pytest.mark.parametrize(
    "value",
    [
        ["hf_" + "hunter2" * 5],
        ["hf_hunter2"],
        ["hunter2"],
        ["HF_TOKEN=hunter2"],
        ["HF_TOKEN", "hunter2-x"],
        "hunter2",
        "HF_TOKEN,hunter2",
        {"HF_TOKEN": "hunter2"},
        ["A,hunter2"],
        ["*hunter2"],
        ["hunter2\nx"],
        [["hunter2"]],
        [{"HF_TOKEN": "hunter2"}],
        [""],
        ["HF_*"],
        "HF_TOKEN",
        True,
    ],
)
def test_values_in_the_place_of_names_are_refused_unseen(value: Any) -> None:
    for raw in (changed("backends.slurm.secrets", value), changed("pools.0.address", {"secrets": value})):
        said = refused(raw)
        assert "secrets" in said.partition(":")[0] and "hunter2" not in said


def test_a_backend_may_have_a_folder_of_its_own() -> None:
    pools = made(changed("backends.slurm", {"folder": "nfs"}))
    assert pools.folder_of("slurm") == BASE / "nfs" and pools.folder_of("local") == BASE / "shared"
    assert pools.pool("h100").setting("folder") == ""


def test_what_is_assumed_is_said() -> None:
    said = "\n".join(made(GOOD).assumptions)
    assert "v5e: terms taken as owned" in said and "v5e: slices of the catalog: 1x1, 2x2, 2x4" in said
    assert "v5e: its own chips cost nothing" in said and "W a busy chip" in said and "h100:" not in said
    without = made(changed("folder", None))
    assert without.folder == default_folder() and "folder: not given" in without.assumptions[-1]


def test_prices_come_from_the_book_with_their_offer_and_age() -> None:
    pool = made(only(cloud="gcp", region="us-central1")).pool("p")
    assert pool.usd_per_chip_hour > 1 and pool.price_source.startswith("gcp us-central1 ") and pool.unit == 8
    assert pool.cloud == "gcp" and "stale" not in pool.price_source
    later = pools_of(only(cloud="gcp", region="us-central1"), BASE, today=date(2028, 1, 1))
    assert later.pool("p").price_source.endswith("stale")


def test_spot_pools_are_interrupted_as_the_economics_say_unless_told() -> None:
    spot = made(only(cloud="gcp", terms="spot"))
    assert spot.pool("p").spot and spot.pool("p").interruptions == 0.01 and "interrupted" in "\n".join(spot.assumptions)
    assert made(only(cloud="gcp", terms="spot", interruptions=0.2)).pool("p").interruptions == 0.2
    assert made(only(cloud="gcp")).pool("p").interruptions == 0.0
    assert spot.pool("p").usd_per_chip_hour < made(only(cloud="gcp")).pool("p").usd_per_chip_hour


def test_reservations_have_the_price_of_their_years() -> None:
    one, three = (made(only(chip="v6e", cloud="gcp", terms="reserved", years=years)).pool("p") for years in (1, 3))
    assert three.usd_per_chip_hour < one.usd_per_chip_hour and "1 years" in one.price_source


def test_tpus_come_in_slices_unless_told() -> None:
    pool = made(only(chip="v5p", price=4)).pool("p")
    assert pool.shapes[0] == (1, "1x1x1") and pool.takes(5) == (8, "2x2x2") and pool.takes(17) is None
    assert made(only(chip="v5p", price=4, shapes=["2x2x1"])).pool("p").takes(1) == (4, "2x2x1")
    assert made(only(chip="v5p", price=4, shapes="any")).pool("p").takes(5) == (5, "")
    assert made(only(chip="v5p", price=4, unit=4)).pool("p").takes(5) == (8, "")


def test_a_pool_of_processors_needs_no_chip_of_the_catalog() -> None:
    pool = made({"pools": [{"name": "c", "backend": "local", "chip": "cpu", "count": 4}]}).pool("c")
    assert (pool.family, pool.watts_chip, pool.usd_per_chip_hour, pool.power_cap) == ("cpu", 0.0, 0.0, inf)


def test_a_pool_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownName, match="h100"):
        made(GOOD).pool("h10")


@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        ("pools", [], "pools", "at least one entry"),
        ("pools", None, "pools", "a value"),
        ("pools.0.name", "a b", "pools[0].name", "letters, digits"),
        ("pools.1.name", "h100", "pools.name", "a name of its own"),
        ("pools.0.backend", "sge", "pools[0].backend", "one of local, slurm, ray, kubernetes"),
        ("pools.0.chip", "h10", "pools[0].chip", "h100"),
        ("pools.0.chip", "gaudi2", "pools[0].chip", "a GPU, a TPU or cpu"),
        ("pools.0.count", 0, "pools[0].count", "at least 1"),
        ("pools.0.count", "many", "pools[0].count", "a whole number"),
        ("pools.0.unit", 3, "pools[0].unit", "a divisor"),
        ("pools.0.shapes", ["2x2"], "pools[0].shapes", "no slices"),
        ("pools.0.price", -1, "pools[0].price", "at least 0"),
        ("pools.0.price", None, "pools[0].price", "or a cloud"),
        ("pools.0.terms", "leased", "pools[0].terms", "one of ondemand"),
        ("pools.0.interruptions", 0.1, "pools[0].interruptions", "terms: spot"),
        ("pools.0.watts", -1, "pools[0].watts", "at least 0"),
        ("pools.0.power_kw", 0, "pools[0].power_kw", "more than 0"),
        ("pools.0.max_time", "long", "pools[0].max_time", "a duration"),
        ("pools.0.adress", {}, "pools[0].adress", "did you mean address"),
        ("pools.0.address", {"a": "x\ny"}, "pools[0].address.a", "one line"),
        ("pools.1.shapes", ["3x3"], "pools[1].shapes", "a slice of v5e"),
        ("pools.1.shapes", ["4x4"], "pools[1].shapes", "at most the pool's 8"),
        ("pools.1.shapes", ["2x2", "2x2"], "pools[1].shapes", "one shape of 4"),
        ("pools.1.shapes", ["big"], "pools[1].shapes[0]", "a shape such as 2x4"),
        ("pools.1.shapes", "all", "pools[1].shapes", ""),
        ("backends.pbs", {}, "backends.pbs", "one of local"),
        ("backends.slurm.token", "x", "backends.slurm", "no secret in the file"),
        ("backends.slurm.rest", "http://ada:hunter2@host", "backends.slurm", "no secret in the file"),
        ("pools.0.address", {"api_token": "hunter2"}, "pools[0].address", "no secret in the file"),
        ("backedns", {}, "backedns", "did you mean backends"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(path: str, value: Any, field: str, words: str) -> None:
    said = refused(changed(path, value))
    assert said.startswith(f"{field}: "), said
    assert words in said and "hunter2" not in said


@pytest.mark.parametrize(
    ("keys", "field", "words"),
    [
        ({"cloud": "gpc"}, "cloud", "gcp"),
        ({"cloud": "gcp", "region": "mars"}, "price", "no ondemand price of h100 is listed at gcp mars"),
        ({"cloud": "gcp", "terms": "reserved"}, "years", "1 or 3"),
        ({"cloud": "gcp", "count": 12}, "unit", "not whole instances of 8"),
        ({"chip": "cpu"}, "price", "US dollars"),
    ],
)
def test_prices_that_cannot_be_found_are_refused(keys: dict[str, Any], field: str, words: str) -> None:
    said = refused(only(**keys))
    assert said.startswith(f"pools[0].{field}: ") and words in said


def test_the_price_of_delay_is_read_from_the_pools_file(tmp_path: Path) -> None:
    text = "pools: [{name: a, backend: local, chip: h100, count: 8, price: 2.0}]\n"
    path = tmp_path / "pools.yaml"
    for line, weights in (("", {}), ("delay: 20\n", {"delay": 20.0}), ("delay: 0\n", {"delay": 0.0})):
        path.write_text(text + line, encoding="utf-8")
        assert load_pools(path).weights == weights
    for wrong in ("-1", ".inf", "soon"):
        path.write_text(f"{text}delay: {wrong}\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"^delay: "):
            load_pools(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_pools(tmp_path / "none.yaml")


def test_policies_read_every_figure_of_the_pools_by_its_name():
    pools = (Pool("a", "local", "h100", "gpu", 8, watts_chip=700.0), Pool("b", "local", "v5e", "tpu", 4))
    facts = JobTable(pools).state(0.0, {}, {}).pool_facts
    assert facts["watts_chip"].tolist() == [700.0, 0.0] and facts["count"].tolist() == [8.0, 4.0]
    figures = {field.name for field in fields(Pool) if field.type in ("int", "float")}
    assert set(facts) == figures and not any(array.flags.writeable for array in facts.values())


def test_a_backend_of_another_package_is_found_by_its_entry_point(tmp_path, monkeypatch):
    package = tmp_path / "nomad_backend"
    (tmp_path / "nomad_backend-1.dist-info").mkdir()
    (tmp_path / "nomad_backend-1.dist-info" / "METADATA").write_text("Name: nomad-backend\nVersion: 1\n")
    (tmp_path / "nomad_backend-1.dist-info" / "entry_points.txt").write_text(
        "[chipwise.backends]\nnomad = nomad_backend:make\n"
    )
    package.mkdir()
    (package / "__init__.py").write_text("def make(name, pools, folder, uid):\n    return name, len(pools), uid\n")
    monkeypatch.syspath_prepend(tmp_path)
    pool = made(only(backend="nomad", count=8, price=1.0)).pool("p")
    assert backends_of([pool], {"nomad": tmp_path}, "u1") == {"nomad": ("nomad", 1, "u1")}


def test_a_backend_that_nobody_has_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="one of local, slurm, ray, kubernetes"):
        made(only(backend="nomad", count=8, price=1.0))
