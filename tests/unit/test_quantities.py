"""Numbers mean what people write, whichever flag, file or list they stand in; what may mean two things is asked back."""

from datetime import date

import pytest

from chipwise.catalog import parse
from chipwise.catalog.currencies import read_rates
from chipwise.catalog.economics import ALSO_CALLED, own_sites, site
from chipwise.cli.main import command, run
from chipwise.cli.numbers import read
from chipwise.compare.edge import parse_watts
from chipwise.compare.terms import candidates
from chipwise.errors import AmbiguousNumber, InputError
from chipwise.layout.headroom import read_headroom
from chipwise.prices.custom_prices import read_custom_prices
from chipwise.prices.given import read_given
from chipwise.units import parse_quantity, parse_rate
from chipwise.workload.load import load_serving, load_workload
from chipwise.workload.read import read_serving

LORA = "model: llama-3.2-1b\ntrain: {steps: 10, global_batch: 8, sequence: 2048, lora: {rank: RANK}}"
SERVED = "model: llama-3.2-1b\nserve: {input: INPUT, output: 100, arrival: {rate: RATE}}"


def numeric(verbs):
    """Every option of a number, of every verb."""
    for verb in verbs:
        yield from numeric(list(getattr(verb, "commands", {}).values()))
        for parameter in verb.params:
            kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            if kind in (int, float) and parameter.param_type_name == "option" and not parameter.is_flag:
                yield parameter, kind


def test_every_option_of_a_number_has_the_one_reader():
    root = command()
    options = list(numeric([root, *(root.commands[name] for name in root.commands)]))
    assert len(options) > 60
    for parameter, kind in options:
        flag = max(parameter.opts, key=len)
        with pytest.raises(InputError, match=r"1\.5 or 15|1,5") as asked:
            read(parameter, kind, "1,5")
        assert asked.value.field == flag
        with pytest.raises(InputError, match="'two' is not accepted") as refused:
            read(parameter, kind, "two")
        assert refused.value.field == flag
        if (parameter.max is None or parameter.max >= 1024) and parameter.metavar != "SHARE":
            assert read(parameter, kind, "1,024") == 1024.0
        if parameter.min is not None and parameter.min > 0:
            with pytest.raises(InputError, match=r"'0' is not accepted; expected .* (from|of at least)"):
                read(parameter, kind, "0")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("chips --width 10", "--width: '10' is not accepted; expected a whole number of at least 40"),
        ("--width ten chips", "--width: 'ten' is not accepted; expected a whole number of at least 40"),
        ("predict llama-3.2-1b --on h100:8,64 --steps 1 --batch 8 --sequence 2k", "one kind of chip"),
        ("predict llama-3.2-1b --on p5.48xlarge --steps 1 --batch 8 --sequence 2k", "p5.48xlarge of aws has h100:8"),
        (
            "predict llama-3.2-1b --on Standard_ND96isr_H100_v5 --steps 1 --batch 8 --sequence 2k",
            "of azure has h100:8",
        ),
        ("compare llama-3.2-1b --on h100:8,64 --steps 1 --batch 8 --sequence 2k", "h100:8,h100:64, not 64 alone"),
    ],
)
def test_the_line_names_the_flag_the_value_and_what_is_accepted(line, expected, capsys):
    assert run(line.split()) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "asked",
    [
        lambda: read_headroom("5,5"),
        lambda: read_rates(["EUR=1,15"]),
        lambda: read_given(["h100=2,5"]),
        lambda: parse_watts("15,5W"),
        lambda: parse_rate("1,5/min"),
    ],
)
def test_a_comma_is_asked_back_with_both_readings(asked):
    with pytest.raises(AmbiguousNumber, match=r"1\.5 or 15|5\.5 or 55|1\.15 or 115|2\.5 or 25|15\.5W or 155W"):
        asked()


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (load_workload, LORA.replace("RANK", '"1,6"')),
        (load_serving, SERVED.replace("INPUT", '"1,6k"').replace("RATE", "5")),
        (load_serving, SERVED.replace("INPUT", "100").replace("RATE", '"1,6"')),
    ],
)
def test_so_it_is_in_files(load, text):
    with pytest.raises(InputError, match=r"1\.6k? or 16k?: a comma stands only"):
        load(text)


def test_spellings_of_prices_rates_and_chips():
    assert read_given(["h100=$2.50/h", "h200=3/GPU-hour"]) == {"h100": 2.5, "h200": 3.0}
    assert [parse_rate(text) for text in ("600/min", "7,200 req/h", "86400 per day")] == [10.0, 2.0, 1.0]
    for text in ("h100:1,024", "1024xh100", "1024 h100", "H100×1024"):
        assert str(parse(text)) == "h100:1024"
    assert [str(one.fixed) for one in candidates("8 h100,8×H200") or ()] == ["h100:8", "h200:8"]


