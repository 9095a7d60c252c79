"""What a real Prometheus has, pulled by its query API: the same series, absence left absent, in parts, with a token."""

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from command import chipwise_here
from prometheus import listening, needed, prometheus

import chipwise as cw
from chipwise.observe.scrape import fetch
from chipwise.observe.scrape import prometheus as module
from chipwise.observe.store.schema import SAMPLES
from chipwise.observe.store.store import open_store
from patience import until

TOKEN = "s3cret-of-the-test"
NOW = int(time.time())
PAGES = {
    "dcgm": """
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",Hostname="n1",modelName="NVIDIA H100",pod="train-0"} 612.5
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",Hostname="n1",modelName="NVIDIA H100",pod="train-0"} 9223372036854775794
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1",Hostname="n1",modelName="NVIDIA H100",pod="train-0"} 79
other_metric 7
""",
    "amd": """
amd_gpu_package_power{gpu_id="0",gpu_uuid="a-1",hostname="m1",card_model="MI300X",job_id="17"} 700
amd_gpu_energy_consumed{gpu_id="0",gpu_uuid="a-1",hostname="m1",card_model="MI300X",job_id="17"} 5e9
amd_gpu_used_vram{gpu_id="0",gpu_uuid="a-1",hostname="m1",card_model="MI300X",job_id="17"} 1024
amd_gpu_prof_tensor_active_percent{gpu_id="0",gpu_uuid="a-1",hostname="m1",card_model="MI300X",job_id="17"} 45
""",
    "kueue": """
kueue_pending_workloads{cluster_queue="team-a",status="active",replica_role="leader"} 4
kueue_pending_workloads{cluster_queue="team-a",status="inadmissible",replica_role="leader"} 2
kueue_cluster_queue_resource_usage{cluster_queue="team-a",flavor="h100",resource="nvidia.com/gpu"} 48
kueue_evicted_workloads_total{cluster_queue="team-a",reason="Preempted"} 3
kueue_admission_wait_time_seconds_sum{cluster_queue="team-a"} 120.5
""",
}


@contextmanager
def behind_a_token(url):
    """A real Prometheus behind what asks for a bearer token, as hosted ones are."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.reply(401, b"who are you?")
                return
            request = Request(url + self.path, body, {"Content-Type": self.headers["Content-Type"]})
            try:
                with urlopen(request, timeout=60) as answer:
                    self.reply(200, answer.read())
            except HTTPError as error:
                self.reply(error.code, error.read())

        def reply(self, status, page):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A Prometheus that scrapes three exporters every second; AMD's falls silent after a while."""
    silent = threading.Event()

    def answer(path, body):
        name = path.strip("/")
        if name == "amd" and silent.is_set():
            return "# nothing to tell\n"
        return PAGES[name]

    with listening(answer) as exporter:
        targets = {name: (exporter, f"/{name}") for name in PAGES}
        with prometheus(tmp_path_factory.mktemp("prometheus"), targets, "groups: []\n", "127.0.0.1:9") as server:
            until(lambda: len(server.query("up == 1")) == 3, lambda: str(server.query("up")))
            until(lambda: server.query("count_over_time(amd_gpu_package_power[1m]) > 3"))
            silent.set()
            until(lambda: not server.query("amd_gpu_package_power"))
            silenced = time.time()
            until(lambda: time.time() > silenced + 3)
            yield server


