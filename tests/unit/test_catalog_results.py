"""Chips, models and prices as results: the same data in JSON, CSV, pandas, text and HTML."""

import csv
import io
import json
from datetime import date

import pytest

from chipwise import api
from chipwise.catalog import load
from chipwise.errors import InputError, UnknownName
from chipwise.knowledge import Knowledge
from chipwise.present.columns import Column
from chipwise.present.output import show
from chipwise.prices import chip_view

RESULTS = {
    "all chips": lambda: api.chips(),
    "one chip": lambda: api.chips("v5e"),
    "models": lambda: api.models("llama"),
    "prices": lambda: api.prices("h100,v7x"),
    "prices of every chip": lambda: api.prices(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_face_shows_a_result(name, capsys):
    result = RESULTS[name]()
    show(result, "json")
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(json.dumps(result.to_dict())) and document["command"] == result.VERB
    show(result, "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(result.flat_rows()) and list(rows[0]) == list(result.flat_rows()[0])
    assert all(list(row) == list(rows[0]) for row in rows)
    assert list(result.to_pandas().columns) == list(rows[0])
    assert result._repr_mimebundle_() == {"text/plain": str(result), "text/html": result._repr_html_()}
    assert "<table" in result._repr_html_() and str(result).count("\n") > 3


def test_a_chip_is_found_by_any_of_its_names():
    assert api.chips("NVIDIA H100 80GB HBM3").chip is load().chips["h100"]
    with pytest.raises(UnknownName, match="did you mean"):
        api.chips("h10")


def test_prices_are_as_old_as_the_day_of_the_knowledge_makes_them():
    new, old = (
        api.prices("v5p", knowledge=Knowledge.default(today=day)) for day in (date(2026, 8, 22), date(2027, 8, 22))
    )
    for before, after in zip(new.to_dict()["offers"], old.to_dict()["offers"], strict=True):
        assert after["age_days"] - before["age_days"] == 365
    assert all(row["ondemand_stale"] for row in old.flat_rows() if row["ondemand_usd_per_chip_hour"])
    listed = api.chips(knowledge=Knowledge.default(today=date(2027, 8, 22)))
    assert all(row.ondemand.stale for row in listed.rows if row.ondemand)


def test_prices_take_lists_of_names_as_well_as_words():
    assert api.prices(["v5e", "v5p"], cloud=["gcp"]).to_dict() == api.prices("v5e, v5p", cloud="GCP").to_dict()
    with pytest.raises(InputError, match="pricing: '2y'"):
        api.prices(pricing="2y")
    with pytest.raises(InputError, match=r"^on: "):
        api.prices([])


def test_a_column_of_chips_is_one_line(monkeypatch):
    column = Column("idle_w", lambda row: row.chip.idle_w, "idle W")
    monkeypatch.setattr(chip_view, "CHIP", [*chip_view.CHIP, column])
    chips = api.chips()
    assert "idle W" in str(chips) and "idle W" in chips._repr_html_()
    assert all("idle_w" in chip for chip in chips.to_dict()["chips"])
    assert "idle_w" in chips.flat_rows()[0]


def test_models_that_no_name_has_are_refused():
    for name in ("no-such-model", "-"):
        with pytest.raises(UnknownName):
            api.models(name)
