"""What attempts print, as `jobs logs` reads it: by parts, in lines, whatever a program put there."""

import os
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_cases import POOLS, start, submission

from chipwise.errors import InputError, Refusal
from chipwise.route import job_log as room
from chipwise.route.attempt_files import Unreadable, read_part
from chipwise.route.attempt_log import Lines, read_log
from chipwise.route.job_log import job_log, log_lines
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.records import AttemptEnd
from patience import PATIENCE_S


@pytest.fixture
def place(tmp_path):
    """A ledger with one running attempt, and the file that it prints to."""
    url = str(tmp_path / "ledger.db")
    with open_ledger(url) as ledger:
        (job,) = ledger.submit([submission()], 1000.0)
        (attempt,) = ledger.decide("r1", "fastest", [start(job)], 1010.0, 30.0, POOLS)
        ledger.mark_submitted(attempt.id, "4711", 1011.0)
        ledger.settle({"local": ("mark", str(tmp_path))}, "r1", "host", 1, "fastest", 1011.0, 30.0)
    folder = tmp_path / "attempts" / attempt.id
    folder.mkdir(parents=True)
    return SimpleNamespace(ledger=url, job=job, attempt=attempt.id, output=folder / "output")


def test_a_part_is_where_it_was_asked_for(tmp_path):
    file = tmp_path / "output"
    file.write_bytes(b"0123456789")
    assert read_part(file, 0, 4) == (0, b"0123", 10) and read_part(file, -3, 99) == (7, b"789", 10)
    assert read_part(file, -99, 2) == (0, b"01", 10) and read_part(file, 50, 4) == (50, b"", 10)
    assert read_part(tmp_path / "absent", 0, 4) is None
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for other in ("link", "pipe", "."):
        with pytest.raises(Unreadable):
            read_part(tmp_path / other, 0, 4)


@given(
    st.lists(st.sampled_from([b"a", "é".encode(), b"\n", b"\r\n", b"\r", b"\x1b[31m", b"\xff"]), max_size=40), st.data()
)
def test_lines_are_the_same_in_whatever_pieces_they_come(pieces, data):
    whole = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    reader, at_once = Lines(), Lines()
    lines = [line for part in parts for line in reader.of(part)] + list(reader.last())
    assert lines == [*at_once.of(whole), *at_once.last()]
    assert all("\x1b" not in line and "\n" not in line and line for line in lines)


def test_the_last_lines_are_found_from_the_end(place, monkeypatch):
    monkeypatch.setattr(room, "PART", 16)
    monkeypatch.setattr(room, "read_log", lambda book, attempt, start: read_log(book, attempt, start, 16))
    place.output.write_text("".join(f"line {n}\n" for n in range(100)))
    assert job_log(place.ledger, place.job, tail=3).lines == ("line 97", "line 98", "line 99")
    assert list(log_lines(place.ledger, place.job, tail=2)) == ["line 98", "line 99"]
    assert len(list(log_lines(place.ledger, place.job))) == 100 == len(job_log(place.ledger, place.job, tail=500).lines)


def test_what_comes_is_followed_to_the_end_of_the_job(place, monkeypatch):
    monkeypatch.setattr(room, "PAUSE_S", 0.01)
    place.output.write_text("first\nhal")
    lines = []

    def follow():
        lines.extend(log_lines(place.ledger, place.job, follow=True))

    reader = threading.Thread(target=follow)
    reader.start()
    time.sleep(0.1)
    with place.output.open("a") as file:
        file.write("f\nlast")
    with open_ledger(place.ledger) as ledger:
        ledger.end(place.attempt, AttemptEnd("succeeded", next="succeeded", exit_code=0, done=1.0), 1100.0)
    reader.join(PATIENCE_S)
    assert lines == ["first", "half", "last"]


def test_what_there_is_not_is_said(place):
    with pytest.raises(InputError, match="one of job 1: 1"):
        job_log(place.ledger, place.job, attempt=4)
    with pytest.raises(Refusal, match="pool h100, is on this machine"):
        job_log(place.ledger, place.job)
    place.output.symlink_to("/etc/passwd")
    with pytest.raises(Refusal, match="can't be read"):
        list(log_lines(place.ledger, place.job))
