"""Jobs, pools and launches that the tests of routing share."""

from dataclasses import replace
from pathlib import Path

from chipwise.predict.estimate import Estimate
from chipwise.route.backend import Launch
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.launch import digest_of, environment, launch_file, write_launch
from chipwise.route.ledger.records import NewJob
from chipwise.route.option import Option
from chipwise.route.pool import Pool


def pool(name="near", count=2, **more):
    return Pool(name, more.pop("backend", "local"), more.pop("chip", "cpu"), more.pop("family", "cpu"), count, **more)


def option(at="near", seconds=1.0, variant="cpu", chips=1, usd_hour=3.6, **more):
    return Option(
        at, variant, chips, "", Estimate(seconds, 0.5 * seconds, 2 * seconds, "measured"), usd_hour, 0.0, **more
    )


def job(*command, name="job", variants=None, **more):
    return Job(name, variants or (Variant("cpu", "cpu", 1, command=command or ("true",)),), **more)


def submission(a_job, *options):
    return NewJob(a_job, options or (option(),), ())


def restartable(every=1.0, folder=""):
    return Checkpoint(restartable=True, every=every, folder=folder)


def launch(folder: Path, *command, number=1, at=None, chips=1, time_limit=None, grace=None, variables=(), secrets=()):
    """A launch whose files are written, in the folder of a backend."""
    a_pool, attempt = at or pool(), f"u-{number}-1"
    variant = Variant("cpu", "cpu", chips, command=command, environment=tuple(variables), secrets=tuple(secrets))
    a_job, an_option, own = Job("job", (variant,)), option(a_pool.name, chips=chips), folder / "attempts" / attempt
    made = Launch(
        attempt,
        1,
        str(number),
        a_job,
        variant,
        a_pool,
        an_option,
        own,
        environment(a_job, variant, a_pool, an_option, attempt, 1, own),
        time_limit,
    )
    data = launch_file(made, grace)
    write_launch(own, data)
    return replace(made, digest=digest_of(data))
