"""Each fault from the line or the score that a stand-in device gives, through agent and store, to what is done about it.

The kernel's log is a file, a TPU is what libtpu's monitoring would say; all else is as it runs.
"""

import time
from dataclasses import replace

import pytest
from ledger_cases import POOLS, start, submission
from observed_job import printed, running_job

import chipwise as cw
from chipwise.observe.agent.agent import Agent
from chipwise.observe.agent.kernel_log import KernelLog
from chipwise.observe.agent.tpu import LINKS, measurements
from chipwise.observe.faults import xids
from chipwise.observe.health.playbook import advice
from chipwise.observe.health.records import Condition
from chipwise.observe.nodes.look import drained, nodes_of
from chipwise.observe.nodes.records import Step, Verdict
from chipwise.observe.records import FaultClass, Severity
from chipwise.observe.store.store import open_store
from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import open_ledger
from patience import until

GPU = "0000:3b:00"
PEER = "peer"


class Tpu:
    """A chip of which libtpu says this."""

    name, every_s = "tpu", 0.05

    def __init__(self, data):
        self.data = data

    def read(self):
        return measurements(self.data)

    def close(self):
        pass


@pytest.fixture
def fleet(tmp_path):
    """A ledger with a job that runs, a store, and the moment at which everything is."""
    now = int(time.time())
    with open_ledger(str(tmp_path / "ledger.db")) as ledger, open_store(str(tmp_path / "telemetry.db")) as store:
        ledger.settle({"local": ("mark", str(tmp_path))}, "r1", "host", 1, "fastest", now, 30.0)
        (job,) = ledger.submit([submission("innocent")], now)
        (row,) = ledger.decide("r1", "fastest", [start(job)], now, 30.0, POOLS)
        ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=now), now)
        yield ledger, store, now, row.id


def acted(fleet, hosts):
    """Nodes by the store, after whoever is sick was drained: each in a pool of its own beside a healthy peer."""
    ledger, store, now, attempt = fleet
    names = {f"pool {host}": [host, PEER] for host in hosts}
    nodes = [replace(node, pools=[f"pool {node.host}"], name=node.host) for node in nodes_of(store, now - 3600)]
    done = {node.host: node for node in drained(nodes, names, ledger, now)}
    (innocent,) = [row for row in ledger.attempts() if row.id == attempt]
    assert (innocent.state, innocent.stop) == ("running", "")
    out_of_use = {(row.pool, row.node): row.reason for row in ledger.nodes() if row.drained}
    assert all(node != PEER for _, node in out_of_use)
    return done, out_of_use


def test_every_xid_drains_its_node_or_leaves_it_as_its_meaning_says(fleet, tmp_path):
    _, store, now, _ = fleet
    logs, agents = {}, {}
    for number in xids():
        logs[number] = tmp_path / f"kmsg-{number}"
        logs[number].write_text(f"4,1,1,-;NVRM: Xid ({GPU}): 79, of before the agent\n")
        agents[number] = Agent([KernelLog(logs[number])], [], 0.05, f"node-{number}")
    try:
        for agent in agents.values():
            store.write(agent.look()[0], now - 60)
        for number, path in logs.items():
            with path.open("a") as file:
                file.write(f"4,2,2,-;NVRM: Xid (PCI:{GPU}): {number}, pid=1, as the driver writes it\n")
        for agent in agents.values():
            until(lambda agent=agent: any(s.series == "host_faults" for s in agent.look()[0]))
            store.write(agent.look()[0], now)
    finally:
        for agent in agents.values():
            agent.close()
    done, reasons = acted(fleet, [f"node-{number}" for number in xids()])
    for number, xid in xids().items():
        node, place = done[f"node-{number}"], (f"pool node-{number}", f"node-{number}")
        (symptom,) = node.symptoms
        assert (symptom.xid, symptom.fault, symptom.times, symptom.action) == (number, xid.kind, 1, xid.action)
        if xid.severity is Severity.CRITICAL:
            assert node.verdict is Verdict.SICK and node.steps == [(place[0], Step.DRAINED)]
            assert f"Xid {number}: {xid.meaning}" in reasons[place] and reasons[place].endswith(xid.action)
        else:
            assert node.verdict is Verdict.SUSPECT and not node.steps and place not in reasons
    assert {45, 163, 13, 31, 43} <= {number for number in xids() if not done[f"node-{number}"].steps}


