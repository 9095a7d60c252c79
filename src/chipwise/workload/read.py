"""The WORKLOAD argument and the flags that change it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import Conflict, InputError, MissingInput, UnitMissing
from chipwise.workload.hf_cache import PREFIX, cached_config

if TYPE_CHECKING:
    from chipwise.workload import Model, Workload
    from chipwise.workload.serve import ServingWorkload

FILES = (".yaml", ".yml", ".json")
FLAGS = {  # flag -> key of the workload file
    "batch": "train.global_batch",
    "batch_tokens": "train.batch_tokens",
    "sequence": "train.sequence",
    "precision": "train.precision",
    "tokens": "train.tokens",
    "steps": "train.steps",
    "samples": "train.samples",
    "optimizer": "train.optimizer",
    "state_precision": "train.state_precision",
    "recompute": "train.recompute",
    "lora": "train.lora.rank",
    "lora_base": "train.lora.base",
    "stack": "train.stack",
}
SERVING = {  # flag -> key of the workload file
    "input_len": "serve.input",
    "output_len": "serve.output",
    "rate": "serve.arrival.rate",
    "users": "serve.arrival.users",
    "offline": "serve.offline.requests",
    "trace": "serve.trace",
    "precision": "serve.precision",
    "kv_precision": "serve.kv_precision",
    "prefix_hit": "serve.prefix_hit",
    "draft": "serve.speculation.draft",
    "draft_tokens": "serve.speculation.tokens",
    "acceptance": "serve.speculation.acceptance",
    "ttft": "serve.slo.ttft",
    "tpot": "serve.slo.tpot",
    "itl": "serve.slo.itl",
    "e2e": "serve.slo.e2e",
    "denoise_steps": "serve.denoise_steps",
    "stack": "serve.stack",
}
BARE = re.compile(r"\s*[\d.]+\s*")  # a number with no unit
TIMES = ("ttft", "tpot", "itl", "e2e")  # flags of an SLO
PAIRED = ("input_len", "output_len", "ttft", "tpot", "itl", "e2e")  # flags that may hold several keys with values
LENGTHS = ("tokens", "steps", "samples")
BATCHES = ("batch", "batch_tokens")


def read_workload(text: str, flags: Mapping[str, str | None]) -> Workload:
    """The training workload that an argument and flags describe; every failure is one line."""
    from chipwise.catalog.names import training_stack
    from chipwise.workload import load_workload

    _one_of(LENGTHS, flags)
    _one_of(BATCHES, flags)
    source, model = _asked(text, flags)
    overrides: dict[str, Any] = {key: flags.get(flag) for flag, key in FLAGS.items()}
    if model is not None:
        overrides["model"] = model
    if source is None:
        _complete(model, flags)
    workload = load_workload(source, overrides)
    training_stack(workload.train.stack)
    return workload


def read_serving(text: str, flags: Mapping[str, str | None], loaded: bool = True) -> ServingWorkload:
    """The workload to serve that an argument and flags describe; every failure is one line.

    Not `loaded`: a rate or users may be left out, where the largest load is what is asked for.
    """
    from chipwise.workload import load_serving

    _one_of(("rate", "users"), flags)
    for arrivals in ("rate", "users", "trace"):
        _one_of((arrivals, "offline"), flags)
    source, model = _asked(text, flags)
    overrides: dict[str, Any] = {key: flags.get(flag) for flag, key in SERVING.items()}
    for flag in PAIRED:
        overrides[SERVING[flag]] = _pairs(flag, flags.get(flag))
    _check_units(overrides)
    if flags.get("trace"):
        overrides["serve.trace"] = str(Path(str(flags["trace"])).absolute())  # from here, not from the workload file
    if model is not None:
        overrides["model"] = model
    if source is None:
        _complete_serving(model, flags, loaded)
    job = flags.get("offline")
    if job:
        usual = load_serving(source, {**overrides, SERVING["offline"]: "1"})
        overrides[SERVING["offline"]] = str(job_requests(str(job), usual))
    own = source is not None or any(flags.get(flag) for flag in ("rate", "users", "trace", "offline"))
    if own:
        return load_serving(source, overrides)
    workload = load_serving(source, {**overrides, "serve.arrival.rate": "1"})
    serve = workload.serve
    return replace(workload, serve=replace(serve, arrival=replace(serve.arrival, rate=0.0)))  # none of its own


def job_requests(text: str, usual: ServingWorkload) -> int:
    """Requests of an offline job: so many (``1M requests``), or as many as have so many tokens, prompts' and answers'.

    What is answered in pictures is counted in these, which need no name.
    """
    from chipwise.units import compact, parse_count

    reads = usual.unit in ("tokens", "sequences")
    such = "tokens of prompts and answers such as 500M, or requests such as 300k requests"
    accepted = such if reads else f"{usual.unit} such as 10k"
    short = compact(text, "offline", accepted)
    words = {"requests": False, "request": False, "reqs": False, "req": False}
    words |= {"tokens": True, "token": True, "tok": True} if reads else {usual.unit: False}
    name = next((word for word in words if short.lower().endswith(word)), "")
    count = parse_count(short.removesuffix(short[len(short) - len(name) :]) if name else short, "offline", accepted)
    if not words.get(name, reads):
        if not isinstance(count, int):
            raise InputError("offline", text, accepted)
        requests = count
    else:
        requests = math.ceil(count / usual.serve.request_tokens)
    if requests < 1:
        raise InputError("offline", text, accepted)
    return requests


def read_any(text: str, flags: Mapping[str, str | None]) -> Workload | ServingWorkload:
    """A workload of either kind: what its file says, else what the flags are for."""
    from chipwise.workload.load import kind_of

    trained = [flag for flag in FLAGS if flag not in SERVING and flags.get(flag)]
    served = [flag for flag in SERVING if flag not in FLAGS and flags.get(flag)]
    source, _ = _source(text)
    serve = kind_of(source) == "serve" if source is not None else bool(served)
    wrong = trained if serve else served
    if wrong:
        kind = "served: this one says how a model is trained" if serve else "trained: this one is for models served"
        raise InputError(wrong[0], flags[wrong[0]], f"what changes a workload that is {kind}")
    return read_serving(text, flags) if serve else read_workload(text, flags)


def names_file(text: str) -> bool:
    """Whether a workload is a file of its own, which says what is trained or served; a model says neither.

    >>> names_file("llama-3.1-8b"), names_file("examples/llama-3.1-70b-serve.yaml")
    (False, True)
    """
    return _source(text)[0] is not None


def _asked(text: str, flags: Mapping[str, str | None]) -> tuple[Path | None, Any]:
    """The workload file, if any, and the model that the argument or a flag names."""
    source, model = _source(text)
    return source, _model(str(flags["model"])) if flags.get("model") else model


def _one_of(names: tuple[str, ...], flags: Mapping[str, str | None]) -> None:
    given = [flag for flag in names if flags.get(flag)]
    if len(given) > 1:
        first, second = given[:2]
        raise Conflict(second, first)


def _pairs(flag: str, text: str | None) -> Any:
    """What `p90:40ms,p99:60ms` means in a workload file; a plain value stays one.

    >>> _pairs("tpot", "p90:40ms, p99:60ms"), _pairs("ttft", "500ms")
    ({'p90': '40ms', 'p99': '60ms'}, '500ms')
    """
    if text is None or ":" not in text:
        return text
    found: dict[str, str] = {}
    for pair in text.split(","):
        key, colon, value = (part.strip() for part in pair.partition(":"))
        if not (key and colon and value) or key in found:
            raise InputError(flag, text, "one value, or each key once such as p50:900,p99:8000")
        found[key] = value
    return found


def _check_units(overrides: Mapping[str, Any]) -> None:
    """Refuse times of an SLO that say no unit: `--ttft 1` may mean a second or a millisecond."""
    for flag in TIMES:
        given = overrides[SERVING[flag]]
        for text in given.values() if isinstance(given, dict) else () if given is None else (given,):
            if BARE.fullmatch(text):
                raise UnitMissing(flag, text, ("s", "ms"))


def _complete_serving(model: Any, flags: Mapping[str, str | None], loaded: bool) -> None:
    """Without a workload file flags say what is served: all that are missing, in one line."""
    known = _described(model)
    if flags.get("trace"):
        return
    missing: list[tuple[str, ...]] = [] if known.fixed_input or flags.get("input_len") else [("input_len",)]
    if known.writes and not flags.get("output_len"):
        missing.append(("output_len",))
    if known.denoises and not flags.get("denoise_steps"):
        missing.append(("denoise_steps",))
    if loaded and not any(flags.get(flag) for flag in ("rate", "users", "offline")):
        missing.append(("rate", "users"))
    if missing:
        raise MissingInput(missing)


def _described(model: Any) -> Model:
    from chipwise.workload import from_hf_config, preset

    return from_hf_config(model["hf"]) if isinstance(model, dict) else preset(model)


def _complete(model: Any, flags: Mapping[str, str | None]) -> None:
    """Without a workload file flags say how a model is trained: all that are missing, in one line."""
    images = _described(model).image_tokens
    batches = BATCHES[:1] if images else BATCHES
    missing: list[tuple[str, ...]] = [] if any(flags.get(flag) for flag in BATCHES) else [batches]
    if not images and not flags.get("sequence"):
        missing.append(("sequence",))
    if not any(flags.get(flag) for flag in LENGTHS):
        missing.append(("samples" if images else "tokens", "steps"))
    if missing:
        raise MissingInput(missing)


def _source(text: str) -> tuple[Path | None, Any]:
    """The workload file, or the model where the argument names one."""
    if not text.strip():
        raise InputError("workload", text, "a workload file, a known model's name or a config.json")
    if text.strip().startswith(PREFIX):
        return None, _cached(text)
    path = Path(text)
    if path.suffix == ".json" or _is_dir(path):
        return None, _config(path)
    if path.suffix in FILES or _exists(path) or text.startswith((".", "/", "~")):
        return path, None
    return None, _known(text)


def _model(text: str) -> Any:
    if text.strip().startswith(PREFIX):
        return _cached(text)
    path = Path(text)
    return _config(path) if path.suffix == ".json" or _exists(path) else _known(text)


def _known(name: str) -> str:
    """The name of a known model: a wrong one is worth saying before anything else is missing."""
    from chipwise.workload import preset

    preset(name)
    return name  # with what its words say of the precision


def _cached(text: str) -> dict[str, str]:
    """The config of a model in the Hugging Face cache, without following links: its folder is a snapshot."""
    from chipwise.workload import from_hf_config

    file = cached_config(text)
    from_hf_config(file)
    return {"hf": str(file.absolute())}


def _config(path: Path) -> dict[str, str]:
    """A config.json, read once here so that what is wrong with it is said first."""
    from chipwise.workload import from_hf_config

    file = path / "config.json" if _is_dir(path) else path
    from_hf_config(file)
    return {"hf": str(file.resolve())}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_dir(path: Path) -> bool:
    return _exists(path) and path.is_dir()
