"""Record the options of the tools that launches are written for, out of their wheels or sources.

    pip download --no-deps -d wheels vllm sglang torchtitan skypilot dstack trl
    pip download --no-deps -d wheels --python-version 3.12 --only-binary=:all: maxtext megatron-core
    python scripts/launch_options.py wheels/*.whl tensorrt_llm/commands/serve.py

Nothing of the tools is imported: their argument definitions are read as text. The exceptions are SkyPilot, dstack,
Megatron-LM and TRL, whose own code makes schemas and parsers: they have to be installed (TRL with accelerate and peft),
in an environment of its own. What is written lies in tests/unit/launch_options, a file a tool, with version, source and
date; versions in src/chipwise/launch/data follow. Names of chips in dstack.json are those of gpuhunt and are added by
hand.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "unit" / "launch_options"
WORDS = ("description", "title", "default", "examples", "markdownDescription")  # of a schema: they forbid nothing
Options = dict[str, list[str] | None]  # an option, and its values where those are listed


def literals(node: ast.AST) -> list[str]:
    """The strings in a list, tuple or Literal."""
    return [leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)]


def added(source: str, calls: tuple[str, ...] = ("add_argument", "option")) -> Options:
    """Options that calls such as `parser.add_argument("--x", choices=[...])` add."""
    options: Options = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in calls:
            continue
        values = next((literals(k.value) for k in node.keywords if k.arg == "choices"), None)
        for word in node.args:
            if isinstance(word, ast.Constant) and str(word.value).startswith("--"):
                options[word.value] = values or None
    return options


def annotated(source: str) -> Options:
    """Options of SGLang: a field `tp_size: A[int, Arg(aliases=[...], choices=[...])]` is ``--tp-size``."""
    options: Options = {}
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        if "A[" not in ast.unparse(node.annotation) or "no_cli=True" in ast.unparse(node.annotation):
            continue
        arguments = [k for call in ast.walk(node.annotation) if isinstance(call, ast.Call) for k in call.keywords]
        values = next((literals(k.value) for k in arguments if k.arg == "choices"), None)
        aliases = [alias for k in arguments if k.arg == "aliases" for alias in literals(k.value)]
        for name in ("--" + node.target.id.replace("_", "-"), *aliases):
            options[name] = values or None
    return options


def fields_of(source: str, sections: dict[str, str]) -> Options:
    """Options of torchtitan: the field `steps` of `TrainingConfig` is ``--training.steps``."""
    options: Options = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name in sections:
            for entry in node.body:
                if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                    words = ast.unparse(entry.annotation)
                    options[f"--{sections[node.name]}.{entry.target.id}"] = (
                        literals(entry.annotation) if words.startswith("Literal[") else None
                    )
    return options


def literal(source: str, name: str) -> list[str]:
    """The values of ``name = Literal[...]``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return literals(node.value)
    raise SystemExit(f"{name} is not a literal any more: look again at what it is")


class Wheel:
    """Files of a wheel."""

    def __init__(self, path: Path) -> None:
        self.path, self.zip = path, zipfile.ZipFile(path)
        self.tool, self.version = path.name.split("-")[:2]

    def text(self, name: str) -> str:
        """A file."""
        return self.zip.read(name).decode()

    def under(self, folder: str, ending: str) -> Iterator[tuple[str, str]]:
        """Files under a folder that end so."""
        for name in sorted(self.zip.namelist()):
            if name.startswith(folder) and name.endswith(ending):
                yield name, self.text(name)


