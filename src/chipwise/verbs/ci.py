"""Verbs of checks on pull requests: deploy_ci, deploy_compile, deploy_comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.compiled.check.check import Progress as CheckProgress
    from chipwise.deploy.ci.view import BranchComparison, CompiledChecks, WrittenWorkflows
    from chipwise.knowledge import Knowledge


def deploy_ci(
    checks: str | Path,
    to: str | Path = ".",
    *,
    providers: Sequence[str] = ("github",),
    limit: str | float | None = None,
    install: str | None = None,
    branch: str = "main",
) -> WrittenWorkflows:
    """Write the workflow files that run a checks file on pull requests, comment, and fail, into a repository.

    `providers` are ``"github"``, ``"gitlab"`` and ``"pre-commit"``. `limit` is how much slower than the base branch a
    program may become (default: the file's, else 5 %); `install` the command that installs chipwise there; `branch`
    the one that pull requests go to.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "checks.yaml"
    ...     _ = file.write_text("checks: [{program: 'train.py:step', on: v5e:4x4}]")
    ...     written = deploy_ci(file, folder)
    >>> written.install, written.targets
    ('pip install "chipwise[tpu-compiler]"', 1)
    """
    from chipwise.deploy.ci.checks_file import read_checks, targets_of
    from chipwise.deploy.ci.files import inside, install_command, write_files
    from chipwise.deploy.ci.view import WrittenWorkflows
    from chipwise.deploy.ci.workflows import PATHS, Provider, Workflow, text_of
    from chipwise.errors import InputError, UnknownName
    from chipwise.units import parse_share

    unknown = next((name for name in providers if name not in list(Provider)), None)
    if unknown is not None or not providers:
        raise UnknownName("providers", unknown or "", list(Provider))
    if not branch.strip() or any(character in branch for character in "\n\r"):
        raise InputError("branch", branch, "the name of a branch")
    command = None if install is None else install.strip()
    if command == "" or (command is not None and "\n" in command):
        raise InputError("install", str(install), "one command")
    read, folder = read_checks(Path(checks)), Path(to)
    of = Workflow(
        checks=inside(folder, Path(checks)),
        limit=read.limit if limit is None else parse_share(limit, "limit"),
        install=command or install_command(read),
        branch=branch,
    )
    chosen = [Provider(name) for name in dict.fromkeys(providers)]
    return WrittenWorkflows(
        checks=of.checks,
        targets=sum(len(targets_of(check)) for check in read.checks),
        limit=of.limit,
        install=of.install,
        files=write_files(folder, {PATHS[provider]: text_of(provider, of) for provider in chosen}),
    )


def deploy_compile(
    checks: str | Path | Mapping[str, Any],
    *,
    knowledge: Knowledge | None = None,
    progress: CheckProgress | None = None,
) -> CompiledChecks:
    """Compile every program of a checks file for every target of it: does it compile, fit, how long, at what cost.

    One that can't be read, or whose compiler is missing here, does not stop the others.

    >>> small = {"batch": 8, "sequence": 8192}
    >>> answer = deploy_compile({"checks": [{"program": "llama-3.1-8b", "on": "h100:1", "with": small}]})
    >>> answer.ok, answer.results[0].answer.value
    (False, 'does not fit')
    """
    from chipwise.deploy.ci.checks_file import checks_of, read_checks
    from chipwise.deploy.ci.run import run_checks
    from chipwise.deploy.ci.view import CompiledChecks
    from chipwise.knowledge import Knowledge

    read = checks_of(checks) if isinstance(checks, Mapping) else read_checks(Path(checks))
    name = "checks" if isinstance(checks, Mapping) else str(checks)
    return CompiledChecks(checks=name, results=run_checks(read, knowledge or Knowledge.published(), progress))


def deploy_comment(base: str | Path, head: str | Path, *, limit: str | float | None = None) -> BranchComparison:
    """Hold what `deploy_compile` said of a branch against its base: what is broken, or slower than it may become.

    `base` and `head` are files of ``deploy compile -o json``; `limit` is a share (default: 5 %). Its `comment` is
    Markdown for the pull request.

    >>> deploy_comment("base.json", "head.json", limit="-5%")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: limit: '-5%' is not accepted; expected a share from 0 to 1, such as 0.4 or 40%
    """
    from chipwise.deploy.ci.checks_file import LIMIT
    from chipwise.deploy.ci.judge import compared
    from chipwise.deploy.ci.results import results_in
    from chipwise.deploy.ci.view import BranchComparison
    from chipwise.units import parse_share

    most = LIMIT if limit is None else parse_share(limit, "limit")
    return BranchComparison(rows=compared(results_in(Path(base)), results_in(Path(head)), most), limit=most)
