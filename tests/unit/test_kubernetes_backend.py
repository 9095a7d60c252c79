"""The Kubernetes backend against recorded answers: what it asks, what it makes of answers, and of none."""

import functools
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from urllib.parse import parse_qs

import pytest
from kubernetes_cases import JOBS, PODS, a_launch, a_pool, condition, core, own, pod
from kubernetes_cluster import KubernetesCluster
from kubernetes_server import failure, now_text, serving

from backend_contract import BackendContract, with_folder
from chipwise.errors import UnknownName
from chipwise.route.backend import FAILED, LOST, PENDING, RUNNING, SUCCEEDED, BackendDown, BackendRefused
from chipwise.route.backends.kubernetes.api import Cluster
from chipwise.route.backends.kubernetes.backend import KubernetesBackend, make
from chipwise.route.launch import REVOKED, revoke_claim

SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
RAYS = "/apis/ray.io/v1/namespaces/default/rayjobs"
FOREVER = 3600.0  # seconds without an answer: until the server ends
NONE = (200, {"items": [], "metadata": {}})


@pytest.fixture
def server():
    with serving() as found:
        for path in (JOBS, SETS, RAYS, PODS):
            found.play("GET", path, NONE)
        yield found


@pytest.fixture
def slept():
    return []


@pytest.fixture
def backend(server, tmp_path, slept):
    """A backend whose waits are written down instead."""
    with backend_of(server, tmp_path, sleep=slept.append) as made:
        yield made


@pytest.fixture
def hasty(server, tmp_path, slept):
    """One that gives a call up after a second: for servers that do not answer at all."""
    with backend_of(server, tmp_path, call_s=1.0, sleep=slept.append) as made:
        yield made


@contextmanager
def backend_of(server, folder, **more):
    pool = a_pool(kubeconfig=server.config(folder))
    made = KubernetesBackend([pool], "cw1", functools.partial(Cluster, **more))
    made.pool = pool
    yield made
    made.close()


def job(name="cw1-7-1", conditions=(), **status):
    item = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {"chipwise-attempt": name, "chipwise-ledger": "cw1"},
            "annotations": {"chipwise-attempt": name},
        },
        "spec": {
            "parallelism": 1,
            "template": {"spec": {"containers": [{"name": "program", "image": "x"}], "restartPolicy": "Never"}},
        },
        "status": {"conditions": list(conditions), **status},
    }
    if status.pop("suspended", False):
        item["spec"]["suspend"] = item["status"].pop("suspended")
    core("job-batch-v1").validate(item)  # what is played is what servers answer
    return item


class Site:
    """Attempts on a cluster whose pods run here."""

    def __init__(self, server, folder, make):
        self.cluster, self.folder, self.another = KubernetesCluster(server), folder, make
        self.backend = make()

    def launch(self, script):
        own = self.folder / "attempt"
        command = (sys.executable, "-c", with_folder(script, own))
        return a_launch(self.backend.pool, 1, command=command, folder=own)

    def lose(self, launch):
        self.cluster.disrupt(launch.attempt)


class TestContract(BackendContract):
    @pytest.fixture
    def site(self, server, tmp_path):
        with ExitStack() as stack:
            made = Site(server, tmp_path, lambda: stack.enter_context(backend_of(server, tmp_path)))
            yield made
            made.cluster.close()


def posted(server):
    return [each for each in server.asked if each[0] == "POST"]


def test_an_object_is_made_with_the_attempts_name_and_unknown_fields_refused(server, backend):
    server.play("POST", JOBS, (201, job()))
    identity = backend.submit(a_launch(backend.pool, 1))
    ((_, _, query, body, headers),) = posted(server)
    assert body["metadata"]["name"] == "cw1-7-1" and parse_qs(query)["fieldValidation"] == ["Strict"]
    assert headers.get("Authorization", headers.get("authorization")) == "Bearer t0ken"
    assert identity == ":batch/v1/default/jobs/cw1-7-1"


