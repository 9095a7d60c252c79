"""YAML that a user points at: explicit tags are refused in one line by every reader."""

import re
from pathlib import Path

import pytest

from chipwise.errors import BrokenFile, ChipwiseError
from chipwise.fleet.demand import read_demand
from chipwise.io.files import parse_yaml
from chipwise.route.load import load_jobs
from chipwise.route.load.pools import load_pools
from chipwise.route.simulate.trace import read_trace
from chipwise.workload import load_workload

SOURCES = Path(__file__).parents[2] / "src"
TAGGED = [
    "a: !!bool foo",
    'a: !!float ""',
    'a: !!timestamp ""',
    "a: !!int x",
    "a: !!str 3",
    "a: ! 3",
    "a: [!own 3]",
    "a: !<tag:yaml.org,2002:int> 1",
    "a: !!python/object:os.system x",
    "!!map {a: 1}",
    "!!str a: 1",
    "a: !!set {x}",
    "a: !!binary 1",
]
READERS = {
    "workload": load_workload,
    "jobs": lambda path: load_jobs(path, 0.0),
    "pools": load_pools,
    "demand": read_demand,
    "trace": lambda path: read_trace(path, None),
}


@pytest.mark.parametrize("text", TAGGED)
def test_explicit_tags_are_refused_with_their_line(text):
    with pytest.raises(BrokenFile, match=r"^f\.yaml line 2: .* without YAML tags$"):
        parse_yaml("b: 1\n" + text if text[0] == "a" else "# first\n" + text, "f.yaml")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", TAGGED)
def test_no_reader_of_a_yaml_file_takes_a_tag(reader, text, tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text(text + "\n")
    with pytest.raises(ChipwiseError, match="without YAML tags"):
        READERS[reader](path)


def test_what_looks_like_a_tag_inside_text_is_text():
    assert parse_yaml('a: "!!bool foo"\nb: wow!') == {"a": "!!bool foo", "b": "wow!"}


def test_yaml_is_parsed_in_one_place():
    """A second call of yaml's own loaders would read tags, aliases and YAML 1.1 again."""
    loads = re.compile(r"yaml\.(safe_load|full_load|unsafe_load|load|load_all|safe_load_all)\(")
    files = [path for path in SOURCES.rglob("*.py") if loads.search(path.read_text())]
    assert [path.relative_to(SOURCES).as_posix() for path in files] == ["chipwise/io/files.py"]
