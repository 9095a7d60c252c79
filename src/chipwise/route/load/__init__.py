"""Jobs and pools from the files of the user's; every failure is one line that names the field."""

from chipwise.route.load.jobs import load_jobs
from chipwise.route.load.pools import Pools, load_pools, read_pools
from chipwise.route.load.schemas import SCHEMAS, schema, schema_text

__all__ = ["SCHEMAS", "Pools", "load_jobs", "load_pools", "read_pools", "schema", "schema_text"]
