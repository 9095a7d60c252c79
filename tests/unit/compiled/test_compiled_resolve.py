"""What a PROGRAM argument names."""

import pytest

from chipwise.compiled.check.resolve import makes_torch, program_spec
from chipwise.errors import BrokenFile, InputError


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_name_or_a_yaml_file_is_a_workload(tmp_path):
    assert program_spec("llama-3.1-8b", tmp_path) is None
    assert program_spec("work.yaml", tmp_path) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import torch\n", "torch"),
        ("import jax\n", "function"),
        ("import jax, torch\n", "function"),
        ("from torch import nn\n", "torch"),
        ("x = 1\n", "function"),
        ("def (", "function"),
    ],
)
def test_imports_tell_pytorch_from_jax(tmp_path, text, kind):
    write(tmp_path, model=text)
    assert program_spec("model.py:make", tmp_path).kind == kind
    assert program_spec("model:make", tmp_path).kind == kind


def test_imports_are_followed_through_the_users_own_files(tmp_path):
    write(tmp_path, pkg____init__="", pkg__train="from pkg.model import Net\n", pkg__model="import torch\n")
    assert makes_torch("pkg.train", tmp_path)


def test_files_that_import_each_other_end(tmp_path):
    write(tmp_path, a="import b\n", b="import a\n")
    assert not makes_torch("a", tmp_path)


def test_what_is_said_wins_over_the_imports(tmp_path):
    write(tmp_path, model="import torch\n")
    assert program_spec("model.py:make", tmp_path, torch=False).kind == "function"


def test_choices_and_sizes_go_with_the_program(tmp_path):
    write(tmp_path, model="import jax\n")
    assert program_spec("model.py:make", tmp_path, choices={"remat": "full"}).data["choices"] == {"remat": "full"}
    (tmp_path / "f.jaxexport").write_bytes(b"x")
    assert program_spec(str(tmp_path / "f.jaxexport"), tmp_path, sizes={"b": 8}).data == {"sizes": {"b": 8}}


@pytest.mark.parametrize("text", ["", "  ", "model.py", ":f", "model.py:", "model.py:not a name", "absent.py:f"])
def test_what_names_nothing_is_refused(tmp_path, text):
    with pytest.raises(InputError):
        program_spec(text, tmp_path)


def test_an_exported_file_must_exist(tmp_path):
    with pytest.raises(BrokenFile):
        program_spec(str(tmp_path / "absent.mlir"), tmp_path)
