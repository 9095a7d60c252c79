"""Secrets of a job, as variables: those that the pools file allows, and no other, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.errors import Refusal
from chipwise.route.backend import BackendRefused, Launch
from chipwise.route.secret import check_secrets


def allowed_secrets(launch: Launch) -> tuple[str, ...]:
    """The names that a job asks for; `BackendRefused` where its pool does not allow one."""
    try:
        check_secrets(launch.pool, launch.variant.secrets)
    except Refusal as refusal:
        unlock = f"; expected {refusal.unlock}" if refusal.unlock else ""
        raise BackendRefused(f"{launch.pool.name}: {refusal.reason}{unlock}") from None
    return launch.variant.secrets


def secret_values(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """The secrets of a job with their values of the router's environment; `BackendRefused` where one has none."""
    names = allowed_secrets(launch)
    missing = [name for name in names if name not in environment]
    if missing:
        raise BackendRefused(f"the router's environment has no {', '.join(missing)}, which the job needs as secrets")
    return {name: environment[name] for name in names}
