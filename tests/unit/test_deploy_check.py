"""`deploy check`: what was written has no findings; each defect put into it is found, where it is, with what would do."""

import shutil
import subprocess

import pytest

import chipwise as cw
from chipwise.cli.main import run
from chipwise.deploy.check.findings import Defect
from chipwise.deploy.hcl_read import NOT_PLAIN, plain, read_hcl
from chipwise.errors import BrokenFile, InputError
from lane import share

POOLS = """pools:
- {name: v5e, backend: kubernetes, chip: v5e, count: 64, shapes: [4x4], cloud: gcp, region: us-central1, price: 1.2}
- {name: small, backend: kubernetes, chip: v6e, count: 16, shapes: [2x4], cloud: gcp, region: us-central1, price: 2.7}
- {name: v7x, backend: kubernetes, chip: v7x, count: 128, shapes: [4x4x4], cloud: gcp, region: us-central1, price: 12}
- {name: h200, backend: kubernetes, chip: h200, count: 16, cloud: gcp, region: us-central1, price: 9, terms: spot}
- {name: held, backend: kubernetes, chip: h100, count: 16, cloud: gcp, region: us-central1, price: 7, terms: reserved}
"""
NETWORK, CLUSTER = "modules/network/main.tf", "modules/cluster/main.tf"
QUEUES, SPACE, RUN = "kubernetes/queues.yaml", "kubernetes/namespace.yaml", "kubernetes/work/v5e.yaml"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    base = tmp_path_factory.mktemp("check")
    (base / "pools.yaml").write_text(POOLS)
    cw.deploy_write(base / "pools.yaml", base / "tree", term={"v7x": "flex-start"}, reservation={"held": "research"})
    return base / "tree"


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "tree")


def edited(folder, file, before, after):
    """The findings after a text of a file was replaced, wherever it stands."""
    path = folder / file
    text = path.read_text()
    assert before in text, text
    path.write_text(text.replace(before, after))
    return [finding for finding in cw.deploy_check(folder).checked.findings if finding.defect is not Defect.FORMAT]


def test_what_was_written_has_no_findings(written):
    answer = cw.deploy_check(written)
    assert answer.good, answer.checked.findings
    assert answer.checked.pools == 5 and any("8.7.0" in words for words in answer.checked.ran)
    assert any("validate" in words for words in answer.checked.left_out)


