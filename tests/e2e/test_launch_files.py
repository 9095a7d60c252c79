"""`--launch` from the command line: the file it writes, and what it refuses before anything is worked out."""

import yaml
from command import chipwise

import chipwise as cw
from chipwise.route.load.jobs import load_jobs

SMALL = ("gpt2", "--steps", "100", "--batch", "64", "--sequence", "1024")


def test_predict_writes_the_launch_that_the_library_gives(tmp_path):
    target = tmp_path / "run.sky.yaml"
    done = chipwise("predict", *SMALL, "--on", "h100:8", "--launch", target)
    assert done.returncode == 0, done.stderr
    assert "Launch with Megatron-LM" in done.stdout
    run = cw.predict(cw.load("gpt2", steps=100, batch=64, sequence=1024), on="h100:8")
    assert target.read_text(encoding="utf-8") == run.launch("skypilot").text
    assert yaml.safe_load(target.read_text(encoding="utf-8"))["resources"]["accelerators"].endswith(":8")


def test_compare_writes_the_launch_of_its_pick(tmp_path):
    target = tmp_path / "run.job.yaml"
    done = chipwise("compare", *SMALL, "--on", "h100:8,v5e:8", "--launch", target, "-o", "json")
    assert done.returncode == 0, done.stderr
    pick = yaml.safe_load(done.stdout)["pick"]
    [variant] = yaml.safe_load(target.read_text(encoding="utf-8"))["variants"].values()
    assert variant["on"] == [pick.partition(":")[0]]
    [job] = load_jobs(target, now=0.0)
    assert job.variants[0].chips == 8


def test_a_bad_launch_is_refused_in_one_line_and_nothing_is_written(tmp_path):
    for words, said in (
        (("--launch", tmp_path / "run.yaml"), "--launch: "),
        (("--launch", tmp_path / "run.sh", "--launch-for", "slurm"), "--launch-for: unknown name 'slurm'"),
        (("--launch-for", "skypilot"), "--launch"),
        (("--launch", tmp_path / "none" / "run.sh"), "a file that can be written"),
        (("--launch", tmp_path / "run.sh", "--launch-for", "vllm"), "--launch-for: unknown name 'vllm'"),
    ):
        done = chipwise("predict", *SMALL, "--on", "h100:8", *words)
        assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert list(tmp_path.iterdir()) == []
