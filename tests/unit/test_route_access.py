"""Roles and teams of the pools file, and what a role allows."""

import pytest

from chipwise.errors import InputError
from chipwise.route.access import Forbidden, Identity
from chipwise.route.load.pools import load_pools

FILE = """
access:
  operator: {users: [ops], groups: [wheel]}
  submitter: {users: [ada], groups: [research]}
  viewer: {users: [ops, ann]}
  teams:
    vision: {users: [ada], groups: [vision]}
    speech: {groups: [research]}
pools:
  - {name: cpu, backend: local, chip: cpu, count: 2, price: 0, terms: owned, watts: 50}
"""
TRUSTED = frozenset({0, 7})


@pytest.fixture
def access(tmp_path):
    return lambda text=FILE: load_pools(_written(tmp_path, text)).access


def _written(folder, text):
    (folder / "pools.yaml").write_text(text)
    return folder / "pools.yaml"


@pytest.mark.parametrize(
    ("user", "groups", "uid", "role", "team"),
    [
        ("ops", (), 1000, "operator", ""),  # the highest that fits
        ("ada", (), 1001, "submitter", "vision"),
        ("bob", ("research",), 1002, "submitter", "speech"),
        ("bob", ("research", "vision"), 1002, "submitter", "vision"),
        ("ann", (), 1003, "viewer", ""),
        ("eve", ("users",), 1004, "", ""),
        ("root", (), 0, "operator", ""),
        ("svc", (), 7, "operator", ""),
    ],
)
def test_os_users_have_the_role_of_their_name_or_group(access, user, groups, uid, role, team):
    identity = access().os_user(user, groups, uid, TRUSTED)
    assert (identity.role, identity.team) == (role, team)


def test_others_are_refused_unless_the_file_gives_them_a_role(access):
    assert access().os_user("eve", (), 1004, TRUSTED).role == ""
    assert (
        access(FILE.replace("access:", "access:\n  others: viewer")).os_user("eve", (), 1004, TRUSTED).role == "viewer"
    )
    with pytest.raises(InputError, match=r"access\.others"):
        access(FILE.replace("access:", "access:\n  others: operator"))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("access: {quotas: {teams: {nobody: {usd: 5}}}}", "access.quotas.teams"),
        ("access: {quotas: {users: {ada: {chips: -1}}}}", "access.quotas.users.ada.chips"),
        ("access: {quotas: {users: {ada: {usd: lots}}}}", "access.quotas.users.ada.usd"),
        ("access: {quotas: {users: {ada: {hours: 5}}}}", "access.quotas.users.ada.hours"),
        ("access: {root: {users: [ada]}}", "access.root"),
    ],
)
def test_what_the_file_can_not_mean_is_refused_by_name(access, text, field):
    pools = FILE[FILE.index("pools:") :]
    with pytest.raises(InputError) as refused:
        access(f"{text}\n{pools}")
    assert refused.value.field == field


ALLOWED = {
    "viewer": {"read", "status"},
    "submitter": {"read", "submit", "cancel", "retry"},
    "operator": {"read", "status", "submit", "cancel", "retry", "drain", "resume"},
    "": set(),
}


@pytest.mark.parametrize("role", ALLOWED)
def test_a_role_allows_these_commands_and_no_other(role):
    for command in ALLOWED["operator"]:
        if command in ALLOWED[role]:
            Identity("ada", role).check(command)
        else:
            with pytest.raises(Forbidden, match="expected"):
                Identity("ada", role).check(command)


def test_a_submitter_owns_what_it_submits():
    ada = Identity("ada", "submitter")
    for command in ("read", "cancel", "retry"):
        ada.check(command, "ada", "1")
        with pytest.raises(Forbidden):
            ada.check(command, "bob", "1")
        with pytest.raises(Forbidden):
            ada.check(command, "", "1")
    with pytest.raises(InputError, match="ada, who submits it"):
        ada.owner_of("bob", "owner")
