"""The replicas that options ask for."""

import subprocess
import sys

import pytest

from chipwise.errors import InputError, NoLayout
from chipwise.serving.sizing import check_chips, read_pools
from chipwise.serving.split import Split, named_split


def test_sizes_left_out_are_one():
    assert named_split(None, 2, None, None) == Split(pp=2) and named_split(None, None, None, None) is None


@pytest.mark.parametrize("text", ["", "2", "2:", ":2", "a:b", "1:2:3", "-1:2", "0:1", "1.5:2", "9999999:1"])
def test_pools_that_make_no_sense(text):
    with pytest.raises(InputError, match=r"^disaggregate: "):
        read_pools(text)


def test_more_replicas_than_chips_are_refused_with_the_numbers():
    check_chips(Split(tp=4), 2, 8)
    with pytest.raises(NoLayout, match=r"tp\(4\) \* pp\(1\) \* dp\(2\) \* replicas\(3\) = 24 is more than chips\(8\)"):
        check_chips(Split(tp=4, dp=2), 3, 8)


def test_the_command_line_imports_neither_numpy_nor_numba():
    code = "import sys, chipwise.cli.main; assert not {'numpy', 'numba', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
