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
    latent_dim: int = 0  # routed experts work in this width, projected to and from it; 0: in the model's own
    shared_gate: bool = False  # a learned gate on the shared experts' output (Qwen)


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek): low-rank queries and keys/values."""

    q_rank: int  # 0: queries are not compressed
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int


@dataclass(frozen=True, slots=True)
class Indexer:
    """Picks the tokens that sparse attention reads (DeepSeek-V3.2): small heads that score every earlier token."""

    heads: int
    dim: int


@dataclass(frozen=True, slots=True)
class StateSpace:
    """Recurrent layers in place of attention: a state of fixed size instead of keys and values."""

    layers: int  # of the model's layers
    heads: int  # of the values; the inner width is heads x head_dim
    head_dim: int
    state: int  # width of the state of one channel; of a delta net the width of a key
    groups: int = 1  # that share input and output projections of the state; of a delta net the key heads
    conv: int = 4  # kernel of the short convolution before it
    kind: str = "mamba2"  # "mamba1", "mamba2" or "delta" (gated delta net)
    dt_rank: int = 0  # mamba1: rank of the step-size projection

    @property
    def inner(self) -> int:
        """Inner width."""
        return self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class EncoderPart:
    """The encoder of an encoder-decoder, whose decoder reads it by cross-attention."""

    layers: int  # of the model's layers; the others are the decoder's
    tokens: int = 0  # it always reads so many (Whisper: the frames of 30 s); 0: as many as the sequence has
    mels: int = 0  # audio: channels of the spectrogram that two convolutions read
    relative_buckets: int = 0  # relative position biases, learned for each head (T5)


@dataclass(frozen=True, slots=True)
class Joint:
    """A multimodal diffusion transformer (MMDiT): text and image tokens attend to each other."""

    double: int  # blocks with weights of their own for text and for image tokens
    single: int = 0  # blocks with the same weights for both (FLUX)
    text_tokens: int = 0
    text_dim: int = 0  # width of the text encoder's tokens
    pooled_dim: int = 0  # width of the pooled text vector beside the time step; 0: none
    dual: int = 0  # blocks with a second attention among image tokens (SD3.5-medium)
    text_ends: bool = False  # the last block drops the text tokens
    guidance: bool = False  # the guidance scale is an input
    shared_modulation: bool = False  # blocks of a kind share their adaLN projections (FLUX.2)
    position_side: int = 0  # side of a stored table of positions, 0: rotary


@dataclass(frozen=True, slots=True)
class Video:
    """A video diffusion transformer (Wan): patches of all frames attend to each other and to the text."""

    frames: int  # of the latent
    width: int  # of the latent; `image` is its height
    text_tokens: int = 512
    text_dim: int = 4096
    image_tokens: int = 0  # tokens of a conditioning image that a cross-attention of its own reads
    image_dim: int = 0
    denoisers: int = 1  # models held, of which each pass uses one (Wan 2.2: high and low noise)


@dataclass(frozen=True, slots=True)
class UNet:
    """A diffusion U-Net with attention to text at some of its resolutions."""

    channels: tuple[int, ...]  # of each resolution, each half as wide as the one before
    depth: tuple[int, ...]  # transformer blocks after each residual block; 0: none at that resolution
    blocks: int = 2  # residual blocks on the way down at each resolution; one more on the way up
    text_tokens: int = 77
    text_dim: int = 2048
    added_dim: int = 0  # width of what is embedded beside the time step (pooled text, sizes)
    middle: int | None = None  # transformer blocks in the middle; None: as many as at the last resolution


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
    joins: int = 0  # of them, whose results are added to another branch


@dataclass(frozen=True, slots=True, repr=False)
class Model:
    """A model. Its family decides which operations it has: see `chipwise.workload.build.FAMILIES`."""

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
    ssm: StateSpace | None = None
    mlp_layers: int | None = None  # layers with an MLP or experts, None: every one
    gated_attention: bool = False  # a gate as wide as the queries on attention's output
    indexer: Indexer | None = None
    encoder: EncoderPart | None = None
    joint: Joint | None = None
    video: Video | None = None
    unet: UNet | None = None
    vocab_head: bool = True  # tokens are predicted; False: the hidden vectors are the output (embedding models)
    native_precision: str = "bf16"  # what the weights are published in: one of SERVE_PRECISIONS or SPELLINGS
    taken_from: str = ""  # the name that was asked for, where the model was found by leaving parts of it out

    def __repr__(self) -> str:
        return f"<Model {self.name!r}>"

    @property
    def serve_precision(self) -> str:
        """The published precision as one that can be served in.

        >>> Model("m", "decoder", 1, 64, 1, 1, 64, 64, 10, native_precision="mxfp4").serve_precision
        'fp4'
        """
        return SPELLINGS.get(self.native_precision, self.native_precision)

    @property
    def denoises(self) -> bool:
        """Whether it answers in several passes over a noisy image or video."""
        return self.family in DENOISERS

    @property
    def picture_unit(self) -> str:
        """What a sample is called that has pixels: images, or videos of several frames; empty for text and sound."""
        return "videos" if self.video else "images" if self.image_tokens or self.unet else ""

    @property
    def pictures(self) -> str:
        """The same in words, with the frames of a video as the model sees them."""
        return f"videos of {self.video.frames} latent frames" if self.video else self.picture_unit

    @property
    def kind(self) -> str:
        """The family, and that of a decoder with recurrent layers apart."""
        if self.ssm is None:
            return self.family
        return "ssm-hybrid" if self.attention_layers else "ssm"

    @property
    def plain(self) -> bool:
        """Whether a plain transformer or CNN describes it: what reference programs are written for."""
        parts = (self.ssm, self.gated_attention, self.indexer, self.encoder, self.joint, self.video, self.unet)
        special = self.experts is not None and (self.experts.latent_dim or self.experts.shared_gate)
        return not any(parts) and not special and self.mlp_layers is None and self.vocab_head

    @property
    def writes(self) -> bool:
        """Whether it answers token by token, with a cache of what came before."""
        return self.family in ("decoder", "encoder-decoder")

    @property
    def read_layers(self) -> int:
        """Layers that a prompt passes: of an encoder-decoder its encoder's."""
        return self.encoder.layers if self.encoder else self.layers

    @property
    def written_layers(self) -> int:
        """Layers that a token of an answer passes: of an encoder-decoder its decoder's."""
        return self.layers - self.encoder.layers if self.encoder else self.layers

    @property
    def causal_prompt(self) -> bool:
        """Whether a prompt's tokens see only those before them; an encoder's see all."""
        return self.causal and self.encoder is None

    @property
    def fixed_input(self) -> int:
        """Tokens that every request brings, whatever is asked: an image's, or the frames of 30 s of audio; 0: any."""
        return self.image_tokens or (self.encoder.tokens if self.encoder else 0)

    @property
    def attention_layers(self) -> int:
        """Layers that attend, in a window or in full."""
        return self.layers - (self.ssm.layers if self.ssm else 0)

    @property
    def moe_layers(self) -> int:
        """Layers whose MLP is a mixture of experts."""
        if self.experts is None:
            return 0
        having = self.layers if self.mlp_layers is None else self.mlp_layers
        return max(0, having - self.experts.first_dense) // self.experts.every

    @property
    def dense_layers(self) -> int:
        """Layers with a plain dense MLP; a CNN has none."""
        having = self.layers if self.mlp_layers is None else self.mlp_layers
        return 0 if self.family in CONVOLUTIONAL else having - self.moe_layers

    @property
    def windowed_layers(self) -> int:
        """Layers that attend only within the sliding window, or keep a state."""
        if self.ssm:
            return self.ssm.layers
        if not self.window or self.global_every == 1:
            return 0
        full = self.layers // self.global_every if self.global_every else 0
        return self.layers - full

    @property
    def image_tokens(self) -> int:
        """Tokens one image makes: patches, the class token of a ViT, the text beside them; 1 for a CNN, 0 for text."""
        if self.family in CONVOLUTIONAL:
            return 1
        if not self.patch:
            return 0
        if self.video:
            return self.video.frames * (self.image // self.patch) * (self.video.width // self.patch)
        if self.joint:
            return (self.image // self.patch) ** 2 + self.joint.text_tokens
        return (self.image // self.patch) ** 2 + (1 if self.family == "vit" else 0)


# fields that no reference program depends on: only `plain` models are compiled
UNWRITTEN = (
    "ssm", "mlp_layers", "gated_attention", "indexer", "encoder", "joint", "video", "unet", "vocab_head",
    "native_precision", "taken_from",
)  # fmt: skip
UNWRITTEN_EXPERTS = ("latent_dim", "shared_gate")
CONVOLUTIONAL = ("cnn", "unet")
PICTURES = ("images", "videos")  # samples that are counted as a whole
DENOISERS = ("dit", "mmdit", "video-dit", "unet")
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
# weights as they are served; int8w and int4 are weights alone, the products run in 16 bits
SERVE_PRECISIONS = ("fp32", "bf16", "fp16", "fp8", "int8", "int8w", "int4", "fp4")
SPELLINGS = {"mxfp4": "fp4", "nvfp4": "fp4", "nf4": "int4"}  # formats of four bits, which differ in values and scales
KV_PRECISIONS = ("bf16", "fp16", "fp8", "int8", "fp32")
STORED_BYTES: dict[str, float] = {  # of one element, the scales of small formats not included
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int8w": 1.0, "int4": 0.5, "fp4": 0.5,
}  # fmt: skip
STATE_PRECISIONS = ("fp32", "bf16")
BASES = ("nf4", "int4")  # formats of four bits in which a frozen base is held while its adapters train (QLoRA)
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
    samples_unit: str = "sequences"  # or one of PICTURES
    lora_rank: int = 0  # 0: every weight is trained
    lora_targets: str = "attention"  # or "all": the linear layers that get adapters
    lora_base: str = ""  # one of BASES: what the frozen linear layers are held in; "": the precision of the run
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


@dataclass(frozen=True, slots=True, repr=False)
class Workload:
    """A named training run of a model."""

    name: str
    model: Model
    train: Train

    def __repr__(self) -> str:
        return f"<Workload {self.name!r}>"

    @property
    def unit(self) -> str:
        """What a run counts: tokens, images or videos."""
        return self.train.samples_unit if self.train.samples_unit in PICTURES else "tokens"

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
            "lora_base": t.lora_base,
            "unit": self.unit,
        }
