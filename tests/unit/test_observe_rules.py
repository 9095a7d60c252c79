"""Rules for Prometheus, judged by promtool: every alert fires where it should, and none where all is well."""

import shutil
import subprocess

import pytest
import yaml

import chipwise as cw
from chipwise.errors import InputError, UnknownName
from chipwise.observe.faults import EFFECTS, xids
from chipwise.observe.monitoring.records import Topic

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: make packages")

END = 400  # minutes: all cases are looked at then, in one run, each as a job of Prometheus of its own
LONG = f"x{END}"
GPU = 'UUID="GPU-1",Hostname="n1",gpu="0",instance="n1:9400"'
AMD = 'gpu_uuid="a1",hostname="m1",instance="m1:5000"'
TPU = 'accelerator_id="t1-0",node="t1",instance="10.0.0.9:2112"'
SMI = 'uuid="GPU-9",instance="n9:9835"'
VLLM = 'model_name="m",engine="0",instance="s1:8000"'
AGENT = 'node="n7",device="GPU-7",instance="n7:9466"'
NODE = 'node="n7",instance="n7:9466"'
SGLANG = 'model_name="m",instance="s2:30000"'
ROUTER = 'instance="r1:9464"'
POOL = f'pool="h100",{ROUTER}'
JOB = 'job_id="7",name="pretrain",owner="ann",pool="h100",instance="r1:9465"'


def since(minutes, before, after):
    """One value until so many minutes before the end, another from then on."""
    return f"{before}x{END - minutes - 1} {after}x{minutes}"


def finding(condition, severity):
    return {("chipwise_job_findings", f'condition="{condition}",fault="",severity="{severity}",{JOB}'): f"1{LONG}"}


def buckets(metric, slow):
    """Ten requests a minute: slower than every bound, or faster."""
    rates = [(0.01, 0 if slow else 10), (4, 0 if slow else 10), (8, 10), ("+Inf", 10)]
    return {(f"{metric}_bucket", f'le="{le}",{VLLM}'): f"0+{rate}{LONG}" for le, rate in rates}


HEAT = "nvidia_smi_clocks_event_reasons_hw_thermal_slowdown"
WELL = {
    ("DCGM_FI_DEV_GPU_UTIL", GPU): f"95{LONG}",
    ("DCGM_FI_DEV_GPU_TEMP", GPU): f"70{LONG}",
    ("DCGM_FI_DEV_FB_USED", GPU): f"70000{LONG}",
    ("DCGM_FI_DEV_FB_FREE", GPU): f"10000{LONG}",
    ("DCGM_FI_DEV_XID_ERRORS", GPU): f"0{LONG}",
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", GPU): f"2{LONG}",  # of before: not new
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", GPU): f"0{LONG}",
    ("gpu_gfx_activity", AMD): f"90{LONG}",
    ("gpu_junction_temperature", AMD): f"80{LONG}",
    ("duty_cycle", TPU): f"90{LONG}",
    ("up", 'instance="n1:9400"'): f"1{LONG}",
    ("chipwise_device_lost", AGENT): f"0{LONG}",
    ("chipwise_device_throttle_ratio", AGENT): f"0{LONG}",
    ("chipwise_device_link_health", AGENT): f"2{LONG}",
    ("chipwise_host_faults_total", f'device="0000:3b:00",fault="memory",xid="48",{NODE}'): f"1{LONG}",  # of before
    ("chipwise_agent_instrument_up", f'instrument="nvidia",{NODE}'): f"1{LONG}",
    ("vllm:num_requests_running", VLLM): f"5{LONG}",
    ("vllm:num_requests_waiting", VLLM): f"0{LONG}",
    ("vllm:kv_cache_usage_perc", VLLM): f"0.6{LONG}",
    ("vllm:generation_tokens_total", VLLM): f"0+60000{LONG}",
    ("vllm:num_preemptions_total", VLLM): f"3{LONG}",
    ("chipwise_last_tick_timestamp_seconds", ROUTER): f"0+60{LONG}",
    ("chipwise_lease_seconds", ROUTER): f"30{LONG}",
    ("chipwise_backend_up", f'backend="slurm",{ROUTER}'): f"1{LONG}",
    ("chipwise_attempts_total", f'end="lost",{ROUTER}'): f"1{LONG}",
    ("chipwise_oldest_wait_seconds", ROUTER): f"60{LONG}",
    ("chipwise_pool_chips", POOL): f"64{LONG}",
    ("chipwise_pool_chips_free", POOL): f"8{LONG}",
    ("chipwise_job_step_seconds", JOB): f"2{LONG}",
    ("chipwise_job_step_predicted_high_seconds", JOB): f"2.2{LONG}",
    ("chipwise_job_step_ratio", JOB): f"1.05{LONG}",
    ("chipwise_job_goodput_ratio", JOB): f"0.93{LONG}",
    **buckets("vllm:time_to_first_token_seconds", False),
    **buckets("vllm:request_time_per_output_token_seconds", False),
}