def vllm(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """vLLM: its engine arguments and those of the API server."""
    files = ("vllm/engine/arg_utils.py", "vllm/entrypoints/launchers/cli_args.py")
    options = {name: values for file in files for name, values in added(wheel.text(file)).items()}
    options["--kv-cache-dtype"] = literal(wheel.text("vllm/config/cache.py"), "CacheDType")
    options["--quantization"] = literal(
        wheel.text("vllm/model_executor/layers/quantization/__init__.py"), "QuantizationMethods"
    )
    served = ast.parse(
        wheel.text("vllm/entrypoints/launchers/cli_args.py")
    )  # fields of the front end: --port and others
    for node in ast.walk(served):
        if isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
            for entry in node.body:
                if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                    options["--" + entry.target.id.replace("_", "-")] = None
    return options, {}, ", ".join(files)


def sglang(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """SGLang."""
    folder = "sglang/srt/arg_groups/fields/"
    options = {name: values for _, text in wheel.under(folder, ".py") for name, values in annotated(text).items()}
    quantization = wheel.text("sglang/srt/arg_groups/choices.py")
    options["--quantization"] = literal(quantization, "QUANTIZATION_CHOICES")
    return {**added(wheel.text("sglang/srt/server_args.py")), **options}, {}, folder


def torchtitan(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """torchtitan: its sections, the ways of recomputation and the configs of models."""
    file = "torchtitan/config/configs.py"
    sections = {"TrainingConfig": "training", "ParallelismConfig": "parallelism", "CompileConfig": "compile"}
    options: Options = {**fields_of(wheel.text(file), sections), "--module": None, "--config": None}
    recompute = wheel.text("torchtitan/distributed/activation_checkpoint.py")
    subcommands = [f"activation-checkpoint:{name}" for name in re.findall(r'subcommand\("([\w-]+)"\)', recompute)]
    configs = {
        name.split("/")[2]: [c for c in re.findall(r"^def (\w+)\(", text, re.M) if not c.startswith("_")]
        for name, text in wheel.under("torchtitan/models/", "/config_registry.py")
    }
    return options, {"subcommands": subcommands, "configs": configs}, file


def maxtext(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """MaxText: the keys of its base config, its models, the XLA flags of its scripts."""
    file = "maxtext/configs/base.yml"
    text = wheel.text(file)
    options: Options = dict.fromkeys(re.findall(r"^([a-z]\w*):", text, re.M))
    policies = re.search(r"Choose 'remat_policy' between ((?:.|\n# )*?)\.\n", text)
    options["remat_policy"] = re.findall(r"'(\w+)'", policies.group(1)) if policies else None
    models = [name.rsplit("/", 1)[1][:-4] for name, _ in wheel.under("maxtext/configs/models/", ".yml")]
    scripts = "".join(text for _, text in wheel.under("maxtext/configs/", ".sh"))
    flags = set(re.findall(r"--(xla_\w+)=", scripts))
    modules = ("maxtext/trainers/pre_train/train.py", "maxtext/inference/maxengine/maxengine_server.py")
    held = [m for m in modules if m in wheel.zip.namelist()]
    return (
        options,
        {"models": models, "xla_flags": sorted(flags), "modules": held},
        f"{file} and scripts beside it",
    )


def megatron(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """Megatron-LM: what its parser has; the wheel has to be installed with torch and Triton, on Python 3.12."""
    from megatron.training.arguments import add_megatron_arguments

    parser = ArgumentParser(allow_abbrev=False)
    add_megatron_arguments(parser)
    return parsed(parser), {}, "the parser that megatron/training/arguments.py makes"


def trl(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """TRL: what the parsers of its SFT script and of `accelerate launch` have."""
    import accelerate
    from accelerate.commands.launch import launch_command_parser
    from trl.scripts.sft import make_parser

    source = f"the parsers that trl/scripts/sft.py makes, and accelerate/commands/launch.py of {accelerate.__version__}"
    return {**parsed(launch_command_parser()), **parsed(make_parser())}, {}, source


def parsed(parser: ArgumentParser) -> Options:
    """The options of a parser, as argparse has them."""
    return {
        name: [str(choice) for choice in action.choices] if action.choices else None
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--")
    }


def bare(schema: Any) -> Any:
    """A schema without its words."""
    if isinstance(schema, dict):
        return {
            key: {name: bare(one) for name, one in value.items()} if key in ("properties", "$defs") else bare(value)
            for key, value in schema.items()
            if key not in WORDS
        }
    return [bare(one) for one in schema] if isinstance(schema, list) else schema


def skypilot(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """SkyPilot: its schemas."""
    from sky.utils import schemas

    parts = {
        "task": schemas.get_task_schema(),
        "resources": schemas.get_resources_schema(),
        "service": schemas.get_service_schema(),
    }
    return {}, {"schemas": {name: bare(schema) for name, schema in parts.items()}}, "sky/utils/schemas.py"


def dstack(wheel: Wheel) -> tuple[Options, dict[str, Any], str]:
    """dstack: its schemas."""
    from dstack._internal.core.models.configurations import ServiceConfiguration, TaskConfiguration

    parts = {"task": TaskConfiguration, "service": ServiceConfiguration}
    schemas = {name: bare(model.model_json_schema()) for name, model in parts.items()}
    return {}, {"schemas": schemas}, "dstack/_internal/core/models/configurations.py"


WHEELS: dict[str, Callable[[Wheel], tuple[Options, dict[str, Any], str]]] = {
    "vllm": vllm,
    "sglang": sglang,
    "torchtitan": torchtitan,
    "maxtext": maxtext,
    "skypilot": skypilot,
    "dstack": dstack,
    "megatron_core": megatron,
    "trl": trl,
}
SOURCES = {"serve.py": "tensorrt-llm"}  # tools without a wheel that holds their arguments


TOOLS = {"megatron_core": "megatron"}  # by the name of the wheel, where that is another


def write(tool: str, version: str, source: str, options: Options, more: dict[str, Any]) -> None:
    """The file of a tool."""
    record = {"tool": tool, "version": version, "source": source, "date": date.today().isoformat()}
    body = {**record, "options": dict(sorted(options.items())), **more}
    if not options:
        del body["options"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(body, indent=1) if options else json.dumps(body, separators=(",", ":"))
    (FOLDER / f"{tool}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{tool} {version}: {len(options):,} options")


def main() -> None:
    """Read what is named on the command line."""
    for path in map(Path, sys.argv[1:]):
        if path.suffix == ".whl":
            wheel = Wheel(path)
            if wheel.tool not in WHEELS:
                raise SystemExit(f"{path}: no tool that launches are written for")
            options, more, source = WHEELS[wheel.tool](wheel)
            write(TOOLS.get(wheel.tool, wheel.tool), wheel.version, f"{path.name}: {source}", options, more)
        elif path.name in SOURCES:
            write(SOURCES[path.name], "main", str(path), added(path.read_text(encoding="utf-8")), {})
        else:
            raise SystemExit(f"{path}: expected a wheel, or one of {', '.join(SOURCES)}")


if __name__ == "__main__":
    main()