TERRAFORM = [
    (NETWORK, "auto_create_subnetworks", "auto_create_subnets", Defect.UNKNOWN_ARGUMENT, "auto_create_subnetworks"),
    ("modules/tpu-pool/main.tf", "tpu_topology =", "tpu_topologi =", Defect.UNKNOWN_ARGUMENT, "tpu_topology"),
    ("modules/tpu-pool/main.tf", "  cluster        = var.cluster\n", "", Defect.MISSING_ARGUMENT, "cluster"),
    (
        "modules/gpu-pool/main.tf",
        "guest_accelerator {",
        "guest_acelerator {",
        Defect.UNKNOWN_ARGUMENT,
        "guest_accelerator",
    ),
    (CLUSTER, "initial_node_count       = 1", 'initial_node_count       = "one"', Defect.WRONG_TYPE, "number"),
    (CLUSTER, "release_channel {", "release_channel = {", Defect.WRONG_TYPE, "without ="),
    (CLUSTER, 'channel = "REGULAR"', "", Defect.MISSING_ARGUMENT, "channel"),
    (CLUSTER, "var.deletion_protection", "var.deletion_protect", Defect.UNKNOWN_REFERENCE, "deletion_protection"),
    ("main.tf", "module.network.subnetwork", "module.network.subnet", Defect.UNKNOWN_REFERENCE, "subnetwork"),
    ("main.tf", "module.cluster.id", "module.clusters.id", Defect.UNKNOWN_REFERENCE, "cluster"),
    ("main.tf", "./modules/bucket", "./modules/buckets", Defect.UNKNOWN_REFERENCE, "write again"),
    ("main.tf", "  slices          = 4\n", "", Defect.MISSING_ARGUMENT, "slices"),
    ("main.tf", "hosts_per_slice = 4\n", "hosts_slice = 4\n", Defect.UNKNOWN_ARGUMENT, "hosts_per_slice"),
    ("outputs.tf", "value       = module.bucket.url", "value       = ", Defect.SYNTAX, "a value after ="),
    ("main.tf", 'provider "google" {', 'provider "google" {{', Defect.SYNTAX, "argument or a block"),
    ("variables.tf", 'default     = "us-central1"', 'default     = "us-central1', Defect.SYNTAX, "on the same line"),
]
MACHINES = [
    ("main.tf", "ct5lp-hightpu-4t", "ct5lp-hightpu-3t", Defect.MACHINE, "ct5lp-hightpu"),
    ("main.tf", 'topology        = "4x4"', 'topology        = "4x5"', Defect.TOPOLOGY, "4x4"),
    ("main.tf", 'topology        = "4x4"', 'topology        = "4x8"', Defect.TOPOLOGY, "hosts_per_slice = 8"),
    ("main.tf", "workload_policy = true", "workload_policy = false", Defect.TOPOLOGY, "workload_policy = true"),
    ("main.tf", '"spot"', '"ondemand"', Defect.TERM, "spot"),
    ("main.tf", '  reservation   = "research"\n', "", Defect.RESERVATION, "reservation"),
    ("main.tf", "min_nodes     = 2", "min_nodes     = 0", Defect.RECLAIMED, "min_nodes = nodes"),
    ("main.tf", '"nvidia-h100-80gb"', '"nvidia-h200-141gb"', Defect.MACHINE, "nvidia-h100-80gb"),
    ("main.tf", "gpus_per_node = 8", "gpus_per_node = 4", Defect.COUNT, "gpus_per_node = 8"),
    ("main.tf", "  nodes         = 2\n", "  nodes         = 3\n", Defect.QUOTA, "24"),
    ("pools.yaml", "count: 64", "count: 32", Defect.ROUTER, "count: 64"),
    ("pools.yaml", "queue: v5e", "queue: v4", Defect.QUEUE, "v5e"),
    ("pools.yaml", "price: 1.2", "price: 12", Defect.BUDGET, "fewer chips"),
]
CHAIN = [
    (QUEUES, "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", Defect.OLD_API, "v1beta2"),
    (
        QUEUES,
        "  admissionChecksStrategy:\n    admissionChecks:\n    - name: v7x",
        "  admissionChecks: [v7x]",
        Defect.FIELD,
        "admissionChecksStrategy",
    ),
    (QUEUES, "  admissionChecksStrategy:\n    admissionChecks:\n    - name: v7x", "", Defect.QUEUE, "AdmissionCheck"),
    (QUEUES, "cohortName:", "cohort:", Defect.FIELD, "cohortName"),
    (QUEUES, "    - cpu\n", "", Defect.NOT_COVERED, "quota of cpu"),
    (QUEUES, "nominalQuota: 64", "nominalQuota: 128", Defect.QUOTA, "nominalQuota: 64"),
    (QUEUES, "clusterQueue: v5e", "clusterQueue: v5", Defect.QUEUE, "v5e"),
    (QUEUES, "    chipwise-pool: v5e\n", "    chipwise-pool: v4e\n", Defect.SELECTOR, "v5e"),
    (
        QUEUES,
        "kind: ProvisioningRequestConfig\nmetadata:\n  name: v7x",
        "kind: ProvisioningRequestConfig\nmetadata:\n  name: v7",
        Defect.QUEUE,
        "v7",
    ),
    (
        SPACE,
        "kind: Namespace\nmetadata:\n  name: jobs",
        "kind: Namespace\nmetadata:\n  name: work",
        Defect.NAMESPACE,
        "work",
    ),
    (
        SPACE,
        "kind: ServiceAccount\nmetadata:\n  name: jobs",
        "kind: ServiceAccount\nmetadata:\n  name: job",
        Defect.ACCOUNT,
        "job",
    ),
    (SPACE, "  name: train\n", "  name: training\n", Defect.PRIORITY, "training"),
    (SPACE, "maxUnavailable: 0", "maxUnavailables: 0", Defect.FIELD, "a field"),
    (RUN, "kueue.x-k8s.io/queue-name: v5e", "team: vision", Defect.QUEUE, "v5e"),
    (RUN, "  namespace: jobs", "  namespace: other", Defect.NAMESPACE, "jobs"),
    (RUN, "replicas: 4", "replicas: 8", Defect.COUNT, "at most 64 chips"),
    (RUN, "completions: 4", "completions: 2", Defect.COUNT, "completions: 4"),
    (RUN, "google.com/tpu: '4'", "google.com/tpu: '8'", Defect.COUNT, "google.com/tpu: 4"),
    (RUN, "gke-tpu-topology: 4x4", "gke-tpu-topology: 2x4", Defect.TOPOLOGY, "4x4"),
    (RUN, "chipwise-pool: v5e", "chipwise-pool: v5", Defect.SELECTOR, "v5e"),
    (RUN, "- key: google.com/tpu", "- key: tpu", Defect.TOLERATION, "google.com/tpu"),
    (RUN, "priorityClassName: train\n", "priorityClassName: batch\n", Defect.PRIORITY, "one of"),
    (RUN, "safe-to-evict: 'false'", "safe-to-evict: 'true'", Defect.EVICTABLE, "'false'"),
    (RUN, "@sha256:", ":latest-", Defect.IMAGE, "sha256"),
    (RUN, "maxRestarts: 2", "maxRestart: 2", Defect.FIELD, "maxRestarts"),
    (RUN, "completionMode: Indexed", "completionMod: Indexed", Defect.FIELD, "a field"),
    (RUN, "kind: JobSet", "kind: [JobSet", Defect.SYNTAX, "YAML"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("file", "before", "after", "defect", "fix"), share([*TERRAFORM, *MACHINES, *CHAIN]))
def test_a_defect_is_found_with_what_would_do(folder, file, before, after, defect, fix):
    findings = edited(folder, file, before, after)
    named = [finding for finding in findings if finding.defect is defect]
    assert named, findings
    assert any(fix in f"{finding.what} {finding.fix}" for finding in named), named
    assert all(finding.what and finding.fix for finding in findings)


def test_a_finding_of_terraform_names_its_line(folder):
    (finding, *_) = edited(folder, "main.tf", "ct5lp-hightpu-4t", "ct5lp-hightpu-3t")
    assert "ct5lp-hightpu-3t" in (folder / "main.tf").read_text().split("\n")[finding.line - 1]


def test_what_is_not_of_deploy_is_left_alone(folder):
    (folder / "own.tf").write_text(
        'resource "google_pubsub_topic" "x" {\n  anything = 1\n}\n\n'
        'locals {\n  text = <<-EOT\n    a = { "\n  EOT\n  map = { a = "${join(",", ["}"])}" } # {\n}\n'
    )
    assert not [f for f in cw.deploy_check(folder).checked.findings if f.defect is not Defect.FORMAT]


@pytest.mark.parametrize("path", ["README.md", "examples", "nowhere"])
def test_a_folder_that_was_not_written_is_refused(path):
    with pytest.raises(InputError, match="folder"):
        cw.deploy_check(path)


def test_findings_are_exit_status_1(folder, capsys):
    assert run(["deploy", "check", str(folder)]) == 0
    assert "no findings" in capsys.readouterr().out
    edited(folder, "pools.yaml", "count: 64", "count: 32")
    assert run(["deploy", "check", str(folder)]) == 1
    assert "count: 64" in capsys.readouterr().out
    assert run(["deploy", "check", "nowhere"]) == 2


@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
@pytest.mark.parametrize(("file", "before", "after"), [case[:3] for case in TERRAFORM if case[3] is Defect.SYNTAX])
def test_what_can_not_be_read_terraform_can_not_read_either(folder, file, before, after):
    edited(folder, file, before, after)
    done = subprocess.run(["terraform", "fmt", "-check"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2 and "Error" in done.stderr


@pytest.mark.parametrize(
    "text", ['a = "${b("x")}', "a {", "a = [1, (2]", "a = 1\na = 2", "= 1", "a = <<END\nb\n", "a b c", "x {\n" * 3000]
)
def test_broken_terraform_is_refused_with_its_line(text):
    with pytest.raises(BrokenFile):
        read_hcl(text, "main.tf")


def test_expressions_are_read_to_their_ends():
    block = read_hcl('a = {\n  b = [1,\n 2]\n}\nc "d" { e = "}" }\nf = x ? "a" : "b" # no\n', "main.tf")
    assert block.arguments["a"].text == "{\n  b = [1,\n 2]\n}" and block.arguments["f"].text == 'x ? "a" : "b"'
    assert block.blocks[0].labels == ("d",) and block.blocks[0].value("e") == "}"
    assert plain('"a${b}"') is NOT_PLAIN and plain("null") is None and plain("[a]") is NOT_PLAIN
