"""Policies: pure functions from a `ClusterState` to a `PolicyDecision`, by name.

A policy of the user's own is one Python function: named by an entry point of the group ``chipwise.policies``, or as
``package.module:function``.
"""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.errors import InputError
from chipwise.route.cluster_state import Policy
from chipwise.route.names import DEFAULT_POLICY
from chipwise.route.policies.balanced import WEIGHTS, balanced
from chipwise.route.policies.deadlines import WEIGHTS as DEADLINE_WEIGHTS
from chipwise.route.policies.deadlines import cheapest_within_deadline
from chipwise.route.policies.plugins import GROUP, own_names, own_policy
from chipwise.route.policies.ranking import cheapest, fastest, least_energy
from chipwise.route.policies.sharing import finish_time_fair, max_min_fair
from chipwise.route.policies.throughput_per_dollar import max_throughput_per_dollar

__all__ = [
    "DEFAULT_POLICY",
    "GROUP",
    "POLICIES",
    "check_weights",
    "describe",
    "policy_list",
    "policy_named",
    "policy_names",
]

POLICIES: dict[str, Policy] = {
    "fastest": fastest,
    "cheapest": cheapest,
    "cheapest-within-deadline": cheapest_within_deadline,
    "least-energy": least_energy,
    "max-min-fair": max_min_fair,
    "finish-time-fair": finish_time_fair,
    "max-throughput-per-dollar": max_throughput_per_dollar,
    "balanced": balanced,
}


POLICY_WEIGHTS = {"balanced": WEIGHTS, "cheapest-within-deadline": DEADLINE_WEIGHTS}  # with their defaults


def policy_named(name: str) -> Policy:
    """A policy by name: ours, one of an entry point, or ``package.module:function``."""
    return POLICIES[name] if name in POLICIES else own_policy(name, POLICIES)


def policy_names() -> tuple[str, ...]:
    """Every name that `policy_named` knows."""
    return (*POLICIES, *(name for name in own_names() if name not in POLICIES))


def policy_list(text: str, field: str = "policy") -> list[str]:
    """The policies of a list such as ``fastest,cheapest``, each once; ``all``: every one of ours.

    >>> policy_list("fastest,cheapest,fastest")
    ['fastest', 'cheapest']
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if "all" in names:
        names = list(POLICIES)
    if not names:
        raise InputError(field, text, f"policies such as {DEFAULT_POLICY}, or all")
    for name in names:
        policy_named(name)
    return names


def check_weights(policies: Iterable[str], weights: Iterable[str], field: str = "weights") -> None:
    """Refuse weights that none of these policies hears. Policies of the user's own may hear any."""
    named = list(policies)
    if any(name not in POLICIES for name in named):
        return
    heard = {weight: name for name in named for weight in POLICY_WEIGHTS.get(name, ())}
    for weight in weights:
        if not heard:
            having = " and ".join(POLICY_WEIGHTS)
            raise InputError(field, weight, f"no weight: {', '.join(named)} has none; of ours, {having} have")
        if weight not in heard:
            of = " and ".join(name for name in POLICY_WEIGHTS if name in named)
            raise InputError(field, weight, f"one of {', '.join(heard)}, the weights of {of}")


def describe(name: str) -> str:
    """A policy in one line."""
    words = (policy_named(name).__doc__ or "").strip()
    return words.splitlines()[0] if words else "a policy of your own"