@pytest.mark.parametrize(
    ("data", "lasts_s", "verdict", "words"),
    [
        ({LINKS: ["tray1.chip3.ici0.int: 10"]}, 90, "sick", "a link that is unusable"),
        ({LINKS: ["tray1.chip3.ici0.int: 10"]}, 0, "suspect", ""),  # one noisy sample drains nothing
        ({LINKS: ["tray1.chip3.ici0.int: 7"]}, 90, "suspect", ""),
        ({LINKS: ["tray1.chip3.ici0.int: 0", "tray1.chip3.ici1.int: 3"]}, 90, "well", ""),
        ({"tpu_throttle_score": ["0", "5"]}, 400, "suspect", ""),
        ({"tpu_throttle_score": ["0", "0"]}, 400, "well", ""),
    ],
)
def test_scores_of_tpus_are_acted_on_once_they_hold(fleet, data, lasts_s, verdict, words):
    _, store, now, _ = fleet
    well = {LINKS: ["tray1.chip3.ici0.int: 0"], "tpu_throttle_score": ["0", "0"]}
    tpu = Tpu(well)
    with Agent([tpu], [], 0.05, "tpu-1") as agent:
        store.write(agent.look()[0], now - lasts_s - 60)
        tpu.data = data
        time.sleep(0.2)  # of the agent's own reading
        wanted = {(m.device, m.series, m.value) for m in measurements(data)}
        until(lambda: wanted <= {(s.device, s.series, s.value) for s in agent.look()[0]})
        for back in range(lasts_s, -1, -30):
            store.write(agent.look()[0], now - back)
    done, reasons = acted(fleet, ["tpu-1"])
    node = done["tpu-1"]
    assert node.verdict == verdict and bool(node.steps) == (verdict == "sick")
    assert list(reasons) == ([("pool tpu-1", "tpu-1")] if verdict == "sick" else [])
    if words:
        assert (
            words in reasons["pool tpu-1", "tpu-1"]
            and "reset the device and its peers" in reasons["pool tpu-1", "tpu-1"]
        )
    if "tpu_throttle_score" in data and verdict == "suspect":
        assert node.symptoms[0].condition is Condition.THROTTLED and "cooling" in node.symptoms[0].action


def test_a_program_that_the_kernel_killed_is_no_fault_of_its_node(fleet, tmp_path):
    _, store, now, _ = fleet
    log = tmp_path / "kmsg"
    log.write_text("")
    with Agent([KernelLog(log)], [], 0.05, "node-1") as agent:
        store.write(agent.look()[0], now - 60)
        log.write_text("3,5,5,-;Out of memory: Killed process 41 (python)\n")
        until(lambda: any(s.series == "host_faults" for s in agent.look()[0]))
        store.write(agent.look()[0], now)
    done, reasons = acted(fleet, ["node-1"])
    (symptom,) = done["node-1"].symptoms
    assert symptom.fault is FaultClass.OOM and not done["node-1"].steps and not reasons


ENDS = {
    FaultClass.OOM: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    FaultClass.PREEMPTED: "slurmstepd: error: *** JOB 4711 ON gpu-17 CANCELLED AT 2026-11-02T09:13:19 DUE TO PREEMPTION ***",
    FaultClass.MEMORY: "kernel: NVRM: Xid (PCI:0000:9b:00): 95, pid=48211, name=python3, Uncontained: FBHUB.",
    FaultClass.LINK: "kernel: NVRM: Xid (PCI:0000:9b:00): 74, pid=1, NVLink: fatal error detected on link 6",
}


@pytest.mark.parametrize("kind", ENDS)
def test_what_ended_a_job_is_told_of_that_job_alone(tmp_path, kind):
    for folder in ("sick", "innocent"):
        (tmp_path / folder).mkdir()
    sick, innocent = running_job(tmp_path / "sick"), running_job(tmp_path / "innocent")
    sick.output.write_text(printed(sick.began, 298)[0] + ENDS[kind] + "\n")
    innocent.output.write_text(printed(innocent.began, 298)[0])
    (finding,) = cw.observe_job(sick.job, sick.ledger).observation.findings
    assert finding.fault is kind and finding.evidence.endswith(ENDS[kind])
    if finding.xid is None:
        assert (finding.severity, finding.action) == (
            advice(Condition.FAULT, kind).severity,
            advice(Condition.FAULT, kind).action,
        )
    assert not cw.observe_job(innocent.job, innocent.ledger).observation.findings


def test_a_job_that_hangs_is_told_and_the_one_beside_it_is_not(tmp_path):
    for folder in ("sick", "innocent"):
        (tmp_path / folder).mkdir()
    sick, innocent = running_job(tmp_path / "sick"), running_job(tmp_path / "innocent")
    sick.output.write_text(printed(sick.began, 100)[0])
    innocent.output.write_text(printed(innocent.began, 298)[0])
    (finding,) = cw.observe_job(sick.job, sick.ledger).observation.findings
    assert finding.condition is Condition.HUNG and finding.severity is Severity.CRITICAL
    assert "stop it and start it again from its last checkpoint" in finding.action
    assert not cw.observe_job(innocent.job, innocent.ledger).observation.findings
