"""`deploy check` of a tree for Slurm: a whole one passes, and each way to break it is named with its place."""

import json

import pytest

import chipwise as cw
from chipwise.deploy.check.findings import Defect
from chipwise.deploy.check.slurm_files import hosts
from chipwise.errors import InputError

POOLS = [
    {"name": "v5p", "chip": "v5p", "count": 16, "shapes": ["2x2x2"], "price": 4},
    {"name": "h100", "chip": "h100", "count": 16, "unit": 8, "price": 3},
]


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "own.yaml"
    rows = [{"backend": "slurm", "cloud": "gcp", "region": "us-east5", **pool} for pool in POOLS]
    path.write_text(json.dumps({"pools": rows}))
    more = {"term": {"h100": "reserved"}, "reservation": {"h100": "mine"}}
    cw.deploy_write(path, tmp_path / "tree", target="slurm", zone="us-east5-a", name="lab", **more)
    return tmp_path / "tree"


def defects(tree):
    return {(finding.defect, finding.file) for finding in cw.deploy_check(tree).checked.findings}


def test_what_was_written_has_no_findings(tree, tmp_path):
    checked = cw.deploy_check(tree)
    assert checked.good and checked.checked.pools == 2
    own = tmp_path / "dgx.yaml"
    own.write_text(json.dumps({"pools": [{"name": "dgx", "backend": "slurm", "chip": "h100", "count": 8, "terms": "owned", "price": 2}]}))  # fmt: skip
    cw.deploy_write(own, tmp_path / "own", target="slurm")
    assert cw.deploy_check(tmp_path / "own").good


NODES, GRES, SWITCHES, CONF, SITE = (f"slurm/{name}.conf" for name in ("nodes", "gres", "topology", "slurm", "site"))
SETTINGS = "power/cloud_nodes.json"


@pytest.mark.parametrize(
    ("file", "old", "new", "defect", "told_in"),
    [
        (NODES, "RealMemory=", "RealMemori=", Defect.UNKNOWN_ARGUMENT, NODES),
        (NODES, "Gres=gpu:h100:8", "Gres=gpu:h100", Defect.WRONG_TYPE, NODES),
        (NODES, " State=UP", " State", Defect.SYNTAX, NODES),
        (NODES, "NodeName=lab-h100-[0-1]", "NodeName=lab-h100-[0-x]", Defect.SYNTAX, NODES),
        (NODES, "Nodes=lab-h100-[0-1]", "Nodes=lab-h100-[0-2]", Defect.UNKNOWN_REFERENCE, NODES),
        (NODES, "Nodes=lab-h100-[0-1]", "Nodes=lab-h100-0", Defect.UNKNOWN_REFERENCE, NODES),
        (GRES, "File=/dev/nvidia[0-7]", "File=/dev/nvidia[0-3]", Defect.COUNT, GRES),
        (GRES, "NodeName=lab-h100-[0-1]", "NodeName=lab-h100-1", Defect.COUNT, NODES),
        (CONF, "GresTypes=gpu,tpu", "GresTypes=gpu", Defect.NOT_COVERED, NODES),
        (CONF, "idle_on_node_suspend,", "", Defect.MISSING_ARGUMENT, CONF),
        (CONF, "PrivateData=cloud", "PrivateData=jobs", Defect.MISSING_ARGUMENT, CONF),
        (CONF, "include nodes.conf", "include node.conf", Defect.SYNTAX, "slurm/node.conf"),
        (CONF, "SuspendExcNodes=lab-h100-0,lab-h100-1", "SuspendExcNodes=lab-h100-0", Defect.RECLAIMED, CONF),
        (SITE, "ResumeFailProgram=", "#ResumeFailProgram=", Defect.MISSING_ARGUMENT, SITE),
        (SWITCHES, "lab-v5p-0-0,lab-v5p-0-1", "lab-v5p-0-0,lab-v5p-1-0", Defect.TOPOLOGY, SWITCHES),
        (SETTINGS, '"lab-v5p-1-1"', '"lab-v5p-1-7"', Defect.UNKNOWN_REFERENCE, SETTINGS),
        (SETTINGS, "--reservation=mine", "--reservation=other", Defect.RESERVATION, SETTINGS),
        (SETTINGS, '"machines"', '"machine"', Defect.SYNTAX, SETTINGS),
        ("pools.yaml", "count: 16", "count: 24", Defect.ROUTER, "pools.yaml"),
        ("pools.yaml", "partition: h100", "partition: h200", Defect.ROUTER, "pools.yaml"),
        ("pools.yaml", "gres: gpu:h100", "gres: gpu:h200", Defect.ROUTER, "pools.yaml"),
        ("pools.yaml", "price: 3.0", "price: 30.0", Defect.BUDGET, "pools.yaml"),
    ],
)
def test_a_broken_copy_is_told_with_its_place(tree, file, old, new, defect, told_in):
    path = tree / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert (defect, told_in) in defects(tree)


def test_a_machine_with_hosts_too_few_for_its_topology_is_told(tree):
    path = tree / SETTINGS
    settings = json.loads(path.read_text())
    settings["pools"]["v5p"]["machines"]["lab-v5p-1"].pop()
    path.write_text(json.dumps(settings))
    assert (Defect.TOPOLOGY, SETTINGS) in defects(tree)
    assert (Defect.MACHINE, NODES) in defects(tree)


def test_a_range_without_end_is_refused_and_not_expanded():
    with pytest.raises(ValueError):
        hosts("n[0-9999999]")


def test_a_folder_that_is_no_tree_is_refused(tmp_path):
    with pytest.raises(InputError, match="deploy write"):
        cw.deploy_check(tmp_path)
