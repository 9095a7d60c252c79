"""How far serving predictions are from published figures, and that their intervals hold on sources never seen."""

import hashlib
from pathlib import Path
from statistics import mean

import pytest

from chipwise.catalog import find_chip, find_stack
from chipwise.catalog.calibration import load_calibration
from chipwise.predict.estimate import Distance
from chipwise.serving.distance import ENOUGH, Seen, place_of
from chipwise.serving.widths import BY_DISTANCE, from_columns, widths_of
from chipwise.validate.by_distance import crossed
from chipwise.validate.score import read_rows
from chipwise.validate.serving_rows import repository_of
from chipwise.validate.summary import summary

LATER = Path(__file__).resolve().parents[2] / "validation" / "rows" / "inference_later.csv"


def at(chip: str, stack: str, load: str = "closed", repository: str = ""):
    return place_of(find_chip(chip), find_stack(stack), load, repository)


@pytest.fixture(scope="module")
def seen():
    return Seen({at("h100", "vllm", repository="someone"): ENOUGH, at("l40s", "vllm"): ENOUGH - 1})


@pytest.mark.parametrize(
    ("place", "distance"),
    [
        (at("h100", "vllm", repository="someone"), Distance.SOURCE),
        (at("h100", "vllm", repository="another"), Distance.REGIME),
        (at("h100", "vllm"), Distance.REGIME),
        (at("h100", "sglang"), Distance.CHIP),
        (at("h100", "vllm", "offline"), Distance.CHIP),
        (at("h200", "vllm"), Distance.DESIGN),
        (at("b200", "vllm"), Distance.VENDOR),
        (at("l40s", "vllm"), Distance.VENDOR),  # too few of its own
        (at("mi300x", "vllm"), Distance.NOBODY),
        (at("v6e", "vllm"), Distance.NOBODY),
    ],
)
def test_the_distance_is_that_of_the_nearest_figures(seen, place, distance):
    assert seen.distance(place) is distance


def test_a_vendor_whose_chips_nobody_published_is_less_sure_than_a_chip_that_was_seen():
    widths = widths_of(load_calibration(bench=False).serving)
    near, far = widths.seen.distance(at("h100", "vllm")), widths.seen.distance(at("gaudi3", "vllm"))
    assert (near, far) == (Distance.REGIME, Distance.NOBODY)
    for metric in ("throughput", "tpot", "ttft"):
        low, high = widths.bounds(metric, near)
        lower, higher = widths.bounds(metric, far)
        assert higher - lower >= high - low > 0.5, metric


@pytest.fixture(scope="module")
def errors():
    return from_columns(load_calibration(bench=False, refits=True).serving.errors)


def test_every_distance_is_learned_from_several_repositories(errors):
    for distance in BY_DISTANCE:
        assert len({e.repository for e in errors if e.distance is distance}) >= 3, distance


def covered(pairs):
    return summary(len(pairs), [pair for _, pair in pairs])["coverage90"]


def test_intervals_hold_on_repositories_left_out(errors):
    """By widths of the other repositories alone, and predictions that saw nothing of the repository.

    Repositories count alike, as they do where widths are learned: a quarter of all figures are of one of them.
    """
    parts: dict[tuple, list] = {}
    for error, (metric, pair) in zip(sorted(errors, key=lambda e: e.repository), crossed(errors), strict=True):
        assert error.metric == metric and error.distance is pair.estimate.distance
        parts.setdefault((error.repository, metric, error.distance), []).append((metric, pair))
    assert 0.85 <= mean(map(covered, parts.values())) <= 0.95
    assert covered(crossed(errors)) >= 0.8


def test_intervals_learned_from_half_of_the_repositories_hold_on_the_other(errors):
    """Halves by a hash of the name, so that nobody has chosen them."""

    def half(error):
        return str(hashlib.sha256(error.repository.encode()).digest()[0] % 2)

    assert covered(crossed(errors, half)) >= 0.8


def test_errors_are_of_rows_gathered_later_with_their_repository_left_out(errors):
    rows = {row["id"]: row["source_repo"] for row in read_rows(LATER)[1]}
    assert {e.row for e in errors} <= rows.keys()
    assert all(e.repository == repository_of(rows[e.row]) for e in errors)
    assert not [e for e in errors if e.distance is Distance.SOURCE]
