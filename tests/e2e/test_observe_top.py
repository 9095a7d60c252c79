"""Jobs, devices and pools on one screen: as text once, and on a real terminal with keys."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pytest
from command import ROOT, chipwise_here, good_here
from ledger_cases import POOLS, start, submission

import chipwise as cw
from chipwise.observe.exporters import Sample
from chipwise.observe.store.store import open_store
from chipwise.observe.top.look import page
from chipwise.observe.top.view import Choice, DeviceOrder, JobOrder
from chipwise.present.live import fitted
from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import open_ledger

FILE = "pools:\n  - {name: h100, backend: local, chip: h100, count: 8, price: 3.0, terms: owned}\n"


@pytest.fixture
def place(tmp_path):
    """A job that runs and has printed steps, 24 devices, a pool."""
    url, now = str(tmp_path / "ledger.db"), time.time()
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(tmp_path))}, "r1", "host", 1, "fastest", now, 30.0)
        (job,) = ledger.submit([submission("tune")], now - 600)
        (row,) = ledger.decide("r1", "fastest", [start(job)], now - 600, 30.0, POOLS)
        ledger.mark_submitted(row.id, "4711", now - 600)
        ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=now - 600), now - 600)
    folder = tmp_path / "attempts" / row.id
    folder.mkdir(parents=True)
    (folder / "output").write_text(
        "".join(f"iteration {n} | elapsed time per iteration (ms): {1000 + n} | lm loss: 2.5 |\n" for n in range(1, 60))
    )
    store = tmp_path / "telemetry.db"
    with open_store(str(store)) as telemetry:
        samples = [
            Sample(series, f"node-{gpu // 8}", f"GPU-{gpu}", (), value)
            for gpu in range(24)
            for series, value in (
                ("device_busy", gpu / 24),
                ("device_power", 700.0 - gpu),
                ("device_temperature", 50.0),
            )
        ]
        telemetry.write(samples, int(now))
    pools = tmp_path / "pools.yaml"
    pools.write_text(FILE)
    return url, store, pools


def test_without_a_terminal_it_is_text_once(place):
    words = ["observe", "top", "--ledger", place[0], "--store", str(place[1]), "--pools", str(place[2])]
    text = good_here(*words, "--devices-by", "idle")
    assert "1 job, 24 devices, 1 pool" in text and "tune" in text and "\x1b" not in text
    assert text.index("GPU-0 ") < text.index("GPU-23")
    assert good_here(*words, "--devices-by", "busy", "--once").index("GPU-23") < text.index("GPU-0 ") + 10_000
    document = json.loads(good_here(*words, "-o", "json"))
    assert [job["name"] for job in document["jobs"]] == ["tune"] and len(document["devices"]) == 72
    for wrong in (
        ["--devices-by", "size"],
        ["--jobs-by", "size"],
        ["--interval", "soon"],
        ["--interval", "0s"],
        ["--pools", "nowhere.yaml"],
    ):
        assert chipwise_here(*words, *wrong).returncode == 2


def test_what_cannot_be_read_is_said_and_no_end():
    top = cw.observe_top("nowhere.db", store="nowhere-either.db")
    assert len(top.problems) == 2 and "nowhere.db: there is none" in str(top) and "no pools file" in str(top)


@pytest.mark.parametrize("size", [(200, 50), (80, 24), (50, 10), (40, 3)])
def test_a_page_fits_its_screen(place, size):
    top = cw.observe_top(place[0], store=str(place[1]), pools=place[2])
    lines = page(top, Choice(), size)
    assert len(lines) <= size[1] and max(len(text) for text, _ in lines) <= size[0]
    if size[1] >= 10:
        assert "tune" in "\n".join(text for text, _ in lines)
    assert any("more lines" in text for text, _ in lines) is (size[1] in (24, 3))


def test_keys_choose(place):
    top, choice = cw.observe_top(place[0], store=str(place[1]), pools=place[2]), Choice()
    assert not choice.press("d") and choice.devices is DeviceOrder.BUSY
    assert not choice.press("j") and choice.jobs is JobOrder.SLOWEST
    choice.press("2")
    text = "\n".join(line for line, _ in page(top, choice, (120, 40)))
    assert "Devices, by busy" in text and "Pools" not in text and "Jobs," not in text
    assert choice.press(" ") and not choice.over
    choice.press("q")
    assert choice.over
    assert fitted([], 3) == []


def shown(descriptor, until, seconds=60.0):
    """What a terminal is shown, until a text is among it."""
    data, end = b"", time.monotonic() + seconds
    while until not in data and time.monotonic() < end:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                data += os.read(descriptor, 65536)
            except OSError:
                break
    return data


def test_a_terminal_is_drawn_on_listens_to_keys_and_is_left_as_it_was(place):
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(theirs)
    words = [sys.executable, "-m", "chipwise", "observe", "top", "--ledger", place[0], "--store", str(place[1])]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
                               env={**environment, "TERM": "xterm-256color"})  # fmt: skip
    try:
        assert b"Devices, by host" in shown(mine, b"space now")
        os.write(mine, b"d")
        assert b"Devices, by busy" in shown(mine, b"Devices, by busy")
        os.write(mine, b"q")
        assert b"\x1b[?1049l" in shown(mine, b"\x1b[?1049l")
        assert process.wait(timeout=60) == 0
        assert termios.tcgetattr(theirs)[3] == before[3]
    finally:
        process.kill()
        process.wait()
        os.close(mine)
        os.close(theirs)


def test_a_job_is_drawn(place, tmp_path):
    for name, magic in (("run.svg", b"<svg"), ("run.png", b"PNG")):
        good_here("observe", "job", "1", "--ledger", place[0], "--plot", str(tmp_path / name))
        assert magic in (tmp_path / name).read_bytes()[:1000]
    assert chipwise_here("observe", "job", "1", "--ledger", place[0], "--plot", "run.txt").returncode == 2
