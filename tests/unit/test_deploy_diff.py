"""`deploy diff`: what a new decision does to what is there."""

import json

import pytest

import chipwise as cw
from chipwise.deploy.diff import Effect
from chipwise.errors import ChipwiseError

POOL = "pools:\n- {name: p, backend: kubernetes, cloud: gcp, region: us-east5, price: 2, PLACE}\n"
BEFORE = "chip: v6e, count: 64, shapes: [4x4]"


def changed(tmp_path, after, before=BEFORE, **options):
    """What a pool becomes when a pools file changes from one to the other."""
    source = tmp_path / "own.yaml"
    source.write_text(POOL.replace("PLACE", before))
    cw.deploy_write(source, tmp_path / "tree", name="lab")
    source.write_text(POOL.replace("PLACE", after))
    return cw.deploy_diff(tmp_path / "tree", source, **options).change


@pytest.mark.parametrize(
    ("after", "effect", "drain", "field"),
    [
        (BEFORE, Effect.UNCHANGED, False, ""),
        ("chip: v6e, count: 128, shapes: [4x4]", Effect.IN_PLACE, False, "slices 4 -> 8"),
        ("chip: v6e, count: 32, shapes: [4x4]", Effect.IN_PLACE, True, "hosts 16 -> 8"),
        ("chip: v6e, count: 64, shapes: [8x8]", Effect.REPLACED, True, "topology 4x4 -> 8x8"),
        ("chip: v6e, count: 64, shapes: [2x4]", Effect.REPLACED, True, "machine ct6e-standard-4t -> ct6e-standard-8t"),
        ("chip: v5e, count: 64, shapes: [4x4]", Effect.REPLACED, True, "chip v6e -> v5e"),
        ("chip: v6e, count: 64, shapes: [4x4], terms: spot", Effect.REPLACED, True, "term ondemand -> spot"),
    ],
)
def test_what_becomes_of_a_pool(tmp_path, after, effect, drain, field):
    (pool,) = changed(tmp_path, after).pools
    assert (pool.effect, pool.drain) == (effect, drain)
    assert not field or field in pool.fields


def test_another_region_replaces_everything(tmp_path):
    change = changed(tmp_path, BEFORE, region="us-east1")
    assert change.whole == ("region us-east5 -> us-east1",) and change.pools[0].effect is Effect.REPLACED


def test_what_it_costs_before_and_after(tmp_path):
    change = changed(tmp_path, "chip: v6e, count: 128, shapes: [4x4]")
    assert (change.usd_month_before, change.usd_month_after) == (64 * 2 * 730, 128 * 2 * 730)


def test_pools_come_and_go_and_nothing_is_written(tmp_path):
    pools = "examples/pools/kubernetes.yaml"
    cw.deploy_write(pools, tmp_path / "tree", only=["h100", "v5e"])
    before = (tmp_path / "tree" / "chipwise.json").read_text()
    answer = cw.deploy_diff(tmp_path / "tree", pools, only=["v5e", "v5e-spot"])
    assert {pool.pool: pool.effect for pool in answer.change.pools} == {
        "h100": Effect.REMOVED,
        "v5e": Effect.UNCHANGED,
        "v5e-spot": Effect.ADDED,
    }
    assert "chipwise pools drain h100" in str(answer) and "drain v5e" not in str(answer)
    assert (tmp_path / "tree" / "chipwise.json").read_text() == before


@pytest.mark.parametrize("key", ["pools", "name", "target"])
def test_a_manifest_that_lacks_a_part_is_refused(tmp_path, key):
    cw.deploy_write("examples/pools/kubernetes.yaml", tmp_path / "tree")
    path = tmp_path / "tree" / "chipwise.json"
    document = json.loads(path.read_text())
    document[key] = [{"name": "p"}] if key == "pools" else None
    path.write_text(json.dumps(document))
    with pytest.raises(ChipwiseError, match="manifest"):
        cw.deploy_diff(tmp_path / "tree", "examples/pools/kubernetes.yaml")


@pytest.mark.parametrize(
    "document",
    [
        {
            "command": "compare",
            "pick": "a",
            "rows": [{"accelerators": {"name": "a", "chip": "zz", "count": 8, "shape": []}}],
        },
        {"command": "compare", "pick": "a", "rows": [3], "workload": {"name": "x"}},
        {"command": "fleet plan", "plan": {"holdings": [{}]}, "periods": [{"name": "1"}], "supplies": []},
    ],
)
def test_a_document_that_lacks_a_part_is_refused_in_a_line(tmp_path, document):
    document.setdefault("workload", {"name": "x"})
    with pytest.raises(ChipwiseError):
        cw.deploy_write(document, tmp_path / "none", region="us-east5")
    assert not (tmp_path / "none").exists()
