"""Compiled code that is kept on disk is compiled again when anything that went into it has changed."""

import grp
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from chipwise.io import owner as ownership
from chipwise.io.owner import others_can_replace, others_can_write

pytestmark = pytest.mark.thorough

SRC = Path(__file__).resolve().parents[2] / "src"
FILES = {
    "top.py": "from chipwise.io.jit import jit_cached\nimport middle\n\n@jit_cached\ndef top(x):\n    return middle.middle(x) + 1.0\n\nprint(top(1.0))\n"
    "print(len(top.dispatcher.stats.cache_hits) - len(top.dispatcher.stats.cache_misses))\n",
    "middle.py": "from chipwise.io.jit import jit_helper\nfrom bottom import SHIFT, bottom\n\n@jit_helper\ndef middle(x):\n    return bottom(x) + SHIFT\n",
    "bottom.py": "from chipwise.io.jit import jit_helper\n\nSHIFT = 10.0\nFREE = 5\n\n@jit_helper\ndef bottom(x):\n    return 2.0 * x\n",
}


def say(folder):
    env = {**os.environ, "PYTHONPATH": str(SRC), "NUMBA_CACHE_DIR": str(folder / "kept")}
    done = subprocess.run(
        [sys.executable, "-B", "top.py"], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    value, hits = done.stdout.split()
    assert done.stderr.count("compiling for this machine") == done.stderr.count("\n") == (int(hits) <= 0)
    return float(value), int(hits) > 0


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "before", "after", "value"),
    [
        ("bottom.py", "2.0 * x", "3.0 * x", 14.0),
        ("bottom.py", "SHIFT = 10.0", "SHIFT = 20.0", 23.0),
        ("top.py", "+ 1.0", "+ 2.0", 14.0),
    ],
)
def test_a_change_anywhere_below_compiles_anew(folder, name, before, after, value):
    assert say(folder) == (13.0, False)
    assert say(folder) == (13.0, True)
    (folder / name).write_text((folder / name).read_text().replace(before, after))
    os.utime(folder / "top.py", (1, 1))  # Numba's own rule would see nothing but this
    os.utime(folder / name, (1, 1))
    assert say(folder) == (value, False)
    assert say(folder) == (value, True)


def test_a_file_that_is_only_touched_is_not_compiled_anew(folder):
    assert say(folder) == (13.0, False)
    for name in FILES:
        os.utime(folder / name, (1, 1))
    assert say(folder) == (13.0, True)


def kept_by(folder, user, **permissions):
    """What a user's process says whose compiled code would go into that folder."""
    env = {**os.environ, "PYTHONPATH": str(SRC), "NUMBA_CACHE_DIR": str(folder / "kept"), "HOME": str(folder)}
    code = "import sys; sys.path.insert(0, '.'); import top"
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        user=user,
        **permissions,
    )


@pytest.fixture
def foreign(folder):
    """The folder where another user can reach it, and compiled code in it that somebody else left."""
    if os.geteuid():
        pytest.skip("only root can be two users")
    home = Path(tempfile.mkdtemp(dir="/var/tmp"))
    for name, text in FILES.items():
        (home / name).write_text(text)
    (home / "kept").mkdir()
    home.chmod(0o755)
    yield home
    shutil.rmtree(home)


@pytest.mark.parametrize(
    ("owner", "mode", "words"), [(65534, 0o755, "belongs to user 65534"), (0, 0o777, "can be written by others")]
)
def test_a_cache_that_others_can_write_is_not_used_and_said_so(foreign, owner, mode, words):
    os.chown(foreign / "kept", owner, owner)
    (foreign / "kept").chmod(mode)
    done = kept_by(foreign, 0)
    assert done.returncode == 0 and done.stdout.split()[0] == "13.0"
    assert (
        done.stderr.count("\n") == 1
        and words in done.stderr
        and done.stderr.startswith("chipwise: compiled code is not kept")
    )
    assert not list((foreign / "kept").rglob("*.nbi"))


