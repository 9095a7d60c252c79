"""The job file: what it says, and one clear line for what can't be used."""

from __future__ import annotations

import json
from copy import deepcopy
from importlib import resources
from math import inf
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import ChipwiseError, InputError
from chipwise.route.job import Job
from chipwise.route.load import SCHEMAS, load_jobs, schema_text
from chipwise.route.load.jobs import EXACT, jobs_of
from chipwise.route.secret import named_secret

NOW = 1_800_000_000.0  # 2027-01-15T08:00Z
ROOT = Path(__file__).parents[2]
WORKLOAD = {"model": "gpt2", "train": {"steps": 1000, "global_batch": 64, "sequence": 1024}}
GOOD: dict[str, Any] = {
    "name": "run",
    "owner": "ada",
    "workload": WORKLOAD,
    "variants": {
        "tpu": {
            "chips": 8,
            "command": ["python", "train.py"],
            "environment": {"A": 1, "B": True},
            "flags": ["--xla_a=1"],
        },
        "gpu": {
            "chips": 8,
            "command": ["python", "train.py", "--gpu"],
            "image": "x:1",
            "secrets": ["HF_TOKEN"],
            "layout": "fsdp=8",
            "batch": 128,
            "precision": "bf16",
            "on": ["H100"],
        },
    },
    "constraints": {
        "chips": ["h100", "v5e"],
        "pools": ["a"],
        "regions": ["us-central1"],
        "spot": False,
        "data": {"regions": ["us-central1"], "size": "500G", "move": True},
    },
    "deadline": "12h",
    "confidence": 0.95,
    "budget": "$1,000",
    "priority": 2,
    "retries": 1,
    "key": "run-1",
    "checkpoint": {"every": "10min", "folder": "kept", "restart": "1min"},
}
PLAIN: dict[str, Any] = {"name": "plain", "command": ["echo", "hi"], "estimates": {"cpu": "5s"}}


def one(raw: dict[str, Any], base: Path = ROOT) -> Job:
    [job] = jobs_of(raw, base, NOW)
    return job


def changed(path: str, value: Any, good: dict[str, Any] = GOOD) -> dict[str, Any]:
    """The good job with one value changed; None takes the key out."""
    raw = deepcopy(good)
    node: Any = raw
    *outer, last = path.split(".")
    for part in outer:
        node = node.setdefault(part, {})
    if value is None:
        del node[last]
    else:
        node[last] = value
    return raw


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        one(raw)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_key_of_a_job_is_kept() -> None:
    job = one(GOOD)
    tpu, gpu = job.variants
    assert (tpu.name, tpu.family, tpu.chips, tpu.command) == ("tpu", "tpu", 8, ("python", "train.py"))
    assert dict(tpu.environment) == {"A": "1", "B": "true"} and tpu.flags == ("--xla_a=1",)
    assert (gpu.image, gpu.secrets, gpu.layout, gpu.batch, gpu.precision) == (
        "x:1",
        ("HF_TOKEN",),
        "fsdp=8",
        128,
        "bf16",
    )
    assert gpu.on == {"h100"}
    c = job.constraints
    assert c.chips == {"h100", "v5e"} and c.pools == {"a"} and c.regions == {"us-central1"} and not c.spot
    assert c.data is not None and c.data.size == 500e9 and c.data.move
    assert job.deadline == NOW + 12 * 3600 and (job.confidence, job.budget, job.priority) == (0.95, 1000.0, 2.0)
    assert job.checkpoint.restartable and job.checkpoint.every == 600 and job.checkpoint.restart == 60
    assert job.checkpoint.folder == str(ROOT / "kept") and (job.retries, job.key, job.owner) == (1, "run-1", "ada")
    assert json.loads(job.workload)["model"] == "gpt2"


def test_a_plain_command_runs_where_estimates_speak_of() -> None:
    job = one(PLAIN)
    assert [v.family for v in job.variants] == ["cpu"] and job.variants[0].chips == 1
    assert job.deadline == inf and not job.checkpoint.restartable and job.given[0].seconds.because == EXACT
    assert [v.family for v in one(changed("estimates", {"h100": "5s", "tpu": "1h"}, PLAIN)).variants] == ["gpu", "tpu"]
    assert [v.family for v in one(changed("estimates", {"a-pool": "5s"}, PLAIN)).variants] == ["gpu", "tpu", "cpu"]


