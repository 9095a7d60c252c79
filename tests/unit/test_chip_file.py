"""What a file of one's own chip may say, and the one line that refuses the rest."""

import pytest

from chipwise import Knowledge
from chipwise.catalog import add_chip_files, drop_chip_files, load, parse
from chipwise.errors import ChipwiseError, InputError
from chipwise.units import parse_quantity

LEAST = "name: mine\nlike: h100\n"


@pytest.fixture(autouse=True)
def the_catalog_as_before():
    yield
    drop_chip_files()


def chip(tmp_path, text, name="mine.yaml"):
    path = tmp_path / name
    path.write_text(text)
    add_chip_files([path])
    return load().chips["mine"]


def test_what_is_not_said_is_as_the_chip_it_is_like(tmp_path):
    mine, like = chip(tmp_path, LEAST + "bandwidth: 3 TB/s\n"), load().chips["h100"]
    assert mine.bandwidth == 3e12 and mine.figures["bandwidth"].source.endswith("mine.yaml")
    assert (mine.peak, mine.memory_bytes, mine.fabric) == (like.peak, like.memory_bytes, like.fabric)
    assert all(f.note.startswith("assumed: as h100") for name, f in mine.figures.items() if name != "bandwidth")


def test_yaml_and_toml_say_the_same(tmp_path):
    yaml = chip(tmp_path, LEAST + "peak: {bf16: 1.1 PFLOP/s}\nlinks: 400 Gb/s\n")
    drop_chip_files()
    toml = chip(
        tmp_path, 'name = "mine"\nlike = "h100"\nlinks = "50 GB/s"\n[peak]\nbf16 = "1100 TFLOPS"\n', "mine.toml"
    )
    assert (yaml.peak, yaml.fabric) == (toml.peak, toml.fabric)
    assert toml.fabric.scale_up == toml.fabric.link == 5e10


def test_shares_of_a_figure_follow_it(tmp_path):
    mine, like = chip(tmp_path, LEAST + "memory: 160 GiB\npower: 350 W\n"), load().chips["h100"]
    assert mine.usable_bytes / mine.memory_bytes == pytest.approx(like.usable_bytes / like.memory_bytes)
    assert mine.idle_w / mine.tdp_w == pytest.approx(like.idle_w / like.tdp_w)


def test_python_takes_it_with_what_is_known(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(LEAST + "price: 1.25\n")
    book = Knowledge.default(chip_file=path).prices
    assert [offer.ondemand_usd_per_chip_hour for offer in book.offers_for("mine")] == [1.25]
    assert parse("mine:8").count == 8


def test_a_changed_file_is_read_again(tmp_path):
    chip(tmp_path, LEAST + "cores: 100\n")
    assert chip(tmp_path, LEAST + "cores: 90\n").cores == 90


def test_a_file_may_build_on_another(tmp_path):
    chip(tmp_path, LEAST + "cores: 100\n")
    other = tmp_path / "other.yaml"
    other.write_text("name: other\nlike: mine\nclock: 1.5 GHz\n")
    add_chip_files([other])
    assert (load().chips["other"].cores, load().chips["other"].like) == (100, "mine")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("like: h100\n", ("name: missing",)),
        ("name: mine\n", ("like: missing", "such as h100")),
        ("name: Mine!\nlike: h100\n", ("name", "'Mine!'", "small letters")),
        ("name: h200\nlike: h100\n", ("name", "'h200'", "no other chip")),
        ("name: mine\nlike: h10\n", ("like", "unknown name 'h10'", "h100")),
        (LEAST + "bandwith: 3 TB/s\n", ("unknown key 'bandwith'", "bandwidth")),
        (LEAST + "bandwidth: 3\n", ("bandwidth", "3 is not accepted", "TB/s")),
        (LEAST + "bandwidth: 3 TB\n", ("bandwidth", "'3 TB'", "GB/s")),
        (LEAST + "bandwidth: -3 TB/s\n", ("bandwidth", "'-3 TB/s'")),
        (LEAST + "bandwidth: 3 MB/s\n", ("bandwidth", "'3 MB/s'", "between")),
        (LEAST + "bandwidth: {value: 3 TB/s, sauce: x}\n", ("bandwidth.sauce", "unknown key", "source")),
        (LEAST + "bandwidth: {source: x}\n", ("bandwidth.value: missing",)),
        (LEAST + "bandwidth: {value: 3 TB/s, date: soon}\n", ("bandwidth.date", "'soon'", "2026-11")),
        (LEAST + "memory: .nan\n", ("memory", "nan")),
        (LEAST + "memory: [1]\n", ("memory", "[1]")),
        (LEAST + "memory: 80 GiB\nusable_memory: 90 GiB\n", ("usable_memory", "at most its memory")),
        (LEAST + "idle_power: 900 W\n", ("idle_power", "at most its power")),
        (LEAST + "cores: 1.5\n", ("cores", "whole number")),
        (LEAST + "peak: {bf17: 1 PFLOP/s}\n", ("peak.bf17", "unknown precision", "bf16")),
        (LEAST + "peak: {fp4: none}\n", ("peak.fp4", "'none'", "a precision that h100 has")),
        (LEAST + "peak: 900\n", ("peak", "900", "bf16")),
        (LEAST + "price: 0\n", ("price", "0 is not accepted", "above 0")),
        ("name: mine\nlike: v5p\nlinks: 100 GB/s\n", ("links", "torus")),
        ("- a\n", ("mine.yaml", "keys and values")),
    ],
)
def test_what_no_chip_can_be_is_refused_in_one_line(tmp_path, text, parts):
    with pytest.raises(ChipwiseError) as refused:
        chip(tmp_path, text)
    line = str(refused.value)
    assert "mine.yaml" in line and "\n" not in line
    assert all(part in line for part in parts), line


def test_a_file_that_is_refused_leaves_the_catalog_as_it_was(tmp_path):
    chip(tmp_path, LEAST)
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\nlike: nothing\n")
    with pytest.raises(InputError):
        add_chip_files([broken])
    assert "mine" in load().chips and "broken" not in load().chips


@pytest.mark.parametrize(("text", "unit", "value"), [("400 Gb/s", "bytes/s", 5e10), ("400 GB/s", "bytes/s", 4e11)])
def test_bits_and_bytes_are_told_apart_by_their_capital(text, unit, value):
    assert parse_quantity(text, "network", unit, "") == value
    with pytest.raises(InputError):
        parse_quantity(text.lower(), "network", unit, "")


def test_rates_that_are_given_hold_for_its_price(tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    path.write_text(LEAST + "price: 2 EUR\n")

    def usd(**given):
        (offer,) = (o for o in Knowledge.default(**given).prices.offers if o.chip_id == "mine")
        return offer.price(), offer.source

    assert usd(chip_file=path, fx=["EUR=1.5"]) == (3.0, f"{path}; 2 EUR at 1.5 USD as given")
    assert usd(chip_file=path)[0] != 3.0  # the listed rate again
    drop_chip_files()
    monkeypatch.setenv("CHIPWISE_CHIPS", str(path))
    assert usd(fx=["EUR=4"])[0] == 8.0
