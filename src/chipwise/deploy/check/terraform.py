"""Terraform's files against the provider's schema, and modules against the variables they declare."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.schema import nearest
from chipwise.deploy.data_files import data_text
from chipwise.deploy.hcl_read import NOT_PLAIN, HclBlock, Plain, read_hcl
from chipwise.errors import BrokenFile
from chipwise.io.files import read_text

MAX_BYTES = 1_000_000  # of a file of Terraform; those that deploy writes have a few thousand
# arguments and blocks of every resource and module; https://developer.hashicorp.com/terraform/language/meta-arguments
# and /language/block/module, 2026-11-19
META = {"count", "for_each", "depends_on", "provider", "lifecycle", "provisioner", "connection", "timeouts"}
MODULE_META = {"source", "version", "count", "for_each", "depends_on", "providers"}
REFERENCE = re.compile(r"\b(var|local|module)\.([A-Za-z_][\w-]*)(?:\.([A-Za-z_][\w-]*))?")
LINE = re.compile(r" line (\d+)$")


@cache
def provider_schema() -> Mapping[str, Any]:
    """The provider's resources, with its version."""
    schema: Mapping[str, Any] = json.loads(data_text("google_schema.json"))
    return schema


class Module:
    """A folder of Terraform: its blocks and what it declares."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.name = folder, str(folder.relative_to(root))
        self.files: dict[str, HclBlock] = {}
        self.broken: list[Finding] = []
        for path in sorted(folder.glob("*.tf")):
            file = str(path.relative_to(root))
            try:
                self.files[file] = read_hcl(read_text(path, MAX_BYTES), file)
            except BrokenFile as error:
                self.broken.append(_syntax(error, file))

    def blocks(self, kind: str) -> Iterator[tuple[str, HclBlock]]:
        """Blocks of a kind with the file of each."""
        for file, root in self.files.items():
            for block in root.of(kind):
                yield file, block

    @property
    def variables(self) -> dict[str, HclBlock]:
        """Variables by name."""
        return {block.labels[0]: block for _, block in self.blocks("variable") if block.labels}

    def outputs(self) -> set[str]:
        """Names of outputs."""
        return {block.labels[0] for _, block in self.blocks("output") if block.labels}


def modules_of(root: Path) -> dict[str, Module]:
    """The root module and those in its folders, by their paths."""
    folders = sorted({path.parent for path in root.rglob("*.tf") if ".terraform" not in path.parts})
    return {module.name: module for module in (Module(folder, root) for folder in folders)}


def check_terraform(modules: Mapping[str, Module]) -> Iterator[Finding]:
    """Everything that the files alone tell."""
    for module in modules.values():
        yield from module.broken
        for file, block in (*module.blocks("resource"), *module.blocks("data")):
            yield from _resource(file, block)
        for file, block in module.blocks("module"):
            yield from _call(file, block, module, modules)
        if not module.broken:  # what can't be read may declare what is missed
            yield from _references(module, modules)


def called(module: Module, call: HclBlock, modules: Mapping[str, Module]) -> Module | None:
    """The module of this tree that a call names; None for one from elsewhere."""
    source = call.value("source")
    if not isinstance(source, str) or not source.startswith("."):
        return None
    path = Path(module.name) / source
    return modules.get(str(path))


def _resource(file: str, block: HclBlock) -> Iterator[Finding]:
    if len(block.labels) != 2:
        yield _finding(Defect.SYNTAX, file, block.line, block.kind, "has no type and name", "two labels in quotes")
        return
    schema = provider_schema()["resources"].get(f"{block.kind} {block.labels[0]}")
    if schema is not None:  # others are not of deploy
        yield from _body(file, block, schema, ".".join(block.labels), META)


def _body(file: str, block: HclBlock, schema: Mapping[str, Any], where: str, meta: set[str]) -> Iterator[Finding]:
    """The arguments and blocks of a resource, or of a block in it."""
    for name, argument in block.arguments.items():
        expected = schema.get(name)
        if name in meta:
            continue
        if expected is None:
            yield _finding(
                Defect.UNKNOWN_ARGUMENT,
                file,
                argument.line,
                f"{where}.{name}",
                "no such argument",
                nearest(name, schema),
            )
        elif not isinstance(expected, str):
            yield _finding(
                Defect.WRONG_TYPE, file, argument.line, f"{where}.{name}", "is a block", f"{name} {{ ... }} without ="
            )
        elif not _fits(argument.value, expected.rstrip("!")):
            kind = expected.rstrip("!")
            yield _finding(
                Defect.WRONG_TYPE, file, argument.line, f"{where}.{name}", f"{argument.text} is no {kind}", f"a {kind}"
            )
    there: dict[str, int] = {}
    for inner in block.blocks:
        dynamic = inner.kind == "dynamic" and len(inner.labels) == 1
        name = inner.labels[0] if dynamic else inner.kind
        if name in meta:
            continue
        expected = schema.get(name)
        if not isinstance(expected, Mapping):
            what = "no such block" if expected is None else "is an argument"
            fix = nearest(name, schema) if expected is None else f"{name} = ..."
            yield _finding(Defect.UNKNOWN_ARGUMENT, file, inner.line, f"{where}.{name}", what, fix)
            continue
        there[name] = there.get(name, 0) + (0 if dynamic else 1)
        if expected["max"] and there[name] > expected["max"]:
            yield _finding(Defect.WRONG_TYPE, file, inner.line, f"{where}.{name}", "is there twice", "one such block")
        bodies = list(inner.of("content")) if dynamic else [inner]
        for body in bodies:
            yield from _body(file, body, expected["body"], f"{where}.{name}", set())
    for name, expected in schema.items():
        required = expected.endswith("!") if isinstance(expected, str) else expected["required"]
        dynamics = {inner.labels[0] for inner in block.of("dynamic") if inner.labels}
        if required and name not in block.arguments and name not in there and name not in dynamics:
            yield _finding(Defect.MISSING_ARGUMENT, file, block.line, f"{where}.{name}", "missing", f"set {name}")


def _fits(value: Plain, kind: str) -> bool:
    """Whether a plain value is of a type, as Terraform converts it: 4 is also "4"."""
    if value is NOT_PLAIN or value is None:
        return True
    if kind.startswith(("list", "set")):
        return isinstance(value, list)
    if kind == "number":
        return isinstance(value, float) or (isinstance(value, str) and re.fullmatch(r"-?[0-9.]+", value) is not None)
    if kind == "boolean":
        return isinstance(value, bool) or value in ("true", "false")
    return not isinstance(value, list) if kind == "string" else True


def _call(file: str, call: HclBlock, module: Module, modules: Mapping[str, Module]) -> Iterator[Finding]:
    """A module's call: it is there, takes these arguments, and has all it needs."""
    where = f"module.{'.'.join(call.labels)}"
    source = call.value("source")
    if source is None:
        yield _finding(Defect.MISSING_ARGUMENT, file, call.line, f"{where}.source", "missing", "set source")
    target = called(module, call, modules)
    if target is None:
        if isinstance(source, str) and source.startswith("."):
            yield _finding(
                Defect.UNKNOWN_REFERENCE, file, call.line, f"{where}.source", f"no module in {source}", "write again"
            )
        return
    variables = target.variables
    for name, argument in call.arguments.items():
        if name not in variables and name not in MODULE_META:
            yield _finding(
                Defect.UNKNOWN_ARGUMENT,
                file,
                argument.line,
                f"{where}.{name}",
                "no such variable",
                nearest(name, variables),
            )
    for name, variable in variables.items():
        if "default" not in variable.arguments and name not in call.arguments and not target.broken:
            yield _finding(Defect.MISSING_ARGUMENT, file, call.line, f"{where}.{name}", "missing", f"set {name}")


