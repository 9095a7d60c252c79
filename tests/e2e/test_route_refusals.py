"""What the routing verbs refuse, and that nothing is written then."""

import json
import os
from pathlib import Path

import pytest
from command import ROOT, chipwise_here
from ledger_cases import start, submission

from chipwise.errors import ChipwiseError, InputError, Refusal
from chipwise.route.backends.named import backends_of
from chipwise.route.estimates import admit, estimator
from chipwise.route.ledger import default_ledger, open_ledger
from chipwise.route.ledger.records import AttemptEnd
from chipwise.route.load import load_jobs
from chipwise.route.load.pools import default_folder, load_pools
from chipwise.route.pool import Pool

POOLS = str(ROOT / "examples" / "pools" / "local.yaml")
HELLO = str(ROOT / "examples" / "jobs" / "hello.yaml")
TRACE = ("examples/traces/mixed-day.yaml", "--pools", "examples/traces/mixed-pools.yaml")


@pytest.fixture
def at(tmp_path):
    """Runs chipwise with data of the test's own; what it says."""
    (tmp_path / "data").mkdir()
    env = {
        **os.environ,
        "CHIPWISE_DATA": str(tmp_path / "data"),
        "CHIPWISE_POOLS": POOLS,
        "CHIPWISE_LEDGER": str(tmp_path / "data" / "ledger.db"),
    }

    def run(*arguments, status=0):
        done = chipwise_here(*arguments, env=env)
        assert done.returncode == status, done.stderr + done.stdout
        return done.stderr if status == 2 else done.stdout

    run.ledger = tmp_path / "data" / "ledger.db"
    return run


def jobs(at):
    if not at.ledger.exists():
        return []
    with open_ledger(str(at.ledger)) as book:
        return book.jobs()


def test_a_policy_that_fails_leaves_the_ledger_as_it_was(at, tmp_path, monkeypatch):
    (tmp_path / "broken_policy.py").write_text("def broken(view):\n    raise RuntimeError('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "broken_policy:broken failed" in at("jobs", "submit", HELLO, "--policy", "broken_policy:broken", status=2)
    assert jobs(at) == []


def test_a_job_is_not_written_where_the_answer_cannot_be(at, tmp_path):
    for out in ("/nope/x", str(tmp_path)):
        assert "--out" in at("jobs", "submit", HELLO, "--out", out, status=2)
    assert jobs(at) == []
    at("jobs", "submit", HELLO, "--out", tmp_path / "said")
    assert "--out" in at("jobs", "cancel", "1", "--out", "/nope/x", status=2)
    assert [job.state for job in jobs(at)] == ["pending"] and "hello" in (tmp_path / "said").read_text()
    assert "--out" in at("pools", "drain", "h100", "--reason", "why", "--out", "/nope/x", status=2)
    with open_ledger(str(at.ledger)) as book:
        assert book.drained() == {}


@pytest.mark.parametrize("verb", [("router", "run", "--once"), ("simulate", *TRACE)], ids=lambda verb: verb[0])
def test_weights_that_no_policy_hears_are_refused(at, verb):
    assert "cost, time, energy, risk" in at(*verb, "--policy", "balanced", "--weight", "foo=1", status=2)
    assert "cheapest has none" in at(*verb, "--policy", "cheapest", "--weight", "cost=1", status=2)


def test_the_ledger_lies_in_the_data_folder_beside_the_attempts(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path))
    assert Path(default_ledger()).parent == default_folder().parent == tmp_path
    monkeypatch.delenv("CHIPWISE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Path(default_ledger()).parent == default_folder().parent == tmp_path / "chipwise"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert Path(default_ledger()).parent == default_folder().parent == Path.home() / ".local" / "share" / "chipwise"


def test_of_several_files_the_wrong_one_is_named(at, tmp_path):
    bad = tmp_path / "b.yaml"
    bad.write_text("name: b\ncommand: [echo]\nestimates: {cpu: 5s}\nretries: -1\n")
    assert f"{bad}: retries: -1" in at("jobs", "submit", HELLO, bad, status=2)
    bad.write_text("name: [\n")
    assert str(bad) in at("jobs", "submit", HELLO, bad, status=2)
    assert "none.yaml'" in at(
        "jobs", "submit", HELLO, tmp_path / "none.yaml", status=2
    )  # the end of a long path is shown
    assert jobs(at) == []


def test_the_end_of_a_failed_attempts_output_is_shown(at, tmp_path):
    home = tmp_path / "home"
    with open_ledger(str(at.ledger)) as book:
        (job,) = book.submit([submission("crash")], 1000.0)
        book.settle({"local": ("mark", str(home))}, "r1", "here", 1, "fastest", 1000.0, 60.0)
        (attempt,) = book.decide("r1", "fastest", [start(job)], 1010.0, 30.0, {"h100": 8})
        book.end(attempt.id, AttemptEnd("failed", exit_code=9, reason="left with status 9"), 1020.0)
    output = home / "attempts" / attempt.id / "output"
    assert "Output" not in at("jobs", "show", job)  # not seen from here
    output.parent.mkdir(parents=True)
    output.write_bytes(b"x" * 9000 + b"\nTraceback\n\x1b[31mValueError: bad\x1b[0m \x07\xff" + b"y" * 500 + b"\n\n")
    for verb in ("show", "explain"):
        said = at("jobs", verb, job)
        assert f"attempt 1: {output}" in said and "    ValueError: bad \\x07" in said and "y" * 200 not in said
        assert "\x1b" not in said and "\x07" not in said and "x" * 200 not in said
        (told,) = json.loads(at("jobs", verb, job, "-o", "json"))["attempts"]
        assert told["output"] == str(output) and told["output_end"][-2] == "Traceback"
    output.unlink()
    os.mkfifo(output)  # reading it would never end
    assert "Output" not in at("jobs", "show", job)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ((("foo", "1"),), "'foo' is not accepted; expected one of cluster, cwd, ids"),
        ((("ids", "0,0"),), "each once"),
        ((("ids", "a,b"),), "whole numbers"),
        ((("ids", "0,"),), "whole numbers"),
        ((("ids", "3"),), "2 ids"),
        ((("ids", "3,4,5"),), "2 ids"),
        ((("cwd", "/nope"),), "a folder of this machine"),
    ],
)
def test_an_address_that_the_local_backend_cannot_use_is_refused(tmp_path, address, said):
    with pytest.raises(InputError, match=said) as caught:
        backends_of([Pool("a", "local", "h100", "gpu", 2, address=address)], {"local": tmp_path}, "uid")
    assert str(caught.value).startswith("pools.a.address")


