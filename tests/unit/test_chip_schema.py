"""The schema of a chip's file: it takes every example and what the reader takes, and refuses what the reader refuses."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from chipwise.catalog.chip_file import KEYS, MEASURES, read_chip_file
from chipwise.catalog.chip_schema import WORDS, schema
from chipwise.cli.main import run
from chipwise.errors import ChipwiseError

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "chips").iterdir())
GOOD = {"name": "mine", "like": "h100"}
VALID = [
    {"bandwidth": "3 TB/s"}, {"links": "450 GB/s one way"}, {"memory": {"value": "96 GiB", "date": "2026-11", "note": "x"}},
    {"cores": 132}, {"cores": "1,024"}, {"peak": {"bf16": "989 TFLOP/s", "fp8": "none"}}, {"price": 2.5}, {"price": "€2.30/h"},
    {"date": 2026, "source": "an offer"}, {"clock": ".98 GHz"},
]  # fmt: skip
BROKEN = [
    {"name": "Mine!"}, {"like": ""}, {"bandwith": "3 TB/s"}, {"bandwidth": "3"}, {"bandwidth": 3}, {"bandwidth": "3 tb/s"}, {"power": "500"},
    {"bandwidth": "3 TB"}, {"memory": {"source": "x"}}, {"memory": {"value": "96 GiB", "sauce": "x"}}, {"cores": 0}, {"cores": "many"},
    {"peak": "989 TFLOP/s"}, {"peak": {"fp7": "1 TFLOP/s"}}, {"peak": {"bf16": "fast"}}, {"price": 0}, {"price": -1}, {"date": "yesterday"},
    {"title": 5}, {"bandwidth": "1,5 TB/s"},
]  # fmt: skip


def read(tmp_path, table):
    path = tmp_path / "chip.yaml"
    path.write_text(yaml.safe_dump(table), encoding="utf-8")
    return read_chip_file(path)


def valid(table):
    return Draft202012Validator(schema()).is_valid(table)


def test_it_is_a_schema_and_names_every_key_of_the_reader():
    Draft202012Validator.check_schema(schema())
    assert set(schema()["properties"]) == set(KEYS) and set(WORDS) == set(MEASURES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(path):
    text = path.read_text(encoding="utf-8")
    assert valid(tomllib.loads(text) if path.suffix == ".toml" else yaml.load(text, yaml.BaseLoader))
    assert read_chip_file(path).id == path.stem


@pytest.mark.parametrize("change", VALID, ids=str)
def test_what_the_reader_takes_is_valid(tmp_path, change):
    assert read(tmp_path, GOOD | change) and valid(GOOD | change)


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_what_the_reader_refuses_is_not_valid(tmp_path, change):
    with pytest.raises(ChipwiseError):
        read(tmp_path, GOOD | change)
    assert not valid(GOOD | change)


@pytest.mark.parametrize("missing", GOOD)
def test_a_file_without_what_it_must_have_is_not_valid(missing):
    assert not valid({key: value for key, value in GOOD.items() if key != missing})


def test_the_command_prints_it(capsys):
    assert run(["schema", "chip"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
