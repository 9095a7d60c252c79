"""The library: one function a verb. The command line, a notebook and a program call the same ones.

Arguments are as people write them: chips ``"h100:64"``, times ``"30d"``, money ``"2M"``, counts ``"1T"``. Every
function returns a frozen result with ``to_dict()`` (the JSON of the command), ``to_pandas()``, a table as text when
printed, and one as HTML in a notebook.
"""

from __future__ import annotations

from chipwise.verbs.arguments import load
from chipwise.verbs.bench import bench
from chipwise.verbs.decide import compare, compare_edge, cost, layouts, plan_fleet, predict, report
from chipwise.verbs.deploy import deploy_check, deploy_explain, deploy_write
from chipwise.verbs.diff import diff
from chipwise.verbs.facts import chips, models, prices, update_prices
from chipwise.verbs.history import observe_advice, observe_demand, observe_drift, observe_rates
from chipwise.verbs.measure import check, numerics, validate
from chipwise.verbs.observe import (
    accepted_telemetry,
    alert_rules,
    dashboards,
    devices,
    diagnose,
    fleet_goodput,
    learn_from_runs,
    measure_goodput,
    observe_job,
    observe_jobs,
    observe_node,
    read_log,
)
from chipwise.verbs.route import simulate, submit
from chipwise.verbs.serve import capacity, serve
from chipwise.verbs.telemetry import export_telemetry, node_health, observe_top, receive_telemetry, scrape

__all__ = [
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
