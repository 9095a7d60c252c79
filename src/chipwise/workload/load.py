"""From a workload file (or flags) to a Workload; every failure is one line that names the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import InputError, UnknownName
from chipwise.workload.build import NOTHING, build_model
from chipwise.workload.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.workload.hf import from_hf_config
from chipwise.workload.model import Model, Train, Workload
from chipwise.workload.presets import preset, preset_fields

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from chipwise.workload.spec import TrainSpec, WorkloadSpec

_LENGTHS = ("tokens", "steps", "samples", "images")
_SECTIONS = ("name", "model", "train")
_MOST_TOKENS = 10**18


def load_workload(source: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> Workload:
    """A workload from a file's path, from YAML text, or from overrides alone.

    Overrides are dotted keys (`train.global_batch`, `model.layers`); a bare key means `train.`. One that
    is None is left out, and a new length (tokens, steps, samples, images) replaces the file's.

    >>> w = load_workload("model: gpt2\\ntrain: {steps: 10, global_batch: 8, sequence: 1024}")
    >>> w.train.tokens
    81920
    >>> load_workload(overrides={"model": "resnet-50", "images": "1M", "global_batch": 250}).train.steps
    4000
    """
    raw, base = _read(source)
    _override(raw, overrides or {})
    spec = _check(raw)
    model = _model(spec, base)
    return Workload(name=spec.name or model.name, model=model, train=_train(spec.train, model))


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the workload file, for editors."""
    from chipwise.workload.spec import WorkloadSpec

    described = WorkloadSpec.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "chipwise workload",
    }


def schema_text() -> str:
    """The schema as the committed file holds it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema(path: Path | None = None) -> Path:
    """Write the schema beside the package's data, or to a path; returns where."""
    target = path or Path(str(resources.files("chipwise.workload").joinpath("data/workload.schema.json")))
    target.write_text(schema_text(), encoding="utf-8")
    return target


def _read(source: str | Path | None) -> tuple[dict[str, Any], Path]:
    """The raw mapping, and the folder its relative paths start from."""
    if source is None:
        return {}, Path()
    if isinstance(source, str) and ("\n" in source or ": " in source or not source.strip()):
        return parse_yaml(source), Path()
    path = Path(source)
    return parse_yaml(read_text(path, MAX_YAML_BYTES), path.name), path.parent


