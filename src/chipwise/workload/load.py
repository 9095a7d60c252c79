"""From a workload file (or flags) to a workload, trained or served; every failure is one line that names the field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import NOTHING, InputError
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.io.schema_errors import Wording, validate
from chipwise.workload.build import build_model
from chipwise.workload.hf import from_hf_config
from chipwise.workload.model import BASES, Model, Train, Workload
from chipwise.workload.presets import preset, preset_fields

if TYPE_CHECKING:
    from chipwise.workload.serve import ServingWorkload
    from chipwise.workload.spec import TrainSpec, WorkloadSpec

_LENGTHS = ("tokens", "steps", "samples", "images")
_BATCHES = ("global_batch", "batch_tokens")
_MOST_TOKENS = 10**18
# of a step, twice the largest that was published: 128M tokens (MiniMax-01, arXiv 2501.08313, section 4) and a million
# images (SigLIP, arXiv 2303.15343, section 4); read 2026-11-18
_MOST_BATCH_TOKENS, _MOST_BATCH_IMAGES = 2**28, 2**21
_ATTENTION_ADAPTERS = ("encoder-decoder", "mmdit", "video-dit", "unet")
WORDING = Wording(
    schema="chipwise schema",
    fields={"model": "a model's name, {hf: path}, {preset: name, ...} or {family: ...}"},
    kinds={
        "string_too_short": "a name",
        "string_too_long": "a shorter name",
        "string_pattern_mismatch": "a name of letters, digits, dots and dashes",
    },
)
_TAKES = {  # section -> the verbs that take it
    "train": "`chipwise compare`, `predict`, `layouts` and `check`",
    "serve": "`chipwise serving` and `chipwise compare`",
}
_SECTIONS = ("name", "model", *_TAKES)
_INSTEAD = {  # a key of serve that is given again -> those of the file that it replaces
    "arrival": ("arrival", "offline"),
    "arrival.users": ("arrival", "offline"),
    "arrival.rate": ("arrival.users", "offline"),
    "arrival.burstiness": ("arrival.users", "offline"),
    "offline": ("arrival", "offline"),
    "offline.requests": ("arrival",),
    "trace": ("input", "output", "arrival", "offline"),
}


def load_workload(source: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> Workload:
    """A training workload from a file's path, from YAML text, or from overrides alone.

    Overrides are dotted keys (`train.global_batch`, `model.layers`); a bare key means `train.`. One that
    is None is left out, and a new length (tokens, steps, samples, images) replaces the file's.

    >>> w = load_workload("model: gpt2\\ntrain: {steps: 10, global_batch: 8, sequence: 1024}")
    >>> w.train.tokens
    81920
    >>> load_workload(overrides={"model": "resnet-50", "images": "1M", "global_batch": 250}).train.steps
    4000
    """
    raw, base = _read(source)
    _only(raw, "train")
    return _trained(raw, base, overrides or {})


def load_serving(source: str | Path | None = None, overrides: Mapping[str, Any] | None = None) -> ServingWorkload:
    """A workload that is served, from the same sources; a bare key means `serve.`.

    A new `arrival`, `trace` or `offline` replaces what the file says of how requests come.

    >>> text = "model: gpt2\\nserve: {input: 500, output: 100, arrival: {users: 8}}"
    >>> w = load_serving(text, {"arrival.rate": 20, "slo.ttft": "500ms"})
    >>> w.serve.arrival.kind, str(w.serve.slo[0])
    ('poisson', 'ttft p99 <= 500 ms')
    """
    raw, base = _read(source)
    _only(raw, "serve")
    return _served(raw, base, overrides or {})


def load_any(
    source: str | Path | None = None, overrides: Mapping[str, Any] | None = None
) -> Workload | ServingWorkload:
    """A workload of either kind: that of the file's section, else that of the overrides' dotted keys."""
    raw, base = _read(source)
    given = overrides or {}
    kind = _kind(raw) if source is not None else ("serve" if any(k.startswith("serve.") for k in given) else "train")
    return _served(raw, base, given) if kind == "serve" else _trained(raw, base, given)


def kind_of(source: str | Path) -> str:
    """Whether a file is of a workload to `train` or to `serve`."""
    return _kind(_read(source)[0])


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


def _kind(raw: Mapping[str, Any]) -> str:
    """The one section there is of `train` and `serve`."""
    found = [section for section in _TAKES if raw.get(section) is not None]
    if len(found) != 1:
        shown = "train and serve" if found else NOTHING
        raise InputError("workload", shown, "either a train section or a serve section")
    return found[0]


def _only(raw: Mapping[str, Any], section: str) -> None:
    """Refuse a file of the other kind, and say who takes it."""
    other = "serve" if section == "train" else "train"
    if raw.get(other) is None:
        return
    if raw.get(section) is not None:
        _kind(raw)
    raise InputError("workload", other, f"a {section} section; {_TAKES[other]} take a {other} section")


def _trained(raw: dict[str, Any], base: Path, overrides: Mapping[str, Any]) -> Workload:
    _override(raw, overrides, "train")
    _only(raw, "train")
    spec = _check(raw)
    if spec.train is None:
        raise InputError("train", NOTHING, "a value: how the model is trained")
    model = _model(spec, base)
    return Workload(name=spec.name or model.name, model=model, train=_train(spec.train, model, _four_bits(spec, model)))


def _served(raw: dict[str, Any], base: Path, overrides: Mapping[str, Any]) -> ServingWorkload:
    from chipwise.workload.serve import ServingWorkload
    from chipwise.workload.serve_build import build_serve

    _override(raw, overrides, "serve")
    _only(raw, "serve")
    spec = _check(raw)
    if spec.serve is None:
        raise InputError("serve", NOTHING, "a value: what the model must answer")
    model = _model(spec, base)
    return ServingWorkload(name=spec.name or model.name, model=model, serve=build_serve(spec.serve, model, base))


def _override(raw: dict[str, Any], overrides: Mapping[str, Any], section: str) -> None:
    given: dict[tuple[str, ...], Any] = {}
    for dotted, value in overrides.items():
        if value is not None:
            parts = tuple(dotted.split("."))
            given[parts if parts[0] in _SECTIONS else (section, *parts)] = value
    for either in (_LENGTHS, _BATCHES):
        if any(parts[0] == "train" and parts[-1] in either for parts in given):
            _remove(raw, [("train", key) for key in either])
    for parts in given:
        if parts[0] == "serve":
            _remove(raw, [("serve", *key.split(".")) for key in _INSTEAD.get(".".join(parts[1:]), ())])
    for parts, value in given.items():
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
        node[parts[-1]] = value if parts in (("model",), ("name",)) else _scalar(value)


def _remove(raw: dict[str, Any], keys: Iterable[tuple[str, ...]]) -> None:
    """Take keys out of the file where it has them."""
    for *outer, last in keys:
        node: Any = raw
        for part in outer:
            node = node.get(part) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node.pop(last, None)


def _scalar(value: Any) -> Any:
    """A flag's text as the file would read it: 32 and true are not words."""
    if not isinstance(value, str):
        return value
    word = value.strip()
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.isascii() and word.lstrip("+-").isdigit() and len(word) < 40 else value


