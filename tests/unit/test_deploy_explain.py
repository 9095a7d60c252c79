"""`deploy explain`: what Kueue, the scheduler, the autoscaler and Slurm write, as typed reasons."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.deploy.explain.kubernetes import waiting
from chipwise.deploy.explain.records import REMEDIES, Wait
from chipwise.deploy.explain.slurm import wait_of
from chipwise.errors import InputError, UnknownName

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
PENDING = "examples/deploy/pending.json"


def workload(message="", *, reserved="False", spec=None, **status):
    condition = {"type": "QuotaReserved", "status": reserved, "reason": "Pending", "message": message}
    owner = {"name": "jobset-train-1", "namespace": "jobs", "ownerReferences": [{"kind": "JobSet", "name": "train"}]}
    conditions = [condition, *status.pop("conditions", [])]
    return {"kind": "Workload", "metadata": owner, "spec": spec or {}, "status": {"conditions": conditions, **status}}


def pod(message="", reason="Unschedulable", **status):
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    meta = {"name": "train-0", "namespace": "jobs", "labels": {"jobset.sigs.k8s.io/jobset-name": "train"}}
    return {"kind": "Pod", "metadata": meta, "status": {"phase": "Pending", "conditions": [condition], **status}}


def event(reason, message):
    about = {"kind": "Pod", "namespace": "jobs", "name": "train-0"}
    return {"kind": "Event", "metadata": {"name": "e"}, "involvedObject": about, "reason": reason, "message": message}


def request(*conditions, made="2026-11-19T11:30:00Z"):
    rows = [dict(zip(("type", "status", "reason", "message"), row, strict=True)) for row in conditions]
    return {
        "kind": "ProvisioningRequest",
        "metadata": {"name": "train", "namespace": "jobs", "creationTimestamp": made},
        "status": {"conditions": rows},
    }


def waits(*items):
    return [job.wait for job in waiting(items, NOW)]


@pytest.mark.parametrize(
    ("message", "wait"),
    [
        ("LocalQueue trane doesn't exist", Wait.NO_QUEUE),
        ("ClusterQueue research doesn't exist", Wait.NO_QUEUE),
        ("ClusterQueue research is inactive", Wait.QUEUE_STOPPED),
        (
            "couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue",
            Wait.RESOURCE_NOT_COVERED,
        ),
        (
            "couldn't assign flavors to pod set main: insufficient quota for google.com/tpu in flavor v5e, "
            "request > maximum capacity (64 > 32)",
            Wait.OVER_QUOTA,
        ),
        (
            "couldn't assign flavors to pod set main: insufficient unused quota for google.com/tpu in flavor v5e, "
            "16 more needed",
            Wait.QUOTA_USED,
        ),
        ('topology "default" allows to fit only 2 out of 4 pod(s)', Wait.TOPOLOGY),
        ('topology "default" doesn\'t allow to fit any of 4 pod(s)', Wait.TOPOLOGY),
        ("couldn't assign flavors to pod set main: flavor spot doesn't match node affinity", Wait.FLAVOR),
        ("something that no release has said yet", Wait.OTHER),
    ],
)
def test_kueues_words_are_reasons(message, wait):
    assert waits(workload(message)) == [wait]


def test_a_workload_waits_for_a_check_or_is_off_or_was_preempted():
    check = {"name": "dws", "state": "Pending", "message": "waiting for machines"}
    refused = {"name": "budget", "state": "Rejected", "message": "over the month's budget"}
    assert waits(workload(reserved="True", admissionChecks=[check])) == [Wait.CHECK]
    assert waits(workload(reserved="True", admissionChecks=[check, refused])) == [Wait.CHECK_REJECTED]
    assert waits(workload("quota", spec={"active": False})) == [Wait.DEACTIVATED]
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "for another"}
    assert waits(workload(conditions=[evicted])) == [Wait.PREEMPTED]
    for over in ("Admitted", "Finished"):
        assert waits(workload(conditions=[{"type": over, "status": "True"}])) == []


@pytest.mark.parametrize(
    ("item", "wait"),
    [
        (pod("0/9 nodes are available: 9 Insufficient google.com/tpu."), Wait.CHIPS_TAKEN),
        (pod("0/9 nodes are available: 9 Insufficient cpu."), Wait.HOST_TAKEN),
        (pod("0/9 nodes are available: 9 node(s) didn't match Pod's node affinity/selector."), Wait.SELECTOR),
        (pod("0/9 nodes are available: 9 node(s) had untolerated taint {google.com/tpu: present}."), Wait.TAINT),
        (pod("pod has unbound immediate PersistentVolumeClaims."), Wait.VOLUME),
        (pod(reason="SchedulingGated"), Wait.GATED),
        (
            pod(containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]),
            Wait.IMAGE,
        ),
        (
            pod(containerStatuses=[{"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "secret"}}}]),
            Wait.CONFIGURATION,
        ),
        ({"kind": "JobSet", "metadata": {"name": "a"}, "spec": {"suspend": True}}, Wait.NOT_QUEUED),
    ],
)  # fmt: skip
def test_pods_and_jobs_wait_for_what_their_conditions_say(item, wait):
    assert waits(item) == [wait]


def test_the_autoscalers_word_counts_more_than_the_schedulers():
    taken = pod("0/9 nodes are available: 9 Insufficient google.com/tpu.")
    for message, wait in (
        ("Node scale up in zones a associated with this pod failed: GCE out of resources.", Wait.STOCKOUT),
        ("Node scale up in zones a associated with this pod failed: GCE quota exceeded.", Wait.CLOUD_QUOTA),
    ):
        assert waits(taken, event("FailedScaleUp", message)) == [wait]
    limit = event("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
    assert waits(taken, limit) == [Wait.POOL_AT_LIMIT]
    assert waits(taken, event("TriggeredScaleUp", "pod triggered scale-up: [{pool 0->4}]")) == [Wait.PROVISIONING]


def test_a_request_for_machines_is_made_out_of_stock_or_stuck():
    accepted = ("Accepted", "True", "Accepted", "accepted")
    assert waits(request(accepted)) == [Wait.PROVISIONING]
    assert waits(request(accepted, made="2026-11-19T01:00:00Z")) == [Wait.STUCK_REQUEST]
    missing = ("Provisioned", "False", "CapacityIsNotFound", "Capacity is not found, CA will try later.")
    assert waits(request(accepted, missing)) == [Wait.STOCKOUT]
    assert waits(request(("Failed", "True", "OutOfResources", "GCE_STOCKOUT"))) == [Wait.STOCKOUT]
    assert waits(request(("Failed", "True", "Failed", "Quota 'TPUS' exceeded"))) == [Wait.CLOUD_QUOTA]
    assert waits(request(("CapacityRevoked", "True", "Revoked", "preempted"))) == [Wait.CAPACITY_REVOKED]
    assert waits(request(("Provisioned", "True", "Provisioned", "done"))) == []


def test_gated_pods_are_left_to_the_workload_that_tells_why():
    gated = [pod(reason="SchedulingGated") for _ in range(3)]
    (alone,) = waiting(gated, NOW)
    assert (alone.wait, alone.pods) == (Wait.GATED, 3)
    assert waits(*gated, workload("LocalQueue jobs doesn't exist")) == [Wait.NO_QUEUE]


@pytest.mark.parametrize(
    ("reason", "wait"),
    [
        ("Resources", Wait.CHIPS_TAKEN),
        ("AssocGrpGRES", Wait.LIMIT),
        ("QOSMaxCpuPerUserLimit", Wait.LIMIT),
        ("PartitionNodeLimit", Wait.NEVER),
        ("launch failed requeued held", Wait.HELD),
        ("", Wait.OTHER),
    ],
)
def test_slurms_codes_are_reasons(reason, wait):
    assert wait_of(reason) is wait


def test_files_together_are_one_answer_and_a_job_is_picked_by_name(tmp_path):
    document = json.loads(Path(PENDING).read_text())
    events = [item for item in document["items"] if item["kind"] == "Event"]
    others = [item for item in document["items"] if item["kind"] != "Event"]
    for name, items in (("pods", others), ("events", events)):
        (tmp_path / name).write_text(json.dumps({"kind": "List", "items": items}))
    apart = cw.deploy_explain(tmp_path / "pods", str(tmp_path / "events"))
    assert apart.jobs == cw.deploy_explain(PENDING).jobs
    assert [job.wait for job in cw.deploy_explain(PENDING, job="llama-pretrain").jobs] == [Wait.RESOURCE_NOT_COVERED]
    with pytest.raises(UnknownName, match="llama"):
        cw.deploy_explain(PENDING, job="lama")
    assert {job.wait for job in cw.deploy_explain("examples/deploy/squeue.json").jobs} > {Wait.LIMIT, Wait.NOT_YET}


@pytest.mark.parametrize(
    "document", [{}, {"kind": "List", "items": 3}, {"kind": "PodList", "items": [4]}, {"jobs": [{}]}]
)
def test_what_no_engine_prints_is_refused(document):
    with pytest.raises(InputError, match="file"):
        cw.deploy_explain(document)
    with pytest.raises(InputError, match="sources"):
        cw.deploy_explain()


def test_every_reason_has_a_remedy():
    assert set(REMEDIES) == set(Wait)
