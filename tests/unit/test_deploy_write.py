"""`deploy write`: sources as machines, and a tree that is whole or absent."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.deploy.deployment import Problem, Term, Undeployable
from chipwise.deploy.machines import machines
from chipwise.errors import InputError, UnknownName
from chipwise.route.load import read_pools

POOLS = "examples/pools/kubernetes.yaml"
PICK = "examples/deploy/pretrain.json"


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def pools_file(tmp_path: Path, *pools: str) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text("pools:\n" + "".join(f"  - {{{pool}}}\n" for pool in pools))
    return path


def pool_of(tmp_path: Path, pool: str, **options):
    source = pools_file(tmp_path, f"name: p, backend: kubernetes, cloud: gcp, region: us-east5, price: 2, {pool}")
    return cw.deploy_write(source, tmp_path / "tree", **options).deployment.pools[0]


def test_the_router_reads_the_pools_that_were_written(tmp_path):
    written = cw.deploy_write(POOLS, tmp_path / "tree")
    pools = read_pools(tmp_path / "tree" / "pools.yaml")
    assert [(pool.name, pool.count, pool.terms) for pool in pools.pools] == [
        ("h100", 32, "ondemand"),
        ("v5e", 64, "ondemand"),
        ("v5e-spot", 64, "spot"),
    ]
    assert [pool.shapes for pool in pools.pools] == [(), ((32, "4x8"),), ((32, "4x8"),)]
    assert pools.pools[0].unit == 8
    assert written.deployment.usd_month == pytest.approx(
        sum(pool.count * pool.usd_per_chip_hour * 730 for pool in pools.pools)
    )


def test_a_slice_over_hosts_is_a_pool_and_one_on_a_host_is_not(tmp_path):
    across = pool_of(tmp_path, "chip: v6e, count: 64, shapes: [4x4]")
    assert (across.machine, across.slices, across.slice_hosts, across.multi_host) == ("ct6e-standard-4t", 4, 4, True)
    alone = pool_of(tmp_path, "chip: v6e, count: 64, shapes: [2x4]")
    assert (alone.machine, alone.slices, alone.slice_hosts, alone.multi_host) == ("ct6e-standard-8t", 8, 1, False)


def test_a_reserved_pool_stands_and_one_by_the_hour_comes_and_goes(tmp_path):
    reserved = pool_of(tmp_path, "chip: h200, count: 16", term="reserved", reservation={"p": "research"})
    assert (reserved.min_hosts, reserved.hosts, reserved.autoscaled) == (2, 2, False)
    assert '  reservation   = "research"' in tree(tmp_path / "tree")["main.tf"]
    spot = pool_of(tmp_path, "chip: h200, count: 16", term="spot")
    assert (spot.min_hosts, spot.autoscaled, spot.term) == (0, True, Term.SPOT)


@pytest.mark.parametrize(
    ("pool", "options", "problem"),
    [
        ("chip: mi300x, count: 8", {}, Problem.CHIP_NOT_OFFERED),
        ("chip: h200, count: 12", {"term": "spot"}, Problem.COUNT),
        ("chip: h200, count: 16", {}, Problem.TERM),
        ("chip: v4, count: 8", {"term": "flex-start"}, Problem.TERM),
        ("chip: v5p, count: 24, shapes: [2x2x2, 2x2x4]", {"topology": {"p": "2x2x4"}}, Problem.TOPOLOGY),
        ("chip: v5e, count: 64, shapes: [4x4]", {"topology": {"p": "3x3"}}, Problem.TOPOLOGY),
        ("chip: h100, count: 16", {"term": "reserved"}, Problem.NO_RESERVATION),
        ("chip: h100, count: 16, terms: owned", {}, Problem.TERM),
        ("chip: h100, count: 16", {"name": "Big_Cluster"}, Problem.NAME),
    ],
)
def test_what_can_not_be_written_is_refused_and_nothing_is(tmp_path, pool, options, problem):
    with pytest.raises(Undeployable) as refusal:
        pool_of(tmp_path, pool, **options)
    assert refusal.value.problem is problem and refusal.value.unlock
    assert not (tmp_path / "tree").exists()


def test_pools_of_several_regions_or_of_another_cloud_are_refused(tmp_path):
    here = "name: a, backend: kubernetes, chip: h100, count: 8, cloud: gcp, region: us-east5, price: 2"
    there = "name: b, backend: kubernetes, chip: h100, count: 8, cloud: gcp, region: us-east1, price: 2"
    other = "name: c, backend: kubernetes, chip: h100, count: 8, cloud: aws, price: 2"
    for pools, problem in (((here, there), Problem.SEVERAL_REGIONS), ((here, other), Problem.OTHER_PROVIDER)):
        with pytest.raises(Undeployable) as refusal:
            cw.deploy_write(pools_file(tmp_path, *pools), tmp_path / "tree")
        assert refusal.value.problem is problem
    alone = cw.deploy_write(pools_file(tmp_path, here, there), tmp_path / "tree", only=["a"])
    assert [pool.name for pool in alone.deployment.pools] == ["a"]


def test_a_comparison_gives_its_pick_or_a_row_at_the_offer_on_its_terms(tmp_path):
    document = json.loads(Path(PICK).read_text())
    pick, row = document["rows"][:2]
    written = cw.deploy_write(PICK, tmp_path / "pick")
    assert (written.deployment.pools[0].chips, written.deployment.pools[0].usd_per_chip_hour) == (
        pick["accelerators"]["count"],
        pick["ondemand"]["usd_per_chip_hour"],
    )
    other = cw.deploy_write(document, tmp_path / "row", row=row["accelerators"]["name"], term="spot")
    assert other.deployment.region == row["spot"]["region"]
    assert other.deployment.pools[0].usd_per_chip_hour == row["spot"]["usd_per_chip_hour"]
    assert not other.deployment.assumptions
    flex = cw.deploy_write(PICK, tmp_path / "flex", term="flex-start")
    assert flex.deployment.assumptions == ("v5p: taken as flex-start, at the price of ondemand",)
    with pytest.raises(UnknownName, match="row"):
        cw.deploy_write(PICK, tmp_path / "none", row="v5p:4")


def test_a_fleet_plan_gives_each_use_slices_of_its_own(tmp_path):
    plan = plan_of_two_runs()
    written = cw.deploy_write(plan, tmp_path / "tree", period="2028 Q2")
    pools = {pool.topology: pool for pool in written.deployment.pools}
    assert {shape: (pool.slices, pool.chips, str(pool.role)) for shape, pool in pools.items()} == {
        "16x16": (1, 256, "train"),
        "4x4": (1, 16, "train"),
        "2x4": (2, 16, "serve"),
    }
    with pytest.raises(Undeployable) as refusal:
        cw.deploy_write(plan, tmp_path / "none")
    assert refusal.value.problem is Problem.NOTHING


def plan_of_two_runs() -> dict:
    supply = {"id": "v6e gcp/us-east1 spot", "chip": "v6e", "chips_per_unit": 8, "usd_per_unit_hour": 5.6}
    held = {"supply": supply["id"], "chip": "v6e", "pricing": "spot", "cloud": "gcp", "region": "us-east1"}
    run = {"period": "2028 Q2", "pool": supply["id"], "supply": supply["id"]}
    chips = lambda *shape: {"accelerators": {"shape": list(shape)}, "pool": supply["id"]}  # noqa: E731
    return {
        "command": "fleet plan",
        "name": "two runs",
        "periods": [{"name": "2028 Q1"}, {"name": "2028 Q2"}],
        "supplies": [supply],
        "plan": {
            "holdings": [{**held, "period": "2028 Q2", "units": 36, "chips": 288, "unit_hours": 10.0, "usd": 56.0}],
            "runs": [{**run, "run": "adapters 2028 Q2", "chips": 16}, {**run, "run": "base", "chips": 256}],
            "services": [{"service": "chat", "period": "2028 Q2", "block": "base", "pool": supply["id"], "chips": 16}],
        },
        "advice": [
            {"workload": "base", **chips(16, 16)},
            {"workload": "adapters", **chips(4, 4)},
            {"workload": "chat", **chips(2, 4)},
        ],
    }


@pytest.mark.parametrize("source", ["README.md", "examples/decisions", "nowhere.yaml", "nowhere.json"])
def test_what_is_no_source_is_refused(tmp_path, source):
    with pytest.raises(InputError, match="source"):
        cw.deploy_write(source, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_writing_again_replaces_what_was_written_and_nothing_else(tmp_path):
    folder = tmp_path / "tree"
    cw.deploy_write(POOLS, folder)
    (folder / "backend.tf").write_text("# mine\n")
    (folder / "terraform.tfstate").write_text("{}")
    cw.deploy_write(POOLS, folder, only=["v5e"])
    assert "modules/gpu-pool/main.tf" not in tree(folder) and not (folder / "modules" / "gpu-pool").exists()
    assert tree(folder)["backend.tf"] == "# mine\n" and tree(folder)["terraform.tfstate"] == "{}"
    before = tree(folder)
    cw.deploy_write(POOLS, folder, only=["v5e"])
    assert tree(folder) == before


def test_a_file_of_somebody_else_is_never_written_over(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        cw.deploy_write(POOLS, folder)
    (folder / "notes.txt").unlink()
    cw.deploy_write(POOLS, folder, only=["v5e"])
    before = tree(folder)
    (folder / "main.tf").write_text(before["main.tf"] + "# edited\n")
    with pytest.raises(InputError, match=r"main\.tf was edited"):
        cw.deploy_write(POOLS, folder)
    (folder / "main.tf").write_text(before["main.tf"])
    with pytest.raises(InputError, match="it has kubernetes"):
        cw.deploy_write(PICK, folder)
    assert tree(folder) == before and [path.name for path in tmp_path.iterdir()] == ["tree"]


@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
@pytest.mark.parametrize("options", [{}, {"zone": "us-central1-a", "term": "flex-start"}])
def test_what_is_written_is_as_terraform_formats_it(tmp_path, options):
    cw.deploy_write(POOLS, tmp_path / "tree", **options)
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", "-recursive"], cwd=tmp_path / "tree", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_machines_have_chips_of_the_catalog_and_a_source():
    from chipwise.catalog import instances, load

    known = {instance.name: instance for instance in instances().values() if instance.cloud == "gcp"}
    names = [machine.name for machine in machines()]
    assert len(names) == len(set(names))
    for machine in machines():
        assert machine.chip in load().chips and machine.source and machine.date and machine.terms
        if machine.name in known:
            assert (known[machine.name].chip_id, known[machine.name].chips) == (machine.chip, machine.chips)
        gke = load().slices[machine.chip].gke if machine.chip in load().slices else None
        assert gke is None or gke.accelerator == machine.accelerator