def test_a_share_given_as_headroom_is_asked_back():
    with pytest.raises(InputError, match=r"0\.1% or 10%"):
        read_headroom("0.1")
    assert (read_headroom("0.1%"), read_headroom("10%"), read_headroom(0)) == (0.001, 0.1, 0.0)


def test_adapters_wider_than_the_model_are_refused():
    with pytest.raises(InputError, match=r"train.lora.rank: 5000 .* at most 2,048"):
        load_workload(LORA.replace("RANK", "5000"))
    assert load_workload(LORA.replace("RANK", "16")).train.lora_rank == 16


def test_the_largest_load_needs_none_of_its_own():
    flags = {"input_len": "500", "output_len": "100"}
    assert read_serving("llama-3.2-1b", flags, loaded=False).serve.arrival.rate == 0.0
    with pytest.raises(InputError, match="rate or users"):
        read_serving("llama-3.2-1b", flags)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("predict llama-3.2-1b --gpus 8", "--on"),
        ("predict llama-3.2-1b --batch-size 8", "--batch,"),
        ("predict llama-3.2-1b --seq_len 8", "--sequence"),
        ("predict llama-3.2-1b --dtype bf16", "--precision"),
        ("compare llama-3.2-1b --qps 3", "--rate"),
        ("compare llama-3.2-1b --provider aws", "--cloud"),
        ("cost llama-3.2-1b --country germany", "--site"),
    ],
)
def test_what_other_tools_call_a_flag_is_understood(line, hint, capsys):
    assert run(line.split()) == 2
    assert hint in capsys.readouterr().err


def test_a_price_of_a_file_is_read_so(tmp_path):
    header = "cloud,region,instance,chip,chips,ondemand_usd_h,date\nmine,eu,node8,h100,8,"
    for text, usd in (("$16", 2.0), ('"1,600.00"', 200.0), ("16 USD", 2.0)):
        (tmp_path / "own.csv").write_text(f"{header}{text},2026-11-01\n")
        (offer,) = read_custom_prices(tmp_path / "own.csv", today=date(2026, 11, 18)).offers
        assert offer.ondemand_usd_per_chip_hour == usd
    (tmp_path / "own.csv").write_text(f'{header}"1,6",2026-11-01\n')
    with pytest.raises(AmbiguousNumber, match=r"line 2 ondemand_usd_h: 1,6: 1\.6 or 16"):
        read_custom_prices(tmp_path / "own.csv", today=date(2026, 11, 18))


def test_a_quantity_is_asked_back_with_its_unit():
    with pytest.raises(AmbiguousNumber, match=r"2\.5 TB/s or 25 TB/s"):
        parse_quantity("2,5 TB/s", "bandwidth", "bytes/s", "3 TB/s")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("United Kingdom", "united-kingdom"),
        ("uk", "united-kingdom"),
        ("USA", "us-average"),
        ("south_korea", "south-korea"),
        ("de", "germany"),
        ("Czech Republic", "czechia"),
    ],
)
def test_places_are_found_by_the_names_that_people_use(name, place):
    assert site(name).id == place


def test_every_other_name_is_of_a_place_that_is_known():
    assert set(ALSO_CALLED.values()) <= set(own_sites())


def test_a_chip_that_is_named_twice_is_compared_once_and_lists_take_commas():
    assert [str(one.fixed or one.chip.id) for one in candidates("h100,H100,h100-sxm,h100:8,8xh100") or ()] == [
        "h100",
        "h100:8",
    ]
    for text in ("h100 h200", "h100; h200", "h100:8 v5e:16"):
        with pytest.raises(InputError, match="commas between chips: h100"):
            candidates(text)
    assert [one.chip.id for one in candidates("NVIDIA H100 80GB HBM3, TPU v5e") or ()] == ["h100", "v5e"]


def test_a_batch_beyond_sense_is_asked_about_in_tokens_only_where_tokens_can_be_meant():
    text = "model: llama-3.2-1b\ntrain: {steps: 10, global_batch: BATCH, sequence: 1M}"
    with pytest.raises(InputError, match=r"at most 256 of 1,048,576 tokens$"):
        load_workload(text.replace("BATCH", "512"))
    with pytest.raises(InputError, match="tokens are batch_tokens: 4M"):
        load_workload(text.replace("BATCH", "4M"))
