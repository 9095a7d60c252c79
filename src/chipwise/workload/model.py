"""What must be computed: a model, described by the dimensions that decide its cost, and its training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts: how many, how many per token, how wide."""

    count: int
    per_token: int
    d_ff: int  # width of one routed expert
    shared_d_ff: int = 0  # total width of the shared experts, 0 if none
    first_dense: int = 0  # leading layers with a dense MLP of Model.d_ff
    every: int = 1  # a MoE layer every so many layers (after first_dense), the last of each group
    router_bias: bool = False  # one learned offset per expert in the router (DeepSeek-V3)


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek): low-rank queries and keys/values."""

    q_rank: int  # 0: queries are not compressed
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int


@dataclass(frozen=True, slots=True)
class Conv:
    """One convolution of a CNN: `count` of them with these shapes at output size `out` x `out`."""

    name: str
    c_in: int
    c_out: int
    kernel: int
    out: int
    groups: int = 1
    stride: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Model:
    """A model. Families: ``decoder``, ``encoder``, ``vit``, ``dit`` (transformers) and ``cnn``."""

    name: str
    family: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    vocab: int
    gated: bool = True  # gated MLP: three matrices instead of two
    tied: bool = False  # the output layer shares the embedding
    parallel_block: bool = False  # attention and MLP side by side
    causal: bool = True
    qkv_bias: bool = False
    out_bias: bool = False  # a bias on the attention output
    bias: bool = False  # biases on every linear layer
    norm_params: int = 1  # vectors per norm: 1 (RMSNorm) or 2 (LayerNorm)
    norms_per_layer: int = 2
    qk_norm: bool = False
    learned_positions: int = 0  # length of a learned position table, 0 if none
    token_types: int = 0
    window: int = 0  # sliding attention window in tokens, 0 for full attention
    global_every: int = 1  # with a window: every n-th layer attends in full (1: all do, 0: none does)
    mixer: str = "window"  # those layers: "window", "linear" (a state of its size) or "sparse" (so many picked tokens)
    experts: Experts | None = None
    latent: Latent | None = None
    mtp_layers: int = 0  # extra multi-token-prediction layers
    pooler: bool = False  # BERT-style pooler and prediction head
    image: int = 0  # ViT, DiT, CNN: input side (latent side for DiT)
    patch: int = 0
    channels: int = 3
    classes: int = 0  # classifier outputs (ViT, CNN)
    cond_dim: int = 0  # DiT: width of the conditioning vector (adaLN)
    convs: tuple[Conv, ...] = field(default=())
    out_channels: int = 0  # DiT: channels predicted (noise, and variance where learned)
    embedding_norm: bool = False  # a norm right after the embedding (BERT, BLOOM)
    final_norm: bool = True  # a norm after the last layer
    head_bias: bool = False  # the output layer has a bias
    sinks: bool = False  # one learned attention sink per head (gpt-oss)
    published_params: float = 0.0  # what the authors print, 0 if unknown
    source: str = ""
    source_date: str = ""  # when the source was published, YYYY-MM or YYYY-MM-DD
    context: int = 0  # longest sequence it takes, prompt and answer together; 0: not known
    native_precision: str = "bf16"  # what the weights are published in: one of SERVE_PRECISIONS or SPELLINGS

    @property
    def serve_precision(self) -> str:
        """The published precision as one that can be served in.

        >>> Model("m", "decoder", 1, 64, 1, 1, 64, 64, 10, native_precision="mxfp4").serve_precision
        'fp4'
        """
        return SPELLINGS.get(self.native_precision, self.native_precision)

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        if self.experts is None:
            return 0
        return max(0, self.layers - self.experts.first_dense) // self.experts.every

    @property
    def dense_layers(self) -> int:
        """Layers with a plain dense MLP; a CNN has none."""
        return 0 if self.family == "cnn" else self.layers - self.moe_layers

    @property
    def windowed_layers(self) -> int:
        """Layers that attend only within the sliding window."""
        if not self.window or self.global_every == 1:
            return 0
        full = self.layers // self.global_every if self.global_every else 0
        return self.layers - full

    @property
    def image_tokens(self) -> int:
        """Tokens one image makes: patches, plus the class token of a ViT; 1 for a CNN, 0 for text."""
        if self.family == "cnn":
            return 1
        if not self.patch:
            return 0
        return (self.image // self.patch) ** 2 + (1 if self.family == "vit" else 0)


PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
# weights as they are served; int8w and int4 are weights alone, the products run in 16 bits
SERVE_PRECISIONS = ("fp32", "bf16", "fp16", "fp8", "int8", "int8w", "int4", "fp4")
SPELLINGS = {"mxfp4": "fp4", "nvfp4": "fp4"}  # formats of 4-bit floats by their own names
KV_PRECISIONS = ("bf16", "fp16", "fp8", "int8", "fp32")
STORED_BYTES: dict[str, float] = {  # of one element, the scales of small formats not included
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int8w": 1.0, "int4": 0.5, "fp4": 0.5,
}  # fmt: skip
STATE_PRECISIONS = ("fp32", "bf16")
RECOMPUTE = ("auto", "none", "selective", "full", "offload")

# Optimizer moments kept per trained parameter, the master copy of the weights not included.
# Adafactor keeps a row and a column sum per matrix: close to nothing per parameter.
# Muon keeps one momentum for matrices.
OPTIMIZER_STATES: dict[str, int] = {
    "adafactor": 0,
    "adam": 2,
    "adamw": 2,
    "lamb": 2,
    "lars": 1,
    "lion": 1,
    "muon": 1,
    "sgd": 1,
}


@dataclass(frozen=True, slots=True)
class Train:
    """A training run: `steps` steps, each over `global_batch` samples of `sequence` tokens."""

    global_batch: int
    sequence: int
    steps: int = 1
    precision: str = "bf16"
    optimizer: str = "adamw"
    state_precision: str = "fp32"
    recompute: str = "auto"
    samples_unit: str = "sequences"  # or "images"
    lora_rank: int = 0  # 0: every weight is trained
    lora_targets: str = "attention"  # or "all": the linear layers that get adapters
    stack: str = ""  # software stack, empty: not said

    @property
    def tokens_per_step(self) -> int:
        """Tokens in one global batch."""
        return self.global_batch * self.sequence

    @property
    def tokens(self) -> int:
        """Tokens of the whole run.

        >>> Train(global_batch=4, sequence=1024, steps=10).tokens
        40960
        """
        return self.steps * self.tokens_per_step

    @property
    def samples(self) -> int:
        """Sequences or images of the whole run."""
        return self.steps * self.global_batch

    @property
    def optimizer_states(self) -> int:
        """Moments the optimizer keeps per trained parameter."""
        return OPTIMIZER_STATES[self.optimizer]


@dataclass(frozen=True, slots=True)
class Workload:
    """A named training run of a model."""

    name: str
    model: Model
    train: Train

    @property
    def unit(self) -> str:
        """What a run counts: tokens or images."""
        return "images" if self.train.samples_unit == "images" else "tokens"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        t = self.train
        return {
            "name": self.name,
            "model": self.model.name,
            "family": self.model.family,
            "global_batch": t.global_batch,
            "sequence": t.sequence,
            "steps": t.steps,
            "tokens": t.tokens,
            "precision": t.precision,
            "optimizer": t.optimizer,
            "recompute": t.recompute,
            "lora_rank": t.lora_rank,
            "unit": self.unit,
        }
