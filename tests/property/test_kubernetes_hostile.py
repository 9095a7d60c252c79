"""Whatever people call things, objects are valid and programs get their words unchanged."""

import json
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from kubernetes_cases import a_launch, a_pool, checked, containers, expanded

# shell, YAML, Go templates, Kubernetes' own references, and everything else that is text
NASTY = st.sampled_from(
    [
        "$(HOME)",
        "$$(HOME)",
        "$$$(A)",
        "$(",
        "$",
        "${A}",
        "`id`",
        "; rm -rf /",
        "'",
        '"',
        "\\",
        "\n",
        "--",
        "{{.}}",
        "%s",
        "é",
        "😀",
        "",
        " ",
    ]
)
TEXT = st.one_of(st.text(max_size=40), st.lists(NASTY, max_size=6).map("".join))
WORDS = TEXT.filter(lambda t: "\0" not in t and t.encode("utf-8", "ignore").decode() == t)
NAMES = st.from_regex(r"[A-Za-z_.-][A-Za-z0-9_.-]{0,20}", fullmatch=True).filter(
    lambda n: not n.startswith(("CHIPWISE_", "TPU_"))
)
KINDS = st.sampled_from([("job", 8), ("jobset", 16), ("rayjob", 16)])


@given(
    st.text(min_size=1, max_size=120),
    TEXT,
    TEXT,
    TEXT,
    st.lists(WORDS, min_size=1, max_size=4),
    st.dictionaries(NAMES, WORDS, max_size=4),
    KINDS,
    TEXT,
)
def test_objects_are_valid_and_words_arrive(attempt, name, owner, variant, command, environment, kind, uid):
    pool = a_pool(unit=8, kind=kind[0], queue="team")
    launch = a_launch(
        pool,
        kind[1],
        command=command,
        attempt=attempt,
        name=name,
        owner=owner,
        variant=variant,
        environment=environment,
    )
    made = checked(launch, uid)
    for container in containers(made):
        given_values = {e["name"]: e["value"] for e in container["env"] if "value" in e}
        known = dict(environment) | {"HOME": "/root", "A": "wrong"}
        got = {k: expanded(v, known) for k, v in given_values.items()}
        assert {k: got[k] for k in environment if k != "CHIPWISE_FOLDER"} == {
            k: v for k, v in environment.items() if k != "CHIPWISE_FOLDER"
        }
        if "command" in container:
            assert [expanded(word, known) for word in container["command"]] == command
    if kind[0] == "rayjob":
        head = next(containers(made["spec"]["rayClusterSpec"]["headGroupSpec"]))
        argv = next(e["value"] for e in head["env"] if e["name"] == "CHIPWISE_ARGV")
        assert json.loads(expanded(argv, {"HOME": "x"})) == command


@given(st.sets(st.text(min_size=1, max_size=80), min_size=2, max_size=6))
def test_names_of_different_attempts_differ(attempts):
    made = [checked(a_launch(a_pool(), attempt=attempt)) for attempt in attempts]
    assert (
        len({m["metadata"]["name"] for m in made})
        == len({m["metadata"]["labels"]["chipwise-attempt"] for m in made})
        == len(attempts)
    )
