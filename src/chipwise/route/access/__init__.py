"""Who may do what: identities, roles, teams, quotas. Plain data and pure functions; `load` reads them from a file."""

from chipwise.route.access.identity import OPERATOR, ROLES, SUBMITTER, VIEWER, Forbidden, Identity
from chipwise.route.access.quota import Quota, Quotas, Usage
from chipwise.route.access.rules import Access, Members

__all__ = [
    "OPERATOR",
    "ROLES",
    "SUBMITTER",
    "VIEWER",
    "Access",
    "Forbidden",
    "Identity",
    "Members",
    "Quota",
    "Quotas",
    "Usage",
]
