"""Offline jobs from flags: tokens or requests by a deadline, without a file."""

import json

import pytest

from chipwise import capacity, load
from chipwise.cli.main import run
from chipwise.errors import Conflict, InputError
from chipwise.workload.load import load_serving

SERVED = {"input_len": "1500", "output_len": "200"}
LINE = ("llama-3.1-8b", "--input-len", "1500", "--output-len", "200")
FILE = "model: llama-3.1-8b\nserve: {input: 1500, output: 200, offline: {requests: 294118, deadline: 6h}}"


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("500M", 294_118),
        ("500M tokens", 294_118),
        ("500,000,000 tok", 294_118),
        ("300k requests", 300_000),
        ("1 request", 1),
        ("1", 1),
        ("1M req", 1_000_000),
    ],
)
def test_a_job_is_of_tokens_or_of_requests(text, requests):
    job = load("llama-3.1-8b", **SERVED, offline=text)
    assert (job.serve.arrival.kind, job.serve.requests) == ("offline", requests)


def test_a_job_of_pictures_is_of_pictures():
    assert load("flux.1-dev", offline="10k", denoise_steps="20").serve.requests == 10_000
    assert load("wan2.1-t2v-1.3b", offline="500 videos", denoise_steps="20").serve.requests == 500
    assert load("bge-large", input_len="500", offline="1M").serve.requests == 2_000


@pytest.mark.parametrize(
    "text", ["0", "many", "-5", "2.5 requests", "5 tokens requests", "requests", "1e400", "9" * 5000]
)
def test_what_is_no_amount_of_work_is_refused(text):
    with pytest.raises(InputError) as error:
        load("llama-3.1-8b", **SERVED, offline=text)
    assert error.value.field == "offline" and "\n" not in str(error.value)


def test_a_job_has_neither_a_rate_nor_an_slo():
    with pytest.raises(Conflict, match="offline"):
        load("llama-3.1-8b", **SERVED, offline="500M", rate="3")
    with pytest.raises(InputError, match="offline"):
        load("llama-3.1-8b", **SERVED, offline="500M", ttft="1s")


def test_flags_answer_as_the_file_does(tmp_path, capsys):
    file = tmp_path / "job.yaml"
    file.write_text(FILE)

    def row(*line):
        assert run(["compare", *line, "--on", "h200", "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)["rows"][0]

    mine, its = row(*LINE, "--offline", "500M", "--deadline", "6h"), row(str(file))
    assert mine["job_usd"] == its["job_usd"] and mine["accelerators"] == its["accelerators"]
    for key in ("ondemand_usd_per_million_units", "ondemand_usd_per_million_tokens_processed"):
        assert mine[key] == its[key] and mine[key]["value"] > 0


def test_the_largest_load_says_whether_the_job_is_done_in_time():
    job = load("llama-3.1-8b", **SERVED, offline="5M")
    soon, late = (capacity(job, on="h200:1", tp=1, deadline=time) for time in ("1h", 1.0))
    assert "deadline 60.0 min: met" in str(soon) and "deadline 1.00 s: missed" in str(late)
    assert "2,942 requests (5.00M tokens, prompts and answers alike)" in str(soon)
    with pytest.raises(InputError, match="deadline"):
        capacity(
            load_serving("model: llama-3.1-8b\nserve: {input: 9, output: 9, arrival: {rate: 1}}"),
            on="h200:1",
            deadline="1h",
        )
