"""The size of the house's parts: modules that fit in the head, functions that take what a reader can hold."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "chipwise"
LONGEST = 450  # lines of a module
ALONE = {"shim.py": 540, "cloud_nodes.py": 480}  # one file each: nodes and controllers run them without chipwise
MOST = 8  # parameters of a function
FACES = ("cli", "verbs")  # one parameter for each thing that people may say
COMPILED = {"jit_cached", "jit_helper"}  # kernels take arrays one by one


def parameters(function):
    args = function.args
    count = len(args.posonlyargs) + len(args.args) + len(args.kwonlyargs)
    return count - bool(args.args and args.args[0].arg in ("self", "cls"))


def compiled(function):
    return any(isinstance(name, ast.Name) and name.id in COMPILED for name in function.decorator_list)


@pytest.mark.parametrize(
    "package", sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_")
)
def test_modules_and_parameter_lists_stay_short(package):
    for path in sorted((SOURCE / package).rglob("*.py")):
        text = path.read_text()
        assert text.count("\n") <= ALONE.get(path.name, LONGEST), (
            f"{path.relative_to(SOURCE)} has {text.count(chr(10))} lines"
        )
        if package in FACES:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not compiled(node):
                assert parameters(node) <= MOST, f"{path.relative_to(SOURCE)}: {node.name} takes {parameters(node)}"
