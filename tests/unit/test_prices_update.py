"""Newer list prices: fetched over HTTP or read from files, checked, kept with the list before, and used from then on."""

import shutil
from datetime import date
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from chipwise import Knowledge, update_prices
from chipwise.errors import BrokenFile, InputError
from chipwise.prices import listed
from chipwise.prices.stored import previous_file, stored_file

HEAD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone\n"
EXAMPLES = Path("examples/prices/skypilot")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Undated(Quiet):
    """Answers without a Last-Modified header, as GitHub does."""

    def send_header(self, keyword, value):
        if keyword != "Last-Modified":
            super().send_header(keyword, value)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path / "data"))
    listed.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    listed.cache_clear()


@pytest.fixture
def served(home):
    """A folder that a real HTTP server hands out, and its address."""
    folder = home / "web"
    folder.mkdir()
    servers = []

    def start(handler=Quiet):
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield folder, start
    for server in servers:
        server.shutdown()
        server.server_close()


def write(folder, cloud, *rows):
    path = folder / cloud / "vms.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def aws(usd, region="us-east-1", spot=""):
    return f"p5.48xlarge,H100,8,192,2048,{usd},{spot},{region},{region}a"


def test_a_catalog_on_the_web_is_fetched_checked_and_used_from_then_on(served):
    folder, start = served
    write(folder, "aws", aws(40.0, spot=16.0), aws(44.0, region="us-west-2"))
    write(folder, "lambda", "gpu_8x_h100_sxm5,H100,8,208,1800,24.0,,us-east-1,us-east-1")
    made = update_prices(start(), date="2026-11-15")
    assert made.clouds == ("aws", "lambda") and made.offers == 3 and "gcp" in made.missing
    assert made.dated == "2026-11-15" and not made.previous
    now = {(o.cloud, o.region): o for o in Knowledge.default().prices.offers_for("h100", clouds=["aws", "lambda"])}
    assert now["aws", "us-east-1"].ondemand_usd_per_chip_hour == 5.0
    assert now["aws", "us-east-1"].spot_usd_per_chip_hour == 2.0 and now["aws", "us-east-1"].joined == "yes"
    assert "2026-11-15" in listed().origin
    assert listed().offers_for("h100", clouds=["gcp"])  # clouds that were not fetched stay as they are


def test_what_changed_is_said_by_chip_and_the_list_before_is_kept(served):
    folder, start = served
    write(folder, "aws", aws(40.0), aws(44.0, region="us-west-2"))
    url = start()
    update_prices(url, date="2026-11-14")
    before = stored_file().read_text(encoding="utf-8")
    write(folder, "aws", aws(48.0), aws(36.0, region="eu-west-2"))
    made = update_prices(url, date="2026-11-15")
    (change,) = [c for c in made.changed if c.chip_id == "h100"]
    assert (change.new, change.gone, change.up, change.down) == (1, 1, 1, 0)
    assert previous_file().read_text(encoding="utf-8") == before and made.previous == str(previous_file())
    record = made.to_dict()
    assert record["command"] == "prices update" and record["changes"][0]["chip"] and record["offers"] == 2
    assert "What changed" in str(made)


def test_an_update_of_one_cloud_leaves_the_others_of_the_last_one(served):
    folder, start = served
    write(folder, "aws", aws(40.0))
    write(folder, "lambda", "gpu_8x_h100_sxm5,H100,8,208,1800,24.0,,us-east-1,us-east-1")
    url = start()
    update_prices(url, date="2026-11-14")
    write(folder, "aws", aws(41.6))
    update_prices(f"{url}/aws/vms.csv", date="2026-11-15")
    offers = [o for o in listed().offers_for("h100", clouds=["aws", "lambda"]) if o.source.startswith("SkyPilot")]
    prices = {o.cloud: o.ondemand_usd_per_chip_hour for o in offers}
    assert prices["aws"] == 5.2 and prices["lambda"] == 3.0


def test_a_file_is_dated_by_the_server_or_by_the_day_of_the_update(served):
    folder, start = served
    write(folder, "aws", aws(40.0))
    assert update_prices(start()).dated == date.today().isoformat()  # Last-Modified: just written
    undated = update_prices(start(Undated))
    assert undated.dated == date.today().isoformat()
    assert any("dated by the day of the update" in words for words in undated.assumptions)


def test_a_cloud_whose_prices_all_stand_as_before_keeps_its_date(served):
    folder, start = served
    write(folder, "aws", aws(40.0))
    url = start(Undated)
    update_prices(url, date="2026-11-10")
    again = update_prices(url)
    (offer,) = [o for o in listed().offers if o.cloud == "aws" and o.source.startswith("SkyPilot")]
    assert offer.date == "2026-11-10" and any("as before" in words for words in again.assumptions)


def test_an_older_price_does_not_replace_a_newer_one():
    shipped = next(o for o in listed().offers_for("h100", clouds=["aws"]) if o.region == "us-east-1")
    update_prices(EXAMPLES / "aws" / "vms.csv", date="2024-01-01")
    now = [o for o in listed().offers_for("h100", clouds=["aws"]) if o.region == "us-east-1" and o.chips == 8]
    assert shipped.date > "2024-01-01" and all(o.date >= shipped.date for o in now)


def test_a_checkout_is_read_by_its_newest_version(home):
    root = home / "skypilot-catalog"
    write(root / "catalogs" / "v7", "aws", aws(80.0))
    write(root / "catalogs" / "v8", "aws", aws(40.0))
    made = update_prices(root)
    assert made.clouds == ("aws",)
    newest = [o for o in listed().offers_for("h100", clouds=["aws"]) if o.source.startswith("SkyPilot")]
    assert [o.ondemand_usd_per_chip_hour for o in newest] == [5.0]


def test_a_file_works_without_a_network():
    made = update_prices(EXAMPLES / "lambda" / "vms.csv", date="2026-11-01")
    assert made.clouds == ("lambda",) and stored_file().is_file()


@pytest.mark.parametrize("source", ["http://127.0.0.1:9/catalogs", "nowhere/at/all", "ftp://example.org/x"])
def test_what_cannot_be_reached_is_one_line_and_nothing_is_written(source):
    with pytest.raises(InputError, match=r"^source: ") as error:
        update_prices(source)
    assert "\n" not in str(error.value) and not stored_file().exists()


def test_an_address_without_a_catalog_below_it_is_refused(served):
    _, start = served
    with pytest.raises(InputError, match="none was found"):
        update_prices(start())


def test_prices_that_no_chip_hour_has_are_left_out_and_a_list_of_such_is_refused(served):
    folder, start = served
    good = [aws(40.0 + i, region=f"us-east-{i}") for i in range(1, 12)]
    write(folder, "aws", *good, aws(9_000.0, region="us-west-1"))
    url = start()
    made = update_prices(url, date="2026-11-15")
    assert made.offers == 11 and any("no chip-hour has" in left.reason for left in made.left_out)
    kept = stored_file().read_bytes()
    write(folder, "aws", aws(9_000.0), aws(40.0, region="us-west-2"))
    with pytest.raises(BrokenFile, match="1 of 2 offers"):
        update_prices(url, date="2026-11-16")
    assert stored_file().read_bytes() == kept


def test_a_broken_list_names_its_file(home):
    update_prices(EXAMPLES, date="2026-11-01")
    stored_file().write_text("chip,cloud\nh100,aws\n", encoding="utf-8")
    listed.cache_clear()
    with pytest.raises(BrokenFile, match=r"offers\.csv"):
        listed()
    shutil.rmtree(stored_file().parent)
    listed.cache_clear()
    assert listed().origin == "list prices of the catalog"
