"""Jobs, outcomes, targets, keys and versions as data."""

import json
import re

import pytest

from chipwise.catalog import load
from chipwise.catalog.names import parse
from chipwise.compiled.job import Compiled, Job, Refused, Spec, outcome_as_json, outcome_from_json
from chipwise.compiled.targets import target_of, topology_arguments
from chipwise.compiled.worker import versions
from chipwise.compiled.worker.keys import Sources, entry_key, file_hash, listed_sources, request_key
from chipwise.compiled.worker.process import Ended, Limits, worker_environment
from chipwise.errors import InputError, MissingCompiler

JOB = Job(Spec("function", "m:f", {"folder": "."}), target_of(parse("v5e:4")), {"xla_tpu_x": "1"}, {"data": 4})
VERSIONS = {"jax": "1", "libtpu": "2"}


def through_json(value):
    return json.loads(json.dumps(value))


def test_jobs_and_outcomes_survive_json():
    assert Job.from_json(through_json(JOB.as_json())) == JOB
    compiled = Compiled("key", VERSIONS, 1.5, 10, {"arguments": 4.0}, {"ops": []}, ("a note",))
    refused = Refused("memory", "out", "op", "a.py:1", "less", "text", 2.0, 1.0, ("a note",))
    for outcome in (compiled, refused):
        assert outcome_from_json(through_json(outcome_as_json(outcome))) == outcome


@pytest.mark.parametrize(
    ("text", "topology", "devices", "slices"),
    [
        ("v2:4", "v2:2x2", 8, 1),
        ("v3:8x8", "v3:8x8", 128, 1),
        ("v4:4x4x4", "v4:4x4x4", 64, 1),
        ("v5e:1", "v5e:1x1", 1, 1),
        ("v5litepod-16", "v5e:4x4", 16, 1),
        ("v5e:512", "v5e:16x16", 256, 2),
        ("v5p-128", "v5p:4x4x4", 64, 1),
        ("v6e:8", "v6e:2x4", 8, 1),
        ("v7x:64", "tpu7x:4x4x4", 128, 1),
        ("h100:8", "1x1x8", 8, 1),
        ("h100:2", "1x1x2", 2, 1),
        ("h100:32", "4x1x8", 32, 1),
        ("gb200:72", "1x18x4", 72, 1),
    ],
)
def test_chips_become_what_the_compiler_calls_them(text, topology, devices, slices):
    target = target_of(parse(text))
    assert (target.topology, target.devices, target.slices) == (topology, devices, slices)
    assert target_of(parse(str(target))) == target


def test_v4_is_asked_for_with_one_device_a_chip():
    assert topology_arguments(target_of(parse("v4:4")))["chip_config_name"] == "megacore"


@pytest.mark.parametrize(
    ("text", "said"),
    [("mi300x:8", "ROCm"), ("trainium2:16", "predict"), ("h100:12", "whole hosts"), ("v100:8", "Turing")],
)
def test_chips_without_a_compiler_are_refused_with_what_is_accepted(text, said):
    with pytest.raises(InputError, match=said):
        target_of(parse(text))


def test_every_chip_has_a_target_or_a_reason():
    for chip in load().chips.values():
        try:
            assert target_of(parse(f"{chip.id}:1")).chip == chip.id
        except InputError as error:
            assert error.field == "on"


def test_a_request_changes_with_everything_it_depends_on(tmp_path):
    base = request_key(JOB, VERSIONS, {})
    others = [
        (Job(JOB.spec, JOB.target, JOB.options, {"data": 2, "model": 2}), VERSIONS, {}),
        (Job(JOB.spec, JOB.target, {}, JOB.mesh), VERSIONS, {}),
        (Job(JOB.spec, target_of(parse("v6e:4")), JOB.options, JOB.mesh), VERSIONS, {}),
        (Job(Spec("function", "m:g", {"folder": "."}), JOB.target, JOB.options, JOB.mesh), VERSIONS, {}),
        (Job(Spec("function", "m:f", {"folder": str(tmp_path)}), JOB.target, JOB.options, JOB.mesh), VERSIONS, {}),
        (JOB, {**VERSIONS, "libtpu": "3"}, {}),
        (JOB, VERSIONS, {"JAX_ENABLE_X64": "1"}),
    ]
    keys = {request_key(*each) for each in others}
    assert len(keys | {base}) == len(others) + 1
    assert request_key(JOB, VERSIONS, {"HOME": "/root"}) == base


def test_the_order_of_mesh_axes_counts():
    swapped = Job(JOB.spec, JOB.target, {}, {"model": 2, "data": 2})
    straight = Job(JOB.spec, JOB.target, {}, {"data": 2, "model": 2})
    assert request_key(swapped, VERSIONS, {}) != request_key(straight, VERSIONS, {})


def test_sources_are_known_by_content(tmp_path):
    path = tmp_path / "a.py"
    sources = Sources((str(path),), ("numpy", "a-package-nobody-has"))
    keys = {entry_key("request", sources.stamp())}
    for text in ("x = 1", "x = 2"):
        path.write_text(text)
        keys.add(entry_key("request", sources.stamp()))
    assert len(keys) == 3
    assert sources.stamp()["package a-package-nobody-has"] == ""
    assert file_hash(tmp_path) == "absent"  # a folder is no file


def test_a_files_content_is_its_source(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text("module {}")
    job = Job(Spec("file", str(path)), JOB.target)
    assert listed_sources(job).files == (str(path.resolve()),)
    assert listed_sources(JOB) == Sources()


def test_a_plugin_of_another_version_is_said(monkeypatch):
    monkeypatch.setattr(versions, "package_version", lambda name: "2.0" if name == "jax-cuda13-plugin" else "1.0")
    with pytest.raises(MissingCompiler, match=re.escape("jax-cuda13-plugin 2.0 does not match jaxlib 1.0")):
        versions.require("cuda", "function")


def test_a_workers_environment_has_no_flags_of_others():
    given = {"XLA_FLAGS": "--xla_tpu_x=1", "LIBTPU_INIT_ARGS": "--y", "JAX_PLATFORMS": "tpu", "HOME": "/root"}
    made = worker_environment(given)
    assert not {"XLA_FLAGS", "LIBTPU_INIT_ARGS"} & set(made)
    assert (made["JAX_PLATFORMS"], made["TPU_SKIP_MDS_QUERY"], made["HOME"]) == ("cpu", "1", "/root")


def test_limits_have_defaults_and_can_be_off():
    assert Limits().seconds == 1800.0
    assert Limits().bytes is None or Limits().bytes > 10**8
    assert Limits(None, None).bytes is None


def test_a_worker_killed_from_outside_is_told_as_such():
    from chipwise.compiled.worker import diagnose

    refused = diagnose.ended(Ended(-9, "compiling", 12.3, 10, "", ""), Limits())
    assert (refused.stage, "out of memory" in refused.reason) == ("limit", True)
