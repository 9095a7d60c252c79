"""Rules and dashboards in a real Prometheus: over pages of every exporter, a real router and a job that runs."""

import json
import re
from collections import defaultdict

import pytest
from command import good, running
from observed_job import printed, running_job
from prometheus import listening, needed, prometheus

import chipwise as cw
from chipwise.observe.data_files import rows
from chipwise.observe.exporters import HISTOGRAM, exporters, mapping
from chipwise.observe.monitoring.dashboards import panels
from patience import until

LABELS = {
    "dcgm": 'gpu="0",UUID="GPU-1",Hostname="n1",modelName="NVIDIA H100 80GB HBM3"',
    "nvidia-gpu-exporter": 'uuid="GPU-2"',
    "amd": 'gpu_id="0",gpu_uuid="a-1",hostname="m1",card_model="MI300X"',
    "gke-tpu": 'make="cloud-tpu",accelerator_id="t1-0",model="tpu-v6e-slice",node="t1"',
    "chipwise": 'node="n2",device="GPU-5"',
    "vllm": 'model_name="m",engine="0"',
    "sglang": 'model_name="m"',
    "kueue": 'cluster_queue="q",flavor="h100",resource="nvidia.com/gpu",status="active",reason="Preempted"',
    "opentelemetry": 'host_name="o1",hw_id="GPU-9"',
    "ray": 'ip="10.0.0.7",GpuIndex="0"',
}
HISTOGRAMS = {row["series"] + part for row in rows("histograms.csv") for part in HISTOGRAM}
AMOUNTS = {"%": 91, "ratio": 0.91}