def test_an_object_that_is_there_is_adopted_if_it_is_the_attempts_own(server, backend):
    server.play("POST", JOBS, (409, failure(409, "AlreadyExists", 'jobs.batch "cw1-7-1" already exists')))
    server.play("GET", f"{JOBS}/cw1-7-1", (200, job()))
    launch = a_launch(backend.pool, 1)
    assert backend.submit(launch) == backend.submit(launch) == ":batch/v1/default/jobs/cw1-7-1"
    other = job()
    other["metadata"]["annotations"] = {"chipwise-attempt": "another"}
    server.play("GET", f"{JOBS}/cw1-7-1", (200, other))
    with pytest.raises(BackendRefused, match="not of this attempt"):
        backend.submit(launch)
    server.play("GET", f"{JOBS}/cw1-7-1", (404, failure(404, "NotFound", "gone")))
    with pytest.raises(BackendDown, match="is there and is not"):
        backend.submit(launch)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ((422, failure(422, "Invalid", "spec.completions: Invalid value")), BackendRefused, "spec.completions"),
        ((400, failure(400, "BadRequest", "strict decoding error: unknown field")), BackendRefused, "unknown field"),
        ((403, failure(403, "Forbidden", "exceeded quota: team-a")), BackendRefused, "exceeded quota"),
        ((404, failure(404, "NotFound", "namespaces team-a not found")), BackendRefused, "namespaces"),
        ((401, failure(401, "Unauthorized", "Unauthorized")), BackendDown, "401"),
        ((500, failure(500, "InternalError", "etcdserver: request timed out")), BackendDown, "etcdserver"),
        ((504, b"<html>gateway</html>"), BackendDown, "504"),
        ((201, b"<html>login</html>"), BackendDown, "no JSON"),
        ((201, b"[]"), BackendDown, "no object"),
    ],
)
def test_what_a_server_says_to_a_new_object(server, backend, slept, answer, kind, words):
    server.play("POST", JOBS, answer)
    with pytest.raises(kind, match=words):
        backend.submit(a_launch(backend.pool, 1))
    assert slept == [] and len(posted(server)) == 1  # nothing is tried again but what the server asks for


def test_a_server_that_says_nothing_to_a_new_object_is_asked_once(server, hasty, slept):
    server.play("POST", JOBS, (200, FOREVER))
    with pytest.raises(BackendDown, match=r"Timeout|timed out|no whole answer"):
        hasty.submit(a_launch(hasty.pool, 1))
    assert slept == [] and len(posted(server)) <= 1


def test_a_server_that_asks_for_patience_gets_it_within_bounds(server, backend, slept):
    busy = failure(429, "TooManyRequests", "the server has received too many requests")
    server.play("POST", JOBS, (429, busy, {"Retry-After": "2"}), (429, busy), (503, busy), (201, job()))
    backend.submit(a_launch(backend.pool, 1))
    assert slept == [2.0, 1.0, 2.0]  # as it said, then doubled at each try
    slept.clear()
    server.play("GET", JOBS, (429, busy, {"Retry-After": "7"}))
    with pytest.raises(BackendDown, match="too many requests"):
        backend.list()
    assert slept == [7.0] * 4 and sum(slept) <= 30
    slept.clear()
    server.play("GET", JOBS, (429, busy, {"Retry-After": "3600"}))
    with pytest.raises(BackendDown):
        backend.list()
    assert slept == []


def test_lists_are_read_page_by_page_and_anew_when_pages_expire(server, backend):
    gone = (410, failure(410, "Expired", "The provided continue parameter is too old"))
    first = (200, {"items": [job("cw1-1-1")], "metadata": {"continue": "next=="}})
    server.play("GET", JOBS, first, gone, first, (200, {"items": [job("cw1-2-1")], "metadata": {}}))
    assert [s.attempt for s in backend.list()] == ["cw1-1-1", "cw1-2-1"]
    queries = [parse_qs(q) for m, p, q, *_ in server.asked if p == JOBS]
    assert [q.get("continue") for q in queries] == [None, ["next=="], None, ["next=="]]
    assert all(q["labelSelector"] == ["chipwise-ledger=cw1"] and int(q["limit"][0]) for q in queries)
    server.play("GET", JOBS, first, gone, first, gone, first, gone)
    with pytest.raises(BackendDown, match="expired 3 times"):
        backend.list()


