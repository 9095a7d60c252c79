"""Tables on terminals of any width: columns are whole or absent, words whole."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest

from chipwise import api
from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate
from chipwise.compare import compare as run
from chipwise.compare.training.explain import REDUCE, SHARD, _label
from chipwise.knowledge import Knowledge
from chipwise.predict.model.layouts import Layout
from chipwise.present.blocks import Table, Text
from chipwise.present.terminal import Terminal, draw, wrap
from chipwise.present.text import plain
from chipwise.units import format_money, format_seconds
from chipwise.workload import load_workload, metrics_that_matter

WIDTHS = (80, 100, 120, 160, 200)
WORK = {"model": "llama-3.1-8b", "tokens": "15T", "global_batch": 1024, "sequence": 8192}


def drawn(blocks, width):
    stream = io.StringIO()
    draw(blocks, Terminal(stream, width, color=False, ascii=False))
    return stream.getvalue().splitlines()


@pytest.fixture(scope="module")
def found():
    names = ("h100", "a100-80gb-pcie", "v6e:2048", "v7x", "mi300x", "v100")
    return run(
        load_workload(overrides=WORK),
        [Candidate.read(name) for name in names],
        Knowledge(load_calibration(bench=False)),
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_compare_shows_every_row_whole(found, width):
    lines = drawn(found.blocks(), width)
    assert max(map(len, lines)) <= width
    for i, row in enumerate(found.rows):
        at = next(n for n, line in enumerate(lines) if re.match(rf" *{i + 1}  \S", line))
        cost = format_money(row.ondemand.usd.value) if row.ondemand else "no public price"
        for cell in (str(row.accelerators), format_seconds(row.prediction.step.value), cost):
            assert cell in lines[at]
        assert lines[at].endswith(row.prediction.step.evidence)
        assert str(row.prediction.layout) in lines[at] + lines[at + 1]


@pytest.mark.parametrize(("width", "absent"), [(200, []), (80, ["kWh", "spot"])])
def test_compare_leaves_columns_out_in_order(found, width, absent):
    header = next(line for line in drawn(found.blocks(), width) if "chips" in line and "evidence" in line)
    assert [name for name in ("kWh", "spot") if name not in header.split()] == absent


@pytest.mark.parametrize("width", (60, *WIDTHS))
def test_chips_never_loses_the_chip(width):
    lines = drawn(api.chips().blocks(), width)
    assert max(map(len, lines)) <= width
    assert {line.split()[0] for line in lines if line} >= set(load().chips)
    assert ("NVIDIA T4" in "\n".join(lines)) == (width >= 160)


@pytest.mark.parametrize("width", (60, *WIDTHS))
@pytest.mark.parametrize("chip", ["v5e", "h100"])
def test_the_page_of_a_chip_stays_within_the_width(chip, width):
    lines = drawn(api.chips(chip).blocks(), width)
    assert max(map(len, lines)) <= width and any("usable memory" in line for line in lines)
    assert any(("matrix units (MXUs)" if chip == "v5e" else "SMs") in line for line in lines)


def test_a_pty_gets_what_fits():
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen([sys.executable, "-m", "chipwise", "models", "llama"], stdout=follower, env=env) as running:
        os.close(follower)
        said = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            said += part
    os.close(leader)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()
    assert running.returncode == 0 and max(map(len, lines)) <= 80
    assert any(line.startswith("llama-3.1-405b ") for line in lines)


def test_paragraphs_hang_and_layouts_break_at_commas():
    text = "  Pick h100:64 with dp=16,zero=1,pp=2,cp=2,ep=8,vpp=16,mbs=2,recompute=selective,pipe=inner and more words"
    lines = wrap(text, 40)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert lines[0].startswith("  Pick") and all(re.match(r" {4}\S", line) for line in lines[1:])
    assert all(
        line.endswith(",")
        for line in lines
        if "=" in line and not line.endswith(("words", "with")) and "inner" not in line
    )
    assert wrap("short", 40) == ["short"] and wrap("", 40) == [""]


def test_the_last_column_of_words_wraps_in_place():
    table = Table(["a", "words"], [["1", "one two three four five six seven eight"]], frozenset({"words"}), bare=True)
    assert drawn([table], 30) == ["1  one two three four five six", "     seven eight"]
    assert plain(table) == "1  one two three four five six seven eight"


def test_an_ascii_terminal_gets_ascii():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    draw([Text("3 µs"), Table(["a"], [["█"]])], Terminal.of(stream))
    assert b"3 us" in stream.buffer.getvalue()


def test_no_color_asks_for_no_escapes(monkeypatch):
    table = Table(["a"], [["1"]], strong=frozenset({0}))
    monkeypatch.setenv("TERM", "xterm")
    for asked, escapes in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", asked)
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        draw([table], Terminal.of(stream))
        assert (b"\x1b[1;32m" in stream.buffer.getvalue()) == escapes


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_collectives_are_named_by_the_zero_stage(zero):
    p = SimpleNamespace(layout=Layout(dp=8, shard=8, zero=zero))
    assert _label("reduce", p, {}) == REDUCE[zero] and _label("shard", p, {}) == SHARD.get(zero, "shard")


def test_only_long_runs_are_called_long():
    assert "long run" in " ".join(metrics_that_matter(load_workload(overrides=WORK)))
    assert "long run" not in " ".join(metrics_that_matter(load_workload(overrides={**WORK, "tokens": "1B"})))


def test_a_pipe_is_folded_to_the_width_that_is_asked_for_and_to_none_else():
    env = os.environ | {"COLUMNS": "80"}
    command = [sys.executable, "-m", "chipwise"]
    wide, folded, behind = (
        subprocess.run([*command, *arguments], env=env, capture_output=True, text=True, check=True).stdout
        for arguments in (["chips"], ["--width", "80", "chips"], ["chips", "--width", "80"])
    )
    assert max(map(len, wide.splitlines())) > 80 >= max(map(len, folded.splitlines()))
    assert behind == folded
