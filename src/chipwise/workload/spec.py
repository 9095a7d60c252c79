"""The workload file, as pydantic checks it: every key, its bounds and what it means.

Importing this module imports pydantic (about 0.1 s), so only `load` does, when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from chipwise.workload.fields import (
    COUNT_JSON,
    Count,
    Dim,
    DimOrZero,
    Flag,
    Label,
    StackName,
    Strict,
    Tokens,
    count_of,
    precision_of,
)
from chipwise.workload.serve_spec import ServeSpec


def _name(value: Any) -> Any:
    """A model name that looks like a number is still a name."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _trained_in(value: Any) -> Any:
    """A precision that products run in; 4-bit weights are those of a frozen base."""
    precision = precision_of(value)
    if precision == "int4":
        raise ValueError(
            "the precision that products run in, one of fp32, tf32, bf16, fp16, fp8, int8, fp4; a frozen base of 4 bits"
            " is --lora 16 --lora-base nf4 (lora: {rank: 16, base: nf4} in a file)"
        )
    return precision


Optimizer = Literal["adafactor", "adam", "adamw", "lamb", "lars", "lion", "muon", "sgd"]


class ExpertsSpec(Strict):
    """Mixture of experts."""

    count: Dim = Field(description="Routed experts per MoE layer.")
    per_token: Dim = Field(description="Routed experts each token is sent to.")
    d_ff: Dim = Field(description="Inner width of one routed expert.")
    shared_d_ff: DimOrZero = Field(0, description="Inner width of the shared experts together; 0: none.")
    first_dense: DimOrZero = Field(0, description="Leading layers with a dense MLP of the model's d_ff.")
    every: Dim = Field(1, description="A MoE layer every so many layers, after first_dense.")
    router_bias: Flag = Field(False, description="The router has one learned offset per expert.")


class LatentSpec(Strict):
    """Multi-head latent attention (DeepSeek)."""

    q_rank: DimOrZero = Field(description="Rank of the queries; 0: not compressed.")
    kv_rank: Dim = Field(description="Rank of keys and values.")
    nope_dim: Dim = Field(description="Width per head without rotary positions.")
    rope_dim: Dim = Field(description="Width per head with rotary positions.")
    v_dim: Dim = Field(description="Width of the values per head.")


class ConvSpec(Strict):
    """One convolution, or several of the same shape."""

    name: Label = Field(description="What to call it.")
    c_in: Dim = Field(description="Input channels.")
    c_out: Dim = Field(description="Output channels.")
    kernel: Dim = Field(description="Kernel side.")
    out: Dim = Field(description="Output side.")
    groups: Dim = Field(1, description="Groups the channels are split into.")
    stride: Dim = Field(1, description="Stride.")
    count: Dim = Field(1, description="How many of this shape.")
    joins: DimOrZero = Field(0, description="Of those, whose results are added to another branch.")


class _Shape(Strict):
    """The dimensions of a model; what isn't said follows the family, or the preset."""

    name: Label | None = Field(None, description="What to call the model.")
    layers: Dim | None = Field(None, description="Transformer layers.")
    d_model: Dim | None = Field(None, description="Width of the residual stream.")
    heads: Dim | None = Field(None, description="Attention (query) heads.")
    kv_heads: Dim | None = Field(None, description="Key and value heads; default: as many as heads.")
    head_dim: Dim | None = Field(None, description="Width of one head; default: d_model / heads.")
    d_ff: Dim | None = Field(None, description="Inner width of the MLP; default: 4 x d_model, or 8/3 when gated.")
    vocab: Dim | None = Field(None, description="Vocabulary, padding included.")
    gated: Flag | None = Field(None, description="Gated MLP: three matrices instead of two.")
    tied: Flag | None = Field(None, description="The output layer shares the embedding.")
    parallel_block: Flag | None = Field(None, description="Attention and MLP side by side.")
    causal: Flag | None = Field(None, description="Tokens attend only to earlier ones.")
    qkv_bias: Flag | None = Field(None, description="Biases on queries, keys and values.")
    out_bias: Flag | None = Field(None, description="A bias on the attention output.")
    bias: Flag | None = Field(None, description="Biases on every linear layer.")
    norm_params: Annotated[int, Field(strict=True, ge=0, le=2)] | None = Field(
        None, description="Vectors per norm: 1 (RMSNorm), 2 (LayerNorm), 0 (none learned)."
    )
    norms_per_layer: DimOrZero | None = Field(None, description="Norms per layer; default: 2.")
    qk_norm: Flag | None = Field(None, description="Norms on queries and keys, per head.")
    learned_positions: DimOrZero | None = Field(None, description="Length of a learned position table.")
    context: DimOrZero | None = Field(
        None, description="Longest sequence the model takes, prompt and answer together; 0: not known."
    )
    token_types: DimOrZero | None = Field(None, description="Token types (BERT).")
    window: DimOrZero | None = Field(None, description="Sliding attention window; 0: full attention.")
    global_every: DimOrZero | None = Field(
        None, description="With a window: every n-th layer attends in full (1: all do, 0: none does)."
    )
    mixer: Literal["window", "linear", "sparse"] | None = Field(
        None, description="With a window: those layers slide it, keep a state of its size, or pick so many tokens."
    )
    experts: ExpertsSpec | None = Field(None, description="Mixture of experts.")
    latent: LatentSpec | None = Field(None, description="Multi-head latent attention.")
    mtp_layers: DimOrZero | None = Field(None, description="Multi-token-prediction layers.")
    pooler: Flag | None = Field(None, description="BERT's pooler and next-sentence classifier.")
    embedding_norm: Flag | None = Field(None, description="A norm right after the embedding.")
    final_norm: Flag | None = Field(None, description="A norm after the last layer.")
    head_bias: Flag | None = Field(None, description="The output layer has a bias.")
    sinks: Flag | None = Field(None, description="One learned attention sink per head.")
    image: Dim | None = Field(None, description="Side of the input image (of the latent, for a dit).")
    patch: Dim | None = Field(None, description="Side of one patch.")
    channels: Dim | None = Field(None, description="Input channels.")
    out_channels: Dim | None = Field(None, description="Channels a dit predicts.")
    classes: DimOrZero | None = Field(None, description="Classes of the output, or labels of a dit.")
    cond_dim: Dim | None = Field(None, description="Width of a dit's conditioning vector.")
    blocks: Annotated[list[Dim], Field(min_length=1, max_length=8)] | None = Field(
        None, description="cnn: residual blocks per stage, such as [3, 4, 6, 3]."
    )
    bottleneck: Flag | None = Field(None, description="cnn: bottleneck blocks (ResNet-50 and larger).")
    groups: Dim | None = Field(None, description="cnn: groups of the 3x3 convolutions (ResNeXt).")
    width: Dim | None = Field(None, description="cnn: channels per group at the first stage.")
    convs: Annotated[list[ConvSpec], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="cnn: every convolution, spelled out, instead of blocks."
    )