@pytest.mark.parametrize(
    "answer",
    [
        (401, failure(401, "Unauthorized", "Unauthorized")),
        (403, failure(403, "Forbidden", "jobs.batch is forbidden")),
        (500, b""),
        (200, b"nonsense"),
        (200, {"items": 3}),
        (200, {}),
        (200, {"items": ["x"]}),
    ],
)
def test_a_list_that_is_none_tells_nothing(server, backend, answer):
    told_nothing(server, backend, answer)


def test_a_list_that_never_comes_tells_nothing(server, hasty):
    told_nothing(server, hasty, (200, FOREVER))


def told_nothing(server, backend, answer):
    server.play("GET", JOBS, answer)
    with pytest.raises(BackendDown):
        backend.list()
    with pytest.raises(BackendDown):
        backend.status([("cw1-7-1", "")])


def test_a_cluster_without_jobset_has_none_and_nobody_listening_is_down(server, backend, tmp_path):
    server.play("GET", SETS, (404, failure(404, "NotFound", "the server could not find the requested resource")))
    assert backend.list() == []
    missing = KubernetesBackend([a_pool(kubeconfig=str(tmp_path / "none"))], "cw1")
    with pytest.raises(BackendDown, match="configuration"):
        missing.list()
    with serving() as other:
        config = other.config(tmp_path)
    nobody = KubernetesBackend([a_pool(kubeconfig=config)], "cw1")
    with pytest.raises(BackendDown, match="refused"):
        nobody.list()
    nobody.close()


@pytest.mark.parametrize(
    ("item", "pods", "state", "code", "words"),
    [
        (job(), [], PENDING, None, ""),
        (job(conditions=[condition("Suspended")]), [], PENDING, None, "not admitted"),
        (
            job(),
            [
                pod(
                    phase="Pending",
                    conditions=[condition("PodScheduled", "Unschedulable", "0/3 nodes have nvidia.com/gpu", "False")],
                )
            ],
            PENDING,
            None,
            "Unschedulable: 0/3",
        ),
        (
            job(),
            [pod(phase="Pending", waiting={"reason": "ImagePullBackOff", "message": "no such image"})],
            PENDING,
            None,
            "ImagePullBackOff",
        ),
        (job(), [pod()], RUNNING, None, ""),
        (job(conditions=[condition("SuccessCriteriaMet")]), [pod()], RUNNING, None, ""),
        (
            job(conditions=[condition("SuccessCriteriaMet"), condition("Complete")], completionTime=now_text()),
            [pod(phase="Succeeded", exit_code=0)],
            SUCCEEDED,
            0,
            "",
        ),
        (
            job(
                conditions=[condition("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")]
            ),
            [pod(phase="Failed", exit_code=3)],
            FAILED,
            3,
            "BackoffLimitExceeded",
        ),
        (
            job(conditions=[condition("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")]),
            [],
            FAILED,
            None,
            "DeadlineExceeded",
        ),
        (
            job(
                conditions=[
                    condition(
                        "Failed",
                        "PodFailurePolicy",
                        "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0",
                    )
                ]
            ),
            [],
            LOST,
            None,
            "DisruptionTarget",
        ),
        (
            job(conditions=[condition("Failed", "BackoffLimitExceeded", "")]),
            [
                pod(
                    phase="Failed",
                    exit_code=137,
                    conditions=[
                        condition(
                            "DisruptionTarget",
                            "PreemptionByScheduler",
                            "preempting to accommodate a higher priority pod",
                        )
                    ],
                )
            ],
            LOST,
            None,
            "PreemptionByScheduler",
        ),
        (
            job(conditions=[condition("Failed", "BackoffLimitExceeded", "")]),
            [pod(phase="Failed", exit_code=143, reason="DeadlineExceeded", message="Pod was active longer than 60 s")],
            FAILED,
            143,
            "DeadlineExceeded",
        ),
        (
            job(conditions=[condition("Suspended")], suspended=True),
            [pod(phase="Failed", exit_code=143)],
            PENDING,
            None,
            "not admitted",
        ),
        (
            job(conditions=[condition("Failed", "BackoffLimitExceeded", "")]),
            [pod(phase="Failed", reason="NodeShutdown", message="Pod was terminated")],
            LOST,
            None,
            "NodeShutdown",
        ),
    ],
)
def test_what_a_job_and_its_pods_mean(server, backend, item, pods, state, code, words):
    server.play("GET", JOBS, (200, {"items": [item], "metadata": {}}))
    server.play("GET", PODS, (200, {"items": pods, "metadata": {}}))
    (seen,) = backend.list()
    assert (seen.attempt, seen.state, seen.exit_code) == ("cw1-7-1", state, code) and words in seen.reason
    assert seen.backend_id == ":batch/v1/default/jobs/cw1-7-1"
    if state == RUNNING:
        assert seen.started and seen.where == "node-1"
    assert (seen.ended is not None) == (state in (SUCCEEDED, FAILED, LOST))
    assert [s.state for s in backend.status([("cw1-7-1", ""), ("unknown", "")])] == [state]


