"""A launch as a request to Slurm, and the request as the arguments of sbatch or as slurmrestd's JSON.

No text of a user's is ever part of a script. The script is the same for all jobs; the attempt's folder and the program
that reads it come by variables; the program's words and variables are in launch.json, words before them in before.json.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

from chipwise.errors import InputError
from chipwise.route.backend import BackendRefused, Launch
from chipwise.route.backends import shim
from chipwise.route.backends.secret_values import secret_values
from chipwise.route.pool import Pool

SCRIPT = """\
#!/bin/sh
# Runs one attempt of chipwise, once: what to run is in the folder's launch.json.
exec "$CHIPWISE_PYTHON" -I -S "$CHIPWISE_FOLDER/shim.py" "$CHIPWISE_FOLDER" "$SLURM_JOB_ID"
"""
SHIM_NAME, BEFORE_NAME, LOG_NAME = "shim.py", "before.json", "slurm.log"
# of the router's own environment, a job gets these alone: the rest may hold what is none of its business
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE")
# Slurm acts on time limits once a minute, and the signal of --signal comes up to 60 s early (sbatch(1), 22.05)
MARGIN_S = 60.0
ATTEMPT = re.compile(r"[A-Za-z0-9-]{1,150}")
GRES = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?")
CONTAINERS = ("pyxis", "apptainer", "none")
# keys of a pool's address that this backend reads; another one is a mistake that nobody would notice
SETTINGS = frozenset({"cluster", "conf", "timeout", "rest", "user", "insecure"})  # of the cluster
ADDRESS = SETTINGS | {
    "partition",
    "account",
    "qos",
    "reservation",
    "constraint",
    "gres",
    "chips_per_node",
    "cpus",
    "memory",
    "exclusive",
    "container",
    "mounts",
    "python",
    "grace",
    "cwd",
    "nice",
    "secrets",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A job that Slurm is asked to run."""

    name: str  # the attempt
    folder: str
    nodes: int
    gres: str  # of each node: gpu:h200:8; empty: none
    cpus: int | None  # of each node
    options: tuple[tuple[str, str], ...]  # partition, account, qos, reservation, constraint, memory, nice
    exclusive: bool
    requeue: bool
    seconds: float | None  # time limit
    warning: int  # seconds before the time limit at which the shim is told to stop
    before: tuple[str, ...]  # words before the program's own: srun, a container
    environment: Mapping[str, str]  # of the batch script, secrets included
    exclude: tuple[str, ...] = ()  # nodes on which it is not to run

    @property
    def comment(self) -> str:
        """Says whose job it is to people who look at the queue."""
        return f"chipwise {self.name}"

    @property
    def log(self) -> str:
        """Where Slurm and the shim complain. A percent sign would start a pattern of sbatch's."""
        return f"{self.folder}/{LOG_NAME}".replace("%", "%%")


def request_of(launch: Launch, router: Mapping[str, str] | None = None) -> Request:
    """What to ask for; `BackendRefused` where the pool's address or the job can't be meant so."""
    pool = launch.pool
    if not ATTEMPT.fullmatch(launch.attempt):
        raise BackendRefused(f"attempt {launch.attempt!r}: Slurm's jobs are named by letters, digits and dashes alone")
    check_address(pool)
    nodes, chips = split(pool, launch.option.chips)
    gres = gres_of(pool)
    grace = _number(pool, "grace", shim.GRACE_S)
    # the shim keeps the job's own limit; Slurm's signal, however early, is for a shim that can't
    limit = min(inf if launch.time_limit is None else launch.time_limit + grace + 2 * MARGIN_S, pool.max_seconds)
    cpus = chips if not gres else int(_number(pool, "cpus", 0)) or None
    named = ("partition", "account", "qos", "reservation", "constraint", "memory", "nice")
    return Request(
        name=launch.attempt,
        folder=str(launch.folder),
        nodes=nodes,
        gres=f"{gres}:{chips}" if gres else "",
        cpus=cpus,
        options=tuple((key, pool.setting(key)) for key in named if pool.setting(key)),
        exclusive=pool.setting("exclusive").lower() in ("true", "yes", "1"),
        requeue=launch.job.checkpoint.restartable,
        seconds=None if limit == inf else limit,
        warning=ceil(grace + MARGIN_S),
        before=_before(launch, nodes, cpus),
        environment=_environment(launch, os.environ if router is None else router),
        exclude=pool.avoid,
    )


def check_address(pool: Pool) -> None:
    """Refuse what this backend would pass over or could not use."""
    for key, value in pool.address:
        if key not in ADDRESS:
            raise InputError(f"pools.{pool.name}.address", key, f"one of {', '.join(sorted(ADDRESS))}")
        if not value.isprintable():
            raise InputError(f"pools.{pool.name}.address.{key}", value, "one line of text")
    for key in ("chips_per_node", "cpus", "grace"):
        _number(pool, key, 0)
    if pool.setting("container", "none") not in CONTAINERS:
        raise InputError(
            f"pools.{pool.name}.address.container", pool.setting("container"), f"one of {', '.join(CONTAINERS)}"
        )
    gres_of(pool)


def gres_of(pool: Pool) -> str:
    """The generic resource that a pool's chips are, by its address or by family and chip; empty for CPUs."""
    gres = pool.setting("gres") or ("" if pool.family == "cpu" else f"{pool.family}:{pool.chip}")
    if gres and not GRES.fullmatch(gres):
        raise InputError(f"pools.{pool.name}.address.gres", gres, "NAME or NAME:TYPE")
    return gres