@needed
@pytest.mark.service
def test_a_prometheus_is_read_as_its_exporters_are(site, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SETTLE_S", 0)
    path = str(tmp_path / "telemetry.db")
    answer = cw.scrape(prometheus=site.url, store=path, since="2min", step="1s")
    assert answer.pages[0].problem == "" and {one.series for one in answer.pages[0].samples} >= {"device_power"}
    with open_store(path) as store:
        newest = {(one.host, one.device, one.series, one.labels.get("status")): one for one in store.newest(0)}
        power = newest["n1", "GPU-1", "device_power", None]
        assert power.value == 612.5 and power.labels["pod"] == "train-0"
        assert newest["n1", "GPU-1", "device_last_xid", None].value == 79
        assert ("n1", "GPU-1", "device_clock", None) not in newest  # blank is absent
        assert newest["m1", "a-1", "device_energy", None].value == 5000.0
        assert newest["m1", "a-1", "device_memory_used", None].value == 2**30
        assert newest["m1", "a-1", "device_tensor_active", None].value == pytest.approx(0.45)
        queues = {
            status: newest["127.0.0.1", "team-a", "queue_pending", status].value
            for status in ("active", "inadmissible")
        }
        assert queues == {"active": 4, "inadmissible": 2}
        assert newest["127.0.0.1", "team-a", "queue_resource_used", None].labels["flavor"] == "h100"
        assert newest["127.0.0.1", "team-a", "queue_evicted", None].labels["reason"] == "Preempted"
        alive, silent = (
            [value.at for value in store.values("device_power", host, device, NOW - 900, 2**40)]
            for host, device in (("n1", "GPU-1"), ("m1", "a-1"))
        )
        assert silent and silent[-1] < alive[-1] - 1  # not carried on for the five minutes that Prometheus looks back
        assert all(value.mean == 700 for value in store.values("device_power", "m1", "a-1", NOW - 900, 2**40))
    before = len(alive)
    cw.scrape(prometheus=site.url, store=path, since="2min", step="1s")  # again: nothing twice
    with open_store(path) as store:
        points = store.points("n1", 0, 2**40, "GPU-1", SAMPLES)
        moments = points.at[points.series == points.series[0]]
        assert len(set(moments)) == len(moments) >= before


@needed
@pytest.mark.service
def test_what_is_too_much_is_asked_in_parts(site, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SETTLE_S", 0)
    monkeypatch.setattr(fetch, "MAX_PAGE_BYTES", 1500)
    path = str(tmp_path / "telemetry.db")
    answer = cw.scrape(prometheus=site.url, store=path, since="20s", step="2s", match='job="dcgm"')
    assert answer.pages[0].problem == ""
    with open_store(path) as store:
        assert {one.series for one in store.newest(0)} == {"device_power", "device_last_xid"}
        assert len(store.values("device_power", "n1", "GPU-1", NOW - 900, 2**40)) >= 3
    monkeypatch.setattr(fetch, "MAX_PAGE_BYTES", 40)
    with pytest.raises(cw.Refusal, match="larger than"):
        cw.scrape(prometheus=site.url, store=path, since="20s", step="2s")


@needed
@pytest.mark.service
def test_a_token_comes_from_a_file_or_a_variable(site, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SETTLE_S", 0)
    store = str(tmp_path / "telemetry.db")
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    with behind_a_token(site.url) as url:
        for reference in ({"token_file": file}, {"token_env": "PROM_TOKEN"}):
            assert cw.scrape(prometheus=url, store=store, since="10s", step="1s", **reference).pages[0].problem == ""
        with pytest.raises(cw.Refusal, match="401"):
            cw.scrape(prometheus=url, store=store, since="10s", step="1s")
        done = chipwise_here(
            "observe", "scrape", "--prometheus", url, "--token-file", file, "--since", "30s", "--step", "1s",
            "--rounds", "1", "--store", store,
        )  # fmt: skip
        assert done.returncode == 0 and "device" in done.stdout and TOKEN not in done.stdout + done.stderr


@needed
@pytest.mark.service
def test_what_prometheus_refuses_is_told(site, tmp_path):
    with pytest.raises(cw.Refusal, match="parse error"):
        cw.scrape(prometheus=site.url, store=str(tmp_path / "t.db"), since="1h", match="cluster=")


def test_wrong_words_are_refused(tmp_path, monkeypatch):
    store = str(tmp_path / "t.db")
    for arguments, words in (
        ({"prometheus": "ftp://x"}, "prometheus"),
        ({"prometheus": "http://ann:pw@x:9090"}, "prometheus"),
        ({"prometheus": "p:9090", "endpoints": ["x:9400"]}, "combine"),
        ({"endpoints": ["x:9400"], "since": "1h"}, "since"),
        ({"prometheus": "p:9090", "step": "0.5s"}, "step"),
        ({"prometheus": "p:9090", "token_env": "NO_SUCH_VARIABLE"}, "token_env"),
        ({"prometheus": "p:9090", "token_env": "X", "token_file": "y"}, "combine"),
        ({}, "endpoints"),
    ):
        with pytest.raises(cw.InputError, match=words):
            cw.scrape(store=store, **arguments)
    with pytest.raises(cw.Refusal, match="no endpoint answers"):
        cw.scrape(prometheus="http://127.0.0.1:9", store=store)
    with listening(lambda path, body: "<html>") as address, pytest.raises(cw.Refusal, match="query API"):
        cw.scrape(prometheus=address, store=store)