def test_estimates_may_have_an_interval_and_watts() -> None:
    given = one(changed("estimates", {"cpu": {"time": "10s", "low": "5s", "high": "20s", "watts": 90}}, PLAIN)).given[0]
    assert (given.seconds.low, given.seconds.value, given.seconds.high, given.watts) == (5, 10, 20, 90)


def test_a_workload_without_variants_has_both_families() -> None:
    raw = {"name": "x", "workload": WORKLOAD, "command": ["a"], "chips": 4}
    assert [(v.name, v.chips) for v in one(raw).variants] == [("gpu", 4), ("tpu", 4)]


def test_what_the_job_says_of_all_variants_is_theirs_unless_they_say_otherwise() -> None:
    raw = changed("environment", {"A": "job", "C": "job"})
    raw["image"], raw["secrets"] = "job:1", ["WANDB_API_KEY"]
    tpu, gpu = one(raw).variants
    assert dict(tpu.environment) == {"A": "1", "B": "true", "C": "job"} and tpu.image == "job:1"
    assert gpu.image == "x:1" and set(gpu.secrets) == {"WANDB_API_KEY", "HF_TOKEN"}


def test_arguments_and_values_keep_their_spaces() -> None:
    raw = changed("command", ["sh", " a  b ", ""], PLAIN)
    raw["environment"] = {"X": "  two  "}
    variant = one(raw).variants[0]
    assert variant.command == ("sh", " a  b ", "") and dict(variant.environment) == {"X": "  two  "}


def test_deadlines_are_durations_or_times_with_a_zone() -> None:
    assert one(changed("deadline", "2027-01-16T08:00Z")).deadline == NOW + 86_400
    assert one(changed("deadline", "2027-01-15T10:00+01:00")).deadline == NOW + 3_600
    assert one(changed("deadline", 90)).deadline == NOW + 90


def test_the_deadline_of_an_offline_workload_is_the_jobs() -> None:
    [job] = load_jobs(f"name: x\nworkload: {ROOT}/examples/llama-3.1-8b-offline.yaml\nchips: 8\ncommand: [a]", NOW)
    assert job.deadline == NOW + 6 * 3600


def test_paths_are_relative_to_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text((ROOT / "examples/bert-large-pretrain.yaml").read_text())
    (tmp_path / "train.py").write_text("")
    (tmp_path / "job.yaml").write_text(
        "name: x\nworkload: w.yaml\nvariants:\n  gpu: {chips: 8, command: [a], "
        "program: 'train.py:step'}\ncheckpoint: {folder: s3://b/c}\n"
    )
    [job] = load_jobs(tmp_path / "job.yaml", NOW)
    assert job.variants[0].program == f"{tmp_path / 'train.py'}:step" and job.checkpoint.folder == "s3://b/c"


def test_a_file_may_hold_several_jobs() -> None:
    jobs = jobs_of({"jobs": [GOOD, PLAIN]}, ROOT, NOW)
    assert [job.name for job in jobs] == ["run", "plain"]


@pytest.mark.parametrize(
    ("raw", "field", "words"),
    [
        ({"jobs": []}, "jobs", "at least one entry"),
        ({"jobs": [PLAIN], "name": "x"}, "name", "one of jobs"),
        ({"jobs": "x"}, "jobs", "a list"),
        ({"jobs": [PLAIN, {"name": "x"}]}, "jobs[1].workload", "estimates"),
        ({"jobs": [PLAIN, {**PLAIN, "retries": -1}]}, "jobs[1].retries", "at least 0"),
        ({"jobs": [PLAIN, {**PLAIN, "nam": 1}]}, "jobs[1].nam", "name"),
    ],
)
def test_lists_of_jobs_name_the_job(raw: dict[str, Any], field: str, words: str) -> None:
    said = refused(raw)
    assert said.startswith(f"{field}: ") and words in said