def test_an_address_that_the_local_backend_can_use_is_taken(tmp_path):
    good = Pool("a", "local", "h100", "gpu", 2, address=(("ids", "4, 5"), ("cwd", str(tmp_path))))
    assert list(backends_of([good], {"local": tmp_path}, "uid")) == ["local"]


def wrong(text):
    with pytest.raises(InputError) as caught:
        load_jobs(text, 0.0)
    return str(caught.value)


def test_errors_name_the_part_and_show_what_stands_there():
    plain = "name: a\nestimates: {cpu: 5s}\n"
    said = wrong(plain + "command: [true]")
    assert said.startswith("command[0]: True is not accepted") and 'quote what YAML reads otherwise ("true")' in said
    assert wrong(plain + "command: [echo, [a]]").startswith("command[1]: 'a list'")
    assert wrong("jobs: []\n").startswith("jobs: [] is not")
    assert wrong("name: a\ncommand: [a]\nestimates: {}").startswith("estimates: {} is not")
    assert wrong(plain + "command: [a]\nvariants: {}").startswith("variants: {} is not")
    assert wrong(plain + "command: {a: 1}").startswith("command: 'keys and values'")


def test_an_empty_list_of_pools_is_shown_as_one(tmp_path):
    (tmp_path / "pools.yaml").write_text("pools: []\n")
    with pytest.raises(InputError, match=r"^pools: \[\] is not"):
        load_pools(tmp_path / "pools.yaml")
    (tmp_path / "pools.yaml").write_text("- a\n")
    with pytest.raises(InputError, match="`pools:`"):
        load_pools(tmp_path / "pools.yaml")


def test_a_job_file_that_is_a_list_is_told_where_lists_go(tmp_path):
    (tmp_path / "list.yaml").write_text("- name: a\n")
    said = wrong(tmp_path / "list.yaml")
    assert "`jobs:`" in said and "model" not in said and "'a list'" in said


def test_two_jobs_of_one_key_are_not_said_to_be_in_the_ledger(at, tmp_path):
    file = tmp_path / "two.yaml"
    one = "  - {name: %s, key: k, command: [echo, %s], estimates: {cpu: 5s, gpu: 5s}}\n"
    file.write_text("jobs:\n" + one % ("a", "a") + one % ("b", "b"))
    said = at("jobs", "submit", file, status=2)
    assert "another job of this submission" in said and "was submitted" not in said
    assert jobs(at) == []


def test_a_drained_pool_is_why_a_job_waits(at, tmp_path):
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools:\n  - {name: here, backend: local, chip: cpu, count: 2}\n")
    at("jobs", "submit", HELLO, "--pools", pools)
    at("pools", "drain", "here", "--reason", "new drivers", "--pools", pools)
    at("router", "run", "--once", "--policy", "cheapest", "--pools", pools)
    said = at("jobs", "explain", "1")
    assert "  here is drained: waits\n" in said and "working chips" not in said and "waits: here" not in said


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("layout: tp=banana", "variants.gpu.layout tp: 'banana'"),
        ("layout: tp=7", "variants.gpu.layout: 'tp=7'"),
        ("program: nope.py", "variants.gpu.program: 'nope.py'"),
        ("program: 'nope.py:f'", "variants.gpu.program: no such file: 'nope.py:f'"),
    ],
)
def test_what_a_variant_cannot_have_is_named_as_in_the_file(variant, said):
    text = (
        "name: a\nworkload: {model: gpt2, train: {steps: 10, global_batch: 64, sequence: 1024}}\n"
        f"variants: {{gpu: {{chips: 8, command: [a], {variant}}}}}\n"
    )
    (job,) = load_jobs(text, 0.0)
    with pytest.raises(ChipwiseError) as caught:
        admit(job, *estimator().options(job, [Pool("h100", "local", "h100", "gpu", 8)]), 0.0)
    assert said in str(caught.value) and "--layout" not in str(caught.value)


def test_estimates_of_a_place_that_is_nearly_one_are_told_of_it():
    (job,) = load_jobs("name: a\ncommand: [a]\nestimates: {h1000: 3s}", 0.0)
    with pytest.raises(Refusal, match=r"no estimate for big, h100 or gpu .*h100 in place of h1000\?"):
        admit(job, *estimator().options(job, [Pool("big", "local", "h100", "gpu", 8)]), 0.0)


def test_a_slurm_conf_that_is_missing_is_said_at_once(at, tmp_path):
    pools = tmp_path / "pools.yaml"
    pools.write_text((ROOT / "examples" / "pools" / "slurm.yaml").read_text().replace("/etc/slurm/", "none/"))
    said = at("pools", "--pools", pools)
    assert "none/slurm.conf: there is no such file" in said and "no answer" not in said
