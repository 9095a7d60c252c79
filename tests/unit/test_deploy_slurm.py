"""`deploy write --target slurm`: what the files say; that a real Slurm takes them is in tests/e2e/test_cloud_nodes.py."""

import json
import subprocess

import pytest

import chipwise as cw
from chipwise.deploy.deployment import Problem, Undeployable
from chipwise.deploy.targets.slurm import cloud_nodes
from chipwise.deploy.targets.slurm.cloud_nodes import Controller, Failure, failure_of

HERE = {"target": "slurm", "zone": "us-east5-a", "name": "lab"}


def write(tmp_path, *pools, **options):
    path = tmp_path / "own.yaml"
    rows = [{"backend": "slurm", "cloud": "gcp", "region": "us-east5", "price": 2, **pool} for pool in pools]
    path.write_text(json.dumps({"pools": rows}))
    cw.deploy_write(path, tmp_path / "tree", **{**HERE, **options})
    return tmp_path / "tree"


def commands(folder, pool):
    settings = json.loads((folder / "power" / "cloud_nodes.json").read_text())
    return settings["pools"][pool]["placements"][0]


def test_a_slice_is_one_machine_with_a_node_for_each_host_and_a_switch(tmp_path):
    folder = write(tmp_path, {"name": "v5p", "chip": "v5p", "count": 16, "shapes": ["2x2x2"]})
    settings = json.loads((folder / "power" / "cloud_nodes.json").read_text())
    assert settings["pools"]["v5p"]["machines"] == {
        f"lab-v5p-{slice}": [f"lab-v5p-{slice}-0", f"lab-v5p-{slice}-1"] for slice in (0, 1)
    }
    assert "NodeName=lab-v5p-[0-1]-[0-1] " in (folder / "slurm" / "nodes.conf").read_text()
    switches = (folder / "slurm" / "topology.conf").read_text().splitlines()[1:]
    assert switches == [f"SwitchName=lab-v5p-{n} Nodes=lab-v5p-{n}-0,lab-v5p-{n}-1" for n in (0, 1)]
    create = commands(folder, "v5p")["create"]
    assert {"--type=v5p", "--topology=2x2x2", "--version=v2-alpha-tpuv5", "--internal-ips"} <= set(create)


@pytest.mark.parametrize(
    ("pool", "options", "words"),
    [
        ({"chip": "v5e", "count": 16, "shapes": ["4x4"]}, {"term": "spot"}, {"--accelerator-type=v5litepod-16", "--spot"}),
        ({"chip": "h200", "count": 16}, {"term": "spot"}, {"--machine-type=a3-ultragpu-8g", "--provisioning-model=SPOT"}),
        ({"chip": "l4", "count": 4}, {}, {"--no-address", "--shielded-vtpm"}),
        (
            {"chip": "h100", "count": 8},
            {"term": "reserved", "reservation": {"p": "mine"}},
            {"--reservation-affinity=specific", "--reservation=mine"},
        ),
    ],
)  # fmt: skip
def test_machines_are_made_on_their_terms(tmp_path, pool, options, words):
    folder = write(tmp_path, {"name": "p", **pool}, **options)
    assert words <= set(commands(folder, "p")["create"])


@pytest.mark.parametrize(
    ("pool", "options", "words"),
    [
        ({"chip": "l4", "count": 4}, {}, {"g6.12xlarge", "--subnet-id"}),
        (
            {"chip": "h100", "count": 8},
            {"term": "reserved", "reservation": {"p": "cr-1"}},
            {"p5.48xlarge", "CapacityReservationTarget={CapacityReservationId=cr-1}"},
        ),
        ({"chip": "b200", "count": 8}, {"term": "spot"}, {"p6-b200.48xlarge", "--network-interfaces"}),
    ],
)
def test_amazon_makes_them_too_without_a_zone_of_its_own(tmp_path, pool, options, words):
    amazon = {"name": "p", "cloud": "aws", "region": "us-east-2", **pool}
    create = commands(write(tmp_path, amazon, zone=None, **options), "p")["create"]
    assert words <= set(create)
    cards = [word for word in create if word.startswith("NetworkCardIndex=")]
    assert len(cards) == {"l4": 0, "h100": 32, "b200": 8}[pool["chip"]]
    assert [word for word in cards if "DeviceIndex=0," in word] == cards[:1]


def test_what_is_paid_for_in_any_case_stays_up(tmp_path):
    reserved = {"term": "reserved", "reservation": {"p": "mine"}}
    folder = write(tmp_path, {"name": "p", "chip": "h100", "count": 16}, **reserved)
    assert "SuspendExcNodes=lab-p-0,lab-p-1" in (folder / "slurm" / "slurm.conf").read_text()
    settings = json.loads((folder / "power" / "cloud_nodes.json").read_text())
    assert settings["pools"]["p"]["always"] == ["lab-p-0", "lab-p-1"]


