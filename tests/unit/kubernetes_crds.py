"""What an API server checks of objects of other kinds than its own: unknown fields, types, and rules in CEL.

JobSet's fields come from its own OpenAPI document, as PyPI's kubeflow-trainer-api 2.3.0 (Apache-2.0) has it in models, pods
included. Kueue's and KubeRay's are in kubernetes_schemas/, each file with its source and date: no registry has their CRDs.
Rules are evaluated by a CEL interpreter (PyPI common-expression-language), with `self`, and `oldSelf` where an object is
changed.
"""

import types
import typing

import cel
from kubernetes_cases import own
from pydantic import BaseModel, ValidationError


def violations(kind, document, old=None):
    """What the schema and the rules of a kind say against an object, field by field."""
    validator = own(kind)
    found = [f"{_path(error.absolute_path)}: {error.message}" for error in validator.iter_errors(document)]
    return found or list(_broken(_chosen(validator.schema, document), document, old, ""))


def jobset_violations(document):
    """What JobSet's own OpenAPI document says against an object: unknown fields first, then types."""
    from kubeflow_trainer_api import models  # hundreds of classes, made when they are asked for

    found = list(_unknown(models.JobsetV1alpha2JobSet, document, ""))
    if not found:
        try:
            models.JobsetV1alpha2JobSet.from_dict(document)
        except ValidationError as error:
            found = [f"{_path(each['loc'])}: {each['msg']}" for each in error.errors()]
    return found


def rules(schema):
    """Every rule of a schema."""
    if isinstance(schema, dict):
        yield from (rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))
        for inside in schema.values():
            yield from rules(inside)
    elif isinstance(schema, list):
        for inside in schema:
            yield from rules(inside)


def _path(parts):
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def _chosen(schema, document):
    """The schema of a kind, of a file that has several."""
    kinds = schema.get("oneOf", [schema])
    return next(each for each in kinds if each["properties"]["kind"]["const"] == document["kind"])


def _broken(schema, value, old, path):
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue  # of changes alone
        if cel.evaluate(rule["rule"], {"self": value, **({} if old is None else {"oldSelf": old})}) is not True:
            yield f"{path}: {rule['message']}"
    if isinstance(value, dict):
        for key, inside in value.items():
            part = schema.get("properties", {}).get(key, {})
            before = old.get(key) if isinstance(old, dict) else None
            yield from _broken(part, inside, before, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, inside in enumerate(value):
            before = old[i] if isinstance(old, list) and i < len(old) else None
            yield from _broken(schema.get("items", {}), inside, before, f"{path}[{i}]")


def _unknown(kind, value, path):
    """Fields that a model does not have."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(each for each in typing.get_args(kind) if each is not type(None))
    if typing.get_origin(kind) is list:
        for i, inside in enumerate(value):
            yield from _unknown(typing.get_args(kind)[0], inside, f"{path}[{i}]")
    elif typing.get_origin(kind) is dict:
        for key, inside in value.items():
            yield from _unknown(typing.get_args(kind)[1], inside, f"{path}.{key}")
    elif isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, dict):
        fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        for key, inside in value.items():
            if key not in fields:
                yield f"{path}.{key}: no such field".lstrip(".")
            else:
                yield from _unknown(fields[key], inside, f"{path}.{key}".lstrip("."))