class SpelledModel(_Shape):
    """A model spelled out."""

    family: Literal["decoder", "encoder", "vit", "dit", "cnn"] = Field(description="Kind of model.")


class PresetModel(_Shape):
    """A known model with some dimensions changed."""

    preset: Label = Field(description="Name of the known model to start from.")


class HfModel(Strict):
    """A model described by a Hugging Face config.json."""

    hf: Label = Field(description="Path of the config.json, relative to this file.")


Rank = Annotated[
    int,
    BeforeValidator(count_of),
    Field(ge=1, le=65536),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 1, "maximum": 65536}, COUNT_JSON[1]]}),
]


class LoraSpec(Strict):
    """Low-rank adapters: the base weights are frozen."""

    rank: Rank = Field(description="Rank of the adapters.")
    targets: Literal["attention", "all"] = Field(
        "attention", description="Which linear layers get adapters: those of attention, or all."
    )
    base: Literal["nf4", "int4", "bf16", "fp16", "fp32"] | None = Field(
        None,
        description="What the frozen linear layers are held in: nf4 or int4 (QLoRA), or the run's precision. Default:"
        " int4 or nf4 where the model's name or config says so, else the run's precision.",
    )


class TrainSpec(Strict):
    """How the model is trained."""

    tokens: Count | None = Field(None, description="Tokens of the whole run, such as 15T. Text only.")
    steps: Count | None = Field(None, description="Optimizer steps of the whole run.")
    samples: Count | None = Field(None, description="Sequences or images of the whole run.")
    images: Count | None = Field(None, description="Images of the whole run. Vision only.")
    global_batch: Count | None = Field(
        None, description="Sequences (or images) per optimizer step, all chips together; or batch_tokens."
    )
    batch_tokens: Tokens | None = Field(
        None, description="Tokens per optimizer step, in place of global_batch: the nearest whole sequences. 4M: 2^22."
    )
    sequence: Tokens | None = Field(
        None, description="Tokens per sequence, 8k: 8,192. Vision models derive it from image and patch."
    )
    precision: Annotated[
        Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"], BeforeValidator(_trained_in)
    ] = Field("bf16", description="Precision of the matrix multiplications. mxfp4 and nvfp4 are read as fp4.")
    optimizer: Optimizer = Field("adamw", description="Optimizer; decides the state per parameter.")
    state_precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="Precision of master weights and optimizer moments."
    )
    recompute: Literal["auto", "none", "selective", "full", "offload"] = Field(
        "auto", description="Activations recomputed in the backward pass; auto: the least that fits."
    )
    lora: LoraSpec | None = Field(None, description="Train low-rank adapters, the base weights frozen.")
    stack: StackName | None = Field(None, description="Software stack, such as megatron, maxtext or torch-fsdp.")


def model_kind(value: Any) -> str:
    """Which of the four ways to say a model this is."""
    if isinstance(value, Mapping):
        return "hf" if "hf" in value else "preset" if "preset" in value else "spelled"
    return "name"


class WorkloadSpec(Strict):
    """A workload for chipwise: a model that is trained, or served."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["train"]}, {"required": ["serve"]}]})

    name: Label | None = Field(None, description="What to call the workload.")
    model: Annotated[
        Annotated[Label, BeforeValidator(_name), Tag("name")]
        | Annotated[HfModel, Tag("hf")]
        | Annotated[PresetModel, Tag("preset")]
        | Annotated[SpelledModel, Tag("spelled")],
        Discriminator(model_kind),
    ] = Field(description="A known model's name, a Hugging Face config, or dimensions.")
    train: TrainSpec | None = Field(None, description="How it is trained; either this or serve.")
    serve: ServeSpec | None = Field(None, description="What it must answer; either this or train.")