def test_machines_of_your_own_need_no_programs(tmp_path):
    path = tmp_path / "own.yaml"
    own = {"name": "dgx", "backend": "slurm", "chip": "h100", "count": 16, "unit": 8, "terms": "owned", "price": 2}
    path.write_text(json.dumps({"pools": [own]}))
    cw.deploy_write(path, folder := tmp_path / "tree", target="slurm")
    assert not (folder / "power").exists()
    assert "State=UNKNOWN" in (folder / "slurm" / "nodes.conf").read_text()
    conf = (folder / "slurm" / "slurm.conf").read_text() + (folder / "slurm" / "site.conf").read_text()
    assert "Resume" not in conf and "Suspend" not in conf and "@" not in conf


@pytest.mark.parametrize(
    ("pool", "options", "problem"),
    [
        ({"chip": "v7x", "count": 8}, {}, Problem.CHIP_NOT_OFFERED),
        ({"chip": "v5e", "count": 16}, {"term": "flex-start"}, Problem.TERM),
        ({"chip": "h100", "count": 8}, {"zone": None}, Problem.NO_ZONE),
        ({"chip": "h100", "count": 8}, {"term": "reserved"}, Problem.NO_RESERVATION),
    ],
)
def test_what_slurm_can_not_have_is_refused_and_nothing_is_written(tmp_path, pool, options, problem):
    with pytest.raises(Undeployable) as refusal:
        write(tmp_path, {"name": "p", **pool}, **options)
    assert refusal.value.problem is problem and refusal.value.unlock
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        # as gcloud and aws print them
        (
            "ERROR: (gcloud.compute.instances.create) Could not fetch resource:\n - The zone "
            "'projects/p/zones/us-east5-a' does not have enough resources available to fulfill the request.",
            Failure.STOCKOUT,
        ),
        ("code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", Failure.STOCKOUT),
        ('{"code": 8, "message": "There is no more capacity in the zone \\"us-east5-a\\""}', Failure.STOCKOUT),
        ("An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation", Failure.STOCKOUT),
        ("Quota 'GPUS_PER_GPU_FAMILY' exceeded.  Limit: 0.0 in region us-east5.", Failure.QUOTA),
        ("An error occurred (VcpuLimitExceeded) when calling the RunInstances operation", Failure.QUOTA),
        ("ERROR: PERMISSION_DENIED: Permission 'tpu.nodes.create' denied", Failure.DENIED),
        ("Segmentation fault", Failure.OTHER),
    ],
)
def test_errors_of_clouds_are_known_by_their_codes(words, failure):
    assert failure_of(words) is failure


def test_a_setting_that_nobody_reads_is_named(tmp_path):
    folder = write(tmp_path, {"name": "p", "chip": "h100", "count": 8})
    (folder / "power" / "site.json").write_text('{"project": "mine"}')
    done = subprocess.run([folder / "power" / "sync"], capture_output=True, text=True)
    assert done.returncode == 2 and "project is no setting; expected values, state" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_example_of_the_site_has_every_value_to_fill_in(tmp_path):
    power = write(tmp_path, {"name": "p", "chip": "h100", "count": 8}) / "power"
    wanted = json.loads((power / "cloud_nodes.json").read_text())["site"]
    assert json.loads((power / "site.example.json").read_text()) == {"values": dict.fromkeys(wanted, "")}
    (power / "site.json").write_text((power / "site.example.json").read_text())
    done = subprocess.run([power / "check"], capture_output=True, text=True)
    assert done.returncode == 2 and all(f"{name} ({what})" in done.stderr for name, what in wanted.items())


def test_a_machine_that_is_being_made_stops_nobody_and_is_no_orphan(tmp_path):
    power = write(tmp_path, {"name": "p", "chip": "h100", "count": 8}) / "power"
    settings = json.loads((power / "cloud_nodes.json").read_text())
    site = {"values": dict.fromkeys(settings["site"], "mine"), "state": str(tmp_path / "state"), "environment": {}}
    (power / "site.json").write_text(json.dumps(site))
    maker, timer = Controller(power), Controller(power)
    with maker.machine_lock("lab-p-0"):
        cloud_nodes._orphan(timer, "p", "lab-p-0", 0)
        with timer.state() as state:
            assert "orphans" not in state
    cloud_nodes._orphan(timer, "p", "lab-p-0", 0)
    with timer.state() as state:
        assert list(state["orphans"]) == ["lab-p-0"]


def test_a_machine_has_to_be_there_before_slurm_gives_its_node_up(tmp_path):
    pools = [{"name": "a", "chip": "h100", "count": 8}, {"name": "b", "chip": "v5p", "count": 8, "shapes": ["2x2x2"]}]
    folder = write(tmp_path, *pools)
    settings = json.loads((folder / "power" / "cloud_nodes.json").read_text())
    lines = (folder / "slurm" / "nodes.conf").read_text().splitlines()
    for name, pool in settings["pools"].items():
        (line,) = (line for line in lines if line.startswith(f"PartitionName={name} "))
        assert pool["create_timeout_s"] < int(line.partition("ResumeTimeout=")[2].split()[0])
