"""Objects as an API server would check them: unknown fields, types, and the rules that CRDs have in CEL."""

import copy
import json

import cel
import pytest
from kubernetes_cases import SCHEMAS, a_launch, a_pool, checked
from kubernetes_crds import jobset_violations, rules, violations

from chipwise.route.backend import BackendDown
from chipwise.route.backends.kubernetes.read import queue_capacity

GANGS = [
    a_launch(a_pool("v5e", "tpu", 256, queue="research", volume="claim:/shared"), 16, "4x4", time_limit=50.0),
    a_launch(a_pool("v6e", "tpu", 256, terms="spot"), 256, "16x16", secrets=()),
    a_launch(a_pool("h100", unit=8, accelerator="nvidia-h100-80gb", cpu="8", memory="64Gi", shm="8Gi"), 32),
    a_launch(a_pool("h100", unit=8, kind="jobset", service_account="runner", priority="high", keep="60"), 8),
    a_launch(a_pool("h100", unit=8, selector="zone=a", tolerations="team=x"), 16, environment={"A": "$(B)"}),
]


@pytest.mark.parametrize("launch", GANGS, ids=lambda launch: f"{launch.pool.chip}-{launch.option.chips}")
def test_jobsets_are_right_by_their_own_document_and_rules(launch):
    made = checked(launch)
    assert made["kind"] == "JobSet"
    assert jobset_violations(made) == [] and violations("jobset", made) == []
    assert violations("jobset", checked(launch), made) == []  # submitted again it changes nothing that can't be changed


@pytest.mark.parametrize("name", ["jobset", "kueue", "rayjob"])
def test_schemas_are_closed_and_their_rules_can_be_evaluated(name):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    assert "https://github.com/" in schema["$comment"] and "read 2026-" in schema["$comment"]
    for rule in rules(schema):
        cel.compile(rule)
    kinds = schema.get("oneOf", [schema])
    assert all(kind["additionalProperties"] is False for kind in kinds)
    assert all(kind["properties"]["spec"]["additionalProperties"] is False for kind in kinds)
    assert len(list(rules(schema))) >= {"jobset": 5, "kueue": 4, "rayjob": 0}[name]


def edited(document, path, value):
    document = copy.deepcopy(document)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return document


POD = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("spec", "suspended"), True, "spec.suspended: no such field"),
        (("spec", "replicatedJobs", 0, "groups"), "x", "replicatedJobs[0].groups: no such field"),
        ((*POD, "nodeSelectors"), {}, "spec.nodeSelectors: no such field"),
        ((*POD, "containers", 0, "resource"), {}, "containers[0].resource: no such field"),
        (("spec", "ttlSecondsAfterFinished"), "a week", "ttlSecondsAfterFinished"),
        (("spec", "network", "enableDNSHostnames"), "yes", "enableDNSHostnames"),
        (("spec", "suspend"), "true", "suspend"),
    ],
)
def test_what_jobset_does_not_have_is_named(path, value, words):
    (violation,) = jobset_violations(edited(checked(GANGS[0]), path, value))
    assert words in violation or violation.startswith(path[-1])


def test_rules_of_jobset_are_evaluated():
    made = checked(GANGS[0])
    job = made["spec"]["replicatedJobs"][0]
    chained = edited(made, ("spec", "replicatedJobs", 0), job | {"dependsOn": [{"name": "x", "status": "Ready"}]})
    assert violations("jobset", chained) == []
    both = edited(chained, ("spec", "startupPolicy"), {"startupPolicyOrder": "InOrder"})
    assert violations("jobset", both) == ["spec: startupPolicy InOrder and dependsOn exclude each other"]
    other = edited(made, ("spec", "network", "subdomain"), "other")
    assert violations("jobset", other) == [] and violations("jobset", other, made) == [
        "spec.network: it can't be changed"
    ]


QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "all"},
    "spec": {
        "cohortName": "research",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [{"name": "spot", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "32"}]}],
            }
        ],
        "preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}},
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["spot"]}]},
    },
}
GROUP = ("spec", "resourceGroups", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("spec", "cohort"), "research", "cohort"),
        (("spec", "admissionChecks"), ["dws"], "admissionChecks"),
        (("status",), {"pendingWorkloadsStatus": {}}, "pendingWorkloadsStatus"),
        (("spec", "flavorFungibility", "whenCanBorrow"), "Borrow", "whenCanBorrow"),  # v1beta1's word
        (("spec", "stopPolicy"), "Stop", "stopPolicy"),
        ((*GROUP, "coveredResources"), [], "coveredResources"),
        ((*GROUP, "coveredResources"), ["nvidia.com/gpu", "cpu"], "a flavor must have a quota"),
        (("spec", "preemption", "reclaimWithinCohort"), "Never", "borrowWithinCohort needs"),
    ],
)
def test_what_kueue_v1beta2_does_not_take_is_named(path, value, words):
    assert violations("kueue", QUEUE) == []
    found = violations("kueue", edited(QUEUE, path, value))
    assert found and any(words in each for each in found), found


def test_rules_of_kueue_are_evaluated():
    limited = edited(QUEUE, (*GROUP, "flavors", 0, "resources", 0, "borrowingLimit"), "8")
    assert violations("kueue", limited) == []
    del limited["spec"]["cohortName"]
    assert violations("kueue", limited) == ["spec: a queue without cohortName can't have a borrowingLimit"]
    preferring = edited(QUEUE, ("spec", "flavorFungibility", "preference"), "PreemptionOverBorrowing")
    assert violations("kueue", preferring) == []
    preferring["spec"]["flavorFungibility"]["whenCanBorrow"] = "MayStopSearch"
    assert "TryNextFlavor" in violations("kueue", preferring)[0]


@pytest.mark.parametrize(
    ("field", "instead"), [("cohort", "cohortName"), ("admissionChecks", "admissionChecksStrategy.admissionChecks")]
)
def test_a_queue_with_a_field_that_v1beta2_dropped_is_an_error_that_names_it(field, instead):
    local = {"kind": "LocalQueue", "spec": {"clusterQueue": "all"}}
    assert queue_capacity(a_pool(), QUEUE, local).total == 32
    with pytest.raises(BackendDown) as error:
        queue_capacity(a_pool(), edited(QUEUE, ("spec", field), "x"), local)
    assert f"ClusterQueue all: spec.{field} is no field of kueue.x-k8s.io/v1beta2; expected spec.{instead}" in str(
        error.value
    )
