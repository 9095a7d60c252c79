"""chipwise serving, as another process."""

import csv
import io
import json

import pytest
from command import ROOT, chipwise, good
from test_docs import keys

LLAMA = str(ROOT / "examples" / "llama-3.1-70b-serve.yaml")
SIMULATE = ("serving", "simulate", LLAMA, "--on", "h200:8", "--requests", "800")
CAPACITY = ("serving", "capacity", LLAMA, "--on", "h200:8")


def example(name):
    return str(ROOT / "examples" / f"{name}.yaml")


def simulated(*arguments):
    return json.loads(good("serving", "simulate", *arguments, "-o", "json"))


def test_simulate_says_everything_in_order():
    said = good(*SIMULATE, "--rate", "4")
    order = [
        "Service",
        "chosen",
        "settings",
        "blocks of 16",
        "Latency",
        "TTFT",
        "TPOT",
        "ITL",
        "end to end",
        "goodput",
        "preemptions",
        "J per output token",
        "SLO",
        "met",
        "vllm serve",
        "Assumptions",
        "seed 0",
        "warm-up",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places)


def test_a_seed_gives_the_same_bytes_and_another_seed_others(monkeypatch):
    once, other = (good(*SIMULATE, "--rate", "4", "--seed", seed, "-o", "json") for seed in ("7", "8"))
    monkeypatch.setenv("PYTHONHASHSEED", "5")  # another order of sets, in another process
    assert good(*SIMULATE, "--rate", "4", "--seed", "7", "-o", "json") == once
    assert json.loads(other)["ttft_seconds"] != json.loads(once)["ttft_seconds"]


def test_intervals_hold_their_values_and_every_key_is_documented():
    found = simulated(*SIMULATE[2:], "--rate", "4")
    for name in ("ttft", "tpot", "itl", "e2e"):
        for e in found[f"{name}_seconds"].values():
            assert e["low"] <= e["value"] <= e["high"] and e["evidence"] in ("modelled", "bounded")
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    capacity = json.loads(good(*CAPACITY, "-o", "json"))
    assert not [key for key in sorted(keys(found, set()) | keys(capacity, set())) if f"`{key}`" not in page]
    assert capacity["capacity"]["low"] <= capacity["capacity"]["value"] <= capacity["capacity"]["high"]


def test_a_split_that_is_named_is_taken_and_chips_follow():
    found = simulated(
        *SIMULATE[2:], "--rate", "1", "--tp", "2", "--replicas", "3", "--max-batch", "64", "--chunk", "2048"
    )
    service = found["service"]
    assert (service["split"]["tp"], service["replicas"], service["chips"]) == (2, 3, 6) and not found["split_chosen"]
    assert "--max-num-seqs 64" in service["flags"] and "--max-num-batched-tokens 2048" in service["flags"]
    assert any("2 of 8 chips are not used" in line for line in found["assumptions"])


def test_disaggregation_has_two_pools_and_evener_gaps():
    both = [
        simulated(LLAMA, "--on", "h200:16", "--tp", "4", "--rate", "6", "--requests", "800", *more)
        for more in ((), ("--disaggregate", "2:2"))
    ]
    assert [each["service"]["prefill_replicas"] for each in both] == [0, 2] and both[1]["service"]["chips"] == 16
    assert both[1]["itl_seconds"]["p99"]["value"] < both[0]["itl_seconds"]["p99"]["value"]


def test_an_impossible_slo_is_simulated_and_missed():
    found = simulated(*SIMULATE[2:], "--rate", "1", "--ttft", "1ms")
    assert [row["met"] for row in found["slo"]] == [False, True] and not found["slo_met"]


def test_traces_are_taken_whole_or_scaled(tmp_path):
    assert simulated(example("trace-serve"), "--on", "h100:1", "--router", "prefix")["requests_simulated"] == 200
    path = tmp_path / "few.csv"
    path.write_text("arrival_s,input,output\n" + "".join(f"{i},100,20\n" for i in range(50)), encoding="utf-8")
    assert simulated("llama-3.1-8b", "--trace", path, "--rate", "3", "--on", "h100:1")["requests_simulated"] == 50