class Pages:
    """Pages of exporters: every metric of the data, of one device each; counters rise."""

    def __init__(self):
        self.sick = False
        self.asked = defaultdict(int)

    def answer(self, path, body):
        name = path.strip("/")
        self.asked[name] += 1
        rounds, lines = self.asked[name], []
        for metric, mapped in mapping().items():
            if mapped.exporter == name and mapped.series not in HISTOGRAMS:
                lines.append(f"{metric}{{{LABELS[name]}}} {self.amount(mapped, rounds):g}")
        for row in rows("histograms.csv"):
            if row["exporter"] == name:
                for le, share in (("0.05", 0.5), ("0.5", 0.9), ("+Inf", 1)):
                    lines.append(f'{row["metric"]}_bucket{{{LABELS[name]},le="{le}"}} {10 * share * rounds:g}')
        return "\n".join(lines) + "\n"

    def amount(self, mapped, rounds):
        if mapped.series == "device_last_xid":
            return 79 if self.sick else 0
        if mapped.series == "device_uncorrected_errors":
            return rounds
        if mapped.kind == "counter":
            return 100 * rounds / mapped.scale
        return {"ratio": 0.9, "W": 400, "bytes": 6e10, "°C": 70, "Hz": 1.7e9, "requests": 3}.get(
            mapped.unit, 1
        ) / mapped.scale


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A Prometheus over all that it is meant for, once it has recorded everything."""
    folder = tmp_path_factory.mktemp("monitoring")
    pages, told = Pages(), []
    (folder / "job").mkdir()
    job = running_job(folder / "job")
    job.output.write_text(printed(job.began, 250, seconds=6.0)[0])

    def hook(path, body):
        told.extend(json.loads(body)["alerts"])
        return ""

    router = (
        "router",
        "run",
        "--pools",
        "examples/pools/local.yaml",
        "--policy",
        "fastest",
        "--ledger",
        folder / "own.db",
    )
    jobs = ("observe", "jobs", "--ledger", job.ledger, "--interval", "1s")
    at = ("--metrics", "127.0.0.1:0")
    with (
        listening(pages.answer) as exporter,
        listening(hook) as webhook,
        running(*router, *at) as routing,
        running(*jobs, *at) as observing,
    ):
        targets = {name: (exporter, f"/{name}") for name in exporters()}
        targets["router"] = (f"127.0.0.1:{port_of(routing.stdout)}", "/metrics")
        targets["jobs"] = (f"127.0.0.1:{port_of(observing.stderr)}", "/metrics")
        with prometheus(folder, targets, cw.alert_rules().text, webhook) as server:
            server.pages, server.told = pages, told
            until(lambda: len(server.query("up == 1")) == len(targets), lambda: str(server.query("up == 0")))
            yield server


def port_of(stream):
    """The port that a command says it listens at."""
    for line in stream:
        if match := re.search(r"port (\d+), /metrics", line):
            return match[1]
    raise AssertionError("no port is told")


@needed
def test_every_rule_is_evaluated_and_every_exporter_recorded(site):
    expected = {
        (f"chipwise:{mapped.series}", mapped.exporter)
        for mapped in mapping().values()
        if mapped.series not in HISTOGRAMS
    }
    found = until(lambda: (seen := recorded(site)) >= expected and seen)
    assert {exporter for _, exporter in found} == set(exporters())
    groups = site.get("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}


def recorded(site):
    series = site.query('{__name__=~"chipwise:.+", exporter!=""}')
    return {(one["metric"]["__name__"], one["metric"]["exporter"]) for one in series}


@needed
def test_one_set_of_series_has_hosts_and_devices_and_si_units(site):
    busy = until(lambda: len(seen := site.query("chipwise:device_busy")) == 7 and seen)
    assert {float(one["value"][1]) for one in busy} == {0.9}
    named = {one["metric"]["exporter"]: (one["metric"]["host"], one["metric"]["device"]) for one in busy}
    assert named == {
        "dcgm": ("n1", "GPU-1"),
        "nvidia-gpu-exporter": ("127.0.0.1", "GPU-2"),
        "amd": ("m1", "a-1"),
        "gke-tpu": ("t1", "t1-0"),
        "ray": ("10.0.0.7", "0"),
        "chipwise": ("n2", "GPU-5"),
        "opentelemetry": ("o1", "GPU-9"),
    }
    share = until(lambda: len(seen := site.query("chipwise:device_memory_share")) >= 6 and seen)
    assert {one["metric"]["exporter"]: float(one["value"][1]) for one in share} == {
        "amd": 0.5,
        "dcgm": 0.5,
        "ray": 0.5,
        "gke-tpu": 1.0,
        "chipwise": 1.0,
        "opentelemetry": 1.0,
    }
    ratio = site.query("chipwise_job_step_ratio")
    assert float(ratio[0]["value"][1]) == pytest.approx(1.2, rel=0.01) and ratio[0]["metric"]["name"] == "train"


@needed
def test_an_xid_reaches_people_with_what_to_do(site):
    assert not [alert for alert in site.told if alert["labels"]["alertname"] == "Xid"]
    site.pages.sick = True
    alert = until(lambda: next((one for one in site.told if one["labels"]["alertname"] == "Xid"), None))
    assert {key: alert["labels"][key] for key in ("xid", "severity", "fault", "host", "device")} == {
        "xid": "79", "severity": "critical", "fault": "bus", "host": "n1", "device": "GPU-1",
    }  # fmt: skip
    assert alert["annotations"]["summary"] == "Xid 79 of GPU-1 of n1: the GPU has fallen off the bus"
    assert alert["annotations"]["description"] == "drain the node and reset it cold"


@needed
def test_every_panel_shows_something(site):
    site.pages.sick = True
    electricity = cw.dashboards(energy_price=0.1).documents["cost"]["templating"]["list"]
    figures = {variable["name"]: variable["query"] for variable in electricity if variable["type"] == "textbox"}
    assert figures["usd_per_kwh"] == "0.1" and float(figures["pue"]) >= 1
    for panel in panels():
        expression = re.sub(r"\$(\w+)", lambda match: figures.get(match[1], ".*"), panel.expression)
        values = until(lambda e=expression: site.query(e), f"{panel.dashboard}: {panel.title}: {expression}")
        wanted = set(re.findall(r"{{(\w+)}}", panel.legend))
        assert wanted - set(values[0]["metric"]) <= {"fault"}, panel  # a label without a value is none


@needed
def test_choices_of_the_dashboards_have_values(site):
    for document in cw.dashboards().documents.values():
        for variable in document["templating"]["list"]:
            if variable["type"] == "query":
                series, label = re.fullmatch(r"label_values\((\S+), (\w+)\)", variable["query"]["query"]).groups()
                assert site.get(f"label/{label}/values", **{"match[]": series}), variable


@pytest.mark.filterwarnings("ignore:Prefer using dashboardv2")  # which Grafana 10 to 12 can't read
def test_grafana_reads_the_files(tmp_path):
    from grafana_foundation_sdk.models.dashboard import Dashboard

    good("observe", "dashboards", "--to", tmp_path / "new" / "folder")
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert [file.name for file in files] == [
        f"chipwise-{name}.json" for name in ("cost", "fleet", "job", "pool", "serving")
    ]
    shown = 0
    for file in files:
        document = json.loads(file.read_text(encoding="utf-8"))
        dashboard = Dashboard.from_json(document)
        own = [panel for panel in dashboard.panels if panel.type_val != "row"]
        assert len(dashboard.panels) == len(document["panels"])
        assert all(panel.targets and panel.field_config.defaults.unit for panel in own)
        boxes = [panel["gridPos"] for panel in document["panels"]]
        cells = [
            (x, y)
            for box in boxes
            for x in range(box["x"], box["x"] + box["w"])
            for y in range(box["y"], box["y"] + box["h"])
        ]
        assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24  # none lies over another
        shown += len(own)
    assert shown == len(panels())