@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        ("name", None, "name", "a value"),
        ("name", "", "name", "text"),
        ("name", "a\nb", "name", "one line"),
        ("name", 3, "name", "text"),
        ("nmae", "x", "nmae", "did you mean name"),
        ("workload", None, "workload", "a workload to predict, or estimates"),
        ("workload", "nowhere.yaml", "workload: ", "no such file"),
        ("workload", {"model": "gpt2"}, "workload", "either a train section or a serve"),
        ("workload", {**WORKLOAD, "model": "gtp2"}, "workload model", "gpt2"),
        (
            "workload",
            {"model": "gpt2", "serve": {"input": 10, "output": 5, "arrival": {"rate": 1}}},
            "workload",
            "an end",
        ),
        ("workload", 7, "workload", "the name of a file, or keys and values"),
        ("variants", {}, "variants", "at least one entry"),
        (
            "variants.tpu.command",
            "python train.py",
            "variants.tpu.command",
            "a list such as [python, train.py]; no shell",
        ),
        ("variants.tpu.command", [], "variants.tpu.command", "no shell reads it"),
        ("variants.tpu.command", [["a"]], "variants.tpu.command", "no shell reads it"),
        ("variants.tpu.command", ["a\0b"], "variants.tpu.command", "NUL"),
        ("variants.tpu.command", [" "], "variants.tpu.command", "a program"),
        ("variants.tpu.command", None, "variants.tpu.command", "a list such as"),
        ("variants.tpu.chips", None, "variants.tpu.chips", "how many chips"),
        ("variants.tpu.chips", 0, "variants.tpu.chips", "at least 1"),
        ("variants.tpu.chips", 2.5, "variants.tpu.chips", "a whole number"),
        ("variants.tpu.family", "gpu", "variants.tpu.family", "tpu, as the variant is called"),
        ("variants.tpu.family", "npu", "variants.tpu.family", "one of gpu, tpu, cpu"),
        ("variants.big", {"chips": 8, "command": ["a"]}, "variants.big.family", "one of gpu, tpu, cpu"),
        ("variants.a b", {"chips": 8, "command": ["a"], "family": "gpu"}, "variants.a b", "letters, digits"),
        ("variants.gpu.on", ["v5e"], "variants.gpu.on", "family gpu"),
        ("variants.gpu.on", ["h10"], "variants.gpu.on", "h100"),
        ("variants.gpu.batch", 0, "variants.gpu.batch", "at least 1"),
        ("variants.gpu.precision", "fp9", "variants.gpu.precision", "did you mean fp8"),
        ("variants.gpu.enviroment", {}, "variants.gpu.enviroment", "did you mean environment"),
        ("variants.gpu.environment", {"A B": "x"}, "variants.gpu.environment.A B", "name of a variable"),
        (
            "variants.gpu.environment",
            {"CHIPWISE_JOB": "x"},
            "variants.gpu.environment",
            "does not begin with CHIPWISE_",
        ),
        ("variants.gpu.environment", {"HF_TOKEN": "x"}, "variants.gpu.environment", "`secrets: [HF_TOKEN]`"),
        ("variants.gpu.secrets", ["HF-TOKEN"], "variants.gpu.secrets[0]", "name of a variable"),
        ("constraints.chips", ["h101"], "constraints.chips", "h100"),
        ("constraints.data.size", None, "constraints.data.size", "500G"),
        ("constraints.spot", "no", "constraints.spot", "true or false"),
        ("deadline", "soon", "deadline", "a duration after submission"),
        ("deadline", "2027-01-16T08:00", "deadline", "with its zone"),
        ("deadline", "2027-01-14T08:00Z", "deadline", "not over"),
        ("deadline", -5, "deadline", "a duration after submission"),
        ("confidence", 1.0, "confidence", "less than 1"),
        ("budget", 0, "budget", "more than 0"),
        ("budget", "much", "budget", "US dollars"),
        ("priority", 0, "priority", "more than 0"),
        ("priority", float("nan"), "priority", "a number"),
        ("retries", 101, "retries", "at most 100"),
        ("checkpoint.every", "never", "checkpoint.every", "a duration"),
        ("checkpoint.foldr", "x", "checkpoint.foldr", "did you mean folder"),
        ("estimates", {"h100": "0s"}, "estimates.h100", "a duration"),
        ("estimates", {"h100": {"time": "1h", "low": "2h"}}, "estimates.h100", "an interval that holds"),
        ("estimates", {"h100": {"low": "2h"}}, "estimates.h100.time", "a value"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(path: str, value: Any, field: str, words: str) -> None:
    said = refused(changed(path, value))
    assert said.startswith(f"{field}"), said
    assert words in said


@pytest.mark.parametrize(
    "environment",
    [
        {"HF_TOKEN": "hunter2secret"},
        {"AWS_SECRET_ACCESS_KEY": "hunter2secret"},
        {"db_password": "hunter2secret"},
        {"X": "postgresql://ada:hunter2secret@host/db"},
        {"OPENAI_API_KEY": "hunter2secret"},
        {"Y": "sk-" + "hunter2secret" * 3},
        {"myApiToken": "hunter2secret"},
    ],
)
def test_secrets_are_refused_unseen(environment: dict[str, str]) -> None:
    said = refused(changed("variants.gpu.environment", environment))
    assert "secrets" in said and "hunter2secret" not in said
    for_all = refused({**PLAIN, "environment": environment})
    assert "hunter2secret" not in for_all


def test_values_of_variables_are_never_shown() -> None:
    for value in ("hunter2secret\0", "hunter2secret" * 4000, ["hunter2secret"]):
        said = refused({**PLAIN, "environment": {"X": value}})
        assert said.startswith("environment.X") and "hunter2secret" not in said


def test_secrets_in_arguments_are_refused_unseen() -> None:
    said = refused({**PLAIN, "command": ["a", "--key=hf_" + "a" * 30]})
    assert "command" in said and "hf_a" not in said


@pytest.mark.parametrize("value", ["hf_" + "a" * 30, "hunter2-secret", "AKIA" + "0" * 16])
def test_values_among_the_names_of_secrets_are_refused_unseen(value: str) -> None:
    for raw in (changed("variants.gpu.secrets", ["A_TOKEN", value]), {**PLAIN, "secrets": ["A_TOKEN", value]}):
        said = refused(raw)
        assert "secrets[1]: 'its value' is not accepted" in said and value not in said


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "KEY_FILE", "PATH", "MONKEY", "KEYS"])
def test_harmless_names_are_no_secrets(name: str) -> None:
    assert not named_secret(name)