def test_another_user_trusts_neither_roots_folder_nor_one_that_all_can_write(foreign):
    code = """
import os, sys
from pathlib import Path
from chipwise.io.owner import others_can_write
import grp, pwd
os.setgroups([]); os.setegid(65534); os.seteuid(65534)
home = Path(sys.argv[1])
(home / "open" / "left").write_text("by nobody")
print(others_can_write(home / "kept"), others_can_write(home / "own"), others_can_write(home / "open"), sep="|")
"""
    for name, mode, owner in (("own", 0o700, 65534), ("open", 0o777, 0)):
        (foreign / name).mkdir()
        (foreign / name).chmod(mode)
        os.chown(foreign / name, owner, owner)
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(foreign)], env=env, capture_output=True, text=True, check=True
    )
    kept, own, everybodys = done.stdout.strip().split("|")
    assert kept.endswith("belongs to user 0") and own == "" and everybodys.endswith("belongs to user 0")
    (foreign / "open").chmod(0o700)  # root's alone now, with what nobody left in it
    assert others_can_write(foreign / "open").endswith("left is not your own")


def test_a_link_on_the_way_counts_with_who_could_point_it_elsewhere(foreign):
    (foreign / "own").mkdir(mode=0o700)
    (foreign / "way").symlink_to(foreign)
    assert others_can_replace(foreign / "way" / "own") == ""
    os.lchown(foreign / "way", 65534, 65534)
    assert others_can_replace(foreign / "way" / "own") == f"{foreign / 'way'} is a link of user 65534"
    (foreign / "theirs").mkdir()
    (foreign / "theirs" / "way").symlink_to(foreign / "own")  # root's, in a folder of another's
    os.chown(foreign / "theirs", 65534, 65534)
    assert others_can_replace(foreign / "theirs" / "way") == f"{foreign / 'theirs'} belongs to user 65534"
    (foreign / "round").symlink_to(foreign / "round")
    assert "links" in others_can_replace(foreign / "round" / "own")


def test_a_group_that_another_user_has_as_their_own_is_not_the_owners_alone(monkeypatch):
    people = [pwd.struct_passwd((name, "x", uid, gid, "", "", "")) for name, uid, gid in PEOPLE]
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    monkeypatch.setattr(pwd, "getpwnam", lambda name: next(one for one in people if one.pw_name == name))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: next(one for one in people if one.pw_uid == uid))
    members = {1000: [], 1001: [], 1002: ["ada"], 0: []}
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(("g", "x", gid, members[gid])))
    alone = ownership._alone_in.__wrapped__
    assert alone(1000, 1000) and not alone(1001, 1001) and not alone(1002, 1000)  # bob's group is eve's too
    assert alone(0, 1000)
    people.append(pwd.struct_passwd(("operator", "x", 11, 0, "", "", "")))
    assert not alone(0, 1000)


PEOPLE = (("root", 0, 0), ("ada", 1000, 1000), ("bob", 1001, 1001), ("eve", 1002, 1001))


def test_files_of_others_in_an_own_folder_are_not_used(foreign):
    assert kept_by(foreign, 0).stderr.startswith("chipwise: compiling for this machine")
    assert kept_by(foreign, 0).stderr == ""
    file = next((foreign / "kept").rglob("*.nbi"))
    os.chown(file, 65534, 65534)
    assert "is not your own" in kept_by(foreign, 0).stderr


def test_what_is_interpreted_neither_imports_numba_nor_says_anything(folder):
    code = """
import sys
from chipwise.io.jit import interpreted
with interpreted():
    import top
    assert top.top(1.0) == 13.0
assert "numba" not in sys.modules
"""
    (folder / "top.py").write_text(FILES["top.py"].split("print")[0])
    env = {**os.environ, "PYTHONPATH": f"{SRC}:{folder}"}
    done = subprocess.run([sys.executable, "-B", "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
