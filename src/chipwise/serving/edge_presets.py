"""Models of the workload presets as edge inferences: language models and speech, one request alone."""

from __future__ import annotations

from chipwise.catalog.edge_models import DECODER_KERNELS, EdgeModel, edge_models, find_edge_model, is_edge_model
from chipwise.errors import ChipwiseError, UnknownName
from chipwise.workload.flops import pass_flops
from chipwise.workload.model import Model
from chipwise.workload.params import count
from chipwise.workload.presets import preset, preset_names

TOKENS_IN, TOKENS_OUT = 128, 128  # of a language model's request. Assumed; a note says so
WORDS_OUT = 110  # tokens that 30 s of speech are written down in, as the table of edge models has them of Whisper


def edge_model(name: str) -> EdgeModel:
    """The model of a name: of the table of edge models, else a language or speech model of the presets.

    >>> edge_model("resnet50").id, edge_model("llama-3.2-1b").passes, edge_model("whisper-tiny").family
    ('resnet50', 128.0, 'decoder')
    """
    if is_edge_model(name):
        return find_edge_model(name)
    try:
        model = preset(name)
    except ChipwiseError:
        model = None
    if model is None or not _writes(model):
        raise UnknownName("model", name, {*edge_models(), *filter(_may_write, preset_names())})
    return _decoder(model)


def _may_write(name: str) -> bool:
    return _writes(preset(name))


def _writes(model: Model) -> bool:
    """Whether a model writes tokens one after another."""
    return model.vocab > 0 and not model.denoises and (model.causal or bool(model.encoder))


def _decoder(model: Model) -> EdgeModel:
    params = count(model)
    heard = model.encoder.tokens if model.encoder else 0
    tokens, written = (heard, WORDS_OUT) if heard else (TOKENS_IN, TOKENS_OUT)
    read = f"{tokens} frames of 30 s of speech" if heard else f"{tokens} tokens"
    return EdgeModel(
        model.name,
        "decoder",
        pass_flops(model, tokens) + 2.0 * params.active * written,
        float(params.total),
        0.0,
        float(tokens),
        float(written),
        "fp16",
        "the presets of models",
        "",
        f"{read} in, {written} tokens out",
        steps=written * DECODER_KERNELS * model.layers / 30,
        reads=float(written),
    )
