"""Pages can't rot: every command they show runs, every verb has a page, every key of the JSON is explained."""

import json
import re
import sys
from functools import cache

import pytest
from command import EXAMPLE, ROOT, chipwise, good

from chipwise.cli.verbs import VERBS
from lane import share

sys.path.insert(0, str(ROOT / "scripts"))
from refresh_docs import CUT, pages, run, run_snippets, shown, snippets, with_keys
from slow_tests import new_lines

NARROW = "tests/e2e/compiled/programs/narrow_mlp.py"  # compiles in seconds


def marks(each):
    """What a command needs, and whether it takes minutes."""
    return [*([pytest.mark.compiler(*each.needs)] if each.needs else ()), *([pytest.mark.slow] if each.slow else ())]


def sessions_here():
    """In `make test` every third session, and those with a command that a day ago was not shown; in the slow lane all."""
    new = new_lines(pages())
    sessions = list(dict.fromkeys(each.session for page in pages() for each in shown(page)))
    return {*share(sessions, 3), *(each for each in sessions if {f"$ {command}" for command in each} & new)}


SESSIONS = sessions_here()
COMMANDS = [
    pytest.param(each, marks=marks(each), id=f"{page.name}: {each.command}")
    for page in pages()
    for each in shown(page)
    if each.session in SESSIONS
]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def loosely(line: str) -> str:
    """A line without its numbers, units and spacing: those move with the calibration."""
    return " ".join(word for word in line.split() if not re.search(r"[\d-]", word))


def shown_status(output) -> int:
    """The exit status that an output tells: 2 for one line of refusal, 1 where a check says so."""
    if output and output[0].startswith("chipwise: "):
        return 2
    return 1 if any(line.endswith("exit status 1") for line in output) else 0


@cache
def ran(session):
    """What came of the commands of a session, each run once."""
    return run(session, lambda words, env: chipwise(*words, env=env))


@pytest.mark.sampled
@pytest.mark.parametrize("each", COMMANDS)
def test_a_command_shown_runs_and_prints_what_is_shown(each):
    status, output = ran(each.session)[each.place]
    assert status == shown_status(each.output), output
    alike(each.output, output)


def alike(shown, output):
    """Every line shown is printed, but for numbers."""
    printed = {line.rstrip() for line in output.splitlines()}
    loose = {loosely(line) for line in printed}
    said = [line.rstrip() for line in shown if line.strip() and line != CUT]
    assert said, "no output is shown: run `make docs`"
    assert loosely(said[0]) in loose
    for line in said:
        if not re.search(r"\d", line) and set(line) - set("- "):
            assert line in printed or loosely(line) in loose, line


@pytest.mark.parametrize("page", [page for page in pages() if snippets(page)], ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_and_print_what_is_shown(page):
    codes, outputs = zip(*snippets(page), strict=True)
    for output, printed in zip(outputs, run_snippets(codes), strict=True):
        alike(output.splitlines(), printed)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_page_and_is_in_the_readme_and_the_tour(verb):
    page, tour = (ROOT / "docs" / f"{name}.md" for name in (verb, "tour"))
    assert page.is_file() and f"$ chipwise {verb}" in page.read_text(encoding="utf-8")
    assert f"[{verb}](docs/{verb}.md)" in README
    assert f"[`chipwise {verb}`]({verb}.md)" in tour.read_text(encoding="utf-8")


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120
    assert len(re.findall(r"^\*\*.*\?\*\*", README, re.MULTILINE)) == 5


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_files_that_contributors_are_sent_to_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|validation)/[^`\s]+)`", text)) - {"src/chipwise/route/backends/NAME/"}
    assert len(named) > 15 and [name for name in sorted(named) if not (ROOT / name).exists()] == []
    targets = set(re.findall(r"`make ([a-z-]+)`", text)) | set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in sorted(targets) if f"\n{name}:" not in made] == []
    data = ROOT / "src" / "chipwise" / "catalog" / "data"
    chip = text.partition("### A chip")[2].partition("###")[0]
    assert all((data / name).is_file() for name in re.findall(r"`([a-z]+\.(?:toml|csv))`", chip))


def keys(value, out):
    if isinstance(value, dict):
        for key, inside in value.items():
            out.add(key)
            keys(inside, out)
    elif isinstance(value, list):
        for inside in value[:1]:
            keys(inside, out)
    return out


NAMES = {
    "by_chip",
    "by_family",
    "by_source",
    "not_eligible",
    "refusals",
    "parts_seconds",
    "collectives_seconds",
    "memory_bytes",
    "figures",
    "peak",
    "by_class_seconds",
    "by_source_seconds",
    "by_metric",
    "by_distance",
    "left_out_whole",
    "by_mode",
    "latencies_seconds",
    "hidden_seconds",
    "versions",
    "options",
    "dims",
    "set",
    "split_usd",
    "mix",
}  # whose keys are names


def without_names(value):
    if isinstance(value, dict):
        return {k: None if k in NAMES else without_names(v) for k, v in value.items()}
    return [without_names(v) for v in value] if isinstance(value, list) else value


def test_tables_of_keys_are_those_that_columns_declare():
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    assert page.count("<!-- keys: ") == 8 and with_keys(page) == page


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", EXAMPLE, "--on", "h100,v100"),
        ("diff", "examples/decisions/list.json", "examples/decisions/contract.json"),
        ("predict", EXAMPLE, "--on", "h100:64"),
        ("layouts", EXAMPLE, "--on", "h100:64"),
        ("chips", "v5e"),
        ("prices", "--on", "v5e"),
        ("models", "gpt2"),
        ("validate", "--rows", str(ROOT / "validation" / "rows" / "kernels.csv")),
        ("validate", "--rows", str(ROOT / "validation" / "rows" / "inference.csv"), "--row", "I0051"),
        ("compare", "examples/llama-3.1-70b-serve.yaml", "--on", "h100,b200,t4"),
        ("compare", "resnet50", "--edge", "--on", "orin-nx,hailo-8,gb10", "--power", "15W"),
        ("cost", EXAMPLE, "--on", "h100:64,v100", "--framework", "jax"),
        ("cost", "examples/llama-3.1-70b-serve.yaml", "--on", "h100"),
        *(
            pytest.param(
                ("check", f"{NARROW}:train", "--on", on, "--tune", "--tune-limit", "2"),
                marks=pytest.mark.compiler(family),
            )
            for on, family in (("v5e:2x2", "tpu"), ("h100:4", "cuda"))
        ),
        ("doctor",),
        (
            "simulate",
            "examples/traces/mixed-day.yaml",
            "--pools",
            "examples/traces/mixed-pools.yaml",
            "--policy",
            "cheapest",
        ),
        pytest.param(("fleet", "plan", "examples/fleet/mixed.yaml"), marks=pytest.mark.slow),
        ("fleet", "plan", "examples/fleet/too-much.yaml"),
    ],
    ids=lambda a: a[0],
)
def test_every_key_of_the_json_is_documented(arguments):
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    missing = [
        key
        for key in sorted(keys(without_names(json.loads(good(*arguments, "-o", "json"))), set()))
        if f"`{key}`" not in page
    ]
    assert not missing