def split(pool: Pool, chips: int) -> tuple[int, int]:
    """Nodes that a gang takes and chips on each: all on one where they fit, else whole nodes.

    >>> split(Pool("h200", "slurm", "h200", "gpu", 32, unit=8), 16)
    (2, 8)
    >>> split(Pool("h200", "slurm", "h200", "gpu", 32, address=(("chips_per_node", "8"),)), 4)
    (1, 4)
    """
    node = int(_number(pool, "chips_per_node", pool.unit if pool.unit > 1 else 0))
    if not node or chips <= node:
        return 1, chips
    return -(-chips // node), node


def _number(pool: Pool, key: str, default: float) -> float:
    text = pool.setting(key)
    try:
        value = float(text) if text else float(default)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise InputError(f"pools.{pool.name}.address.{key}", text, "a number of at least 0")
    return value


def _before(launch: Launch, nodes: int, cpus: int | None) -> tuple[str, ...]:
    """Words before the program's own: one process a node by srun, inside a container where there is an image."""
    container = _container(launch)
    words: list[str] = []
    if nodes > 1 or container == "pyxis":
        words += [
            "srun",
            f"--nodes={nodes}",
            f"--ntasks={nodes}",
            "--ntasks-per-node=1",
            "--kill-on-bad-exit=1",
            "--export=ALL",
        ]
        words += [f"--cpus-per-task={cpus}"] if cpus else []  # since 22.05 srun no longer takes it over from sbatch
    mounts = _mounts(launch) if container != "none" else []
    if container == "pyxis":
        words += [f"--container-image={launch.variant.image}", f"--container-mounts={','.join(mounts)}"]
    elif container == "apptainer":
        image = launch.variant.image
        complete = "://" in image or image.startswith("/") or image.endswith(".sif")
        words += [
            "apptainer",
            "exec",
            *(["--nv"] if launch.pool.family == "gpu" else []),
            *(f"--bind={mount}" for mount in mounts),
            image if complete else f"docker://{image}",
        ]
    return tuple(words)


def _container(launch: Launch) -> str:
    if not launch.variant.image:
        return "none"
    container = launch.pool.setting("container")
    if not container:
        raise BackendRefused(
            f"variant {launch.variant.name} has an image, and pool {launch.pool.name} doesn't say how "
            f"images run there; expected container: {', '.join(CONTAINERS)} in its address"
        )
    if container != "none" and not (launch.variant.image.isprintable() and not launch.variant.image.startswith("-")):
        raise BackendRefused(f"variant {launch.variant.name}: image {launch.variant.image!r} is no name of an image")
    return container


def _mounts(launch: Launch) -> list[str]:
    """Folders that a container sees, under their own names."""
    folders = dict.fromkeys(
        folder
        for folder in (str(launch.folder), launch.job.checkpoint.folder, launch.pool.setting("cwd"))
        if folder.startswith("/")
    )
    for folder in folders:
        if re.search(r"[,:]", folder) or not folder.isprintable():
            raise BackendRefused(f"folder {folder!r} can't be mounted in a container: it has a comma or a colon in it")
    return [*(f"{folder}:{folder}" for folder in folders), *filter(None, launch.pool.setting("mounts").split(","))]


def _environment(launch: Launch, router: Mapping[str, str]) -> dict[str, str]:
    return (
        {name: router[name] for name in INHERITED if name in router}
        | secret_values(launch, router)
        | {
            "CHIPWISE_PYTHON": launch.pool.setting("python") or "python3",
            "CHIPWISE_FOLDER": str(launch.folder),
            "CHIPWISE_POOL": launch.pool.name,
            **({shim.DIGEST: launch.digest} if launch.digest else {}),
            **({} if launch.job.checkpoint.restartable else {"CHIPWISE_ONCE": "1"}),
        }
    )


def sbatch(request: Request) -> list[str]:
    """The arguments of sbatch, each one word; it reads the script from its standard input."""
    flags = {"memory": "mem"}
    return [
        "sbatch",
        "--parsable",
        f"--job-name={request.name}",
        f"--comment={request.comment}",
        *(f"--{flags.get(key, key)}={value}" for key, value in request.options),
        f"--nodes={request.nodes}",
        f"--ntasks={request.nodes}",
        "--ntasks-per-node=1",
        *([f"--gres={request.gres}"] if request.gres else []),
        *([f"--cpus-per-task={request.cpus}"] if request.cpus else []),
        *(["--exclusive"] if request.exclusive else []),
        *([f"--exclude={','.join(request.exclude)}"] if request.exclude else []),
        *([f"--time={clock(request.seconds)}"] if request.seconds is not None else []),
        f"--signal=B:TERM@{request.warning}",
        "--requeue" if request.requeue else "--no-requeue",
        "--dependency=singleton",
        "--open-mode=append",
        "--export=ALL",
        f"--chdir={request.folder}",
        f"--output={request.log}",
    ]


def clock(seconds: float) -> str:
    """A time as Slurm reads it.

    >>> clock(90061.5)
    '1-01:01:02'
    """
    total = ceil(seconds)
    return f"{total // 86400}-{total // 3600 % 24:02}:{total // 60 % 60:02}:{total % 60:02}"