def well(metric):
    return {key: values for key, values in WELL.items() if key[0] == metric}


# what is so, and which alerts fire at the end
CASES = {
    "well": (WELL, {}),
    "a new uncorrectable error": ({("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", GPU): since(5, 2, 3)}, {"UncorrectableErrors": "critical"}),
    "an uncorrectable error of an AMD GPU": ({("gpu_ecc_uncorrect_total", AMD): since(5, 0, 1)}, {"UncorrectableErrors": "critical"}),
    "a failed remap": ({("DCGM_FI_DEV_ROW_REMAP_FAILURE", GPU): since(1, 0, 1)}, {"RowRemapFailed": "critical"}),
    "throttled": ({(HEAT, SMI): since(8, 0, 1)}, {"DeviceThrottled": "warning"}),
    "throttled for a moment": ({(HEAT, SMI): since(3, 0, 1)}, {}),
    "hot": ({("DCGM_FI_DEV_GPU_TEMP", GPU): since(8, 70, 91)}, {"DeviceHot": "warning"}),
    "a temperature that DCGM can't read": ({("DCGM_FI_DEV_GPU_TEMP", GPU): f"2147483632{LONG}"}, {}),
    "another that it can't read": ({("DCGM_FI_DEV_GPU_TEMP", GPU): f"9223372036854775794{LONG}"}, {}),
    "memory full": ({**well("DCGM_FI_DEV_FB_USED"), ("DCGM_FI_DEV_FB_FREE", GPU): f"500{LONG}"}, {"DeviceMemoryNearFull": "notice"}),
    "memory of a TPU full": ({("memory_used", TPU): f"99{LONG}", ("memory_total", TPU): f"100{LONG}"}, {"DeviceMemoryNearFull": "notice"}),
    "slower than an hour ago": ({("DCGM_FI_DEV_GPU_UTIL", GPU): since(40, 95, 70)}, {"DeviceSlower": "warning"}),
    "a job that ended": ({("DCGM_FI_DEV_GPU_UTIL", GPU): since(40, 95, 0)}, {}),
    "idle": ({("duty_cycle", TPU): f"0{LONG}"}, {"DeviceIdle": "notice"}),
    "a device that is silent": ({("duty_cycle", TPU.replace("t1", "t2")): f"90x{END - 22}"}, {"DeviceSilent": "critical"}),
    "an exporter that is down": ({**well("DCGM_FI_DEV_GPU_UTIL"), ("up", 'instance="n1:9400"'): since(8, 1, 0)}, {"ExporterDown": "warning"}),
    "somebody else's exporter that is down": ({("up", 'instance="elsewhere:9100"'): f"0{LONG}"}, {}),
    "a lost device": ({("chipwise_device_lost", AGENT): since(2, 0, 1)}, {"DeviceLost": "critical"}),
    "a TPU is throttled": ({("chipwise_device_throttle_ratio", AGENT): since(8, 0, 0.3)}, {"DeviceThrottled": "warning"}),
    "a link that is bad": ({("chipwise_device_link_health", f'link="0",{AGENT}'): since(8, 0, 7)}, {"LinkUnhealthy": "warning"}),
    "the kernel tells of a link": ({("chipwise_host_faults_total", f'device="",fault="link",{NODE}'): since(5, "_", 1)}, {"NodeFault": "critical"}),
    "it tells of it again": ({("chipwise_host_faults_total", f'device="",fault="link",{NODE}'): since(5, 3, 4)}, {"NodeFault": "critical"}),
    "the kernel killed a program for memory": ({("chipwise_host_faults_total", f'fault="oom",{NODE}'): since(5, "_", 1)}, {}),
    "an agent counts an Xid": ({("chipwise_host_faults_total", f'device="0000:3b:00",fault="bus",xid="79",{NODE}'): since(5, "_", 1)}, {"Xid": "critical"}),
    "a spot machine is taken back": ({("chipwise_host_notice_timestamp_seconds", f'notice="preempted",{NODE}'): since(1, "_", 1.7e9)}, {"NodeEnds": "warning"}),
    "maintenance comes": ({("chipwise_host_notice_timestamp_seconds", f'notice="maintenance",{NODE}'): f"1.7e9{LONG}"}, {"NodeMaintenance": "notice"}),
    "a driver that hangs": ({("chipwise_agent_instrument_up", f'instrument="nvidia",{NODE}'): since(8, 1, 0)}, {"InstrumentSilent": "warning"}),
    "requests wait": ({("vllm:num_requests_waiting", VLLM): since(20, 0, 9)}, {"ServingQueue": "warning"}),
    "requests wait at SGLang": ({("sglang:num_queue_reqs", SGLANG): f"9{LONG}"}, {"ServingQueue": "warning"}),
    "the cache is full": ({("vllm:kv_cache_usage_perc", VLLM): f"0.99{LONG}", ("vllm:num_preemptions_total", VLLM): f"0+3{LONG}"}, {"ServingCacheFull": "warning"}),
    "the cache is full and nobody is preempted": ({**well("vllm:num_preemptions_total"), ("vllm:kv_cache_usage_perc", VLLM): f"0.99{LONG}"}, {}),
    "a server that hangs": ({**well("vllm:num_requests_running"), ("vllm:generation_tokens_total", VLLM): f"0+60000x{END - 41} {60000 * (END - 41)}x40"}, {"ServingStuck": "critical"}),
    "a router that is silent": ({**well("chipwise_lease_seconds"), ("chipwise_last_tick_timestamp_seconds", ROUTER): f"0+60x{END - 4} {60 * (END - 4)}x3"}, {"RouterSilent": "critical"}),
    "a backend that is down": ({("chipwise_backend_up", f'backend="slurm",{ROUTER}'): f"0{LONG}"}, {"BackendDown": "critical"}),
    "attempts were lost": ({("chipwise_attempts_total", f'end="lost",{ROUTER}'): since(5, 0, 2)}, {"AttemptsLost": "warning"}),
    "a job waits beside free chips": ({**well("chipwise_pool_chips_free"), ("chipwise_oldest_wait_seconds", ROUTER): f"7200{LONG}"}, {"JobsWaitBesideFreeChips": "notice"}),
    "a job waits and no chip is free": ({("chipwise_oldest_wait_seconds", ROUTER): f"7200{LONG}", ("chipwise_pool_chips_free", POOL): f"0{LONG}"}, {}),
    "a pool is idle": ({**well("chipwise_pool_chips"), ("chipwise_pool_chips_free", POOL): f"64{LONG}"}, {"PoolIdle": "notice"}),
    "a slow job": ({**well("chipwise_job_step_predicted_high_seconds"), ("chipwise_job_step_ratio", JOB): f"1.4{LONG}", ("chipwise_job_step_seconds", JOB): f"2.8{LONG}"}, {"JobSlowerThanPredicted": "warning"}),
    "a hung job": (finding("hung", "critical"), {"JobFinding": "critical"}),
    "a job that slowed down": (finding("slowed", "warning"), {"JobFinding": "warning"}),
    "a preempted job": (finding("fault", "notice"), {}),
    "a job that loses its time": ({("chipwise_job_goodput_ratio", JOB): f"0.4{LONG}"}, {"JobGoodputLow": "warning"}),
    "an SLO that is missed": (buckets("vllm:time_to_first_token_seconds", True), {"SloMissed": "warning"}),
    "the last Xid stays": ({("DCGM_FI_DEV_XID_ERRORS", GPU.replace("GPU-1", "GPU-2")): f"79{LONG}"}, {}),
    "an Xid that cleans up": ({("DCGM_FI_DEV_XID_ERRORS", GPU): since(5, 0, 45)}, {}),
    **{
        f"Xid {number} for the first time": ({("DCGM_FI_DEV_XID_ERRORS", f'err_code="{number}",{GPU}'): since(5, "_", number)}, {"Xid": xid.severity.value})
        for number, xid in xids().items() if number not in EFFECTS
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def rules():
    return cw.alert_rules(slo="examples/llama-3.1-70b-serve.yaml")


def promtool(folder, rules, cases):
    """One run over all cases: what is like in each, but for the name of its job."""
    (folder / "rules.yml").write_text(rules.text, encoding="utf-8")
    inputs, fired = [], []
    for name, (so, alerts) in cases.items():
        inputs += [{"series": f'{key}{{job="{name}",{labels}}}', "values": v} for (key, labels), v in so.items()]
        fired += [
            {"labels": f'{{job="{name}", alertname="{alert}", severity="{severity}"}}', "value": 1}
            for alert, severity in alerts.items()
        ]
    test = {
        "interval": "1m",
        "input_series": inputs,
        "promql_expr_test": [
            {
                "expr": 'count by (job, alertname, severity) (ALERTS{alertstate="firing"})',
                "eval_time": f"{END}m",
                "exp_samples": fired,
            }
        ],
    }
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "4m",
        "group_eval_order": [group["name"] for group in rules.groups],  # else promtool draws one for each run
        "tests": [test],
    }
    (folder / "tests.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return subprocess.run(["promtool", "test", "rules", "tests.yml"], cwd=folder, capture_output=True, text=True)


def test_prometheus_takes_the_rules(tmp_path, rules):
    (tmp_path / "rules.yml").write_text(rules.text, encoding="utf-8")
    check = subprocess.run(["promtool", "check", "rules", "rules.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr


def test_each_alert_fires_alone_where_it_should(tmp_path, rules):
    run = promtool(tmp_path, rules, CASES)
    assert run.returncode == 0, run.stderr[-6000:]


def test_a_case_that_is_wrong_fails(tmp_path, rules):
    run = promtool(tmp_path, rules, {"hot": (CASES["hot"][0], {})})
    assert run.returncode != 0 and "DeviceHot" in run.stderr


def test_every_alert_has_a_case(rules):
    tested = {alert for _, fire in CASES.values() for alert in fire}
    assert tested == {alert.name for alert in rules.alerts}
    assert {alert.topic for alert in rules.alerts} == set(Topic)


def test_topics_are_written_alone_and_the_slo_has_its_percentiles():
    workload = cw.load("examples/llama-3.1-70b-serve.yaml", ttft="p95:3s")
    rules = cw.alert_rules(about=["serving"], slo=workload)
    assert {alert.topic for alert in rules.alerts} == {Topic.SERVING}
    assert "chipwise:serving_first_token_seconds:p95 > 3" in rules.text
    assert "record: chipwise:serving_first_token_seconds:p95" in rules.text
    assert "record" not in cw.alert_rules(about=["router"]).text.partition("\n")[2]


def test_what_can_t_be_watched_is_refused():
    with pytest.raises(UnknownName, match="about"):
        cw.alert_rules(about=["weather"])
    for slo in ("examples/llama-3.1-8b-pretrain.yaml", "gpt2"):
        with pytest.raises(InputError, match="slo: "):
            cw.alert_rules(slo=slo)
    with pytest.raises(InputError, match="serving too"):
        cw.alert_rules(about=["router"], slo="examples/llama-3.1-70b-serve.yaml")
