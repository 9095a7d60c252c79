"""A compiler that is not here: the command that installs it, or where to run; other targets are answered all the same."""

import re
from pathlib import Path

import pytest

from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.names import parse
from chipwise.compiled.cache import Cache
from chipwise.compiled.check.check import Question, check
from chipwise.compiled.job import Job, Spec
from chipwise.compiled.targets import target_of
from chipwise.compiled.worker import versions
from chipwise.cost.migration_check import read_check
from chipwise.errors import ChipwiseError, MissingCompiler
from chipwise.io.install import install_line
from chipwise.present.blocks import Text

PROGRAMS = Path(__file__).parents[3] / "examples" / "programs"


@pytest.fixture
def without(monkeypatch):
    """Takes packages away."""
    real = versions.package_version
    return lambda *gone: monkeypatch.setattr(
        versions, "package_version", lambda name: "" if name in gone else real(name)
    )


def question(on):
    acc = parse(on)
    return Question(acc, Job(Spec("function", "jax_mlp:train", {"folder": str(PROGRAMS)}), target_of(acc)))


def test_a_missing_compiler_says_the_command_and_the_licence(monkeypatch):
    monkeypatch.setattr(versions, "package_version", lambda name: "" if name == "libtpu" else "1.0")
    monkeypatch.setattr(versions.platform, "system", lambda: "Linux")
    monkeypatch.setattr(versions.platform, "machine", lambda: "x86_64")
    with pytest.raises(MissingCompiler, match=re.escape(install_line("tpu-compiler"))) as caught:
        versions.require("tpu", "function")
    assert "Google Cloud Platform Terms of Service" in str(caught.value)
    (state,) = (each for each in versions.installed() if each.toolchain.id == "tpu")
    assert (state.usable, state.available, state.missing) == (False, True, ("libtpu",))
    assert versions.require("cuda", "function")["jaxlib"] == "1.0"


@pytest.mark.parametrize("system, machine", [("Darwin", "arm64"), ("Linux", "aarch64"), ("Windows", "AMD64")])
def test_a_platform_without_the_compiler_is_told_where_to_run(monkeypatch, system, machine):
    monkeypatch.setattr(versions, "package_version", lambda name: "")
    monkeypatch.setattr(versions.platform, "system", lambda: system)
    monkeypatch.setattr(versions.platform, "machine", lambda: machine)
    with pytest.raises(
        MissingCompiler, match=f"libtpu has wheels for Linux on x86_64 alone, this is {system} on {machine}"
    ) as caught:
        versions.require("tpu", "function")
    assert "pip install" not in str(caught.value) and "docker run --platform linux/amd64" in str(caught.value)
    available = {each.toolchain.id: each.available for each in versions.installed()}
    assert available == {"tpu": False, "cuda": system == "Linux", "torch": True, "export": True}


@pytest.mark.compiler("cuda")
def test_of_several_targets_those_with_a_compiler_are_answered(without, tmp_path):
    without("libtpu")
    found = check(
        "jax_mlp",
        "function",
        [question("v5e:2x2"), question("h100:4")],
        load_calibration(bench=False),
        cache=Cache(tmp_path / "cache"),
    )
    missing, compiled = found.rows
    assert not found.ok and compiled.ok and not missing.outcome.tried and "libtpu" in missing.outcome.reason
    told = found.to_dict()
    assert [row["compiles"] for row in told["rows"]] == [None, True] and told["rows"][0]["refused"][
        "stage"
    ] == "compiler"
    words = "\n".join(each.words for each in found.blocks(3) if isinstance(each, Text))
    assert "not tried: XLA for TPU can't be used" in words and "v5e:2x2: see above; exit status 1" in words


def test_where_no_target_has_a_compiler_all_that_are_missing_are_named(without, tmp_path):
    without("libtpu")
    with pytest.raises(MissingCompiler, match="libtpu"):
        check(
            "jax_mlp",
            "function",
            [question("v5e:2x2"), question("v6e:2x2")],
            load_calibration(bench=False),
            cache=Cache(tmp_path),
        )
    without("libtpu", "nvidia-nvvm")
    with pytest.raises(ChipwiseError, match=r"XLA for TPU can't be used: .*; XLA for NVIDIA GPUs can't be used: "):
        check(
            "jax_mlp",
            "function",
            [question("v5e:2x2"), question("h100:4")],
            load_calibration(bench=False),
            cache=Cache(tmp_path),
        )


def test_a_target_that_was_not_tried_says_nothing_of_a_port(tmp_path):
    path = tmp_path / "check.json"
    path.write_text("""{"command": "check", "program": "p", "rows": [
        {"accelerators": {"chip": "v5e"}, "compiles": null, "refused": {"stage": "compiler", "reason": "libtpu is not installed"}},
        {"accelerators": {"chip": "h100"}, "compiles": true, "refused": null}]}""")
    checked = read_check(path)
    assert checked.of("v5e") is None and checked.of("h100").compiles