def test_what_jobsets_and_rayjobs_mean_and_that_old_rayjobs_go(server, backend, tmp_path):
    def named(name, **status):
        return {
            "metadata": {"name": name, "labels": {"chipwise-attempt": name}, "annotations": {"chipwise-attempt": name}},
            "spec": {},
            "status": status,
        }

    server.play(
        "GET",
        SETS,
        (
            200,
            {
                "items": [
                    named("s1", conditions=[condition("Completed", "AllJobsCompleted")]),
                    named("s2", conditions=[condition("Failed", "FailedJobs", "x")]),
                    named("s3", conditions=[condition("Suspended")]),
                ]
            },
        ),
    )
    server.play(
        "GET",
        RAYS,
        (
            200,
            {
                "items": [
                    named("r1", jobStatus="SUCCEEDED", jobDeploymentStatus="Complete", endTime=now_text(30 * 86_400)),
                    named(
                        "r2",
                        jobStatus="FAILED",
                        jobDeploymentStatus="Failed",
                        message="exit code 1",
                        endTime=now_text(),
                    ),
                    named("r3", jobStatus="RUNNING", jobDeploymentStatus="Running"),
                    named("r4", jobDeploymentStatus="Initializing"),
                ]
            },
        ),
    )
    server.play("DELETE", f"{RAYS}/r1", (200, {}))
    rays = KubernetesBackend(
        [backend.pool, a_pool("x", kind="rayjob", kubeconfig=dict(backend.pool.address)["kubeconfig"])], "cw1"
    )
    assert {s.attempt: s.state for s in rays.list()} == {
        "s1": SUCCEEDED,
        "s2": FAILED,
        "s3": PENDING,
        "r1": SUCCEEDED,
        "r2": FAILED,
        "r3": RUNNING,
        "r4": PENDING,
    }
    assert [path for method, path, *_ in server.asked if method == "DELETE"] == [f"{RAYS}/r1"]
    rays.close()


def test_cancelling_deletes_the_object_after_its_pods_and_what_is_gone_is_no_error(server, backend):
    server.play(
        "DELETE",
        f"{JOBS}/cw1-7-1",
        (200, {}),
        (404, failure(404, "NotFound", "gone")),
        (403, failure(403, "Forbidden", "no")),
    )
    for _ in range(2):
        backend.cancel(":batch/v1/default/jobs/cw1-7-1")
    assert parse_qs(server.asked[0][2])["propagationPolicy"] == ["Foreground"]
    with pytest.raises(BackendDown, match="403"):
        backend.cancel(":batch/v1/default/jobs/cw1-7-1")
    with pytest.raises(BackendRefused):
        backend.cancel("17")


def node(name, chips, ready="True", resource="nvidia.com/gpu", **spec):
    item = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": {resource: chips}, "conditions": [{"type": "Ready", "status": ready}]},
    }
    core("node-v1").validate(item)
    return item


