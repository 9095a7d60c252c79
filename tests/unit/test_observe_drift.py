"""Since when runs take another time, and which version changed then: found in noise, and not where there is none."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.drift import false_alarms, told

import chipwise as cw
from chipwise.observe.drift.change_point import FEWEST_AFTER, FEWEST_BEFORE, Change, changes
from chipwise.observe.drift.groups import label_changes
from chipwise.observe.log import read_lines
from chipwise.observe.versions import versions_in


def noisy(levels, seed=0, noise=0.025):
    return np.asarray(levels) + noise * np.random.default_rng(seed).standard_normal(len(levels))


def test_a_change_is_told_soon_and_without_one_seldom():
    assert false_alarms(150, seed=3) <= 7
    answer = told(150, 1.10, seed=3)
    assert answer.in_time >= 138 and answer.too_soon <= 4 and np.median(answer.runs) <= 6
    assert answer.named >= 0.8 * answer.in_time


def test_each_of_several_changes_is_found():
    series = noisy([0.0] * 20 + [0.15] * 20 + [-0.05] * 20)
    found = changes(series)
    assert [change.place for change in found] == [20, 40]
    assert [change.shift for change in found] == pytest.approx([0.15, -0.20], abs=0.02)
    assert all(FEWEST_BEFORE <= change.place < change.called for change in found)


@pytest.mark.parametrize("seed", range(5))
def test_few_slow_runs_are_no_change(seed):
    series = noisy([0.0] * 40, seed)
    series[[7, 20, 21, 39]] += 0.5
    assert changes(series) == []


@pytest.mark.parametrize("series", [[], [0.0], [0.0] * (FEWEST_BEFORE + FEWEST_AFTER - 1), [0.3] * 60])
def test_too_few_and_alike_runs_say_nothing(series):
    assert changes(np.asarray(series, dtype=np.float64)) == []


def change(place, places):
    return Change(place=place, called=place + 5, before=0.0, after=0.1, places=tuple(places))


def test_a_label_counts_where_it_changed_with_the_times_and_stayed():
    runs = [{"driver": "1" if n < 10 else "2", "nccl": "1" if n < 4 else "2", "node": str(n % 2)} for n in range(20)]
    named = label_changes(runs, change(11, [9, 10, 11]))
    assert [(one.label, one.before, one.after, one.place) for one in named] == [("driver", "1", "2", 10)]
    assert label_changes(runs, change(15, [15])) == ()
    silent = [one if n not in (9, 10, 11) else {} for n, one in enumerate(runs)]
    assert [one.label for one in label_changes(silent, change(10, [10]))] == ["driver"]  # between two that tell it


@pytest.mark.parametrize(
    ("line", "versions"),
    [
        ("| NVIDIA-SMI 610.43.02  KMD Version: 610.43.02   CUDA UMD Version: 13.3 |",
         {"driver": "610.43.02", "cuda": "13.3"}),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.173.02  Release Build", {"driver": "580.173.02"}),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Wed", {"driver": "535.129.03"}),
        ("[1,0]<stdout>:NCCL version 2.12.12.MSCCL.0.7.3+cuda11.6", {"nccl": "2.12.12.MSCCL.0.7.3+cuda11.6"}),
        ("(run with NCCL_DEBUG=INFO for details),NCCL version 2.20.5", {"nccl": "2.20.5"}),
        ("INFO 05-14 09:09:58 [api_server.py:1272] vLLM API server version 0.14.1", {"vllm": "0.14.1"}),
        ("Libtpu version: 0.0.20.dev20250722+nightly", {"libtpu": "0.0.20.dev20250722+nightly"}),
        ("NCCL version unknown, conversion 3.1", {}),
        ("PyTorch version: 2.5.1+cu124 Is debug build: False", {"pytorch": "2.5.1+cu124"}),
        ("version: " + "1." * 10_000, {}),
    ],
)  # fmt: skip
def test_versions_are_read_as_programs_print_them(line, versions):
    assert dict(versions_in(line)) == versions


def test_a_log_keeps_what_was_told_first():
    log = read_lines(
        ["NCCL version 2.27.5", "iteration 1/ 9 | elapsed time per iteration (ms): 5.0 |", "NCCL version 2.1.1"]
    )
    assert log.versions == {"nccl": "2.27.5"}


def test_runs_of_a_file_name_the_version_that_changed():
    drifts = cw.observe_drift("examples/observe/drift.yaml")
    (row,) = drifts.rows
    assert row.drift.run.name.endswith("11.log") and row.drift.ratio == pytest.approx(1.10, abs=0.02)
    assert [(one.label, one.after) for one in row.drift.labels] == [("driver", "580.95.05")]
    document = json.loads(json.dumps(drifts.to_dict()))
    assert document["changes"][0]["labels"][0]["before"] == "570.172.08"
    assert document["groups"][0]["labels"] == ["cuda", "driver", "nccl"]
    assert drifts.flat_rows()[0]["since"] == "2026-10-31"


def test_labels_of_a_file_stand_over_those_of_the_log(tmp_path):
    folder = Path("examples/observe").resolve()
    text = (folder / "drift.yaml").read_text(encoding="utf-8").replace("log: drift", f"log: {folder}/drift")
    rows = text.splitlines()
    rows[2:] = [f"{row[:-1]}, labels: {{image: {'a' if n < 10 else 'b'}}}}}" for n, row in enumerate(rows[2:])]
    file = tmp_path / "runs.yaml"
    file.write_text("\n".join(rows), encoding="utf-8")
    (row,) = cw.observe_drift(file).rows
    assert [one.label for one in row.drift.labels] == ["driver", "image"]
    file.write_text(text.replace("on: 'h100:8'", "on: 'h100:8', labels: [a]", 1), encoding="utf-8")
    with pytest.raises(cw.InputError, match="labels"):
        cw.observe_drift(file)


def test_what_to_read_has_to_be_named():
    with pytest.raises(cw.MissingInput):
        cw.observe_drift()
    with pytest.raises(cw.Conflict):
        cw.observe_drift("examples/observe/drift.yaml", pools="examples/pools/local.yaml")
