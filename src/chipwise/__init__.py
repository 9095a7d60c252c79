"""chipwise: which accelerator, how many, split how, at what price.

The public names are those of `__all__`: one function a verb, `Knowledge`, `Estimate` and the errors. Each is loaded at
its first use, so that ``import chipwise`` is quick.

>>> import chipwise as cw
>>> job = cw.load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
>>> cw.compare(job, on="h100,v5p").pick.accelerators.chip.id
'h100'
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chipwise.version import __version__ as __version__

if TYPE_CHECKING:
    from chipwise.api import (
        accepted_telemetry,
        alert_rules,
        bench,
        capacity,
        check,
        chips,
        compare,
        compare_edge,
        cost,
        dashboards,
        devices,
        diagnose,
        diff,
        fleet_goodput,
        layouts,
        learn_from_runs,
        load,
        measure_goodput,
        models,
        numerics,
        observe_job,
        observe_jobs,
        observe_node,
        plan_fleet,
        predict,
        prices,
        read_log,
        report,
        scrape,
        serve,
        simulate,
        submit,
        update_prices,
        validate,
    )
    from chipwise.errors import (
        BrokenFile,
        ChipwiseError,
        Conflict,
        DoesNotFit,
        InputError,
        MissingCompiler,
        MissingInput,
        NoLayout,
        NoSuchFile,
        PrecisionMissing,
        Refusal,
        UnknownName,
    )
    from chipwise.knowledge import Knowledge
    from chipwise.predict.estimate import Estimate

__all__ = [
    "BrokenFile",
    "ChipwiseError",
    "Conflict",
    "DoesNotFit",
    "Estimate",
    "InputError",
    "Knowledge",
    "MissingCompiler",
    "MissingInput",
    "NoLayout",
    "NoSuchFile",
    "PrecisionMissing",
    "Refusal",
    "UnknownName",
    "accepted_telemetry",
    "alert_rules",
    "bench",
    "capacity",
    "check",
    "chips",
    "compare",
    "compare_edge",
    "cost",
    "dashboards",
    "devices",
    "diagnose",
    "diff",
    "fleet_goodput",
    "layouts",
    "learn_from_runs",
    "load",
    "measure_goodput",
    "models",
    "numerics",
    "observe_job",
    "observe_jobs",
    "observe_node",
    "plan_fleet",
    "predict",
    "prices",
    "read_log",
    "report",
    "scrape",
    "serve",
    "simulate",
    "submit",
    "update_prices",
    "validate",
]
_HOMES = {"Estimate": "chipwise.predict.estimate", "Knowledge": "chipwise.knowledge"}


def __getattr__(name: str) -> Any:
    """A public name from the module it lives in, at its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name) or ("chipwise.errors" if name[0].isupper() else "chipwise.api")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


class _Library(ModuleType):
    """This module, in which `chipwise.compare` is the verb although a package has the same name.

    Python binds a submodule to its parent when it is imported; a verb's name stays the verb's.
    ``from chipwise.compare import Comparison`` finds the package as ever.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library