def test_taints_that_are_not_tolerated_and_slices_that_are_taken_in_part_are_no_room(server, backend):
    odd, chip = node("odd", "8"), node("chip", "8")
    odd["spec"]["taints"] = [{"key": "team", "value": "other", "effect": "NoSchedule"}]
    chip["spec"]["taints"] = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "x", "effect": "PreferNoSchedule"},
    ]
    server.play("GET", "/api/v1/nodes", (200, {"items": [odd, chip]}))
    server.play("GET", "/api/v1/pods", (200, {"items": []}))
    room = backend.capacity([backend.pool])["h100"]
    assert (room.total, room.free, room.down) == (8, 8, 8)
    mine = replace(backend.pool, address=(*backend.pool.address, ("tolerations", "team=other")))
    assert backend.capacity([mine])["h100"].free == 16
    drained = backend.capacity([replace(mine, avoid=("odd", "gone"))])["h100"]
    assert (drained.free, drained.down) == (8, 8) and backend.node_names(mine) == ["odd", "chip"]

    def host(name, pool, topology, chips="4", **more):
        item = node(name, chips, resource="google.com/tpu", **more)
        item["metadata"]["labels"] = {
            "cloud.google.com/gke-tpu-topology": topology,
            "cloud.google.com/gke-nodepool": pool,
        }
        return item

    slices = [
        *(host(f"a{i}", "a", "4x4") for i in range(4)),
        *(host(f"b{i}", "b", "4x4") for i in range(4)),
        *(host(f"c{i}", "c", "4x4", ready="False" if i else "True") for i in range(4)),
        *(host(f"d{i}", "d", "2x2") for i in range(3)),
        host("e0", "e", "2x4", "8"),
        *(host(f"f{i}", "f", "4x4") for i in range(3)),
    ]
    server.play("GET", "/api/v1/nodes", (200, {"items": slices}))
    server.play(
        "GET",
        "/api/v1/pods",
        (200, {"items": [held("b1", "4", resource="google.com/tpu"), held("d0", "1", resource="google.com/tpu")]}),
    )
    tpus = replace(
        a_pool("v5e", "tpu", 256, kubeconfig=backend.pool.setting("kubeconfig")), shapes=((4, "2x2"), (16, "4x4"))
    )
    room = backend.capacity([tpus])["v5e"]
    # a and b work, a is free; c has lost a host and f lacks one; two hosts of d are free; e is of a shape that the pool has not
    assert (room.total, room.free, room.down) == (16 + 16 + 12, 16 + 8, 32)


def held(where, chips, phase="Running", resource="nvidia.com/gpu"):
    return {
        "spec": {"nodeName": where, "containers": [{"resources": {"requests": {resource: chips}}}]},
        "status": {"phase": phase},
    }


def test_room_is_what_pods_leave_on_nodes_that_work(server, backend):
    server.play(
        "GET",
        "/api/v1/nodes",
        (200, {"items": [node("a", "8"), node("b", "8"), node("c", "8", "False"), node("d", "8", unschedulable=True)]}),
    )
    server.play("GET", "/api/v1/pods", (200, {"items": [held("a", "3"), held("b", "8", "Succeeded"), held("c", "8")]}))
    whole = a_pool("whole", unit=8, accelerator="nvidia-h100-80gb", kubeconfig=backend.pool.setting("kubeconfig"))
    room = backend.capacity([backend.pool, whole])
    assert (room["h100"].total, room["h100"].free, room["h100"].down) == (16, 13, 16)
    assert (room["whole"].total, room["whole"].free) == (16, 8)
    assert parse_qs(next(q for _, p, q, *_ in reversed(server.asked) if p == "/api/v1/nodes"))["labelSelector"] == [
        "cloud.google.com/gke-accelerator=nvidia-h100-80gb"
    ]


