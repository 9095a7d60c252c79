"""Pictures are the same bytes for the same figure, whole or absent, and leave no figure open."""

import subprocess
import sys

import pytest

from chipwise.errors import InputError
from chipwise.present import plots


def figure(pyplot):
    drawn, axes = pyplot.subplots(figsize=(3, 2), layout="constrained")
    axes.plot([0, 1], [1, 2], color=plots.BLUE, label="a line")
    axes.legend(loc="upper left")
    return drawn


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_figure_is_the_same_bytes(kind):
    made = []
    for _ in range(2):
        with plots.drawing() as pyplot:
            made.append(plots.drawn(figure(pyplot), kind))
    assert made[0] == made[1] and b"<dc:date>" not in made[0]


@pytest.mark.parametrize("name, magic", [("p.svg", b"<?xml"), ("p.PNG", b"\x89PNG")])
def test_a_figure_is_saved_as_its_name_says(tmp_path, name, magic):
    with plots.drawing() as pyplot:
        plots.save(figure(pyplot), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic) and len(list(tmp_path.iterdir())) == 1


def test_figures_are_closed_also_after_a_failure():
    with pytest.raises(ZeroDivisionError), plots.drawing() as pyplot:
        figure(pyplot)
        raise ZeroDivisionError
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", ["p.gif", "p", "no/p.svg", "."])
def test_a_picture_that_cannot_be_written_is_refused_first(tmp_path, name):
    with pytest.raises(InputError, match=r"^plot: "):
        plots.ready(tmp_path / name)


def test_matplotlib_is_imported_only_where_a_picture_is_drawn():
    code = "import sys, chipwise.present.plots; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
