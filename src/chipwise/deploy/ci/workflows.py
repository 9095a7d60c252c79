"""Workflow files that run the checks on pull requests, comment, and fail: GitHub Actions, GitLab, pre-commit.

Code of a pull request is anyone's: the job that runs it can read and nothing more; the one that comments runs none of
it. Values of an event reach scripts as variables, never as text of the script.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from enum import StrEnum

from chipwise.deploy.ci.comment import MARK


class Provider(StrEnum):
    """Where the checks run."""

    GITHUB = "github"
    GITLAB = "gitlab"
    PRE_COMMIT = "pre-commit"


PATHS = {
    Provider.GITHUB: ".github/workflows/chipwise.yml",
    Provider.GITLAB: ".gitlab/chipwise.yml",
    Provider.PRE_COMMIT: ".pre-commit-config.yaml",
}
BASE_OUT = '"$OLDPWD/base.json"'  # from the folder of the base branch
PYTHON = "3.11"  # the oldest that chipwise runs on (pyproject.toml, 2026-11-20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """What the files are written of."""

    checks: str  # the checks file, from the root of the repository
    limit: float
    install: str  # the command that installs chipwise with its compilers
    branch: str = "main"  # that pull requests go to


def text_of(provider: Provider, of: Workflow) -> str:
    """The file of a provider."""
    made = {Provider.GITHUB: _github, Provider.GITLAB: _gitlab, Provider.PRE_COMMIT: _pre_commit}
    return made[provider](of)


def _checks(of: Workflow) -> str:
    return shlex.quote(of.checks)


def _compile(of: Workflow, out: str) -> str:
    """Exit status 1 is an answer: some program is not fine, and the comment says which."""
    return f"chipwise deploy compile {_checks(of)} -o json --out {out} || test $? -eq 1"


def _comment(of: Workflow) -> str:
    return f"chipwise deploy comment base.json head.json --limit {of.limit * 100:g}% --out comment.md"


def _base(of: Workflow, sha: str) -> list[str]:
    """The same checks of the base branch, by the checks file of this one."""
    return [
        f'git worktree add --detach ../base "{sha}"',
        f'mkdir -p "../base/$(dirname {_checks(of)})"',
        f"cp {_checks(of)} ../base/{_checks(of)}",
        f"(cd ../base && {_compile(of, BASE_OUT)})",
    ]


def _block(lines: list[str], indent: int) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _github(of: Workflow) -> str:
    ours = f'.[] | select(.user.login == "github-actions[bot]") | select(.body | startswith("{MARK}")) | .id'
    return f"""\
name: chipwise

on:
  pull_request:
    branches: [{json.dumps(of.branch)}]

permissions: {{}}  # each job says what it needs

concurrency:
  group: chipwise-${{{{ github.ref }}}}
  cancel-in-progress: true

jobs:
  compile:
    runs-on: ubuntu-latest  # x86-64: TPU compilers have no other wheels
    timeout-minutes: 120
    permissions:
      contents: read  # code of a pull request runs here: it may write nothing
    env:
      CHIPWISE_CACHE: ${{{{ github.workspace }}}}/.chipwise-cache
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "{PYTHON}"
          cache: pip
          cache-dependency-path: {json.dumps(of.checks)}
      - name: Install
        run: {json.dumps(of.install)}
      - name: Compiles of before
        uses: actions/cache@v4
        with:
          path: .chipwise-cache
          key: chipwise-${{{{ runner.os }}}}-${{{{ github.sha }}}}
          restore-keys: chipwise-${{{{ runner.os }}}}-
      - name: This branch
        run: {json.dumps(_compile(of, "head.json"))}
      - name: The base branch
        env:
          BASE_SHA: ${{{{ github.event.pull_request.base.sha }}}}
        run: |
{_block(_base(of, "$BASE_SHA"), 10)}
      - name: Hold them against each other
        id: judge
        run: |
          status=0
          {_comment(of)} || status=$?
          cat comment.md >> "$GITHUB_STEP_SUMMARY"
          exit "$status"
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: chipwise
          path: |
            base.json
            head.json
            comment.md

  comment:
    needs: compile
    # a pull request of a fork has no token that may write: its comment is in the summary of the run
    if: always() && github.event.pull_request.head.repo.full_name == github.repository
    runs-on: ubuntu-latest
    timeout-minutes: 5
    permissions:
      pull-requests: write  # nothing of the pull request runs here
    steps:
      - uses: actions/download-artifact@v4
        with:
          name: chipwise
      - name: Comment, or replace the comment of before
        env:
          GH_TOKEN: ${{{{ github.token }}}}
          COMMENTS: repos/${{{{ github.repository }}}}/issues/${{{{ github.event.pull_request.number }}}}/comments
          ONE: repos/${{{{ github.repository }}}}/issues/comments
          OURS: {json.dumps(ours)}
        run: |
          id=$(gh api --paginate "$COMMENTS" --jq "$OURS" | head -n 1)
          if [ -n "$id" ]; then gh api --method PATCH "$ONE/$id" --field body=@comment.md
          else gh api "$COMMENTS" --field body=@comment.md; fi
"""


def _gitlab(of: Workflow) -> str:
    find = (
        "import json, sys; print(next((n['id'] for n in json.load(sys.stdin) if n['body'].startswith('"
        + MARK
        + "')), ''))"
    )
    return f"""\
# include it in .gitlab-ci.yml:  include: [{{local: {PATHS[Provider.GITLAB]}}}]
chipwise:compile:
  stage: test
  image: python:{PYTHON}
  timeout: 2h
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"
    CHIPWISE_CACHE: $CI_PROJECT_DIR/.chipwise-cache
  cache:
    key: chipwise
    paths: [.chipwise-cache]
  script:
    - {json.dumps(of.install)}
    - {json.dumps(_compile(of, "head.json"))}
    - |
{_block(_base(of, "$CI_MERGE_REQUEST_DIFF_BASE_SHA"), 6)}
    - {json.dumps(_comment(of))}
  artifacts:
    when: always
    paths: [base.json, head.json, comment.md]

# needs CHIPWISE_COMMENT_TOKEN, a masked variable with a project access token (scope api): job tokens can't comment
chipwise:comment:
  stage: .post
  image: python:{PYTHON}
  needs: [{{job: "chipwise:compile", artifacts: true}}]
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event" && $CHIPWISE_COMMENT_TOKEN
      when: always
  variables:
    GIT_STRATEGY: none  # nothing of the merge request runs here
  script:
    - |
      notes="$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
      token="PRIVATE-TOKEN: $CHIPWISE_COMMENT_TOKEN"
      id=$(curl --fail --silent --header "$token" "$notes?per_page=100&sort=desc" | python3 -c {shlex.quote(find)})
      if [ -n "$id" ]; then method=PUT notes="$notes/$id"; else method=POST; fi
      curl --fail --silent --request "$method" --header "$token" --data-urlencode "body@comment.md" "$notes"
"""


def _pre_commit(of: Workflow) -> str:
    return f"""\
repos:
  - repo: local
    hooks:
      - id: chipwise
        name: programs compile and fit
        entry: chipwise deploy compile {_checks(of)}
        language: system
        types: [python]
        pass_filenames: false
        stages: [pre-push]  # compiles take seconds to minutes; what did not change is from the cache
"""