def test_room_of_a_queue_is_its_quota_less_what_is_reserved(server, backend):
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "team"},
        "spec": {"clusterQueue": "all"},
    }
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "all"},
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [
                        {"name": "spot", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "32"}]},
                        {"name": "reserved", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]},
                    ],
                }
            ]
        },
        "status": {
            "pendingWorkloads": 3,
            "flavorsReservation": [{"name": "spot", "resources": [{"name": "nvidia.com/gpu", "total": "24"}]}],
        },
    }
    for item in (local, queue):
        own("kueue").validate(item)
    server.play("GET", "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues/team", (200, local))
    server.play("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/all", (200, queue))
    at = {"kubeconfig": backend.pool.setting("kubeconfig"), "queue": "team"}
    room = backend.capacity([a_pool("both", **at), a_pool("one", flavor="spot", **at)])
    assert (room["both"].total, room["both"].free, room["one"].total, room["one"].free) == (40, 16, 32, 8)
    assert "3 workloads wait" in room["one"].note
    for held_back in (
        {"spec": queue["spec"] | {"stopPolicy": "Hold"}},
        {"status": {"conditions": [condition("Active", "FlavorNotFound", "no flavor spot", "False")]}},
    ):
        server.play("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/all", (200, queue | held_back))
        found = backend.capacity([a_pool("one", flavor="spot", **at)])["one"]
        assert (found.free, found.down) == (0, 32) and ("Hold" in found.note or "FlavorNotFound" in found.note)
    with pytest.raises(BackendDown, match="404"):
        backend.capacity([a_pool("none", **at | {"queue": "absent"})])
    server.play("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/all", (200, {}))
    with pytest.raises(BackendDown, match="quotas"):
        backend.capacity([a_pool("one", **at)])


def test_what_a_list_lacks_is_gone_only_where_the_server_says_so_by_name(server, backend):
    identity = ":jobset.x-k8s.io/v1alpha2/default/jobsets/cw1-7-1"
    server.play(
        "GET", f"{SETS}/cw1-7-1", (404, failure(404, "NotFound", "the server could not find the requested resource"))
    )
    with pytest.raises(BackendDown, match="may be there all the same"):
        backend.status([("cw1-7-1", identity)])
    server.play(
        "GET",
        f"{SETS}/cw1-7-1",
        (
            404,
            failure(404, "NotFound", 'jobsets "cw1-7-1" not found')
            | {"details": {"name": "cw1-7-1", "kind": "jobsets"}},
        ),
    )
    assert backend.status([("cw1-7-1", identity), ("cw1-8-1", "")]) == []
    old = {
        "metadata": {"name": "cw1-9-1", "labels": {"chipwise-attempt": "cw1-9-1"}},
        "status": {"jobStatus": "RUNNING"},
    }
    server.play("GET", f"{RAYS}/cw1-9-1", (200, old))  # of a kind that the pool no longer makes
    (found,) = backend.status([("cw1-9-1", ":ray.io/v1/default/rayjobs/cw1-9-1")])
    assert (found.attempt, found.state) == ("cw1-9-1", RUNNING)


def test_an_answer_that_trickles_in_is_late(server, backend, monkeypatch):
    server.play("GET", JOBS, (200, [b'{"items": [', *[b" "] * 4000]))  # each wait is short, their sum is not
    with monkeypatch.context() as m, pytest.raises(BackendDown, match="no whole answer within 2 s"):
        m.setattr("chipwise.route.backends.kubernetes.api.WHOLE", 0.1)
        backend.list()
    server.play("GET", JOBS, NONE)
    assert backend.list() == []


def test_a_jobset_whose_pods_are_gone_still_says_whether_it_was_disrupted(server, backend):
    item = {"metadata": {"name": "cw1-7-1", "labels": {"chipwise-attempt": "cw1-7-1"}}, "spec": {}}
    for reason, state in (("FailJobSetFailurePolicyAction", LOST), ("ReachedMaxRestarts", FAILED)):
        failed = item | {"status": {"conditions": [condition("Failed", reason, "(first failed job: cw1-7-1-w-0)")]}}
        server.play("GET", SETS, (200, {"items": [failed], "metadata": {}}))
        (seen,) = backend.list()
        assert seen.state == state and reason in seen.reason


def test_an_attempt_that_was_given_up_is_not_submitted(server, backend, tmp_path):
    launch = a_launch(backend.pool, 1, folder=tmp_path / "attempt")
    revoke_claim(launch.folder, "router-2")
    assert backend.submit(launch).startswith(REVOKED) and posted(server) == []
    assert make("kubernetes/x", [backend.pool], tmp_path, "cw1").name == "kubernetes/x"
    with pytest.raises(UnknownName, match="did you mean queue"):
        make("kubernetes", [a_pool(queu="team")], tmp_path, "cw1")
    with pytest.raises(BackendRefused, match="not among the pools"):
        backend.submit(a_launch(a_pool("other", kubeconfig="elsewhere"), 1))
