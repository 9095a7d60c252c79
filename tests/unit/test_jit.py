"""Compiled code that is kept on disk is compiled again when anything that went into it has changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

SRC = Path(__file__).resolve().parents[2] / "src"
FILES = {
    "top.py": "from chipwise.io.jit import jit_cached\nimport middle\n\n@jit_cached\ndef top(x):\n    return middle.middle(x) + 1.0\n\nprint(top(1.0))\n"
    "print(len(top.stats.cache_hits) - len(top.stats.cache_misses))\n",
    "middle.py": "from chipwise.io.jit import jit_helper\nfrom bottom import SHIFT, bottom\n\n@jit_helper\ndef middle(x):\n    return bottom(x) + SHIFT\n",
    "bottom.py": "from chipwise.io.jit import jit_helper\n\nSHIFT = 10.0\nFREE = 5\n\n@jit_helper\ndef bottom(x):\n    return 2.0 * x\n",
}


def say(folder):
    env = {**os.environ, "PYTHONPATH": str(SRC), "NUMBA_CACHE_DIR": str(folder / "kept")}
    done = subprocess.run(
        [sys.executable, "-B", "top.py"], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    value, hits = done.stdout.split()
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
