"""Models that edge devices run, by their MLPerf names: operations, weights and activations of one inference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.catalog.files import rows
from chipwise.errors import UnknownName

MODELS = "edge_models.csv"


@dataclass(frozen=True, slots=True)
class EdgeModel:
    """One inference of a model: what it computes and reads."""

    id: str
    family: str  # "conv", "mobile", "detect", "segment", "volume", "transformer", "recurrent", "decoder", ...
    ops: float  # operations, two a multiply-add
    params: float  # weights
    activations: float  # elements written between layers; 0 where no source gives them
    input: float  # pixels, voxels or tokens
    passes: float  # times that all weights are read in turn: tokens written, denoising steps
    precision: str  # that submissions run it in
    source: str
    date: str
    note: str = ""


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


@cache
def _table() -> tuple[Mapping[str, EdgeModel], Mapping[str, str]]:
    models: dict[str, EdgeModel] = {}
    names: dict[str, str] = {}
    for row in rows(MODELS):
        numbers = {k: float(row[k] or 0) for k in ("ops", "params", "activations", "input", "passes")}
        model = EdgeModel(
            id=row["model"],
            family=row["family"],
            precision=row["precision"],
            source=row["source"],
            date=row["date"],
            note=row["note"],
            **numbers,
        )
        models[model.id] = model
        for name in (model.id, *filter(None, row["aliases"].split(";"))):
            names.setdefault(_plain(name), model.id)
    return MappingProxyType(models), MappingProxyType(names)


def edge_models() -> Mapping[str, EdgeModel]:
    """Every model by id.

    >>> edge_models()["resnet50"].ops, edge_models()["bert-99"].family
    (8200000000.0, 'transformer')
    """
    return _table()[0]


def is_edge_model(name: str) -> bool:
    """Whether a name is that of a model with edge figures.

    >>> is_edge_model("SSD-MobileNet"), is_edge_model("nothing")
    (True, False)
    """
    return _plain(name) in _table()[1]


def find_edge_model(name: str) -> EdgeModel:
    """The model of a name, in any spelling of case, spaces and underscores.

    >>> find_edge_model("Inception V1 224x224").id, find_edge_model("3D-UNet-99").id
    ('inception-v1', '3d-unet')
    """
    models, names = _table()
    found = names.get(_plain(name))
    if found is None:
        raise UnknownName("model", name, names)
    return models[found]