def _override(raw: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    for dotted, given in overrides.items():
        if given is None:
            continue
        parts = dotted.split(".")
        if parts[0] not in _SECTIONS:
            parts.insert(0, "train")
        value = given if parts == ["model"] or parts == ["name"] else _scalar(given)
        if parts[0] == "model" and len(parts) > 1 and isinstance(raw.get("model"), str):
            raw["model"] = {"preset": raw["model"]}
        node = raw
        for part in parts[:-1]:
            child = node.get(part)
            if child is None:
                child = node[part] = {}
            if not isinstance(child, dict):
                raise InputError(part, child, "keys and values")
            node = child
        if parts[0] == "train" and parts[-1] in _LENGTHS:
            for other in _LENGTHS:
                node.pop(other, None)
        node[parts[-1]] = value


def _scalar(value: Any) -> Any:
    """A flag's text as the file would read it: 32 and true are not words."""
    if not isinstance(value, str):
        return value
    word = value.strip()
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.isascii() and word.lstrip("+-").isdigit() and len(word) < 40 else value


def _check(raw: Mapping[str, Any]) -> WorkloadSpec:
    from pydantic import ValidationError

    from chipwise.workload.spec import WorkloadSpec

    try:
        return WorkloadSpec.model_validate(raw)
    except ValidationError as e:
        errors = e.errors(include_url=False)
    errors.sort(key=lambda error: error["type"] != "extra_forbidden")  # a typo explains what is missing
    raise _explain(errors[0])


def _explain(error: ErrorDetails) -> InputError:
    loc = [str(part) for part in error["loc"]]
    tags = {"name", "hf", "preset", "spelled"}
    known = _keys_at(loc[:-1])
    if len(loc) > 1 and loc[0] == "model" and loc[1] in tags:
        del loc[1]
    field = ".".join(_plain(part) for part in loc) or "file"
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return UnknownName(field, _plain(loc[-1]), known, f" ({', '.join(known)})")
    if kind == "missing":
        return InputError(field, NOTHING, f"a value{_described(error)}")
    if kind == "literal_error":
        options = str(ctx["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        if isinstance(value, str):
            return UnknownName(field, value, options)
        return InputError(field, value, f"one of {', '.join(options)}")
    if field == "model":
        return InputError(field, value, "a model's name, {hf: path}, {preset: name, ...} or {family: ...}")
    return InputError(field, value, _accepted(kind, ctx))


def _accepted(kind: str, ctx: Mapping[str, Any]) -> str:
    if kind == "value_error":
        return str(ctx["error"])
    if kind == "greater_than_equal":
        return f"a whole number of at least {ctx['ge']}"
    if kind == "less_than_equal":
        return f"at most {ctx['le']:,}"
    return {
        "int_type": "a whole number",
        "bool_type": "true or false",
        "string_type": "text",
        "string_too_short": "a name",
        "string_too_long": "a shorter name",
        "string_pattern_mismatch": "a name of letters, digits, dots and dashes",
        "list_type": "a list",
        "too_short": "at least one entry",
        "too_long": "a shorter list",
    }.get(kind, "keys and values")


def _spec_at(loc: list[str]) -> Any:
    """The pydantic model a location lies in."""
    from chipwise.workload import spec

    tops = {"hf": spec.HfModel, "preset": spec.PresetModel, "spelled": spec.SpelledModel}
    inner = {
        "train": spec.TrainSpec, "lora": spec.LoraSpec, "experts": spec.ExpertsSpec,
        "latent": spec.LatentSpec, "convs": spec.ConvSpec,
    }  # fmt: skip
    here: Any = spec.WorkloadSpec
    for part in loc:
        here = inner.get(part) or tops.get(part) or here
    return here


def _keys_at(loc: list[str]) -> list[str]:
    return list(_spec_at(loc).model_fields)


def _described(error: ErrorDetails) -> str:
    """What a missing field means, from its own description."""
    loc = [str(part) for part in error["loc"]]
    found = _spec_at(loc[:-1]).model_fields.get(loc[-1])
    text = str(found.description or "").rstrip(".") if found else ""
    return f": {text[0].lower()}{text[1:]}" if text else ""


def _plain(word: str) -> str:
    """A key fit for one line, however odd it is."""
    shown = word.encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _model(spec: WorkloadSpec, base: Path) -> Model:
    from chipwise.workload.spec import HfModel, PresetModel

    given = spec.model
    if isinstance(given, str):
        return preset(given)
    if isinstance(given, HfModel):
        return from_hf_config(base / given.hf)
    table = given.model_dump(exclude_none=True)
    if isinstance(given, PresetModel):
        name = table.pop("preset")
        known = preset(name)
        table = {**preset_fields(name), **table}
        return build_model(table, name=table.get("name") or f"{known.name} (changed)")
    return build_model(table)


def _train(spec: TrainSpec, model: Model) -> Train:
    sequence = _sequence(spec, model)
    vision = bool(model.image_tokens)
    if spec.lora and model.family == "cnn":
        raise InputError("train.lora", f"rank {spec.lora.rank}", "a transformer: a cnn gets no adapters")
    return Train(
        global_batch=spec.global_batch,
        sequence=sequence,
        steps=_steps(spec, sequence, vision),
        precision=spec.precision,
        optimizer=spec.optimizer,
        state_precision=spec.state_precision,
        recompute=spec.recompute,
        samples_unit="images" if vision else "sequences",
        lora_rank=spec.lora.rank if spec.lora else 0,
        lora_targets=spec.lora.targets if spec.lora else "attention",
        stack=spec.stack or "",
    )


def _sequence(spec: TrainSpec, model: Model) -> int:
    derived = model.image_tokens
    if derived:
        if spec.sequence not in (None, derived):
            raise InputError(
                "train.sequence", spec.sequence, f"nothing, or the {derived} tokens of one image"
            )
        return derived
    if spec.sequence is None:
        raise InputError("train.sequence", NOTHING, "a value: tokens per sequence")
    if model.learned_positions and spec.sequence > model.learned_positions:
        raise InputError(
            "train.sequence", spec.sequence,
            f"at most the {model.learned_positions} positions {model.name} learns"
            " (model.learned_positions changes that)",
        )  # fmt: skip
    return spec.sequence


def _steps(spec: TrainSpec, sequence: int, vision: bool) -> int:
    """Whole steps: the last one may go a little past the tokens or samples asked for."""
    given = {key: value for key in _LENGTHS if (value := getattr(spec, key)) is not None}
    usual = "images, samples or steps" if vision else "tokens, samples or steps"
    if len(given) != 1:
        shown = " and ".join(given) or NOTHING
        raise InputError("train", shown, f"exactly one of {usual}")
    key, amount = next(iter(given.items()))
    if key == ("tokens" if vision else "images"):
        raise InputError(f"train.{key}", amount, f"{usual} for this kind of model")
    batch = spec.global_batch
    unit = {"tokens": batch * sequence, "steps": 1}.get(key, batch)
    if amount < unit:
        sizes = f"global_batch({batch})" + (f" x sequence({sequence}) = {unit}" if key == "tokens" else "")
        raise InputError(f"train.{key}", amount, f"at least one step: {sizes}")
    steps: int = -(-amount // unit)
    if steps * batch * sequence > _MOST_TOKENS:
        sizes = f"steps({steps}) x global_batch({batch}) x sequence({sequence})"
        raise InputError(f"train.{key}", amount, f"a run of at most 10^18 tokens: {sizes} is more")
    return steps
