"""The JSON Schemas (2020-12) of the job and pools files, for editors."""

from __future__ import annotations

import json
from typing import Any

SCHEMAS = ("job", "pools")


def schema(file: str) -> dict[str, Any]:
    """The schema of one of the files."""
    from pydantic import TypeAdapter

    from chipwise.route.spec.job import JobSpec, JobsSpec
    from chipwise.route.spec.pools import PoolsSpec

    described = TypeAdapter(JobSpec | JobsSpec).json_schema() if file == "job" else PoolsSpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described, "title": f"chipwise {file}"}


def schema_text(file: str) -> str:
    """The schema as the committed file holds it, and as `chipwise schema` prints it."""
    return json.dumps(schema(file), indent=2, ensure_ascii=False) + "\n"
