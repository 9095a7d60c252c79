"""A run: workers that crash cost one point, an interrupt or a limit keeps what is done, nothing is overwritten early."""

import os
from pathlib import Path

import pytest
from bench_numpy import CRASH

from chipwise.bench import environment, process
from chipwise.bench.file import read
from chipwise.bench.session import CPU_ONLY, BenchRequest, Session, plan
from chipwise.errors import ChipwiseError, InputError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch):
    path = [str(HERE), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))


def request(planner="calm", **more):
    fields = {
        "suites": ("kernels", "train"),
        "platform": "cpu",
        "size": "tiny",
        "frameworks": ("numpy",),
        "openers": {"numpy": "bench_numpy:open_numpy"},
        "planner": f"bench_numpy:{planner}",
    }
    return BenchRequest(**{**fields, **more})


def run(asked, tell=lambda event: None, out=None):
    made = Session(plan(asked), tell, out)
    made.run()
    return made


def test_a_sweep_goes_on_after_whatever_happens_to_a_point(tmp_path):
    events = []
    made = run(request("points"), events.append, tmp_path / "out.json")
    statuses = [each.status for each in made.file.points]
    assert statuses[1:3] == ["failed", "failed"] and statuses[4:7] == ["oom", "unsupported", "failed"]
    assert all(status in ("ok", "unstable") for i, status in enumerate(statuses) if i in (0, 3, 7))
    crashed = made.file.points[2]
    assert crashed.point.sizes["m"] == CRASH and "SIGABRT" in crashed.reason and "about to abort" in crashed.reason
    assert made.file.complete and read(tmp_path / "out.json") == made.file
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]
    measured = [event for event in events if event.measured is not None]
    assert [event.done for event in measured] == list(range(1, 9)) and {event.total for event in events} == {8}


def test_the_file_says_what_it_is_about():
    made = run(request(command=("chipwise", "bench", "kernels")))
    assert made.file.frameworks["numpy"]["numpy"] and made.file.device.name == "numpy's CPU" and made.file.chip == ""
    assert made.file.telemetry.source == "proc" and made.file.notes == (CPU_ONLY,)
    assert {"os", "kernel", "cpu", "cores", "memory_bytes", "python"} <= set(made.file.environment)
    assert "host" not in made.file.environment and "host" in environment.environment(host=True)


def test_an_interrupt_keeps_what_is_done_and_ends_the_worker(tmp_path):
    def stop_after_two(event):
        if event.done == 2:
            raise KeyboardInterrupt

    made = run(request("endless", suites=("kernels",)), stop_after_two, tmp_path / "out.json")
    assert made.interrupted and not made.file.complete and len(made.file.points) == 2
    assert read(tmp_path / "out.json") == made.file and "interrupted" in made.file.notes[-1]


def test_a_limit_of_time_leaves_the_rest_out():
    made = run(request("endless", suites=("kernels",), seconds=0.5))
    assert 0 < len(made.file.points) < 5000 and not made.file.complete
    assert made.file.notes[-1].endswith("of 5000 points were not begun within the time given")


def test_a_file_of_before_stays_until_the_run_ends(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("precious")
    seen = []
    run(request(), lambda event: seen.append(out.read_text()), out)
    assert set(seen) == {"precious"} and read(out).complete


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path):
    with pytest.raises(InputError, match=r"^out: "):
        run(request(), lambda event: pytest.fail("work began"), tmp_path / "no" / "out.json")


def test_a_device_that_is_absent_is_an_error():
    with pytest.raises(ChipwiseError, match="device: 'cuda' is not accepted"):
        plan(request(platform="cuda"))


def test_a_framework_that_cannot_be_imported_is_an_error_with_its_last_line():
    with pytest.raises(ChipwiseError, match="No module named 'nowhere'"):
        plan(request(openers={"numpy": "nowhere:open"}))


def test_the_first_platform_that_opens_is_taken(monkeypatch):
    monkeypatch.setattr(environment, "platforms", lambda: ("cuda", "cpu"))
    made = plan(request(platform="auto"))
    assert made.platform == "cpu" and made.notes[0] == f"no accelerator found: {CPU_ONLY}"
    assert "'cuda' is not accepted" in made.notes[1]


@pytest.mark.parametrize(
    "change, words",
    [({"frameworks": ("mxnet",)}, "frameworks: 'mxnet'"), ({"platform": "abacus"}, "device: 'abacus'")],
)
def test_unknown_names_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        plan(request(**change))


def test_nothing_installed_is_an_error(monkeypatch):
    monkeypatch.setattr(environment, "installed", lambda: ())
    with pytest.raises(ChipwiseError, match="neither PyTorch nor JAX is installed"):
        plan(request(frameworks=()))


def test_one_framework_of_two_is_enough_unless_it_was_named(monkeypatch):
    monkeypatch.setattr(environment, "installed", lambda: ("numpy", "other"))
    openers = {"numpy": "bench_numpy:open_numpy", "other": "nowhere:open"}
    made = plan(request(frameworks=(), openers=openers))
    assert [part.framework for part in made.parts] == ["numpy"] and "nowhere" in made.notes[-1]
    with pytest.raises(ChipwiseError, match="nowhere"):
        plan(request(frameworks=("numpy", "other"), openers=openers))


def test_platforms_are_known_by_their_device_files(tmp_path):
    assert environment.platforms(tmp_path) == ("cpu",)
    (tmp_path / "dev/vfio").mkdir(parents=True)
    (tmp_path / "dev/vfio/vfio").touch()
    assert environment.platforms(tmp_path) == ("cpu",)
    for name in ("nvidiactl", "kfd", "accel0"):
        (tmp_path / "dev" / name).touch()
    assert environment.platforms(tmp_path) == ("cuda", "rocm", "tpu", "cpu")


def test_a_worker_lets_jax_take_memory_as_it_needs_it():
    made = process.environment({"A": "b"}, "cuda")
    assert made["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false" and made["JAX_PLATFORMS"] == "cuda,cpu" and made["A"] == "b"


def test_a_worker_that_says_nothing_is_stopped(monkeypatch):
    monkeypatch.setattr(process, "QUIET_SECONDS", 0.0)
    asked = request()
    with pytest.raises(ChipwiseError, match="no answer"):
        plan(asked)


def test_the_suites_are_those_of_points():
    from chipwise.cli import bench
    from chipwise.ops.point import SUITES

    assert tuple(bench.SUITES) == (*SUITES, "all")
