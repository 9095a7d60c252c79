"""Samples of a video model are videos, in every answer; their bytes are assumed, and it says so."""

import json

import pytest

from chipwise import load
from chipwise.cli.main import run
from chipwise.workload.load import load_serving

WAN = "wan2.1-t2v-1.3b"


def answer(capsys, *line):
    assert run([*line]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_a_workload_counts_videos():
    train = load(WAN, samples=1000, batch=64)
    assert (train.unit, train.train.samples_unit, train.model.pictures) == (
        "videos",
        "videos",
        "videos of 21 latent frames",
    )
    served = load_serving(f"model: {WAN}\nserve: {{denoise_steps: 50, arrival: {{rate: 0.1}}}}")
    assert served.unit == "videos"
    assert load("dit-xl-2", samples=1000, batch=64).unit == "images"


@pytest.mark.parametrize("verb", ["compare", "cost", "predict"])
def test_a_training_run_is_of_videos(capsys, verb):
    full = ("--full", "--pricing", "ondemand") if verb == "cost" else ()
    out = answer(capsys, verb, WAN, "--samples", "10000", "--batch", "64", "--on", "h100:64", *full).partition(
        "Every assumption"
    )[0]
    assert "video" in out and "image" not in out.replace("image_bytes", "")


def test_a_bill_counts_videos_and_says_that_their_bytes_are_assumed(capsys):
    line = (
        "cost",
        WAN,
        "--samples",
        "10000",
        "--batch",
        "64",
        "--on",
        "h100:64",
        "--pricing",
        "ondemand",
        "-o",
        "json",
    )
    document = json.loads(answer(capsys, *line))
    assert "the bytes of a video are assumed" in json.dumps(document) and "video_bytes" in json.dumps(document)
    assert "image" not in json.dumps([s["options"] for s in document["statements"]])


def test_a_service_answers_in_videos(capsys):
    flags = ("--rate", "0.05", "--denoise-steps", "20", "--e2e", "30min", "--on", "h100")
    out = answer(capsys, "compare", WAN, *flags)
    assert "video" in out and "image" not in out
    bill = answer(capsys, "cost", WAN, *flags, "--pricing", "ondemand", "--full")
    assert "the bytes of a video are assumed" in bill
