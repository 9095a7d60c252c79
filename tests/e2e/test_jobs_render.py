"""What backends would be asked for, shown without asking them."""

import json
import os

import pytest
import yaml
from command import ROOT, chipwise, good

JOBS, POOLS = ROOT / "examples" / "jobs", ROOT / "examples" / "pools"


@pytest.mark.parametrize(
    ("job", "pools", "backend", "words"),
    [
        ("hello", "local", "local", '"argv"'),
        ("fallback", "slurm", "slurm", "sbatch"),
        ("images", "kubernetes", "kubernetes", "kind: JobSet"),
        ("llama-lora", "ray", "ray", "lifetime: detached"),
    ],
)
def test_every_backend_shows_what_it_would_be_asked_for_and_nothing_is_written(job, pools, backend, words, tmp_path):
    env = os.environ | {"CHIPWISE_DATA": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    text = good("jobs", "render", JOBS / f"{job}.yaml", "--pools", POOLS / f"{pools}.yaml", env=env)
    assert words in text and "ledger-1-1" in text and list(tmp_path.iterdir()) == []
    told = json.loads(
        good("jobs", "render", JOBS / f"{job}.yaml", "--pools", POOLS / f"{pools}.yaml", "-o", "json", env=env)
    )
    assert told["command"] == "jobs render" and {each["backend"] for each in told["rendered"]} == {backend}
    assert all((each["text"] is None) != (each["refused"] is None) for each in told["rendered"])
    assert any(each["text"] and each["text"].strip() in text for each in told["rendered"])


def test_a_pool_and_a_variant_are_chosen_and_the_file_is_for_kubectl(tmp_path):
    out = tmp_path / "job.yaml"
    good(
        "jobs",
        "render",
        JOBS / "images.yaml",
        "--pools",
        POOLS / "kubernetes.yaml",
        "--pool",
        "h100",
        "--variant",
        "gpu",
        "--out",
        out,
    )
    made = yaml.safe_load(out.read_text())
    assert made["kind"] == "JobSet" and made["metadata"]["annotations"]["chipwise-pool"] == "h100"


@pytest.mark.parametrize(("pools", "image"), [("slurm", {}), ("kubernetes", {"image": "i"}), ("ray", {})])
def test_values_of_secrets_are_never_shown(pools, image, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "name": "s",
                "variants": {"gpu": {"chips": 8, "command": ["true"], "secrets": ["HF_TOKEN"], **image}},
                "estimates": {"gpu": "1h"},
            }
        )
    )
    text = good(
        "jobs", "render", job, "--pools", POOLS / f"{pools}.yaml", env=os.environ | {"HF_TOKEN": "hf_verysecret"}
    )
    assert "HF_TOKEN" in text and "verysecret" not in text


def test_hostile_names_stay_in_their_line(tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps({"name": "a$(id); `b` 'c'", "command": ["echo", "$(id)", "a\nb"], "estimates": {"cpu": "1s"}})
    )
    text = good("jobs", "render", job, "--pools", POOLS / "local.yaml")
    assert json.loads(text.partition("\n")[2])["argv"] == ["echo", "$(id)", "a\nb"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--pool", "v5"), "v5e"),
        (("--variant", "gpus"), "gpu"),
        (("-o", "xml"), "text"),
        (("--pool", "v5e", "--variant", "gpu"), "variant gpu"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(more, words):
    done = chipwise("jobs", "render", JOBS / "images.yaml", "--pools", POOLS / "kubernetes.yaml", *more)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("chipwise: ") and words in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_every_backend_would_refuse_is_said_in_its_words(tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "name": "kept",
                "variants": {"gpu": {"chips": 8, "command": ["true"], "image": "i"}},
                "estimates": {"gpu": "1h"},
                "checkpoint": {"every": "1min", "folder": "/elsewhere/kept"},
            }
        )
    )
    done = chipwise("jobs", "render", job, "--pools", POOLS / "kubernetes.yaml")
    assert done.returncode == 2 and "ends with the pod" in done.stderr
