"""What a person is told to do next: flags by meaning, every missing column, and the install line that works here."""

from pathlib import Path

import pytest

from chipwise.cli.flags import options_that_mean
from chipwise.cli.main import command, run
from chipwise.errors import BrokenFile
from chipwise.io import install
from chipwise.io.csv_lines import check_columns


@pytest.mark.parametrize(
    ("verb", "flag", "first"),
    [
        ("compare", "--images", "--samples"),
        ("compare", "--sampels", "--samples"),
        ("compare", "--days", None),
        ("compare", "--tokns", "--tokens"),
        ("predict", "--output", "--output"),
        ("cost", "--clouds", "--cloud"),
    ],
)
def test_a_flag_that_does_not_exist_is_answered_by_what_was_meant(verb, flag, first):
    near = options_that_mean(flag, command().commands[verb])
    assert "--max-age" not in near and "--prices" not in near
    assert (near[0] if near else None) == first


def test_the_line_has_them(capsys):
    assert run(["compare", "resnet-50", "--images", "5"]) == 2
    line = capsys.readouterr().err
    assert "--images" in line and "--samples" in line and "--max-age" not in line


def test_a_flag_for_which_there_is_a_command_names_it(capsys):
    for flag in ("--dry-run", "--explain"):
        assert run(["jobs", "submit", "job.yaml", flag]) == 2
        line = capsys.readouterr().err
        assert f"No such option: {flag}; " in line and "jobs explain ID" in line and "jobs render FILE" in line
    names = command().commands
    assert {"explain", "render"} <= set(names["jobs"].commands) and "simulate" in names


def test_all_missing_columns_are_named_at_once():
    with pytest.raises(BrokenFile, match="the columns cloud, region, date"):
        check_columns("own.csv", ["chip"], ["chip", "cloud", "region", "date"])
    with pytest.raises(BrokenFile, match="the column date"):
        check_columns("own.csv", ["chip"], ["chip", "date"])


def test_a_clone_installs_itself_and_a_package_by_its_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert install.install_line("ray") == f"pip install -e '{install.SOURCE}[ray]'"
    monkeypatch.chdir(install.SOURCE)
    assert install.install_line("ray") == "pip install -e '.[ray]'"
    monkeypatch.setattr(install, "SOURCE", Path(tmp_path))
    assert install.install_line("ray") == "pip install 'chipwise[ray]'"
