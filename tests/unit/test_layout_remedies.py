"""What a refusal for memory offers is what then runs on the chips that were asked for."""

import shlex

import pytest

import chipwise as cw

CASES = [
    ("llama-3.1-70b", "v6e:32", {"batch": 64, "sequence": 4096, "steps": 10}),
    ("llama-3.1-8b", "h100:1", {"batch": 64, "sequence": 8192, "steps": 10}),
    ("flux.1-dev", "h100:8", {"batch": 64, "samples": "1M"}),
    ("llama-3.1-70b", "h100:8", {"batch": 8, "sequence": 4096, "steps": 10}),
    ("qwen3-32b", "h200:4", {"batch": 64, "sequence": 8192, "steps": 10, "recompute": "none"}),
]


@pytest.mark.parametrize(("model", "chips", "changes"), CASES, ids=lambda value: str(value)[:16])
def test_what_is_offered_fits(model, chips, changes):
    with pytest.raises(cw.DoesNotFit, match=r"on \S+ it fits with `--") as refused:
        cw.predict(cw.load(model, **changes), on=chips)
    offers = refused.value.unlock.split("it fits with ")[1].split(" or with ")
    for offer in offers:
        words = shlex.split(offer.strip("`"))
        flags = {
            flag.removeprefix("--").replace("-", "_"): value
            for flag, value in zip(words[::2], words[1::2], strict=True)
        }
        assert cw.predict(cw.load(model, **{**changes, **flags}), on=chips).prediction.fits


def test_what_nothing_helps_is_refused_with_the_chips_that_would():
    with pytest.raises(cw.DoesNotFit) as refused:
        cw.predict(cw.load("llama-3.1-405b", batch=8, sequence=4096, steps=10), on="l4:1")
    assert "it fits with" not in str(refused.value) and refused.value.holds in str(refused.value)
