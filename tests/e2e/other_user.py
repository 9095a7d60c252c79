"""Real second users: functions that run in a process of another uid, without any of the tests' own rights."""

import os
import pickle
import sys
import traceback

import pytest

from scratch import ROOT

ADA, MALLORY = 4243, 4242  # uids that no system has; their names are uid:4243 and uid:4242

REACHED = all(folder.stat().st_mode & 0o001 for folder in ROOT.parents)

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not REACHED,
    reason="only root can start a process as another user, who must be able to enter the folder of the checkout",
)


def as_user(uid, function, *arguments):
    """What a function returns in a forked process of that user; what it raises is raised here."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.environ.update(HOME="/nonexistent", TMPDIR="/nonexistent")
            try:
                outcome = (True, function(*arguments))
            except BaseException as error:
                outcome = (False, (type(error).__name__, str(error), traceback.format_exc()))
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(outcome, pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    good, value = pickle.loads(data)
    if not good:
        raise OtherUserError(*value)
    return value


class OtherUserError(Exception):
    """What was raised in the process of the other user."""

    def __init__(self, kind, words, trace):
        super().__init__(f"{kind}: {words}")
        self.kind, self.words, self.trace = kind, words, trace


def refused(uid, function, *arguments):
    """The name of the error with which the system refuses what another user tries; fails where it does not."""
    with pytest.raises(OtherUserError) as raised:
        as_user(uid, function, *arguments)
    assert raised.value.kind in ("PermissionError", "OSError"), raised.value.trace
    return raised.value
