"""Amounts of money: every currency, before and after, by code, word, sign and hundredths; what is shared is asked back."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.chip_file import described_chip
from chipwise.catalog.currencies import currencies, exchange_rates, own_rates
from chipwise.catalog.money import PER_HOUR, PER_KWH, read_amount
from chipwise.compare.terms import Terms
from chipwise.errors import AmbiguousCurrency, AmbiguousNumber, InputError
from chipwise.fleet.demand import demand_of
from chipwise.knowledge import Knowledge
from chipwise.prices import read_custom_prices
from chipwise.route.spec.job import JobSpec
from chipwise.route.spec.pools import PoolSpec

CODES = sorted(currencies())
SPELLINGS = [
    "{n} {code}", "{n}{code}", "{code} {n}", "{code}{n}", " {n}  {code} ", "{lower}{n}", "{n:,}{code}", "{n}k {code}", "{n}k{lower}",
    "{code} {n}M", "{n}.5 {code}", "{n}{code}/h", "{code}{n} per hour",
]  # fmt: skip
OWN = "chip,cloud,region,instance,chips,ondemand_usd_h,date"


def test_there_are_currencies_of_everywhere_each_with_source_date_and_range():
    assert len(CODES) >= 17
    for currency in currencies().values():
        assert currency.source and date.fromisoformat(currency.date) <= date(2026, 11, 18)
        assert currency.low <= currency.usd <= currency.high
    assert currencies()["JPY"].usd == pytest.approx(1 / 155.69, rel=1e-5)


@given(number=st.integers(0, 10**9), code=st.sampled_from(CODES), spelling=st.sampled_from(SPELLINGS))
def test_every_accepted_spelling_is_read_back_as_what_is_printed(number, code, spelling):
    text = spelling.format(n=number, code=code, lower=code.lower())
    amount = read_amount(text, per=PER_HOUR)
    assert amount.currency == code and read_amount(str(amount)) == amount
    scale = 1e3 if "}k" in spelling else 1e6 if "}M" in spelling else 1.0
    assert amount.value == pytest.approx((number + (".5" in spelling) / 2) * scale)


@given(st.floats(0, 1e15), st.sampled_from(CODES))
def test_whatever_is_printed_is_read_back(value, code):
    amount = read_amount(repr(value) + code)
    assert amount.currency == code and amount.value == value and read_amount(str(amount)) == amount


def names():
    for currency in currencies().values():
        for name in (*currency.names, *currency.minors):
            yield currency.code, name, name in currency.minors


@pytest.mark.parametrize(("code", "name", "minor"), list(names()))
def test_every_name_is_read_or_asked_back(code, name, minor):
    share = 0.01 if minor else 1.0
    for text in (f"14{name}", f"14 {name.upper()}", *([] if minor else [f"{name} 14"])):
        try:
            amount = read_amount(text)
        except AmbiguousCurrency as asked:
            assert len(asked.readings) > 1
            meant = [read_amount(reading) for reading in asked.readings]
            assert (14 * share, code) in [(each.value, each.currency) for each in meant]
        else:
            assert (amount.value, amount.currency) == (14 * share, code)


@pytest.mark.parametrize(
    ("text", "readings"), [("¥25", ("25 JPY", "25 CNY")), ("25 kr", ("25 SEK", "25 NOK", "25 DKK", "25 ISK")), ("5 øre", ("0.05 NOK", "0.05 DKK"))]
)  # fmt: skip
def test_a_sign_of_several_currencies_is_asked_back_with_all_readings(text, readings):
    with pytest.raises(AmbiguousCurrency) as asked:
        read_amount(text, "budget")
    assert asked.value.readings == readings and "\n" not in str(asked.value)
    assert all(reading in str(asked.value) for reading in readings)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("¥25 CNY", "25 CNY"),
        ("US$3M", "3000000 USD"),
        ("A$10", "10 AUD"),
        ("R$ 5", "5 BRL"),
        ("€2.5k", "2500 EUR"),
        ("2.5k€", "2500 EUR"),
        ("25\u00a0€", "25 EUR"),
        ("14 US cents", "0.14 USD"),
        ("14 euro cents", "0.14 EUR"),
        ("14 AUD cents", "0.14 AUD"),
        ("12¢", "0.12 USD"),
    ],
)
def test_amounts_as_people_write_them(text, printed):
    assert str(read_amount(text)) == printed


@pytest.mark.parametrize(
    "text",
    ["", "EUR", "-5 EUR", "$5 EUR", "$5 cents", "5 EUR GBP", "5 XAF", "p15", "5 EUR 5", "1.2.3 EUR", "€", "nan EUR", "5 quatloos", None, True, []],
)  # fmt: skip
def test_what_is_no_amount_is_refused_with_what_is_accepted(text):
    with pytest.raises(InputError, match=r"budget: .*900EUR"):
        read_amount(text, "budget")


def test_a_decimal_comma_is_asked_back_with_its_currency():
    with pytest.raises(AmbiguousNumber, match=r"0\.14EUR/kWh or 14EUR/kWh|0\.14EUR or 014EUR|0\.14EUR or 14EUR"):
        read_amount("0,14EUR/kWh", "energy_price", per=PER_KWH)


def test_rates_are_those_that_are_known_unless_others_are_given(monkeypatch):
    assert Terms.read(budget="871 EUR").budget_usd == pytest.approx(1000.0, rel=1e-4)
    terms = Terms.read(budget="1000EUR", rates=Knowledge.default(fx=["EUR=1.5"]).economics.rates())
    assert terms.budget_usd == 1500.0 and "1,000 EUR at 1.5 USD as given" in terms.in_words()
    assert "EUR at 1.14811 USD of 2026-09-17" in Terms.read(budget="5EUR").in_words()
    assert Terms.read(budget="5 XAF", rates=exchange_rates(["XAF=0.5"])).budget_usd == 2.5
    monkeypatch.setenv("CHIPWISE_FX", "EUR=2")
    assert own_rates() == {"EUR": 2.0} and Terms.read(budget="5EUR").budget_usd == 10.0


def test_prices_of_flags_files_and_python_have_the_one_reader(tmp_path: Path):
    at = ["EUR=2"]
    offer = Knowledge.default(price=["h100=€2.50/h"], fx=at).prices.offers_for("h100", clouds=["given"])[0]
    assert offer.ondemand_usd_per_chip_hour == 5.0 and "2.5 EUR at 2 USD as given" in offer.source
    own = tmp_path / "own.csv"
    own.write_text(f"{OWN}\nh100,mine,eu,node8,8,€16,2026-11-01\n")
    (mine,) = read_custom_prices(own, exchange_rates(at), date(2026, 11, 18)).offers
    assert mine.ondemand_usd_per_chip_hour == 4.0 and mine.source.endswith("EUR at 2 USD as given")
    own.write_text(f"{OWN},currency\nh100,mine,eu,node8,8,£16,2026-11-01,EUR\n")
    with pytest.raises(InputError, match=r"line 2 ondemand_usd_h: .*one currency: currency says EUR"):
        read_custom_prices(own, today=date(2026, 11, 18))
    own.write_text(f"{OWN}\nh100,mine,eu,node8,8,¥16,2026-11-01\n")
    with pytest.raises(AmbiguousCurrency, match=r"line 2 ondemand_usd_h: .*JPY"):
        read_custom_prices(own, today=date(2026, 11, 18))
    chip = described_chip({"name": "mine", "like": "h100", "price": "871 EUR"}, "mine.yaml", date(2026, 11, 18))
    assert chip.usd_per_chip_hour == pytest.approx(1000.0, rel=1e-4) and "EUR at" in chip.price_source
    job = JobSpec.model_validate({"name": "a", "command": ["true"], "estimates": {"cpu": "5s"}, "budget": "871EUR"})
    assert job.budget == pytest.approx(1000.0, rel=1e-4)
    pool = PoolSpec.model_validate({"name": "a", "backend": "local", "chip": "cpu", "count": 1, "price": "0.871 EUR/h"})
    assert pool.price == pytest.approx(1.0, rel=1e-4)


def test_a_fleet_reads_amounts_at_its_own_rates():
    train = {"model": "llama-3.1-8b", "train": {"steps": 100, "global_batch": 256, "sequence": 4096}}
    raw = {
        "start": "2027-01",
        "months": 1,
        "workloads": [{"name": "run", "workload": train, "train": {"chips": [16]}}],
        "candidates": [{"chip": "v5e", "clouds": ["gcp"], "terms": ["ondemand"]}],
        "limits": {"budget": "500 EUR"},
    }
    assert demand_of(raw, today=date(2026, 11, 18)).spec.limits.budget == pytest.approx(500 / 0.871, rel=1e-5)
    assert demand_of({**raw, "rates": {"EUR": 2}}, today=date(2026, 11, 18)).spec.limits.budget == 1000.0
    with pytest.raises(InputError, match=r"limits.budget.*25 JPY .* or 25 CNY"):
        demand_of({**raw, "limits": {"budget": "¥25"}}, today=date(2026, 11, 18))


@pytest.mark.parametrize("filler", ["1", "1,", " 1", "€", "a", "/", " per ", "kr"])
def test_a_long_text_is_refused_at_once(filler):
    for text in (filler * 20_000, f"5{filler * 20_000}EUR", f"EUR{filler * 20_000}5x"):
        with pytest.raises(InputError):
            read_amount(text, "budget", per=PER_HOUR)
    assert read_amount(f"{' ' * 20_000}5{' ' * 20_000}EUR{' ' * 20_000}") == read_amount("5EUR")
