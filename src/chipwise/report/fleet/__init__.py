"""The report of a fleet plan: what to rent and buy on one page, then the plan by period and what it rests on."""

from chipwise.report.fleet.document import fleet_report

__all__ = ["fleet_report"]
