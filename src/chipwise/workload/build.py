"""From a plain table of fields (a preset, a spelled-out file) to a Model, with the usual defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from chipwise.errors import NOTHING, Conflict, InputError
from chipwise.workload.cnn import resnet_convs
from chipwise.workload.families import recurrent, unet
from chipwise.workload.model import (
    Conv,
    EncoderPart,
    Experts,
    Indexer,
    Joint,
    Latent,
    Model,
    StateSpace,
    UNet,
    Video,
)

# decoder: writes token by token, by attention or with recurrent layers (`ssm`); encoder: reads in one pass;
# encoder-decoder: both (T5, Whisper); vit: images; dit, mmdit (text and image tokens together), video-dit and unet:
# diffusion; cnn: ResNets
FAMILIES = ("decoder", "encoder", "encoder-decoder", "vit", "dit", "mmdit", "video-dit", "unet", "cnn")
PARTS: dict[str, Callable[..., Any]] = {
    "experts": Experts, "latent": Latent, "indexer": Indexer, "ssm": StateSpace, "encoder": EncoderPart,
    "joint": Joint, "video": Video, "unet": UNet,
}  # fmt: skip

# What a family means unless a field says otherwise.
_FAMILY: dict[str, dict[str, Any]] = {
    "decoder": {},
    "encoder": {
        "gated": False, "tied": True, "causal": False, "bias": True, "norm_params": 2,
        "embedding_norm": True, "final_norm": False, "head_bias": True,
    },
    "encoder-decoder": {"tied": True, "final_norm": False},
    "vit": {"gated": False, "causal": False, "bias": True, "norm_params": 2, "vocab": 0},
    "dit": {"gated": False, "causal": False, "bias": True, "norm_params": 0, "vocab": 0, "channels": 4},
    "mmdit": {"gated": False, "causal": False, "bias": True, "norm_params": 0, "vocab": 0, "channels": 16},
    "video-dit": {"gated": False, "causal": False, "bias": True, "norm_params": 0, "vocab": 0, "channels": 16},
    "unet": {"gated": True, "causal": False, "bias": True, "vocab": 0, "channels": 4},
    "cnn": {"gated": False, "causal": False, "bias": False, "vocab": 0},
}  # fmt: skip

# Fields that mean nothing outside their family, and so are refused there rather than ignored.
_CNN_ONLY = ("blocks", "bottleneck", "groups", "width", "convs")
_IMAGE_ONLY = ("image", "patch", "channels", "classes")
_DIT_ONLY = ("out_channels", "cond_dim")
_TEXT_ONLY = (
    "vocab",
    "tied",
    "token_types",
    "learned_positions",
    "experts",
    "latent",
    "mtp_layers",
    "pooler",
    "context",
)
_TRANSFORMER_ONLY = ("layers", "d_model", "heads", "kv_heads", "head_dim", "d_ff", "patch", "window")
_PARTS_OF = {  # parts that only one family has
    "decoder": ("ssm", "indexer"),
    "encoder-decoder": ("encoder",),
    "mmdit": ("joint",),
    "video-dit": ("video",),
    "unet": ("unet",),
}
_FOREIGN = {
    "decoder": (*_CNN_ONLY, *_IMAGE_ONLY, *_DIT_ONLY, "pooler", "token_types"),
    "encoder": (*_CNN_ONLY, *_IMAGE_ONLY, *_DIT_ONLY),
    "encoder-decoder": (*_CNN_ONLY, *_IMAGE_ONLY, *_DIT_ONLY, "pooler", "token_types", "experts", "latent"),
    "vit": (*_CNN_ONLY, *_DIT_ONLY, *_TEXT_ONLY),
    "dit": (*_CNN_ONLY, *_TEXT_ONLY),
    "mmdit": (*_CNN_ONLY, *_TEXT_ONLY, "cond_dim", "classes"),
    "video-dit": (*_CNN_ONLY, *_TEXT_ONLY, "cond_dim", "classes"),
    "unet": (*_CNN_ONLY, *_TEXT_ONLY, *_TRANSFORMER_ONLY, "cond_dim", "classes"),
    "cnn": (*_DIT_ONLY, *_TEXT_ONLY, *_TRANSFORMER_ONLY),
}
_NAMES = frozenset(f.name for f in fields(Model))
_REQUIRED = {
    "decoder": ("layers", "d_model", "heads", "vocab"),
    "encoder": ("layers", "d_model", "heads", "vocab"),
    "encoder-decoder": ("layers", "d_model", "heads", "vocab", "encoder"),
    "vit": ("layers", "d_model", "heads", "image", "patch"),
    "mmdit": ("d_model", "heads", "image", "patch", "joint"),
    "video-dit": ("layers", "d_model", "heads", "image", "patch", "video"),
    "unet": ("image", "unet"),
    "dit": ("layers", "d_model", "heads", "image", "patch"),
    "cnn": ("image", "classes"),
}


def build_model(table: Mapping[str, Any], name: str = "", where: str = "model") -> Model:
    """Build a Model from plain fields; what isn't said follows the family.

    >>> m = build_model({"family": "decoder", "layers": 2, "d_model": 512, "heads": 8, "vocab": 1000})
    >>> m.kv_heads, m.head_dim, m.d_ff, m.gated
    (8, 64, 1536, True)
    """
    given = {k: v for k, v in table.items() if v is not None}
    family = str(given.get("family", "decoder"))
    if family not in FAMILIES:
        raise InputError(f"{where}.family", family, f"one of {', '.join(FAMILIES)}")
    for key in _REQUIRED[family]:
        if key not in given:
            raise InputError(f"{where}.{key}", NOTHING, f"a value: a {family} needs it")
    elsewhere = [key for owner, keys in _PARTS_OF.items() if owner != family for key in keys]
    for key in (*_FOREIGN[family], *elsewhere):
        if given.get(key):
            raise InputError(f"{where}.{key}", given[key], f"no such key for a {family}")
    full: dict[str, Any] = {"name": name or given.get("name") or "custom", **_FAMILY[family], **given}
    full["family"] = family
    for key, kind in PARTS.items():
        if isinstance(full.get(key), Mapping):
            full[key] = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in full[key].items()})
    shape = {"cnn": _cnn, "unet": _unet}.get(family, _transformer)
    shape(full, where)
    model = Model(**{k: v for k, v in full.items() if k in _NAMES})
    check_model(model, where)
    return model


def _transformer(full: dict[str, Any], where: str) -> None:
    d, heads = full["d_model"], full["heads"]
    full.setdefault("kv_heads", heads)
    if "head_dim" not in full:
        if "latent" in full:
            full["head_dim"] = full["latent"].nope_dim + full["latent"].rope_dim
        elif d % heads:
            raise InputError(f"{where}.heads", heads, f"a divisor of d_model({d}), or head_dim given as well")
        else:
            full["head_dim"] = d // heads
    if "d_ff" not in full:
        # Plain MLPs are four times as wide; a gated one keeps its parameters with 8/3, in steps of 256.
        full["d_ff"] = -(-8 * d // 3 // 256) * 256 if full.get("gated", True) else 4 * d
    if full["family"] == "dit":
        full.setdefault("cond_dim", d)
    if full["family"] in ("dit", "mmdit", "video-dit"):
        full.setdefault("out_channels", full["channels"])
    if full.get("joint") is not None:
        full["layers"] = full["joint"].double + full["joint"].single
    if full.get("ssm") is not None:  # a state is as much as the keys and values of so many tokens
        width = 2 * full["kv_heads"] * full["head_dim"]
        full.update(mixer="linear", window=recurrent.state_tokens(full["ssm"], width))
    full.setdefault("vocab", 0)
    full.setdefault("context", full.get("learned_positions", 0))  # a table of positions ends somewhere


def _cnn(full: dict[str, Any], where: str) -> None:
    convs = full.get("convs")
    if convs is None:
        blocks, image = full.get("blocks"), full["image"]
        if blocks is None:
            raise InputError(f"{where}.blocks", NOTHING, "blocks per stage such as [3, 4, 6, 3], or convs")
        halvings = 2 ** (len(blocks) + 1)
        if image % halvings:
            raise InputError(f"{where}.image", image, f"a multiple of {halvings}: each stage halves it")
        convs = resnet_convs(
            blocks,
            bottleneck=full.get("bottleneck", True),
            image=image,
            groups=full.get("groups", 1),
            width=full.get("width", 64),
        )
    elif full.get("blocks"):
        raise Conflict(f"{where}.blocks", "convs")
    full["convs"] = tuple(c if isinstance(c, Conv) else Conv(**c) for c in convs)
    full["layers"] = sum(c.count for c in full["convs"]) + 1  # and the classifier
    full.update(d_model=full["convs"][-1].c_out, heads=0, kv_heads=0, head_dim=0, d_ff=0)


def _unet(full: dict[str, Any], where: str) -> None:
    net: UNet = full["unet"]
    halvings = 2 ** (len(net.channels) - 1)
    if len(net.depth) != len(net.channels):
        raise InputError(
            f"{where}.unet.depth", list(net.depth), f"a number for each of {len(net.channels)} resolutions"
        )
    if full["image"] % halvings:
        raise InputError(f"{where}.image", full["image"], f"a multiple of {halvings}: each resolution halves it")
    full.setdefault("out_channels", full["channels"])
    full["convs"] = unet.convs(net, full["image"], full["channels"], full["out_channels"])
    made = unet.blocks(net, full["image"])
    full["layers"] = len(made) + sum(b.depth for b in made)
    full.update(d_model=net.channels[-1], heads=1, kv_heads=1, head_dim=64, d_ff=0)  # it is not split by heads


def check_model(m: Model, where: str = "model") -> None:
    """Refuse dimensions that contradict each other, with the equation and its numbers."""
    if m.family == "cnn":
        for c in m.convs:
            if c.c_in % c.groups or c.c_out % c.groups:
                raise InputError(
                    f"{where}.convs", c.groups,
                    f"groups that divide c_in({c.c_in}) and c_out({c.c_out}) of {c.name}",
                )  # fmt: skip
        return
    if m.heads % m.kv_heads:
        raise InputError(f"{where}.kv_heads", m.kv_heads, f"a divisor of heads({m.heads})")
    if m.experts and m.experts.per_token > m.experts.count:
        raise InputError(f"{where}.experts.per_token", m.experts.per_token, f"at most experts.count({m.experts.count})")
    if m.experts and not m.moe_layers:
        raise InputError(
            f"{where}.experts.first_dense", m.experts.first_dense,
            f"room for a MoE layer: (layers({m.layers}) - first_dense({m.experts.first_dense}))"
            f" // every({m.experts.every}) >= 1",
        )  # fmt: skip
    if m.ssm and not 0 < m.ssm.layers <= m.layers:
        raise InputError(f"{where}.ssm.layers", m.ssm.layers, f"from 1 to layers({m.layers})")
    if m.encoder and not 0 < m.encoder.layers < m.layers:
        raise InputError(
            f"{where}.encoder.layers", m.encoder.layers, f"fewer than layers({m.layers}), both parts together"
        )
    if m.patch and m.image % m.patch:
        raise InputError(f"{where}.patch", m.patch, f"a divisor of image({m.image})")
