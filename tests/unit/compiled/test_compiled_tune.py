"""The search over options: each alone, then together, within a limit."""

from dataclasses import replace

import pytest

from chipwise.catalog import parse
from chipwise.compiled.check.check import Memory, Question, Row
from chipwise.compiled.check.tune import choice_alternatives, option_alternatives, tune
from chipwise.compiled.job import Compiled, Job, Refused, Spec
from chipwise.compiled.targets import target_of
from chipwise.predict.estimate import Estimate

ACC = parse("v5e:4")
QUESTION = Question(ACC, Job(Spec("function", "m:f", {"folder": "."}), target_of(ACC)))
ALTERNATIVES = choice_alternatives({"a": [0, 1, 2], "b": [0, 1], "c": [0, 1]}, {})


def asking(effects, asked=None):
    """Rows whose seconds are a product of the effects of what is chosen."""

    def ask(question):
        chosen = question.job.spec.data.get("choices", {})
        seconds = 1.0
        for pair in chosen.items():
            effect = effects.get(pair, 1.0)
            if effect is None:
                return Row(question, Refused("compile", "no such thing"))
            seconds *= effect
        if asked is not None:
            asked.append(chosen)
        made = Compiled("k", {}, 1.0, 1, {}, {"of": seconds})
        return Row(
            question,
            made,
            Memory(1.0, 0.0, 0.0, 0.0, 10.0),
            seconds < 100,
            Estimate(seconds, seconds, seconds, "compiled"),
        )

    return ask


def test_good_changes_are_put_together_and_bad_ones_left():
    found = tune(QUESTION, ALTERNATIVES, asking({("a", 1): 0.9, ("a", 2): 0.8, ("b", 1): 0.5, ("c", 1): 1.2}), 100)
    assert found.best.changes == {"b": 1, "a": 2} and found.best.seconds == pytest.approx(0.4)
    assert found.base.seconds == 1.0 and found.left == 0


def test_nothing_better_leaves_the_base():
    found = tune(QUESTION, ALTERNATIVES, asking({}), 100)
    assert found.best is found.base and all(each.same for each in found.trials[1:])


def test_the_limit_counts_every_question():
    asked = []
    found = tune(QUESTION, ALTERNATIVES, asking({("a", 1): 0.9}, asked), 3)
    assert len(asked) == len(found.trials) == 3 and found.left == 2


def test_what_is_refused_or_does_not_fit_is_never_the_best():
    found = tune(QUESTION, ALTERNATIVES, asking({("a", 1): None, ("b", 1): 1000.0}), 100)
    assert found.best is found.base
    assert {each.refused for each in found.trials} == {"", "no such thing", "does not fit"}


def test_a_program_that_is_refused_is_not_searched():
    found = tune(QUESTION, ALTERNATIVES, lambda q: Row(q, Refused("trace", "no")), 100)
    assert found.best.seconds is None and len(found.trials) == 1


def test_options_a_job_already_has_are_not_tried_again():
    every = option_alternatives(QUESTION.job)
    options = dict(every[0].changes)
    assert len(option_alternatives(replace(QUESTION.job, options=options))) == len(every) - 1


def test_gpus_have_no_options_of_tpus():
    assert option_alternatives(replace(QUESTION.job, target=target_of(parse("h100:8")))) == []