@pytest.mark.parametrize(("name", "unit"), [("bert-serve", "sequences"), ("resnet-50-serve", "images")])
def test_models_that_answer_in_one_pass(name, unit):
    found = simulated(example(name), "--on", "h200:2", "--requests", "2000")
    assert (
        found["workload"]["unit"] == unit and found["tpot_seconds"] is None and found["service"]["cache_blocks"] is None
    )


def test_an_image_is_one_unit_of_work_however_many_patches_it_has():
    found = simulated("vit-b-16", "--rate", "100", "--on", "h200:1", "--requests", "2000")
    assert found["use"]["busy"] < 0.5 and found["slo"] == []


def test_offline_jobs_end_before_a_deadline():
    job = ("--on", "h200:8", "--requests", "20000")
    assert simulated(example("llama-3.1-8b-offline"), *job)["job"]["deadline_met"]
    said = good("serving", "capacity", example("llama-3.1-8b-offline"), "--on", "h200:1")
    assert "deadline 6.00 h: missed" in said and "as fast as it goes" in said


def test_capacity_ranks_splits_and_says_what_was_refused():
    said = good(*CAPACITY)
    for words in (
        "Largest load: ",
        "take",
        "sequences fit",
        "Pareto front",
        "--tensor-parallel-size",
        "Refused",
        "tp=1: ",
    ):
        assert words in said
    found = json.loads(good(*CAPACITY, "-o", "json"))
    loads = [row["capacity"]["value"] for row in found["rows"]]
    assert loads == sorted(loads, reverse=True) and found["needed_chips"] > 8
    front = [(p["user_units_per_second"], p["chip_units_per_second"]) for p in found["front"]]
    assert front == sorted(front, key=lambda p: -p[0]) == sorted(front, key=lambda p: p[1])
    rows = list(csv.DictReader(io.StringIO(good(*CAPACITY, "-o", "csv"))))
    assert [row["split_tp"] for row in rows if row["refused"]] == ["1"]


def test_capacity_holds_when_it_is_simulated():
    most = json.loads(good(*CAPACITY, "-o", "json"))["capacity"]["value"]
    found = simulated(LLAMA, "--on", "h200:8", "--rate", f"{0.8 * most:.3g}")
    assert found["slo_met"] and found["settled"]


def test_users_without_an_slo_are_ranked_by_output():
    found = json.loads(
        good(
            "serving",
            "capacity",
            "llama-3.1-8b",
            "--input-len",
            "500",
            "--output-len",
            "100",
            "--users",
            "8",
            "--on",
            "v6e:4",
            "-o",
            "json",
        )
    )
    total = [row["chip_units_per_second"] for row in found["rows"]]
    assert total == sorted(total, reverse=True) and found["needed_chips"] is None


def test_a_plot_is_drawn_whole_and_its_points_are_in_the_record(tmp_path):
    path = tmp_path / "load.svg"
    found = simulated(example("trace-serve"), "--on", "h100:1", "--plot", path)
    loads = [point["load"] for point in found["curve"]]
    assert loads == sorted(loads) and len(loads) == 10
    assert "<svg" in path.read_text(encoding="utf-8") and list(tmp_path.iterdir()) == [path]
    closed = simulated(
        example("resnet-50-serve"), "--on", "h200:1", "--requests", "500", "--plot", tmp_path / "users.png"
    )
    assert closed["curve"][0]["tpot_seconds"] is None