def _check(raw: Mapping[str, Any]) -> WorkloadSpec:
    from chipwise.workload.spec import WorkloadSpec

    return validate(WorkloadSpec, raw, WORDING)


def _model(spec: WorkloadSpec, base: Path) -> Model:
    from chipwise.workload.spec import HfModel, PresetModel

    given = spec.model
    if isinstance(given, str):
        if given.endswith(".json") or given.startswith((".", "/", "~")):
            raise InputError("model", given, f"a model's name; a Hugging Face config is model: {{hf: {given}}}")
        return preset(given)
    if isinstance(given, HfModel):
        return from_hf_config(base / given.hf)
    table = given.model_dump(exclude_none=True)
    if isinstance(given, PresetModel):
        name = table.pop("preset")
        known = preset(name)
        stored = {"native_precision": known.native_precision, "taken_from": known.taken_from}
        table = {**preset_fields(name), **stored, **table}
        return build_model(table, name=table.get("name") or f"{known.name} (changed)")
    return build_model(table)


def _four_bits(spec: WorkloadSpec, model: Model) -> str:
    """The format of 4 bits in which a variant's name, or a config, says that the weights are stored; "" for others."""
    from chipwise.workload.spec import HfModel

    stored = model.native_precision
    if isinstance(spec.model, HfModel):  # of gpt-oss, which is published in mxfp4, the 16-bit weights are trained
        return stored if stored in BASES else ""
    return stored if model.taken_from and stored in (*BASES, "fp4", "mxfp4", "nvfp4") else ""


def _base(spec: TrainSpec, model: Model, stored: str) -> str:
    """What the frozen layers are held in: as named, else as stored; beside 4 bits nothing but adapters is trained."""
    lora = spec.lora
    if lora is None:
        if stored:
            accepted = (
                f"{model.name}, in 16 bits; or --lora 16: weights stored in {stored} are trained by adapters alone"
            )
            raise InputError("model", model.taken_from or model.name, accepted)
        return ""
    base = lora.base or stored
    if stored not in ("", *BASES) and not lora.base:
        raise InputError("train.lora.base", stored, "nf4, int4 or bf16: no adapters are trained beside what is stored")
    if base in BASES and spec.precision not in ("bf16", "fp16"):
        raise InputError("train.precision", spec.precision, f"bf16 or fp16, into which a base of {base} is dequantized")
    if base and base not in BASES and base != spec.precision:
        raise InputError("train.lora.base", base, f"nf4, int4 or the precision of the run({spec.precision})")
    return base if base in BASES else ""


