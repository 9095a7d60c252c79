"""Models from the local Hugging Face cache, and what is said of ids that are not known."""

from __future__ import annotations

import json

import pytest

from chipwise.errors import InputError, UnknownName
from chipwise.workload import preset
from chipwise.workload.read import read_workload

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
    "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 2048,
}  # fmt: skip
FLAGS = {"batch": "8", "sequence": "128", "steps": "1"}


def _cache(home, layers, revision, main=False):
    folder = home / "hub" / "models--acme--Tiny-1B"
    blob = folder / "blobs" / revision
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_text(json.dumps({**CONFIG, "num_hidden_layers": layers}))
    snapshot = folder / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").symlink_to(blob)
    if main:
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text(revision)


@pytest.mark.parametrize("revision", ["../../..", "a b", "a" * 900, "\x1b[2J"])
def test_a_revision_that_is_no_name_is_refused(tmp_path, monkeypatch, revision):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    _cache(tmp_path, 2, "aaa", main=True)
    (tmp_path / "hub" / "models--acme--Tiny-1B" / "refs" / "main").write_text(revision)
    with pytest.raises(InputError, match="the name of a revision"):
        read_workload("hf:acme/Tiny-1B", FLAGS)


def test_a_config_comes_from_the_revision_of_main(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    _cache(tmp_path, 2, "aaa", main=True)
    _cache(tmp_path, 3, "bbb")
    model = read_workload("hf:acme/Tiny-1B", FLAGS).model
    assert (model.name, model.layers, model.d_model) == ("Tiny-1B", 2, 256)
    assert read_workload("llama-3.1-8b", {**FLAGS, "model": "hf:acme/Tiny-1B"}).model.layers == 2


def test_a_config_that_is_not_there_is_said_with_the_ways_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"hf download acme/Other config\.json.*--model path/config\.json"):
        read_workload("hf:acme/Other", FLAGS)
    with pytest.raises(InputError, match="hf:ORG/NAME"):
        read_workload("hf:../../etc/passwd", FLAGS)


def test_an_unknown_id_is_told_how_to_pass_its_config():
    with pytest.raises(UnknownName, match=r"--model path/config\.json, or hf:acme/zzz-9 from the local"):
        preset("acme/zzz-9")
