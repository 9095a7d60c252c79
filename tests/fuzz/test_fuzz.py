"""Whatever others write, readers answer with data or with one line; seconds of cases here, ten minutes in `make test-slow`."""

from __future__ import annotations

import pytest
from harness import CORPUS, HOSTILE, Finding, Outcome, Target, attempt, case, corpus, fuzz, report
from targets import TARGETS

from chipwise.errors import InputError

SHORT, TEN_MINUTES = 60.0, 600.0  # seconds of all targets together


def hold(target, seconds, seed, folder, record_property):
    outcome = fuzz(target, folder, seconds / len(TARGETS), seed)
    record_property("fuzz", [target.name, outcome.cases, outcome.taken, len(outcome.findings)])
    assert not outcome.findings, report(outcome, folder / "findings")


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_readers_answer_with_data_or_one_line(target, tmp_path, record_property):
    hold(target, SHORT, "short", tmp_path, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_readers_answer_with_data_or_one_line_for_long(target, tmp_path, record_property):
    hold(target, TEN_MINUTES, "ten minutes", tmp_path, record_property)


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_every_folder_of_the_corpus_has_a_target_that_reads_it(name):
    (target,) = [target for target in TARGETS if target.name == name]
    assert corpus(target)


def test_good_inputs_are_taken(tmp_path):
    """Otherwise mutations of them would all be refused at the door."""
    for target in TARGETS:
        outcome = Outcome(target.name)
        for data in target.seeds():
            attempt(target, data, tmp_path, outcome)
        assert target.seeds() and outcome.taken, target.name


def test_cases_are_the_same_every_time():
    seeds = [b'{"a": [1, 2], "b": "x"}']
    target = Target("t", lambda folder, data: None, lambda: seeds, "json")
    first, again = ([case(target, seeds, "s", i) for i in range(200)] for _ in range(2))
    assert first == again and len(set(first)) > 100 and HOSTILE


def test_findings_are_told_with_their_input_and_a_file_for_the_corpus(tmp_path):
    def read(folder, data):
        if b"x" in data:
            raise KeyError("x")
        if b"y" in data:
            raise InputError("a", "b", "c\nd")
        raise InputError("a", "b", "c")

    outcome = fuzz(Target("reader", read, lambda: [b"x", b"y", b"z"]), tmp_path, 0.0, "s")
    (finding,) = outcome.findings.values()
    assert (outcome.cases, finding.data, finding.count) == (3, b"x", 1) and isinstance(finding, Finding)
    words = report(outcome, tmp_path / "kept")
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.read_bytes() == b"x" and str(kept) in words and "KeyError" in words and "b'x'" in words
