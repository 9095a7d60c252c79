"""`observe agent` as people run it: its page, its store, a scrape of it, and wrong inputs."""

import json
import os
import re
import signal
from urllib.request import urlopen

import pytest
from command import chipwise_here, good, good_here, running

from patience import PATIENCE_S, until

HERE = ("observe", "agent", "--only", "host")


def test_a_page_is_served_scraped_and_kept(tmp_path):
    store = tmp_path / "telemetry.db"
    with running(*HERE, "--metrics", "127.0.0.1:0", "--store", tmp_path / "own.db") as agent:
        port = next(match[1] for line in agent.stderr if (match := re.search(r"port (\d+), /metrics", line)))
        page = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).read().decode()
        good_here("observe", "scrape", f"127.0.0.1:{port}", "--store", store, "--rounds", "1")
        until((tmp_path / "own.db").exists)
        agent.send_signal(signal.SIGTERM)
        agent.wait(PATIENCE_S)
    assert "# TYPE chipwise_host_memory_used_bytes gauge" in page
    assert "# TYPE chipwise_host_disk_read_bytes_total counter" in page or "disk_read" not in page
    for kept in (store, tmp_path / "own.db"):
        values = json.loads(good_here("observe", "devices", "--store", kept, "-o", "json"))["values"]
        of_host = {(value["host"], value["series"]): value["value"] for value in values}
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert of_host[os.uname().nodename, "host_memory_total"] == pytest.approx(total, rel=0.02)


def test_what_is_here_is_told_with_the_reasons_of_what_is_not():
    rounds = json.loads(good(*HERE, "--rounds", "1", "-o", "json"))
    assert rounds["rounds"] == 1 and [one["instrument"] for one in rounds["instruments"]] == ["host"]
    every = json.loads(chipwise_here("observe", "agent", "--rounds", "1", "-o", "json").stdout)
    told = {one["instrument"]: one["problem"] for one in every["instruments"]}
    assert set(told) == {"nvidia", "amd", "tpu", "host", "kernel", "notices"} and told["host"] is None


@pytest.mark.parametrize(
    "words, problem",
    [
        ([], "--rounds"),
        (
            ["--only", "gpu", "--rounds", "1"],
            "'gpu' is not accepted; expected one of nvidia, amd, tpu, host, kernel, notices",
        ),
        (["--token-file", "t"], "--rounds"),
        (["--rounds", "1", "--token-file", "t"], "--metrics beside it"),
        (["--rounds", "1", "--store-interval", "5s"], "--store beside it"),
        (["--rounds", "1", "--interval", "0s"], "interval"),
        (["--rounds", "1", "--metrics", "0.0.0.0:0"], "a bearer token"),
        (["--rounds", "1", "--metrics", "9466"], "HOST:PORT"),
        (["--rounds", "1", "--store", "mysql://db"], "sqlite"),
        (["--rounds", "1", "--store", "other"], "store other: it is damaged or no database"),
        (["--rounds", "0"], "--rounds"),
    ],
)
def test_wrong_inputs_are_one_line(words, problem, tmp_path):
    (tmp_path / "other").write_text("no database")
    done = chipwise_here("observe", "agent", *words, cwd=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and done.stdout == "" and problem in last and last.startswith("chipwise: "), done.stderr