def test_small_numbers_under_a_secret_name_are_harmless() -> None:
    assert one({**PLAIN, "environment": {"TOKEN": 5, "USE_TOKEN": "true"}}).variants[0].environment


def test_text_that_is_no_job_is_refused() -> None:
    for text in ("name: [", "- a\n- b\n", "name: x\nname: y\n", "a: *b\n"):
        with pytest.raises(ChipwiseError):
            load_jobs(text, NOW)


@pytest.mark.parametrize("file", SCHEMAS)
def test_the_committed_schema_is_that_of_the_code(file: str) -> None:
    committed = resources.files("chipwise.route").joinpath(f"data/{file}.schema.json")
    assert committed.read_text(encoding="utf-8") == schema_text(file)


def test_a_file_may_hold_thousands_of_jobs(tmp_path: Path) -> None:
    each = "  - {name: j, command: [a, b], estimates: {cpu: 5s}}\n"
    (tmp_path / "jobs.yaml").write_text("jobs:\n" + each * 3000)
    assert len(load_jobs(tmp_path / "jobs.yaml", NOW)) == 3000


@pytest.mark.parametrize("written", ["1e-3", "0.10", "0E0"])
def test_numbers_that_yaml_would_write_otherwise_must_be_quoted(written: str) -> None:
    job = "name: x\ncommand: [echo, %s]\nestimates: {cpu: 1}\n"
    with pytest.raises(InputError, match=r"command\[1\]: .* expected text in quotes"):
        load_jobs(job % written, NOW)
    assert load_jobs(job % f'"{written}"', NOW)[0].variants[0].command == ("echo", written)
    assert load_jobs(job % 100, NOW)[0].variants[0].command == ("echo", "100")