def trace(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


BAD = {
    "a rate above capacity": ((*SIMULATE, "--rate", "20"), "within the SLO"),
    "the workload's own rate above capacity": (
        ("serving", "simulate", LLAMA, "--on", "h200:8"),
        "serve.arrival.rate: '20'",
    ),
    "an impossible SLO": ((*CAPACITY, "--ttft", "1ms"), "the nearest is"),
    "a cache too small": (
        (
            "serving",
            "simulate",
            "llama-3.1-8b",
            "--input-len",
            "100000",
            "--output-len",
            "20000",
            "--rate",
            "0.01",
            "--precision",
            "fp32",
            "--on",
            "a100-40gb:1",
        ),
        "the longest request",
    ),
    "weights too large": (("serving", "capacity", LLAMA, "--on", "h100:1"), "before any request"),
    "lengths past the context": ((*SIMULATE, "--rate", "1", "--input-len", "200000"), "131,072 tokens"),
    "more chips than there are": (
        (*SIMULATE, "--rate", "1", "--tp", "4", "--replicas", "3"),
        "tp(4) * pp(1) * dp(1) * replicas(3) = 12 is more than chips(8)",
    ),
    "a replica larger than the chips": ((*CAPACITY, "--tp", "16"), "tp(16) * pp(1) * dp(1) = 16 is more than chips(8)"),
    "heads that tp does not divide": ((*SIMULATE, "--rate", "1", "--tp", "3"), "heads(64)"),
    "experts of a model that has none": ((*CAPACITY, "--ep", "8"), "has no experts to split"),
    "no tensor parallelism at all": ((*SIMULATE, "--tp", "0"), "--tp"),
    "a cnn that is split": (("serving", "simulate", example("resnet-50-serve"), "--on", "h100:4", "--tp", "2"), "cnn"),
    "one pool": ((*SIMULATE, "--rate", "1", "--disaggregate", "2"), "such as 2:6"),
    "an empty pool": ((*SIMULATE, "--rate", "1", "--disaggregate", "0:2"), "such as 2:6"),
    "pools that the chips don't hold": (
        (*SIMULATE, "--rate", "1", "--tp", "2", "--disaggregate", "2:6"),
        "replicas(8) = 16",
    ),
    "pools and replicas": ((*SIMULATE, "--rate", "1", "--disaggregate", "1:1", "--replicas", "2"), "--replicas"),
    "pools of a model that doesn't write": (
        ("serving", "simulate", example("bert-serve"), "--on", "h100:4", "--disaggregate", "1:1"),
        "nothing to decode",
    ),
    "an unknown router": ((*SIMULATE, "--rate", "1", "--router", "best"), "round_robin"),
    "an unknown stack": ((*SIMULATE, "--rate", "1", "--stack", "vlm"), "did you mean vllm"),
    "a stack that only trains": ((*SIMULATE, "--rate", "1", "--stack", "megatron"), "serve.stack"),
    "a stack of other chips": ((*SIMULATE, "--rate", "1", "--stack", "jetstream"), "does not run on h200"),
    "a rate of nothing": ((*SIMULATE, "--rate", "0"), "above 0"),
    "a rate and users": ((*SIMULATE, "--rate", "1", "--users", "3"), "can't combine"),
    "a workload that is trained": (
        ("serving", "simulate", example("llama-3.1-8b-pretrain"), "--on", "h100:1"),
        "serve section",
    ),
    "a picture of another kind": ((*SIMULATE, "--rate", "1", "--plot", "load.pdf"), ".svg or .png"),
    "a picture in no folder": ((*SIMULATE, "--rate", "1", "--plot", "/nowhere/load.svg"), "a folder that exists"),
    "a picture of one load": (
        ("serving", "simulate", example("llama-3.1-8b-offline"), "--on", "h100:4", "--plot", "load.svg"),
        "an offline job",
    ),
    "a format that isn't there": ((*SIMULATE, "--rate", "1", "-o", "csv"), "one of table, json"),
    "no chips": (("serving", "capacity", LLAMA), "--on"),
}


def refused(arguments, words):
    done = chipwise(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("chipwise: ") and done.stderr.count("\n") == 1 and words in done.stderr, done.stderr


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case):
    refused(*BAD[case])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arrival_s,input,output\n", "it has none"),
        ("", "trace.csv"),
        ("arrival_s,input,output\n1,10,10\n0.5,10,10\n", "no time before the line above"),
        ("arrival_s,input,output\n0,10,10\n1,200000,10\n", "131,072 tokens"),
    ],
    ids=["empty", "nothing", "unordered", "too long"],
)
def test_a_bad_trace_is_one_line(tmp_path, text, words):
    refused((*SIMULATE, "--trace", trace(tmp_path, text)), words)


def test_help_has_examples():
    for verb in ((), ("simulate",), ("capacity",)):
        assert "Examples:" in good("serving", *verb, "--help")
