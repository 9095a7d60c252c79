"""chipwise deploy ci, compile, comment: programs checked on pull requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_yaml, one_of
from chipwise.cli.declare import argument, option, output_format
from chipwise.cli.options import OutFile, TableJsonCsv

CI_EXAMPLES = """\b
Examples:
  chipwise deploy ci examples/ci/checks.yaml
  chipwise deploy ci examples/ci/checks.yaml --for github,pre-commit --limit 10%
"""
COMPILE_EXAMPLES = """\b
Examples:
  chipwise deploy compile examples/ci/checks.yaml
  chipwise deploy compile examples/ci/checks.yaml -o json --out head.json
"""
COMMENT_EXAMPLES = """\b
Examples:
  chipwise deploy comment examples/ci/base.json examples/ci/head.json --limit 10%
  chipwise deploy comment examples/ci/base.json examples/ci/head.json --limit 10% -o table
"""
PROVIDERS = ("github", "gitlab", "pre-commit")
FAILED = 1  # exit status: something does not compile, does not fit, or is slower than it may become
CHECKS = argument("CHECKS", "A checks file (YAML): programs, and the targets of each.", complete_yaml)


def ci(
    checks: Annotated[Path, CHECKS],
    to: Annotated[Path, option("--to", "DIR", "The root of the repository.")] = Path(),
    providers: Annotated[
        str, option("--for", "LIST", f"For {', '.join(PROVIDERS)}: comma separated.", one_of(*PROVIDERS))
    ] = "github",
    limit: Annotated[
        str | None, option("--limit", "SHARE", "Slower by more than this fails. Default: the file's, else 5%.")
    ] = None,
    install: Annotated[
        str | None, option("--install", "COMMAND", "Installs chipwise. Default: pip, with the compilers needed.")
    ] = None,
    branch: Annotated[str, option("--branch", "NAME", "That pull requests go to (GitHub).")] = "main",
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Write workflow files that compile a team's programs on pull requests, comment, and fail what must not be merged.

    They compile this branch and its base (`deploy compile`), keep compiles from run to run, and comment on time, memory
    and cost (`deploy comment`). The job that runs a pull request's code can write nothing. A file that somebody edited
    is not written over.
    """
    from chipwise import api
    from chipwise.present.output import show

    names = [name.strip() for name in providers.split(",") if name.strip()]
    answer = api.deploy_ci(checks, to, providers=names, limit=limit, install=install, branch=branch)
    show(answer, output, out)


def compile_checks(
    checks: Annotated[Path, CHECKS],
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Compile every program of a checks file for every target: does it compile and fit, how long, at what cost.

    Exit status 0 if all do, 1 if some don't, can't be read, or their compiler is missing here.
    """
    from chipwise import api
    from chipwise.present.output import show
    from chipwise.present.progress import target_stages

    with target_stages("compiling") as stage:
        answer = api.deploy_compile(checks, progress=stage)
    show(answer, output, out)
    if not answer.ok:
        raise typer.Exit(FAILED)


def comment(
    base: Annotated[Path, argument("BASE", "What `deploy compile -o json` said of the base branch.")],
    head: Annotated[Path, argument("HEAD", "The same of the branch.")],
    limit: Annotated[str, option("--limit", "SHARE", "Slower by more than this fails.")] = "5%",
    output: Annotated[
        str, output_format("markdown (the comment), table or json.", "markdown", "table", "json")
    ] = "markdown",
    out: OutFile = None,
) -> None:
    """Hold a branch against its base, and write the comment for its pull request.

    Exit status 1 if something does not compile, does not fit, or is slower by more than the limit.
    """
    from chipwise import api
    from chipwise.present.output import show, write

    answer = api.deploy_comment(base, head, limit=limit)
    if output == "markdown":
        write(answer.comment, out)
    else:
        show(answer, output, out)
    if not answer.ok:
        raise typer.Exit(FAILED)
