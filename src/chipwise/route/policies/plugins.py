"""Policies of users: found by entry point or by path, and what they answer is checked."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

import numpy as np

from chipwise.errors import ChipwiseError, InputError, UnknownName
from chipwise.route.cluster_state import ClusterState, Policy, PolicyDecision

GROUP = "chipwise.policies"


def own_names() -> list[str]:
    """Names of the entry points that are installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def own_policy(name: str, ours: Iterable[str] = ()) -> Policy:
    """A policy by the name of its entry point, or as ``package.module:function``."""
    points = sorted(entry_points(group=GROUP, name=name), key=lambda point: point.value)
    if len({point.value for point in points}) > 1:
        raise InputError("policy", name, f"a name that one package has, not {' and '.join(p.value for p in points)}")
    if points:
        return checked(name, _loaded(name, points[0]))
    module, _, function = name.partition(":")
    if not (module and function and all(part.isidentifier() for part in (*module.split("."), *function.split(".")))):
        raise UnknownName("policy", name, [*ours, *own_names()])
    return checked(name, _loaded(name, EntryPoint(name, name, GROUP)))


def _loaded(name: str, point: EntryPoint) -> Policy:
    importlib.invalidate_caches()
    try:
        policy = point.load()
    except Exception as broken:
        raise InputError("policy", name, f"a function that can be imported; {_words(broken)}") from broken
    if not callable(policy):
        raise InputError("policy", name, f"a function of a ClusterState, not {type(policy).__name__}")
    return policy  # type: ignore[no-any-return]


def checked(name: str, policy: Policy) -> Policy:
    """The policy, its decision checked before it is used."""

    @functools.wraps(policy)
    def careful(state: ClusterState) -> PolicyDecision:
        try:
            decision = policy(state)
        except ChipwiseError:
            raise
        except Exception as broken:
            raise ChipwiseError(f"the policy {name} failed: {_words(broken)}") from broken
        problem = _problem(state, decision)
        if problem:
            raise ChipwiseError(f"the policy {name} answered what can't be used: {problem}")
        return decision

    return careful


def _problem(state: ClusterState, decision: object) -> str:
    if not isinstance(decision, PolicyDecision):
        return f"{type(decision).__name__} in place of a PolicyDecision"
    n, p = len(state.jobs), len(state.pools)
    shapes: dict[str, list[tuple[int, ...]]] = {
        "score": [(n, p)],
        "order": [(n,), (n, p)],
        "latest": [(n, p)],
        "shares": [(n, p)],
        "wait": [(), (n,)],
        "tie": [(), (n,)],
    }
    for field, allowed in shapes.items():
        value = getattr(decision, field)
        if value is None and field in ("latest", "shares"):
            continue
        array = np.asarray(value)
        if field in ("score", "order", "latest", "shares") and not isinstance(value, np.ndarray):
            return f"{field} is {type(value).__name__}, not an array"
        if array.dtype.kind not in "fiu":
            return f"{field} holds {array.dtype}, not numbers"
        if array.shape not in allowed:
            return f"{field} has the shape {array.shape}, expected {' or '.join(map(str, allowed))}"
        if np.isnan(array).any():
            return f"{field} holds NaN"
        if field in ("wait", "tie", "shares") and not (np.isfinite(array) & (array >= 0)).all():
            return f"{field} holds numbers below 0 or without end"
    if (decision.score == -np.inf).any():
        return "score holds -inf"
    return "" if isinstance(decision.unit, str) else f"unit is {type(decision.unit).__name__}, not text"


def _words(broken: BaseException) -> str:
    return f"{type(broken).__name__}: {broken}".splitlines()[0]
