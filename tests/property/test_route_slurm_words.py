"""Words of users never become words of Slurm: whatever a job is called and runs, what sbatch gets is the same."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.route.backend import BackendRefused, Launch
from chipwise.route.backends.slurm.backend import SlurmBackend
from chipwise.route.backends.slurm.request import SCRIPT, request_of, sbatch
from chipwise.route.backends.slurm.rest import job_of
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.option import Option
from chipwise.route.pool import Pool

POOL = Pool(
    "p", "slurm", "h200", "gpu", 16, address=(("chips_per_node", "8"), ("container", "pyxis"), ("partition", "gpu"))
)
WORDS = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    ["$(id)", "`id`", "; id", "\n#SBATCH --nodes=9", "--wrap=id", "'", '"', "%j", "\udcff", "a\0b", "-", "{0}", "é"]
)


def launch(name, command, variables, image="", secrets=(), at=POOL):
    variant = Variant(
        "gpu", "gpu", 8, command=tuple(command), environment=tuple(variables.items()), image=image, secrets=secrets
    )
    job = Job(name, (variant,), owner=name, checkpoint=Checkpoint(folder=name))
    return Launch(
        "l0-1-1",
        1,
        "1",
        job,
        variant,
        at,
        Option("p", "gpu", 8, "", Estimate(1, 1, 1, "measured"), 1, 1),
        Path("/shared/attempts/l0-1-1"),
        dict(variables),
    )


PLAIN = request_of(launch("job", ["true"], {}), {"PATH": "/bin"})


@given(WORDS, st.lists(WORDS, min_size=1, max_size=4), st.dictionaries(WORDS, WORDS, max_size=3))
def test_names_commands_and_variables_change_nothing_that_slurm_is_told(name, command, variables):
    request = request_of(launch(name, command, variables), {"PATH": "/bin"})
    assert (
        sbatch(request) == sbatch(PLAIN)
        and request.environment == PLAIN.environment
        and job_of(request) == job_of(PLAIN)
    )


@given(WORDS.filter(bool))
def test_an_image_is_one_word_after_its_option_or_refused(image):
    try:
        request = request_of(launch("job", ["true"], {}, image), {})
    except BackendRefused:
        assert image.startswith("-") or not image.isprintable()
        return
    assert request.before.count(f"--container-image={image}") == 1
    assert [word for word in request.before if not word.startswith("--")] == ["srun"]
    assert sbatch(request) == sbatch(PLAIN)


@given(WORDS)
def test_a_secret_is_named_by_letters_or_refused_and_its_value_is_in_no_word(name):
    router = {"PATH": "/bin", **({name: "hush-4711"} if name else {})}
    try:
        made = launch(
            "job", ["true"], {}, secrets=(name,), at=replace(POOL, address=(*POOL.address, ("secrets", name)))
        )
        request = request_of(made, router)
    except (BackendRefused, InputError) as error:
        assert "hush" not in str(error)
        return
    assert name.isidentifier() and name.isascii() and request.environment[name] == "hush-4711"
    assert not any("hush" in word for word in (*sbatch(request), *request.before, SCRIPT))
    assert "hush" not in SlurmBackend("l0", lambda a: Path("/x"), {"conf": "/x"}).render(made)