def _train(spec: TrainSpec, model: Model, stored: str) -> Train:
    sequence = _sequence(spec, model)
    vision = bool(model.image_tokens)
    if spec.lora and model.family == "cnn":
        raise InputError("train.lora", f"rank {spec.lora.rank}", "a transformer: a cnn gets no adapters")
    if spec.lora and spec.lora.rank > model.d_model > 0:
        most = f"at most {model.d_model:,}, the width of {model.name}: above it adapters are as large as the weights"
        raise InputError("train.lora.rank", spec.lora.rank, most)
    if spec.lora and spec.lora.targets == "all" and model.family in _ATTENTION_ADAPTERS:
        raise InputError(
            "train.lora.targets", "all", f"attention: adapters of a {model.family} are counted there alone"
        )
    if model.video and model.video.denoisers > 1:
        raise InputError("model", model.name, "one denoiser: its two are trained apart, each like wan2.1-t2v-14b")
    batch = _batch(spec, sequence, vision)
    return Train(
        global_batch=batch,
        sequence=sequence,
        steps=_steps(spec, batch, sequence, vision),
        precision=spec.precision,
        optimizer=spec.optimizer,
        state_precision=spec.state_precision,
        recompute=spec.recompute,
        samples_unit=model.picture_unit or "sequences",
        lora_rank=spec.lora.rank if spec.lora else 0,
        lora_targets=spec.lora.targets if spec.lora else "attention",
        lora_base=_base(spec, model, stored),
        stack=spec.stack or "",
    )


def _sequence(spec: TrainSpec, model: Model) -> int:
    derived = model.image_tokens
    if derived:
        if spec.sequence not in (None, derived):
            raise InputError(
                "train.sequence", spec.sequence, f"nothing, or the {derived} tokens of one {model.picture_unit[:-1]}"
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


def _batch(spec: TrainSpec, sequence: int, vision: bool) -> int:
    """Sequences or images of a step; asked about where they are more than anybody trains with."""
    if spec.global_batch is None and spec.batch_tokens is None:
        raise InputError("train.global_batch", NOTHING, "a value: sequences or images a step; or batch_tokens")
    if spec.global_batch is not None and spec.batch_tokens is not None:
        raise InputError("train", "global_batch and batch_tokens", "one of them")
    if spec.batch_tokens is not None:
        if vision:
            raise InputError("train.batch_tokens", spec.batch_tokens, "global_batch, in images, for this kind of model")
        return max(1, round(spec.batch_tokens / sequence))
    batch = spec.global_batch
    assert batch is not None
    most = _MOST_BATCH_IMAGES if vision else max(1, _MOST_BATCH_TOKENS // sequence)
    if batch > most:
        if vision:
            raise InputError("train.global_batch", batch, f"images of a step, at most {most:,}")
        raise InputError(
            "train.global_batch",
            batch,
            f"sequences of a step, at most {most:,}" + f" of {sequence:,} tokens"
            if batch < sequence  # nobody means fewer tokens than one sequence has
            else f"sequences of a step, at most {most:,}; tokens are batch_tokens: {_short(batch)}",
        )
    return batch


def _short(count: int) -> str:
    """A count as people type it.

    >>> _short(4_000_000), _short(4096)
    ('4M', '4096')
    """
    return f"{count // 10**6}M" if count % 10**6 == 0 else str(count)


def _steps(spec: TrainSpec, batch: int, sequence: int, vision: bool) -> int:
    """Whole steps: the last one may go a little past the tokens or samples asked for."""
    given = {key: value for key in _LENGTHS if (value := getattr(spec, key)) is not None}
    usual = "images, samples or steps" if vision else "tokens, samples or steps"
    if len(given) != 1:
        shown = " and ".join(given) or NOTHING
        raise InputError("train", shown, f"exactly one of {usual}")
    key, amount = next(iter(given.items()))
    if key == ("tokens" if vision else "images"):
        raise InputError(f"train.{key}", amount, f"{usual} for this kind of model")
    unit = {"tokens": batch * sequence, "steps": 1}.get(key, batch)
    if amount < unit:
        sizes = f"global_batch({batch})" + (f" x sequence({sequence}) = {unit}" if key == "tokens" else "")
        raise InputError(f"train.{key}", amount, f"at least one step: {sizes}")
    steps: int = -(-amount // unit)
    if steps * batch * sequence > _MOST_TOKENS:
        sizes = f"steps({steps}) x global_batch({batch}) x sequence({sequence})"
        raise InputError(f"train.{key}", amount, f"a run of at most 10^18 tokens: {sizes} is more")
    return steps
