"""The agent: this machine's own host, kernel log and processes; stand-ins only where there is no device or no cloud."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.bench.reading import Unreadable
from chipwise.errors import InputError, Refusal
from chipwise.observe.agent.agent import KINDS, Agent, Watch, keep
from chipwise.observe.agent.amd import AmdFiles, AmdSmi, amd_gpus
from chipwise.observe.agent.child import Child
from chipwise.observe.agent.doctor import energy_problem, examine
from chipwise.observe.agent.host import HostLoad
from chipwise.observe.agent.instrument import Measurement
from chipwise.observe.agent.kernel_log import KernelLog
from chipwise.observe.agent.notices import CloudNotices
from chipwise.observe.agent.nvidia import NvidiaGpus
from chipwise.observe.agent.page import page
from chipwise.observe.agent.processes import labels_of_process
from chipwise.observe.agent.tpu import LINKS, METRICS, TpuChips, measurements
from chipwise.observe.exporters import Sample, samples_of
from chipwise.observe.store.store import open_store
from patience import until

POD = "0d9f6a3e-5f1c-4f0e-9c55-0f2b7a6e1c11"


def values(instrument):
    return {(m.device, m.series): m.value for m in instrument.read()}


# --- the host


def test_this_machine_is_read():
    host = values(HostLoad())
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert host["", "host_memory_total"] == pytest.approx(total, rel=0.02)
    assert 0 < host["", "host_memory_used"] < host["", "host_memory_total"]
    assert host["", "host_disk_free"] == pytest.approx(os.statvfs("/").f_bavail * os.statvfs("/").f_frsize, rel=0.2)


def test_disks_and_links_count_once(tmp_path):
    files = {
        "proc/stat": "cpu 10 0 10 80 0 0 0 0 0 0\n",
        "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 400 kB\n",
        "proc/diskstats": " 259 0 nvme0n1 1 0 100 0 1 0 50 0 0 0 0\n 259 1 nvme0n1p1 1 0 100 0 1 0 50 0 0 0 0\n"
        " 7 0 loop0 1 0 9 0 1 0 9 0 0 0 0\n",
        "proc/net/dev": "Inter-| Receive\n face |bytes\n lo: 7 0 0 0 0 0 0 0 7 0\n eth0: 30 0 0 0 0 0 0 0 40 0\n"
        "eth1:1 0 0 0 0 0 0 0 2 0\n",
        "sys/block/nvme0n1/size": "1",
        "sys/block/loop0/size": "1",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = {series: value for (_, series), value in values(HostLoad(tmp_path)).items()}
    assert (host["host_disk_read"], host["host_disk_written"]) == (51200.0, 25600.0)
    assert (host["host_network_received"], host["host_network_sent"]) == (31.0, 42.0)
    assert (host["host_memory_used"], host["host_memory_total"]) == (614400.0, 1024000.0)
    (tmp_path / "sys/class/net/eth0/device").mkdir(parents=True)  # a card: the other is a bridge over it
    host = {series: value for (_, series), value in values(HostLoad(tmp_path)).items()}
    assert (host["host_network_received"], host["host_network_sent"]) == (30.0, 40.0)
    (tmp_path / "proc/net/dev").unlink()
    assert "host_network_sent" not in {m.series for m in HostLoad(tmp_path).read()}


# --- whose a process is


def test_a_process_is_its_attempts(tmp_path):
    program = [sys.executable, "-c", "print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, env={"CHIPWISE_ATTEMPT": "7-1", "SLURM_JOB_ID": "31"}, **pipes) as process:
        process.stdout.readline()
        assert labels_of_process(process.pid) == (("attempt", "7-1"), ("job_id", "31"))
        process.stdin.close()
    assert labels_of_process(process.pid) == ()


def test_a_pod_is_told_by_its_cgroup_and_what_is_no_word_is_not(tmp_path):
    (tmp_path / "9").mkdir()
    (tmp_path / "9/stat").write_text("9 (a) b) S " + " ".join(["0"] * 18) + " 5150 0\n")
    (tmp_path / "9/environ").write_bytes(b"CHIPWISE_ATTEMPT=\x1b[31m\0RAY_JOB_ID=01000000\0broken")
    (tmp_path / "9/cgroup").write_text(f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/x\n")
    assert labels_of_process(9, tmp_path) == (("job_id", "01000000"), ("pod_uid", POD))


# --- NVIDIA GPUs


class Node(types.SimpleNamespace):
    """NVML on a node of two GPUs: the first without ECC, the second lost when it is told to be."""

    class NVMLError(Exception):
        def __init__(self, value=3):
            super().__init__(f"error {value}")
            self.value = value

    NVML_TEMPERATURE_GPU = NVML_CLOCK_SM = NVML_CLOCK_MEM = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, NVML_ERROR_GPU_IS_LOST = 1, 0, 15

    def __init__(self):
        super().__init__(lost=False, users={0: [11], 1: [11, 12]}, inits=0)

    def nvmlInit(self):
        self.inits += 1

    def nvmlShutdown(self):
        self.inits -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return int(uuid[-1])

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, gpu):
        return [types.SimpleNamespace(pid=pid) for pid in self.users[gpu]]

    def __getattr__(self, name):
        answers = {
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu}",
            "nvmlDeviceGetName": lambda gpu: b"NVIDIA H100",
            "nvmlDeviceGetPciInfo": lambda gpu: types.SimpleNamespace(busId=f"0000000{gpu}:3B:00.0"),
            "nvmlDeviceGetPowerUsage": lambda gpu: 250_000,
            "nvmlDeviceGetTotalEnergyConsumption": lambda gpu: 5000,
            "nvmlDeviceGetUtilizationRates": lambda gpu: types.SimpleNamespace(gpu=75),
            "nvmlDeviceGetMemoryInfo": lambda gpu: types.SimpleNamespace(used=2**30, total=2**31),
            "nvmlDeviceGetTemperature": lambda gpu, sensor: 61,
            "nvmlDeviceGetClockInfo": lambda gpu, clock: 1410,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda gpu: 0x40 if gpu else 0x4,
            "nvmlDeviceGetTotalEccErrors": lambda gpu, kind, counter: {1: 2}[gpu],
        }

        def call(*arguments):
            if self.lost and arguments == (1,):
                raise self.NVMLError(15)
            try:
                return answers[name](*arguments)
            except KeyError:
                raise self.NVMLError from None

        return call


def test_every_gpu_of_a_node_is_read_with_whose_it_is():
    node = Node()
    gpus = NvidiaGpus(node, lambda pid: (("attempt", f"{pid}-1"),))
    read = gpus.read()
    first = {m.series: m for m in read if m.device == "GPU-0"}
    second = {m.series: m for m in read if m.device == "GPU-1"}
    assert {series: m.value for series, m in first.items()} == {
        "device_power": 250.0,
        "device_energy": 5.0,
        "device_busy": 0.75,
        "device_memory_used": 2.0**30,
        "device_memory_total": 2.0**31,
        "device_temperature": 61.0,
        "device_clock": 1.41e9,
        "device_throttled_by_heat": 0.0,  # a power cap is no heat
        "device_lost": 0.0,
    }
    assert (second["device_throttled_by_heat"].value, second["device_uncorrected_errors"].value) == (1.0, 2.0)
    assert first["device_power"].labels == (
        ("gpu", "0"),
        ("model", "NVIDIA H100"),
        ("pci", "00000000:3b:00.0"),
        ("attempt", "11-1"),
    )
    assert ("attempt", "11-1") not in second["device_power"].labels  # two share it: nobody's
    gpus.close()
    assert node.inits == 0


def test_the_counter_of_energy_is_not_read_in_every_look():
    node, calls = Node(), []
    node.nvmlDeviceGetTotalEnergyConsumption = lambda gpu: calls.append(gpu) or 5000
    gpus = NvidiaGpus(node, lambda pid: ())
    assert [values(gpus)["GPU-1", "device_energy"] for _ in range(3)] == [5.0] * 3 and calls == [0, 1]


def test_a_lost_gpu_says_so_and_the_others_go_on():
    node = Node()
    gpus = NvidiaGpus(node, lambda pid: ())
    node.lost = True
    read = values(gpus)
    assert read["GPU-1", "device_lost"] == 1.0 and ("GPU-1", "device_power") not in read
    assert read["GPU-0", "device_lost"] == 0.0 and read["GPU-0", "device_power"] == 250.0


def test_the_real_library_is_asked_and_says_why_it_can_t():
    pytest.importorskip("pynvml")
    try:
        assert NvidiaGpus().read()
    except Unreadable as reason:
        assert str(reason).startswith(("no NVML: ", "NVML counts no GPU"))


def test_a_run_on_an_h200_has_the_energy_that_its_counter_says(tmp_path):
    """What `benchmarks/agent.py --record` kept beside bursts of products on an H200, driver 580.159, 2026-11-19."""
    with Path(__file__).with_name("h200_run.csv").open() as file:
        rows = [{name: float(text) for name, text in row.items() if text} for row in csv.DictReader(file)]
    start, labels = 1_800_000_000, (("model", "NVIDIA H200"),)
    with open_store(str(tmp_path / "telemetry.db")) as store:
        for row in rows:
            at = start + int(row.pop("second"))
            store.write([Sample(series, "n1", "GPU-0", labels, value) for series, value in row.items()], at)
        power, counter = (store.values(f"device_{name}", "n1", "GPU-0", start, at + 1) for name in ("power", "energy"))
    assert len(power) == len(rows) > 100
    renewed = [two for one, two in pairwise(counter) if two.mean != one.mean]
    within = [one for one in power if renewed[0].at <= one.at <= renewed[-1].at]
    joules = sum((one.mean + two.mean) / 2 * (two.at - one.at) for one, two in pairwise(within))
    assert joules == pytest.approx(renewed[-1].mean - renewed[0].mean, rel=0.02)
    assert max(one.mean for one in power) > 2 * min(one.mean for one in power)  # it did not stand still


# --- TPUs, in a process of their own


def child(program, limit_s=60.0, again_s=0.0):
    return Child((sys.executable, "-c", program), limit_s, again_s)


def test_a_child_answers_line_by_line():
    asked = child("import sys\nfor n, _ in enumerate(sys.stdin): print(n, flush=True)")
    assert [asked.ask(), asked.ask()] == [b"0\n", b"1\n"]
    asked.close()


@pytest.mark.parametrize(
    "program, limit_s, reason",
    [
        ("import os; os.abort()", 60.0, "it ended by signal 6"),
        ("raise SystemExit(3)", 60.0, "it ended with status 3"),
        ("import time; time.sleep(600)", 0.3, r"no answer within 0\.3 s"),
        ("while True: print('x' * 65536, end='')", 60.0, "an answer without an end"),
    ],
)
def test_a_child_that_fails_is_a_reason_and_leaves_nothing(program, limit_s, reason):
    failing = child(program, limit_s)
    for _ in range(2):  # and is tried again
        with pytest.raises(Unreadable, match=reason):
            failing.ask()
        assert failing._process is None


def test_a_child_that_died_is_not_started_again_at_once():
    dying = child("raise SystemExit(1)", again_s=3600.0)
    with pytest.raises(Unreadable, match="status 1"):
        dying.ask()
    with pytest.raises(Unreadable, match="status 1; it is tried again in"):
        dying.ask()


def test_a_child_that_hung_is_told_as_that_until_it_is_tried_again():
    hanging = child("import time; time.sleep(60)", limit_s=0.2, again_s=3600.0)
    with pytest.raises(Unreadable, match=r"^no answer within 0\.2 s$"):
        hanging.ask()
    with pytest.raises(Unreadable, match=r"no answer within 0\.2 s; it is tried again in"):
        hanging.ask()


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed: x86_64 alone has it")
def test_libtpu_knows_the_metrics_that_are_asked_for():
    program = "from libtpu.sdk import tpumonitoring as t; print(*t.list_supported_metrics())"
    names = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name, _, _ in METRICS} | {LINKS} <= set(names)


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed: x86_64 alone has it")
def test_libtpu_without_a_tpu_does_not_end_the_agent():
    chips = TpuChips((sys.executable, "-m", "chipwise.observe.agent.tpu_child", METRICS[0][0]), limit_s=3.0)
    try:
        assert all(m.series == METRICS[0][1] for m in chips.read())
    except Unreadable as reason:
        assert str(reason).startswith(("it ended", "no answer"))
    chips.close()


def test_a_node_without_a_tpu_starts_nothing(tmp_path):
    with pytest.raises(Unreadable, match="no TPU"):
        TpuChips(dev=tmp_path)


def test_chips_and_links_are_measured_in_si_units():
    data = {
        "duty_cycle_pct": ["50", "n/a"],
        "hbm_capacity_usage": ["1024", "2048"],
        "tpu_throttle_score": ["0", "3"],
        LINKS: ["tray1.chip3.ici0.int: 7", "odd"],
    }
    read = {(m.device, m.series): m.value for m in measurements(data)}
    assert read == {
        ("0", "device_busy"): 0.5,
        ("0", "device_memory_used"): 1024.0,
        ("1", "device_memory_used"): 2048.0,
        ("0", "device_throttle_share"): 0.0,
        ("1", "device_throttle_share"): pytest.approx(0.3),
        ("", "device_link_health"): 7.0,
    }


# --- the kernel's log


def test_faults_in_the_kernels_log_are_counted(tmp_path):
    log = tmp_path / "kmsg"
    log.write_text("4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, of before\n")
    kernel = KernelLog(log)
    assert kernel.read() == []
    with log.open("a") as file:
        file.write("4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n")
        file.write(" SUBSYSTEM=pci\n")
        file.write("6,3,3,-;eth0: link becomes ready\n")
        file.write(
            "4,4,4,-;NVRM: Xid (PCI:0000:3b:00): 79, again\n3,5,5,-;Out of memory: Killed process 41 (python)\n4,6,"
        )
    kernel.read()
    counted = {(m.device, m.labels): m.value for m in kernel.read()}
    assert counted == {
        ("0000:3b:00", (("fault", "bus"), ("xid", "79"))): 2.0,
        ("", (("fault", "oom"),)): 1.0,
    }
    with log.open("a") as file:
        file.write("6,-;NVRM: Xid (PCI:0000:af:00): 48, DBE\n")  # the rest of a line that was half written
    assert ("0000:af:00", (("fault", "memory"), ("xid", "48"))) in {(m.device, m.labels) for m in kernel.read()}
    kernel.close()


def test_the_real_kernels_log_is_read():
    try:
        kernel = KernelLog()
        file = os.open("/dev/kmsg", os.O_WRONLY)
    except (Unreadable, OSError) as reason:
        pytest.skip(f"this machine's kernel log is not for us: {reason}")
    bus = f"0000:{os.getpid() % 256:02x}:1f"
    os.write(file, f"<4>NVRM: Xid (PCI:{bus}): 48, pid=1, a test of chipwise\n".encode())
    os.close(file)
    until(lambda: any(m.device == bus and ("xid", "48") in m.labels for m in kernel.read()))
    kernel.close()


def test_a_log_that_can_t_be_read_is_a_reason(tmp_path):
    with pytest.raises(Unreadable, match="kmsg can't be read: No such file"):
        KernelLog(tmp_path / "kmsg")


# --- what the cloud says


class Cloud:
    """A metadata service: pages by path; an AWS one wants a token."""

    def __init__(self, flavor):
        self.pages, self.tokens, self.broken, service = {}, 0, False, self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                service.tokens += 1
                self.reply(200, f"token-{service.tokens}") if flavor == "aws" else self.reply(405, "")

            def do_GET(self):
                if service.broken:
                    return self.reply(503, "")
                if flavor == "google" and self.headers.get("Metadata-Flavor") != "Google":
                    return self.reply(403, "")
                if flavor == "aws" and self.headers.get("X-aws-ec2-metadata-token") != f"token-{service.tokens}":
                    return self.reply(401, "")
                page = service.pages.get(self.path.partition("/instance/" if flavor == "google" else "/meta-data/")[2])
                return self.reply(404, "") if page is None else self.reply(200, page)

            def reply(self, status, text):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *words):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def cloud(request, monkeypatch):
    service = Cloud(request.param)
    nobody = "127.0.0.1:9"
    monkeypatch.setenv("GCE_METADATA_HOST", service.address if request.param == "google" else nobody)
    own = service.address if request.param == "aws" else nobody
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://{own}/")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # a proxy is not asked
    yield service
    service.close()


def notices(cloud):
    return {dict(m.labels)["notice"]: m.value for m in cloud.read()}


@pytest.mark.parametrize("cloud", ["google"], indirect=True)
def test_google_tells_of_preemption_and_maintenance(cloud):
    cloud.pages = {"id": "7", "preempted": "FALSE", "maintenance-event": "NONE"}
    service = CloudNotices()
    assert notices(service) == {}
    began = time.time()
    cloud.pages |= {"preempted": "TRUE"}
    first = notices(service)
    assert began <= first["preempted"] <= time.time() and notices(service) == first  # since when, not now
    cloud.pages |= {
        "preempted": "FALSE",
        "upcoming-maintenance/?recursive=true": json.dumps(
            {"maintenance_status": "PENDING", "window_start_time": "2026-11-21T10:00:00Z"}
        ),
    }
    assert notices(service) == {"maintenance": 1795255200.0}
    cloud.pages |= {"maintenance-event": "TERMINATE_ON_HOST_MAINTENANCE", "upcoming-maintenance/?recursive=true": "odd"}
    assert list(notices(service)) == ["termination"]


@pytest.mark.parametrize("cloud", ["aws"], indirect=True)
def test_aws_tells_of_spot_rebalancing_and_events(cloud):
    cloud.pages = {"instance-id": "i-1"}
    service = CloudNotices()
    assert notices(service) == {} and cloud.tokens == 1
    cloud.tokens += 1  # the token is over
    cloud.pages |= {
        "spot/instance-action": '{"action": "terminate", "time": "2026-11-21T10:00:00Z"}',
        "events/recommendations/rebalance": '{"noticeTime": "2026-11-21T09:00:00Z"}',
        "events/maintenance/scheduled": json.dumps(
            [
                {"NotBefore": "21 Jan 2027 09:00:43 GMT", "Code": "system-reboot", "State": "active"},
                {"NotBefore": "21 Jan 2026 09:00:43 GMT", "Code": "instance-stop", "State": "completed"},
            ]
        ),
    }
    assert notices(service) == {"preempted": 1795255200.0, "rebalance": 1795251600.0, "maintenance": 1800522043.0}


@pytest.mark.parametrize("cloud", ["google", "aws"], indirect=True)
def test_a_service_that_falls_silent_is_no_word_that_nothing_comes(cloud):
    cloud.pages = {"id": "7", "preempted": "TRUE", "instance-id": "i-1", "spot/instance-action": '{"action": "stop"}'}
    service = CloudNotices()
    first = notices(service)
    assert list(first) == ["preempted"]
    cloud.broken = True
    with pytest.raises(Unreadable, match="answers with status 503"):
        service.read()
    cloud.broken = False
    assert notices(service) == first
    cloud.close()
    with pytest.raises(Unreadable, match="does not answer"):
        service.read()


def test_a_machine_of_nobodys_cloud_has_no_notices(monkeypatch):
    for variable in ("GCE_METADATA_HOST", "AWS_EC2_METADATA_SERVICE_ENDPOINT"):
        monkeypatch.setenv(variable, "127.0.0.1:9" if variable.startswith("GCE") else "http://127.0.0.1:9")
    with pytest.raises(Unreadable, match="no cloud"):
        CloudNotices()


def test_a_machine_whose_firmware_names_another_maker_asks_nobody(monkeypatch, tmp_path):
    for variable in ("GCE_METADATA_HOST", "AWS_EC2_METADATA_SERVICE_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    firmware = tmp_path / "sys/class/dmi/id"
    firmware.mkdir(parents=True)
    (firmware / "sys_vendor").write_text("Supermicro\n")
    (firmware / "product_name").write_text("SYS-821GE\n")
    monkeypatch.setattr("chipwise.observe.agent.notices.build_opener", None)  # asking would be an error
    with pytest.raises(Unreadable, match="its maker is Supermicro SYS-821GE"):
        CloudNotices(tmp_path)


# --- AMD GPUs


def amd_tree(root):
    """Files as amdgpu has them, of an MI300X and of one that tells less; a display beside them."""
    base = root / "sys/class/drm"
    first, second = base / "card1/device", base / "card0/device"
    files = {
        first: {
            "vendor": "0x1002", "unique_id": "9a1b2c3d4e5f6071", "product_name": "AMD Instinct MI300X", "gpu_busy_percent": "87",
            "mem_busy_percent": "41", "mem_info_vram_total": str(192 * 2**30), "mem_info_vram_used": str(100 * 2**30),
            "pcie_replay_count": "3", "ras/umc_err_count": "ue: 1\nce: 12", "ras/gfx_err_count": "ue: 2\nce: 0",
            "hwmon/hwmon4/temp1_label": "edge", "hwmon/hwmon4/temp1_input": "40000",
            "hwmon/hwmon4/temp2_label": "junction", "hwmon/hwmon4/temp2_input": "62000",
            "hwmon/hwmon4/temp3_label": "mem", "hwmon/hwmon4/temp3_input": "51000",
            "hwmon/hwmon4/power1_average": "612000000", "hwmon/hwmon4/freq1_input": "2100000000",
        },
        second: {"vendor": "0x1002", "mem_info_vram_total": str(2**34), "gpu_busy_percent": "0", "hwmon/hwmon1/power1_input": "90000000"},
        base / "card2/device": {"vendor": "0x1a03"},
    }  # fmt: skip
    for folder, texts in files.items():
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")
    (base / "card1-DP-1").mkdir()
    return first


def test_amds_gpus_are_read_by_the_kernels_files(tmp_path):
    first = amd_tree(tmp_path)
    gpus = AmdFiles(tmp_path)
    read = values(gpus)
    of = {series: value for (device, series), value in read.items() if device == "9a1b2c3d4e5f6071"}
    assert of == {
        "device_busy": pytest.approx(0.87),
        "device_memory_active": pytest.approx(0.41),
        "device_memory_used": 100 * 2**30,
        "device_memory_total": 192 * 2**30,
        "device_temperature": pytest.approx(62.0),
        "device_memory_temperature": pytest.approx(51.0),
        "device_clock": 2.1e9,
        "device_pcie_replays": 3,
        "device_power": pytest.approx(612.0),
        "device_uncorrected_errors": 3,
        "device_lost": 0,
    }
    assert {device for device, _ in read} == {"9a1b2c3d4e5f6071", "device"}
    assert {s for d, s in read if d == "device"} == {
        "device_busy",
        "device_memory_total",
        "device_power",
        "device_lost",
    }
    labels = dict(next(m.labels for m in gpus.read() if m.device == "9a1b2c3d4e5f6071"))
    assert labels["model"] == "AMD Instinct MI300X" and labels["gpu"] == "1"
    for path in sorted(first.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert values(gpus)["9a1b2c3d4e5f6071", "device_lost"] == 1
    with pytest.raises(Unreadable, match="no AMD GPU"):
        AmdFiles(tmp_path / "none")


class Smi:
    """amdsmi as its releases since 6.1 have it, with what an MI300X of a guest does not tell."""

    AmdSmiClkType = types.SimpleNamespace(GFX=0)
    AmdSmiTemperatureType = types.SimpleNamespace(HOTSPOT=1, VRAM=2)
    AmdSmiTemperatureMetric = types.SimpleNamespace(CURRENT=0)

    def __init__(self):
        self.open, self.lost = 0, False

    def amdsmi_init(self):
        self.open += 1

    def amdsmi_shut_down(self):
        self.open -= 1

    def amdsmi_get_processor_handles(self):
        return ["h0", "h1"]

    def __getattr__(self, name):
        answers = {
            "get_gpu_asic_info": lambda gpu: {"market_name": "AMD Instinct MI300X"},
            "get_gpu_device_uuid": lambda gpu: f"uuid-{gpu}",
            "get_gpu_device_bdf": lambda gpu: "0000:0C:00.0",
            "get_power_info": lambda gpu: {"current_socket_power": "N/A", "average_socket_power": 550 if gpu == "h0" else "N/A"},
            "get_energy_count": lambda gpu: {"energy_accumulator": 2_000_000, "counter_resolution": 15.3},
            "get_gpu_activity": lambda gpu: {"gfx_activity": 88, "umc_activity": 0xFFFF},
            "get_gpu_vram_usage": lambda gpu: {"vram_total": 196592, "vram_used": 1024},
            "get_clock_info": lambda gpu, kind: {"clk": 2100},
            "get_temp_metric": lambda gpu, kind, metric: 60 + kind,
            "get_gpu_total_ecc_count": lambda gpu: {"correctable_count": 4, "uncorrectable_count": 1},
            "get_gpu_process_list": lambda gpu: [{"pid": 11}] if gpu == "h0" else [{"pid": 11}, {"pid": 12}],
        }  # fmt: skip
        answer = answers.get(name.removeprefix("amdsmi_"))
        if answer is None:
            raise AttributeError(name)

        def call(gpu, *others):
            if self.lost and gpu == "h1":
                raise RuntimeError("AMDSMI_STATUS_BUSY")
            return answer(gpu, *others)

        return call


def test_amds_gpus_are_read_by_amdsmi():
    smi = Smi()
    gpus = AmdSmi(smi, lambda pid: (("attempt", f"{pid}-1"),) if pid == 11 else ())
    read = values(gpus)
    assert read["uuid-h0", "device_power"] == 550 and ("uuid-h1", "device_power") not in read
    assert read["uuid-h0", "device_energy"] == pytest.approx(30.6)
    assert read["uuid-h0", "device_busy"] == pytest.approx(0.88) and ("uuid-h0", "device_memory_active") not in read
    assert read["uuid-h0", "device_memory_used"] == 2**30 and read["uuid-h0", "device_clock"] == 2.1e9
    assert (read["uuid-h0", "device_temperature"], read["uuid-h0", "device_memory_temperature"]) == (61, 62)
    users = {m.device: dict(m.labels).get("attempt") for m in gpus.read()}
    assert users == {"uuid-h0": "11-1", "uuid-h1": None}  # the second has a process that does not say whose it is
    smi.lost = True
    gpus._looked = float("-inf")
    assert values(gpus)["uuid-h1", "device_lost"] == 1 and values(gpus)["uuid-h0", "device_lost"] == 0
    gpus.close()
    assert smi.open == 0


def test_without_amds_gpus_both_ways_say_why():
    with pytest.raises(Unreadable, match=r"no AMD GPU: .*; amdsmi: "):
        amd_gpus()


# --- doctor


def test_doctor_says_what_there_is_to_observe_with(tmp_path):
    examination = examine()
    states = {state.name: state.problem for state in examination.instruments}
    assert set(states) == {*KINDS, "energy"} and states["host"] == ""
    assert "amdsmi" in states["amd"]
    assert [row["readable"] for row in examination.to_dict()["instruments"] if row["instrument"] == "host"] == [True]
    assert energy_problem(tmp_path).startswith("no counters in")


# --- all together


class Fixed:
    every_s = 0.01

    def __init__(self, name, read):
        self.name, self.read, self.closed = name, read, False

    def close(self):
        self.closed = True


def test_what_hangs_or_fails_does_not_stop_the_others(monkeypatch):
    monkeypatch.setattr("chipwise.observe.agent.agent.LEAST_STALE_S", 0.2)
    monkeypatch.setattr("chipwise.observe.agent.agent.FIRST_LOOK_S", 0.2)
    release, answers = threading.Event(), iter([[Measurement("device_busy", 0.5, "a")]])

    def once():
        for answer in answers:
            return answer
        raise OSError("the driver is gone")

    well = Fixed("well", lambda: [Measurement("host_busy", 0.25)])
    told = []
    with Agent([well, Fixed("hangs", lambda: release.wait()), Fixed("fails", once)], [], 0.01, "n1") as agent:
        until(lambda: {s.name: s.problem for s in agent.look()[1]} == {
            "well": "", "hangs": "it has not answered yet", "fails": "the driver is gone",
        })  # fmt: skip
        samples, _ = keep(agent, None, 0.01, 2, told.append)
        release.set()
    up = {dict(s.labels)["instrument"]: s.value for s in samples if s.series == "instrument_up"}
    assert up == {"well": 1.0, "hangs": 0.0, "fails": 0.0}
    assert [s.value for s in samples if s.series == "host_busy"] == [0.25]
    assert "device_busy" not in {s.series for s in samples}  # what is old is absent, not as it was
    assert sorted(told) == ["fails: the driver is gone", "hangs: it has not answered yet"]
    assert well.closed


def test_an_instrument_that_answered_once_and_hangs_is_told_apart(monkeypatch):
    monkeypatch.setattr("chipwise.observe.agent.agent.LEAST_STALE_S", 0.05)
    release, looks = threading.Event(), []

    def read():
        looks.append(1)
        return [] if len(looks) == 1 else release.wait()

    watch = Watch(Fixed("gpu", read), 0.01)
    watch.start()
    until(lambda: watch.newest() == ((), "it does not answer"))
    release.set()
    watch.stop()


def test_a_page_is_read_back_as_what_was_measured():
    node = Node()
    with Agent([NvidiaGpus(node, lambda pid: (("attempt", f"{pid}-1"),)), HostLoad()], [], 1.0, "n1") as agent:
        samples, _ = agent.look()
        text = page(samples)
    key = lambda s: (s.series, s.device, s.labels)  # noqa: E731
    back = {
        (s.series, s.host, s.device, frozenset(s.labels)): s.value for s in samples_of(text.splitlines(), "elsewhere")
    }
    assert back == {
        (s.series, s.host, s.device, frozenset(s.labels)): pytest.approx(s.value) for s in sorted(samples, key=key)
    }
    assert "chipwise_device_energy_joules_total{" in text and 'node="n1"' in text


def test_a_node_is_observed_and_kept(tmp_path):
    store = tmp_path / "telemetry.db"
    reading = cw.observe_node(["host"], store=str(store))
    assert [state.name for state in reading.instruments] == ["host"] and reading.to_dict()[
        "host"
    ] == os.uname().nodename
    kept = {value.series for value in cw.devices(str(store)).newest}
    assert kept == {sample.series for sample in reading.samples} >= {"host_memory_used", "instrument_up"}
    assert "host memory" in str(reading)


def test_what_is_not_here_is_refused_only_where_it_is_named():
    with pytest.raises(InputError, match="only: 'gpu' is not accepted; expected one of nvidia, amd, tpu"):
        cw.observe_node(["gpu"])
    if not any(Path("/dev").glob("accel*")) and not any(Path("/dev").glob("vfio/[0-9]*")):
        with pytest.raises(Refusal, match="tpu: no TPU"):
            cw.observe_node(["host", "tpu"])
