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
from types import ModuleType
from typing import TYPE_CHECKING

from chipwise.lazy import lazily
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
        deploy_check,
        deploy_explain,
        deploy_write,
        devices,
        diagnose,
        diff,
        export_telemetry,
        fleet_goodput,
        layouts,
        learn_from_runs,
        load,
        measure_goodput,
        models,
        node_health,
        numerics,
        observe_advice,
        observe_demand,
        observe_drift,
        observe_job,
        observe_jobs,
        observe_node,
        observe_rates,
        observe_top,
        plan_fleet,
        predict,
        prices,
        read_log,
        receive_telemetry,
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
    "deploy_check",
    "deploy_explain",
    "deploy_write",
    "devices",
    "diagnose",
    "diff",
    "export_telemetry",
    "fleet_goodput",
    "layouts",
    "learn_from_runs",
    "load",
    "measure_goodput",
    "models",
    "node_health",
    "numerics",
    "observe_advice",
    "observe_demand",
    "observe_drift",
    "observe_job",
    "observe_jobs",
    "observe_node",
    "observe_rates",
    "observe_top",
    "plan_fleet",
    "predict",
    "prices",
    "read_log",
    "receive_telemetry",
    "report",
    "scrape",
    "serve",
    "simulate",
    "submit",
    "update_prices",
    "validate",
]
_HOMES = {name: "errors" if name[0].isupper() else "api" for name in __all__}
__getattr__ = lazily(__name__, _HOMES | {"Estimate": "predict.estimate", "Knowledge": "knowledge"})


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
