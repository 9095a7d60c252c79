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
# Where the table has none: elements written between layers a pixel of the input (ResNet-50 v1.5 and MobileNet v1 give
# 221 and 102), and layers that follow each other, by family. Middling values of the models that the table has them of
PIXEL_ELEMENTS = {"conv": 220.0, "mobile": 100.0, "detect": 250.0, "segment": 250.0}
LAYERS = {"conv": 60.0, "mobile": 60.0, "detect": 100.0, "segment": 80.0, "transformer": 100.0}
DECODER_KERNELS = 200.0  # a pass of a decoder: seven in each of some 30 layers


@dataclass(frozen=True, slots=True)
class EdgeModel:
    """One inference of a model: what it computes and reads."""

    id: str
    family: str  # "conv", "mobile", "detect", "segment", "volume", "transformer", "recurrent", "decoder", ...
    ops: float  # operations, two a multiply-add
    params: float  # weights
    activations: float  # elements written between layers
    input: float  # pixels, voxels or tokens
    passes: float  # times that all weights are read in turn: tokens written, denoising steps
    precision: str  # that submissions run it in
    source: str
    date: str
    note: str = ""
    steps: float = 100.0  # kernels that wait for each other in one inference
    reads: float = 1.0  # times that weights are read by usual schedules; at least `passes`
    tail: float = 1.0  # 90th percentile over mean of a sample's work, where samples differ


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def default_activations(family: str, pixels: float) -> float:
    """Elements written between layers of a vision model whose source gives none.

    >>> default_activations("mobile", 224 * 224)
    5017600.0
    """
    return PIXEL_ELEMENTS.get(family, 0.0) * pixels


def default_steps(family: str, passes: float) -> float:
    """Kernels that wait for each other, of a model whose source gives no layers."""
    return passes * (DECODER_KERNELS if passes > 1 else LAYERS.get(family, 100.0))


@cache
def _table() -> tuple[Mapping[str, EdgeModel], Mapping[str, str]]:
    models: dict[str, EdgeModel] = {}
    names: dict[str, str] = {}
    for row in rows(MODELS):
        numbers = {k: float(row[k] or 0) for k in ("ops", "params", "activations", "input", "passes")}
        family = row["family"]
        numbers["activations"] = numbers["activations"] or default_activations(family, numbers["input"])
        model = EdgeModel(
            id=row["model"],
            family=family,
            precision=row["precision"],
            source=row["source"],
            date=row["date"],
            note=row["note"],
            steps=float(row["steps"] or default_steps(family, numbers["passes"])),
            reads=float(row["reads"] or numbers["passes"]),
            tail=float(row["tail"] or 1.0),
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