def _references(module: Module, modules: Mapping[str, Module]) -> Iterator[Finding]:
    """Variables, locals and outputs of modules that are named and not declared."""
    variables = set(module.variables)
    names = {name for _, block in module.blocks("locals") for name in block.arguments}
    calls = {block.labels[0]: called(module, block, modules) for _, block in module.blocks("module") if block.labels}
    for file, root in module.files.items():
        for line, text in _texts(root):
            for kind, name, output in REFERENCE.findall(text):
                known = {"var": variables, "local": names, "module": set(calls)}[kind]
                target = calls.get(name)
                if name not in known:
                    yield _finding(
                        Defect.UNKNOWN_REFERENCE, file, line, f"{kind}.{name}", "not declared", nearest(name, known)
                    )
                elif kind == "module" and output and target is not None and output not in target.outputs():
                    fix = nearest(output, target.outputs())
                    yield _finding(
                        Defect.UNKNOWN_REFERENCE, file, line, f"module.{name}.{output}", "no such output", fix
                    )


def _texts(block: HclBlock) -> Iterator[tuple[int, str]]:
    for argument in block.arguments.values():
        yield argument.line, argument.text
    for inner in block.blocks:
        yield from _texts(inner)


def _syntax(error: BrokenFile, file: str) -> Finding:
    match = LINE.search(error.field)
    line = int(match[1]) if match else 0
    return _finding(Defect.SYNTAX, file, line, "", f"{error.value!r} can't be read", error.accepted)


def _finding(defect: Defect, file: str, line: int, field: str, what: str, fix: str) -> Finding:
    return Finding(defect=defect, file=file, line=line, field=field, what=what, fix=fix)
