"""Models of the workload presets as edge inferences: language, speech, text encoders, vision transformers."""

from __future__ import annotations

from chipwise.catalog.edge_models import DECODER_KERNELS, EdgeModel, edge_models, find_edge_model, is_edge_model
from chipwise.errors import ChipwiseError, UnknownName
from chipwise.workload.flops import pass_flops
from chipwise.workload.model import Model
from chipwise.workload.params import count
from chipwise.workload.presets import preset, preset_names

TOKENS_IN, TOKENS_OUT = 128, 128  # of a language model's request. Assumed; a note says so
SOURCE = "the presets of models"
ENCODERS = ("encoder", "vit")  # families of presets that pass once
ELEMENTS, KERNELS = 12.0, 6.0  # elements a token and feature that a layer writes, and its kernels, as BERT-Large has
WORDS_OUT = 110  # tokens that 30 s of speech are written down in, as the table of edge models has them of Whisper


def edge_model(name: str) -> EdgeModel:
    """The model of a name: of the table of edge models, else a transformer of the presets, one request alone.

    >>> edge_model("resnet50").id, edge_model("llama-3.2-1b").passes, edge_model("vit-b-16").family
    ('resnet50', 128.0, 'transformer')
    """
    if is_edge_model(name):
        return find_edge_model(name)
    try:
        model = preset(name)
    except ChipwiseError:
        model = None
    if model is not None and _writes(model):
        return _decoder(model)
    if model is not None and model.family in ENCODERS:
        return _encoder(model)
    known = {*edge_models(), *(other for other in preset_names() if _is_known(preset(other)))}
    raise UnknownName("model", name, known, hint=" (such as resnet50, yolov8n, bert-99 or llama-3.2-1b)")


def _is_known(model: Model) -> bool:
    return _writes(model) or model.family in ENCODERS


def _writes(model: Model) -> bool:
    """Whether a model writes tokens one after another."""
    return model.vocab > 0 and not model.denoises and (model.causal or bool(model.encoder))


def _encoder(model: Model) -> EdgeModel:
    """One pass over a text of usual length, or over the patches of an image."""
    params, tokens = count(model), float(model.image_tokens or TOKENS_IN)
    looked_up = params.embedding + params.positions
    return EdgeModel(
        id=model.name,
        family="transformer",
        ops=2.0 * (params.total - looked_up) * tokens,
        params=float(params.total),
        activations=ELEMENTS * model.layers * tokens * model.d_model,
        input=tokens,
        passes=1.0,
        precision="int8",
        source=SOURCE,
        date="",
        note=f"{model.image_tokens} patches" if model.image_tokens else f"{TOKENS_IN} tokens in",
        steps=KERNELS * model.layers,
    )


def _decoder(model: Model) -> EdgeModel:
    """A prompt, or 30 s of speech, and an answer token by token."""
    heard, params = model.encoder.tokens if model.encoder else 0, count(model)
    tokens, written = (heard, WORDS_OUT) if heard else (TOKENS_IN, TOKENS_OUT)
    read = f"{tokens} frames of 30 s of speech" if heard else f"{tokens} tokens"
    return EdgeModel(
        id=model.name,
        family="decoder",
        ops=pass_flops(model, tokens) + 2.0 * params.active * written,
        params=float(params.total),
        activations=0.0,
        input=float(tokens),
        passes=float(written),
        precision="fp16",
        source=SOURCE,
        date="",
        note=f"{read} in, {written} tokens out",
        steps=written * DECODER_KERNELS * model.layers / 30,
        reads=float(written),
    )
