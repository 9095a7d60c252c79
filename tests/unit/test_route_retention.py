"""Old folders of attempts are removed, and only those; all routers of a ledger have the same folders."""

import os

import pytest
from route_cases import job, option
from test_route_router import Stage

from chipwise.errors import InputError
from chipwise.route.backend import FAILED, RUNNING, SUCCEEDED
from chipwise.route.ledger import open_ledger
from chipwise.route.router import retention
from chipwise.route.router.identity import mark_of

DAY = 86_400.0


class Kept(Stage):
    """Attempts whose folders are as old as they say."""

    def __init__(self, folder):
        super().__init__(folder)
        self.keeper = self.another("keeper", keep_s=7 * DAY)

    def ended(self, state=SUCCEEDED, **more):
        """A job whose only attempt has ended so; its folder."""
        number = self.submit(job("run", **more), option("near"))
        self.tick()
        self.tick()
        self.end(state, exit_code=int(state != SUCCEEDED))
        self.tick()
        return self.path(self.attempt(1, number).id)

    def later(self, seconds):
        """Time passes, for the folders as well."""
        self.now += seconds
        attempts = self.folder / "state" / "attempts"
        for each in attempts.iterdir() if attempts.exists() else ():
            os.utime(each, (self.now - seconds, self.now - seconds))


@pytest.fixture
def kept(tmp_path):
    made = Kept(tmp_path)
    yield made
    assert made.ledger.check() == []
    made.ledger.close()


def test_folders_of_ended_attempts_are_removed_when_they_are_old_and_not_before(kept):
    folder = kept.ended()
    (folder / "output").write_text("said")
    kept.later(6 * DAY)
    assert kept.tick(1.0, kept.keeper).removed == [] and folder.exists()
    kept.later(2 * DAY)
    kept.now += 0.5
    assert kept.tick(1.0, kept.keeper).removed == [] and folder.exists()  # written to since
    kept.later(8 * DAY)
    assert kept.tick(1.0, kept.keeper).removed == [folder.name] and not folder.exists()
    assert not (kept.folder / "state" / "removed").exists() and kept.attempt().state == "succeeded"


def test_what_is_under_way_or_may_go_on_or_is_not_ours_is_kept(kept):
    waiting = kept.ended(FAILED)  # its job is tried again
    kept.tick()
    running = kept.path(kept.attempt(2).id)
    shown = kept.ended()
    backend_id = next(i for i, seen in kept.backend.jobs.items() if seen.attempt == shown.name)
    kept.backend.set(backend_id, state=RUNNING)  # though the ledger has its end
    stranger = kept.folder / "state" / "attempts" / "someone-1-1"
    stranger.mkdir()
    kept.later(100 * DAY)
    kept.tick(1.0, kept.keeper)
    assert all(each.exists() for each in (waiting, running, stranger))
    assert shown.exists()


def test_nothing_is_removed_while_the_backend_does_not_answer_or_unless_it_is_asked_for(kept):
    folder = kept.ended()
    kept.later(100 * DAY)
    kept.tick()  # a router that keeps all
    assert folder.exists()
    kept.backend.down()
    kept.tick(1.0, kept.keeper)
    assert folder.exists()


def test_what_a_killed_router_left_half_removed_is_removed(kept):
    kept.ended()
    left = kept.folder / "state" / "removed" / "u-1-1.77"
    left.mkdir(parents=True)
    (left / "output").write_text("said")
    kept.tick(1.0, kept.keeper)
    assert not left.exists()


def test_a_folder_that_can_not_be_read_is_told_and_stops_nobody(kept):
    kept.ended()
    attempts = kept.folder / "state" / "attempts"
    attempts.rename(attempts.with_name("aside"))
    attempts.write_text("")
    kept.tick(1.0, kept.keeper)
    assert "slurm" in kept.keeper.health.errors


def test_one_look_removes_no_more_than_a_tick_bears(kept, monkeypatch):
    folders = [kept.ended() for _ in range(3)]
    monkeypatch.setattr(retention, "MOST", 2)
    kept.later(8 * DAY)
    assert len(kept.tick(1.0, kept.keeper).removed) == 2 and kept.tick(1.0, kept.keeper).removed == []
    assert len(kept.tick(700.0, kept.keeper).removed) == 1 and not any(each.exists() for each in folders)


def test_of_many_folders_a_part_is_looked_at_in_each_pass_and_all_in_the_end(kept, monkeypatch):
    folders = [kept.ended() for _ in range(6)]
    looked, real = [], retention._folder_before
    monkeypatch.setattr(retention, "LOOKED_AT", 2)
    monkeypatch.setattr(retention, "_folder_before", lambda path, when: looked.append(path) or real(path, when))
    kept.later(8 * DAY)
    counts = []
    for _ in range(12):
        looked.clear()
        kept.tick(601.0, kept.keeper)
        counts.append(len(looked))
        if not any(each.exists() for each in folders):
            break
    assert not any(each.exists() for each in folders) and counts[0] < 6


def test_a_router_with_other_folders_is_refused_while_what_lies_in_the_old_ones_matters(tmp_path):
    one, two = mark_of(tmp_path / "one"), mark_of(tmp_path / "two")
    assert one != two and mark_of(tmp_path / "one") == one
    (tmp_path / "again").symlink_to(tmp_path / "one")
    assert mark_of(tmp_path / "again") == one
    with open_ledger(str(tmp_path / "ledger.db")) as ledger:
        ledger.settle({"slurm": (one, "/one")}, "a-1", "a", 1, "fastest", 1000.0, 60.0)
        with pytest.raises(InputError, match="/one: router a-1 works with it"):
            ledger.settle({"slurm": (two, "/two")}, "a-1", "a", 2, "fastest", 1010.0, 60.0)
        ledger.settle({"slurm": (one, "/mnt/one")}, "b-1", "b", 3, "fastest", 1010.0, 60.0)  # mounted elsewhere
        with pytest.raises(InputError, match="router b-1"):
            ledger.settle({"slurm": (two, "/two")}, "a-1", "a", 2, "fastest", 1062.0, 60.0)
        ledger.settle({"slurm": (two, "/two")}, "a-1", "a", 2, "fastest", 2000.0, 60.0)  # nobody is left
        assert {row.id for row in ledger.routers()} == {"a-1", "b-1"}


def test_folders_may_not_change_under_attempts_even_when_no_router_lives(tmp_path):
    stage = Stage(tmp_path)
    stage.submit(job("run"), option("near"))
    stage.tick()
    stage.ledger.settle({"slurm": ("x", "/one")}, "one", "a", 1, "fastest", stage.now, 60.0)
    with pytest.raises(InputError, match="1 attempts are under way"):
        stage.ledger.settle({"slurm": ("y", "/two")}, "one", "a", 1, "fastest", stage.now + 1e6, 60.0)
    stage.ledger.close()


def test_a_folder_without_a_mark_that_can_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can be written"):
        mark_of(tmp_path / "file")
