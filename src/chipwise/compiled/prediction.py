"""A prediction whose step comes from the compiler: the same layout, timed by the schedule XLA made of it."""

from __future__ import annotations

from dataclasses import replace

from chipwise.catalog.calibration import Calibration
from chipwise.compiled.compiler import Limits, Progress, compile_job, kept_job
from chipwise.compiled.job import Compiled, Refused
from chipwise.compiled.reference import training_job
from chipwise.compiled.timing.schedule import Schedule
from chipwise.compiled.timing.step import CompiledStep, compiled_step
from chipwise.errors import DoesNotFit, MissingCompiler, Refusal
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.schedule import COLLECTIVES
from chipwise.predict.prediction import Prediction, observed_in_words

# The parts of a prediction that classes of compiled ops belong to; anything else is bound by memory
PARTS = {"matmul": "matmul", "conv": "matmul", "attention": "attention", "host": "offload"}
WIRES = {"gather": "shard", "scatter": "shard", "reduce": "reduce", "exchange": "expert_exchange", "permute": "pipe"}


def compile_prediction(
    p: Prediction, limits: Limits | None = None, progress: Progress | None = None
) -> Compiled | Refused:
    """Compile the prediction's layout, or find it in the cache; a `Refusal` where no reference program does it."""
    _timed(p)
    return compile_job(training_job(p.workload, p.accelerators, p.layout), limits, progress)


def kept_prediction(p: Prediction) -> Compiled | Refused | None:
    """The prediction's layout if it was compiled before; never compiles."""
    try:
        _timed(p)
        return kept_job(training_job(p.workload, p.accelerators, p.layout))
    except (Refusal, MissingCompiler):
        return None


def _timed(p: Prediction) -> None:
    if p.accelerators.chip.family != "tpu":
        raise Refusal(
            f"compiled times are known for TPUs; XLA says of {p.accelerators.chip.id} whether a program "
            "compiles and fits, not how long it takes",
            "see `chipwise check`",
        )


def compiled_prediction(p: Prediction, outcome: Compiled | Refused, calibration: Calibration) -> Prediction:
    """The prediction with the compiler's schedule and memory; a `DoesNotFit` or `Refusal` where it refused."""
    if isinstance(outcome, Refused):
        kind = DoesNotFit if outcome.stage == "memory" else Refusal
        case = f"{p.workload.name} on {p.accelerators} with {p.layout}"
        raise kind(f"the compiler refuses {case}: {outcome.reason}", outcome.change)
    step = compiled_step(Schedule.from_json(outcome.schedule), p.accelerators, calibration, p.workload)
    devices = p.accelerators.chip.devices
    memory = {name: outcome.memory.get(name, 0.0) * devices for name in ("arguments", "temporaries", "code")}
    memory["outputs"] = max(outcome.memory.get("outputs", 0.0) - outcome.memory.get("aliased", 0.0), 0.0) * devices
    memory["total"] = sum(memory.values())
    versions = ", ".join(f"{name} {outcome.versions[name]}" for name in ("jax", "libtpu") if name in outcome.versions)
    observed = observed_in_words(p.workload, p.accelerators, p.stack, calibration)  # of modeled steps: not of these
    assumptions = [a for a in p.assumptions if not a.startswith("software:") and a not in observed]
    parts, hidden = parts_of(step), sum(step.timing.hidden.values())
    bound = max(p.math_s, hidden + sum(parts[name] for name in COLLECTIVES if name in parts))
    lawful = _lawful(step.estimate, bound)
    parts["stream"] += lawful.value - step.estimate.value  # what the compiler's account lacks
    return replace(
        p,
        step=lawful,
        bound_s=bound,
        parts=parts,
        calibration_factor=1.0,
        measured=False,
        hidden_s=hidden,
        memory=memory,
        assumptions=(f"software: our reference JAX program compiled by {versions}", *assumptions),
    )


def _lawful(step: Estimate, bound: float) -> Estimate:
    """The compiler's time, or the bound where its account of a schedule is shorter: that is said."""
    if step.value >= bound:
        return step.at_least(bound)
    because = f"{step.because}; the compiler's account is shorter than the lower bound, which counts instead"
    return Estimate(bound, bound, max(step.high, bound), step.evidence, because)


def parts_of(step: CompiledStep) -> dict[str, float]:
    """Exposed seconds by the parts that a modelled prediction has; they add up to the step."""
    names = ("matmul", "attention", "stream", "offload", "shard", "reduce", "expert_exchange", "pipe")
    parts = dict.fromkeys(names, 0.0)
    for kind, seconds in step.timing.by_kind.items():
        if kind != "collective":
            parts[PARTS.get(kind, "stream")] += seconds
    for c in step.timing.collectives:
        parts[WIRES[c.op]] += c.exposed
    parts["reduce"] += step.between_slices
    parts["stream"] += step.estimate.value - sum(parts.values())  # waits for what no op is named for
    return parts
