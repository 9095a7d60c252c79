"""Checks on pull requests: the workflows as they are written, their steps really run, and the comment."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from command import ROOT, chipwise_here

import chipwise as cw
from chipwise.deploy.ci.judge import Verdict, compared
from chipwise.deploy.ci.results import Answer, results_in

EXAMPLES = ROOT / "examples/ci"
PROGRAM = f"""import sys
sys.path.insert(0, {str(ROOT / "examples/programs")!r})
import jax_mlp
jax_mlp.WIDTH, jax_mlp.HIDDEN, jax_mlp.BATCH = 256, 512, 256
train = jax_mlp.train
"""
CHECKS = "limit: 3%\nchecks:\n  - {program: 'model.py:train', on: 'v5e:2x2'}\n  - {program: 'gone.py:train', on: 'v5e:2x2'}\n"


def repository(folder, *commits):
    """A repository with commits of files by name; the numbers of the commits."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    numbers = []
    for files in commits:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "step"], check=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        numbers.append(done.stdout.strip())
    return numbers


def jobs_of(path):
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def run_step(script, folder, **variables):
    """A step as a runner runs it."""
    path = f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md"), **variables}
    return subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.compiler("tpu")
def test_the_workflow_runs_and_fails_what_became_slower(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    base, _ = repository(
        folder,
        {"model.py": PROGRAM, "gone.py": PROGRAM},
        {"model.py": PROGRAM.replace("512, 256", "4096, 256"), "ci/checks.yaml": CHECKS},
    )
    (folder / "gone.py").unlink()
    cw.deploy_ci(folder / "ci/checks.yaml", folder)
    steps = jobs_of(folder / ".github/workflows/chipwise.yml")["jobs"]["compile"]["steps"]
    scripts = {step["name"]: step["run"] for step in steps if "run" in step}
    for name in ("This branch", "The base branch"):
        done = run_step(scripts[name], folder, BASE_SHA=base)
        assert done.returncode == 0, done.stderr
    judged = run_step(scripts["Hold them against each other"], folder)
    assert judged.returncode == 1
    comment = (folder / "comment.md").read_text(encoding="utf-8")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8") == comment
    assert "2 of 2 targets fail: 1 broken, 1 slower by more than 3%" in comment, comment
    assert "`gone.py:train` on v5e:2x2, unreadable" in comment


def test_a_comment_is_written_once_and_replaced_afterwards(tmp_path):
    (tmp_path / "checks.yaml").write_text(CHECKS, encoding="utf-8")
    cw.deploy_ci(tmp_path / "checks.yaml", tmp_path)
    job = jobs_of(tmp_path / ".github/workflows/chipwise.yml")["jobs"]["comment"]
    script = job["steps"][-1]["run"]
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin/gh"
    stub.write_text('#!/bin/sh\necho "$@" >> "$CALLS"\ncase "$*" in *--paginate*) echo "$FOUND";; esac\n')
    stub.chmod(0o755)
    for number in ("", "42"):
        calls = tmp_path / f"calls{number}"
        env = {"PATH": f"{stub.parent}:{os.environ['PATH']}", "CALLS": str(calls), "FOUND": number}
        done = run_step(
            script, tmp_path, COMMENTS="repos/o/r/issues/7/comments", ONE="repos/o/r/issues/comments", OURS=".", **env
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().splitlines()[1:] == [
        "api repos/o/r/issues/7/comments --field body=@comment.md"
    ]
    assert (tmp_path / "calls42").read_text().splitlines()[1:] == [
        "api --method PATCH repos/o/r/issues/comments/42 --field body=@comment.md"
    ]


def test_code_of_a_pull_request_can_write_nothing(tmp_path):
    checks = tmp_path / "all $(touch x) checks.yaml"
    checks.write_text(CHECKS, encoding="utf-8")
    cw.deploy_ci(checks, tmp_path, providers=["github", "gitlab", "pre-commit"], install="pip install 'a b'")
    github = jobs_of(tmp_path / ".github/workflows/chipwise.yml")
    gitlab = jobs_of(tmp_path / ".gitlab/chipwise.yml")
    assert github["permissions"] == {} and github["jobs"]["compile"]["permissions"] == {"contents": "read"}
    assert all("checkout" not in step.get("uses", "") for step in github["jobs"]["comment"]["steps"])
    assert gitlab["chipwise:comment"]["variables"]["GIT_STRATEGY"] == "none"
    scripts = [step["run"] for job in github["jobs"].values() for step in job["steps"] if "run" in step]
    assert not any("${{" in script for script in scripts)  # what an event says is never text of a script
    scripts += [line for job in gitlab.values() for line in job["script"]]
    for script in scripts:
        subprocess.run(["bash", "-n", "-c", script], check=True)
    assert "'all $(touch x) checks.yaml'" in "".join(scripts)
    (hook,) = jobs_of(tmp_path / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert hook["entry"] == "chipwise deploy compile 'all $(touch x) checks.yaml'"


def test_files_that_somebody_edited_or_wrote_stay(tmp_path):
    checks = tmp_path / "checks.yaml"
    checks.write_text(CHECKS, encoding="utf-8")
    first = cw.deploy_ci(checks, tmp_path)
    assert cw.deploy_ci(checks, tmp_path, limit="9%").files == first.files  # nobody edited it
    path = first.files[0]
    assert "--limit 9%" in path.read_text()
    (tmp_path / ".pre-commit-config.yaml").write_text("repos: []\n")
    for providers in (["gitlab", "pre-commit"], ["gitlab", "github"]):
        path.write_text(path.read_text() + "# mine\n")
        with pytest.raises(cw.InputError, match=r"somebody's own|edited since"):
            cw.deploy_ci(checks, tmp_path, providers=providers)
    assert not (tmp_path / ".gitlab").exists()  # all or none


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("checks: []", "CHECKS"),
        ("checks: [{program: a.py:f}]", "checks[0].on"),
        ("checks: [{program: a.py:f, on: v5e:1, onn: 2}]", "onn"),
        ("checks: [{program: a.py:f, on: v5e:1}, {program: a.py:f, on: h100:1}]", "each name once"),
        ("checks: [{program: a.py:f, on: v5e:1}]\nlimit: fast", "limit"),
        ("checks: [{program: a.py:f, on: []}]", "v5e:4x4"),
    ],
)
def test_a_checks_file_that_can_t_be_used_is_one_line(tmp_path, text, sentence):
    (tmp_path / "checks.yaml").write_text(text, encoding="utf-8")
    for verb in ("ci", "compile"):
        done = chipwise_here("deploy", verb, str(tmp_path / "checks.yaml"))
        assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_program_that_can_t_be_read_does_not_stop_the_others(tmp_path):
    (tmp_path / "checks.yaml").write_text(
        "checks:\n  - {program: nowhere.py:f, on: v5e:4}\n  - {program: gpt2, on: 'nochip:4'}\n"
        "  - {program: llama-3.1-8b, on: 'h100:1', with: {batch: 8, sequence: 8192}}\n"
    )
    done = chipwise_here(
        "deploy", "compile", str(tmp_path / "checks.yaml"), "-o", "json", "--out", str(tmp_path / "h.json")
    )
    assert done.returncode == 1
    assert [row.answer for row in results_in(tmp_path / "h.json")] == [
        Answer.UNREADABLE, Answer.UNREADABLE, Answer.DOES_NOT_FIT,
    ]  # fmt: skip


def test_verdicts_follow_both_branches():
    (one, *_) = results_in(EXAMPLES / "head.json")
    bad = replace(one, answer=Answer.DOES_NOT_COMPILE, seconds=None)
    absent = replace(one, answer=Answer.UNREADABLE, seconds=None)
    slow = replace(one, seconds=one.seconds * 1.051)

    def verdict(base, head, limit=0.05):
        (row,) = compared(*[[] if one is None else [one] for one in (base, head)], limit)
        return row.verdict, row.fails

    assert verdict(one, one) == (Verdict.SAME, False)
    assert verdict(one, slow) == (Verdict.SLOWER, True) and verdict(one, slow, 0.06) == (Verdict.CHANGED, False)
    assert verdict(slow, one) == (Verdict.FASTER, False)
    assert verdict(one, bad) == (Verdict.BROKEN, True) and verdict(bad, bad) == (Verdict.STILL_BROKEN, True)
    assert verdict(absent, bad) == verdict(None, bad) == (Verdict.NEW_BROKEN, True)
    assert verdict(bad, one) == (Verdict.FIXED, False) and verdict(absent, one) == (Verdict.NEW, False)
    assert verdict(one, None) == (Verdict.GONE, False)


def test_the_comment_says_what_differs_and_obeys_nobody(tmp_path):
    document = json.loads((EXAMPLES / "head.json").read_text())
    document["rows"][0] |= {"problem": "a `b` <img src=x> @all\n# c", "answer": "does not compile", "seconds": None}
    document["rows"][0]["check"] = "a|b`<script>"
    document["rows"][1]["versions"]["jax"] = "9.9"
    (tmp_path / "head.json").write_text(json.dumps(document))
    comment = cw.deploy_comment(EXAMPLES / "base.json", tmp_path / "head.json").comment
    assert "The compilers differ: jax 0.10.2 → 9.9." in comment
    assert "<script>" not in comment and "a\\|b'&lt;script>" in comment and "\n# c" not in comment
    table = [line for line in comment.splitlines() if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in table} == {7}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"schema": 2}, "deploy compile"), ({"rows": [1]}, "rows.0"), ({"rows": [{"check": 1}]}, "rows.0.check")],
)
def test_a_file_that_is_no_answer_is_refused(tmp_path, change, sentence):
    path = tmp_path / "head.json"
    path.write_text(json.dumps({**json.loads((EXAMPLES / "head.json").read_text()), **change}))
    done = chipwise_here("deploy", "comment", str(EXAMPLES / "base.json"), str(path))
    assert done.returncode == 2 and sentence in done.stderr and not done.stdout


def test_the_example_fails_at_its_limit_and_passes_above_it():
    files = [str(EXAMPLES / name) for name in ("base.json", "head.json")]
    assert chipwise_here("deploy", "comment", *files).returncode == 1
    assert chipwise_here("deploy", "comment", *files, "--limit", "10%").returncode == 0
    assert not Path("comment.md").exists()
