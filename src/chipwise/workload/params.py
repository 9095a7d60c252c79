"""Exact parameter counts, by class, and bytes of the cache, from a model's dimensions."""

from __future__ import annotations

from dataclasses import dataclass, fields

from chipwise.workload.families import diffusion, recurrent, seq2seq, unet
from chipwise.workload.model import Experts, Model

_TIMESTEP_WIDTH = 256  # DiT: width of the sinusoidal timestep features (Peebles & Xie 2022, models.py)


@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of a model by class, summed over all layers."""

    layers: int = 0
    embedding: int = 0  # tokens and token types, or the patch projection and class token
    positions: int = 0
    attention: int = 0
    state_space: int = 0  # recurrent layers
    mlp: int = 0  # dense MLPs only
    experts: int = 0  # routed experts only
    router: int = 0
    shared_experts: int = 0
    norms: int = 0  # final and embedding norms included
    head: int = 0  # output layer, zero where it shares the embedding
    conditioning: int = 0  # DiT: adaLN projections, timestep and label embedders
    conv: int = 0
    mtp: int = 0  # multi-token-prediction layers, which most published counts leave out
    other: int = 0
    experts_active: int = 0  # of `experts`, those one token uses
    mtp_active: int = 0  # of `mtp`, those one token uses
    idle: int = 0  # that a pass leaves out: the other denoisers of a diffusion model
    norms_outside: int = 0  # of `norms`, those outside the layers
    conditioning_outside: int = 0  # of `conditioning`, that outside the layers
    other_outside: int = 0  # of `other`, that outside the layers

    @property
    def total(self) -> int:
        """Every parameter, multi-token-prediction layers included."""
        return sum(getattr(self, f.name) for f in fields(self) if f.name in _CLASSES)

    @property
    def main(self) -> int:
        """Every parameter but the multi-token-prediction layers: what model cards print."""
        return self.total - self.mtp

    @property
    def active(self) -> int:
        """Parameters one token uses: all but the routed experts it isn't sent to."""
        return self.total - self.experts + self.experts_active - self.mtp + self.mtp_active - self.idle

    @property
    def linear(self) -> int:
        """Weights of the linear layers inside the repeated layers, the router aside: those held in 4 bits."""
        return self.inside_layers - (self.norms - self.norms_outside) - self.router

    @property
    def inside_layers(self) -> int:
        """Parameters inside the repeated layers."""
        outside = self.norms_outside + self.conditioning_outside + self.other_outside
        return self.total - self.embedding - self.positions - self.head - self.mtp - outside

    @property
    def per_layer(self) -> float:
        """Parameters of the mean layer."""
        return self.inside_layers / self.layers if self.layers else 0.0

    @property
    def per_layer_dense(self) -> float:
        """Parameters of the mean layer without its routed experts."""
        return (self.inside_layers - self.experts) / self.layers if self.layers else 0.0

    @property
    def per_layer_experts(self) -> float:
        """Routed-expert parameters of the mean layer."""
        return self.experts / self.layers if self.layers else 0.0

    def by_class(self) -> dict[str, int]:
        """The classes that aren't zero, in reading order."""
        return {name: n for name in _CLASSES if (n := getattr(self, name))}


_CLASSES = (
    "embedding", "positions", "attention", "state_space", "mlp", "experts", "router", "shared_experts",
    "norms", "head", "conditioning", "conv", "mtp", "other",
)  # fmt: skip


def count(model: Model) -> Params:
    """Count a model's parameters by class.

    >>> from chipwise.workload.presets import preset
    >>> count(preset("llama-3.1-8b")).total
    8030261248
    >>> p = count(preset("mixtral-8x7b"))
    >>> round(p.total / 1e9, 1), round(p.active / 1e9, 1)
    (46.7, 12.9)
    """
    if model.video:
        parts = diffusion.video_counts(model)
        whole = sum(n for name, n in parts.items() if name in _CLASSES)
        return Params(layers=model.layers, idle=whole - whole // model.video.denoisers, **parts)
    if model.joint:
        return Params(layers=model.layers, **diffusion.joint_counts(model))
    if model.unet:
        return Params(layers=model.layers, **unet.counts(model))
    if model.encoder:
        return Params(layers=model.layers, **seq2seq.counts(model))
    return _count_cnn(model) if model.family == "cnn" else _count_transformer(model)


def _count_cnn(m: Model) -> Params:
    features = m.convs[-1].c_out if m.convs else 0
    return Params(
        layers=m.layers,
        conv=sum(c.count * (c.c_in // c.groups) * c.c_out * c.kernel**2 for c in m.convs),
        norms=sum(c.count * 2 * c.c_out for c in m.convs),  # one batch norm after each convolution
        head=m.classes * (features + 1),
    )


def _count_transformer(m: Model) -> Params:
    d, moe = m.d_model, m.moe_layers
    norm = m.norm_params * d
    expert, router, shared = _moe_layer(m)
    norms_outside = norm * (int(m.final_norm) + int(m.embedding_norm))
    head, pooler = _head(m)
    conditioning, conditioning_outside = _conditioning(m)
    per_layer_norms = m.norms_per_layer * norm + _inner_norms(m)
    norms = m.layers * per_layer_norms
    if m.mlp_layers is not None:  # one norm before each mixer, one before each MLP
        norms = (m.layers + m.mlp_layers) * norm + m.attention_layers * _inner_norms(m)
    if m.family == "encoder" and m.embedding_norm and m.final_norm:  # the embedding's is the first layer's (ModernBERT)
        norms -= norm
    mtp, mtp_active = _mtp(m, per_layer_norms + m.heads * m.sinks, norm)
    used = m.experts.per_token if m.experts else 0
    return Params(
        layers=m.layers,
        embedding=_embedding(m),
        positions=_positions(m),
        attention=m.attention_layers * attention_layer(m),
        state_space=m.ssm.layers * recurrent.layer_params(d, m.ssm) if m.ssm else 0,
        mlp=m.dense_layers * mlp_width(m, m.d_ff),
        experts=moe * expert * _experts(m),
        router=moe * router,
        shared_experts=moe * shared,
        norms=norms + norms_outside,
        head=head,
        conditioning=m.layers * conditioning + conditioning_outside,
        mtp=mtp,
        other=m.layers * m.heads * m.sinks + pooler,
        experts_active=moe * expert * used,
        mtp_active=mtp_active,
        norms_outside=norms_outside,
        conditioning_outside=conditioning_outside,
        other_outside=pooler,
    )


def attention_layer(m: Model) -> int:
    """Parameters of one layer's attention: the projections and their biases, norms not included."""
    d, h = m.d_model, m.heads
    if m.latent:
        a = m.latent
        per_head = a.nope_dim + a.rope_dim
        q = d * a.q_rank + a.q_rank * h * per_head if a.q_rank else d * h * per_head
        kv = d * (a.kv_rank + a.rope_dim) + a.kv_rank * h * (a.nope_dim + a.v_dim)
        return q + kv + h * a.v_dim * d + _indexer(m)
    q_width, kv_width = h * m.head_dim, m.kv_heads * m.head_dim
    biases = (q_width + 2 * kv_width) * (m.bias or m.qkv_bias) + d * (m.bias or m.out_bias)
    return d * (q_width * (1 + m.gated_attention) + 2 * kv_width) + q_width * d + biases


def _indexer(m: Model) -> int:
    """Sparse attention's indexer: queries from the latent, one key, weights of the heads, a norm with bias."""
    if m.indexer is None:
        return 0
    i, rank = m.indexer, m.latent.q_rank if m.latent else m.d_model
    return rank * i.heads * i.dim + m.d_model * (i.dim + i.heads) + 2 * i.dim


def mlp_width(m: Model, width: int, d: int = 0) -> int:
    """Parameters of one MLP of the given inner width, biases included; `d`: the width it works in, if not its own."""
    up, d = 2 if m.gated else 1, d or m.d_model
    return (up + 1) * d * width + (up * width + d) * m.bias


def _experts(m: Model) -> int:
    return m.experts.count if m.experts else 0


def _moe_layer(m: Model) -> tuple[int, int, int]:
    """One routed expert, the router and the shared experts of one MoE layer."""
    e: Experts | None = m.experts
    if e is None:
        return 0, 0, 0
    shared = mlp_width(m, e.shared_d_ff) + m.d_model * e.shared_gate if e.shared_d_ff else 0
    shared += 2 * m.d_model * e.latent_dim  # every token is projected to the experts' width and back
    return mlp_width(m, e.d_ff, e.latent_dim), m.d_model * e.count + e.count * (m.bias or e.router_bias), shared


def _inner_norms(m: Model) -> int:
    """Norms inside one layer's attention: on queries and keys, or on the latent vectors."""
    latent = m.latent.q_rank + m.latent.kv_rank if m.latent else 0
    return latent + (2 * m.head_dim if m.qk_norm else 0)


def _embedding(m: Model) -> int:
    if m.patch:
        class_token = m.d_model if m.family == "vit" else 0
        return m.d_model * (m.channels * m.patch**2 + 1) + class_token
    return (m.vocab + m.token_types) * m.d_model


def _positions(m: Model) -> int:
    """A ViT learns one position per token; a DiT's are fixed sines, stored but never trained."""
    if m.patch:
        return m.image_tokens * m.d_model
    return m.learned_positions * m.d_model


def _head(m: Model) -> tuple[int, int]:
    """The output layer and, for BERT, the pooler with its next-sentence classifier."""
    d = m.d_model
    if m.family == "vit":
        return m.classes * (d + 1), 0
    if m.family == "dit":
        return m.patch**2 * m.out_channels * (d + 1), 0
    if not m.vocab_head:
        return 0, (d * d + d) if m.pooler else 0
    head = (0 if m.tied else m.vocab * d) + (m.vocab if m.head_bias else 0)
    if m.family == "encoder":  # masked-language-model head: dense, norm, then the (tied) vocabulary
        head += d * d + d * m.bias + d * m.norm_params
    return head, (d * d + d + 2 * d + 2) if m.pooler else 0


def _conditioning(m: Model) -> tuple[int, int]:
    """DiT: the adaLN projection of one block; the embedders and the final adaLN outside them."""
    if m.family != "dit":
        return 0, 0
    d, c = m.d_model, m.cond_dim or m.d_model
    timestep = (_TIMESTEP_WIDTH + 1) * c + (c + 1) * c
    labels = (m.classes + 1) * c if m.classes else 0  # one more for "no label"
    return 6 * d * (c + 1), timestep + labels + 2 * d * (c + 1)


def _mtp(m: Model, norms: int, norm: int) -> tuple[int, int]:
    """Multi-token-prediction layers (all parameters, those one token uses); embedding and head are shared.

    Each is one more layer, a projection from two hidden vectors to one, and three norms
    (DeepSeek-V3 report, arXiv:2412.19437, section 2.2).
    """
    if not m.mtp_layers:
        return 0, 0
    expert, router, shared = _moe_layer(m)
    always = attention_layer(m) + norms + 2 * m.d_model**2 + 3 * norm
    if m.experts is None:
        each = always + mlp_width(m, m.d_ff)
        return m.mtp_layers * each, m.mtp_layers * each
    always += router + shared
    return (
        m.mtp_layers * (always + expert * m.experts.count),
        m.mtp_layers * (always + expert * m.experts.per_token),
    )


def lora_params(model: Model, rank: int, targets: str = "attention") -> int:
    """Trained parameters of rank-`rank` adapters on the attention projections, or on every linear layer.

    >>> from chipwise.workload.presets import preset
    >>> lora_params(preset("llama-2-70b"), 16)  # q, k, v and o of 80 layers
    65536000
    """
    m, d = model, model.d_model
    special = _lora_pairs(m)
    if special is not None:
        return rank * sum((i + o) * times for i, o, times in special)
    if m.latent:
        a = m.latent
        per_head = a.nope_dim + a.rope_dim
        pairs = [(d, a.q_rank), (a.q_rank, m.heads * per_head)] if a.q_rank else [(d, m.heads * per_head)]
        pairs += [(d, a.kv_rank + a.rope_dim), (a.kv_rank, m.heads * (a.nope_dim + a.v_dim))]
        pairs += [(m.heads * a.v_dim, d)]
    else:
        q_width, kv_width = m.heads * m.head_dim, m.kv_heads * m.head_dim
        pairs = [(d, q_width), (d, kv_width), (d, kv_width), (q_width, d)]
    attention = m.attention_layers * rank * sum(i + o for i, o in pairs)
    attention += rank * sum((i + o) * times for i, o, times in recurrent.lora_pairs(m))
    if targets == "attention":
        return attention
    matrices = 3 if m.gated else 2
    mlp = m.dense_layers * matrices * (d + m.d_ff)
    if m.experts:
        e = m.experts
        mlp += m.moe_layers * matrices * e.count * (d + e.d_ff)
        mlp += m.moe_layers * matrices * (d + e.shared_d_ff) if e.shared_d_ff else 0
    return attention + rank * mlp


def _lora_pairs(m: Model) -> list[tuple[int, int, int]] | None:
    """The adapted layers of a family with attentions of several kinds; None for plain transformers."""
    if m.joint or m.video:
        return diffusion.lora_pairs(m)
    if m.unet:
        return unet.lora_pairs(m)
    return seq2seq.lora_pairs(m) if m.encoder else None


def kv_width(model: Model) -> int:
    """Elements that one layer's attention keeps of one token: keys and values, or the latent they are made from."""
    if model.latent:
        return model.latent.kv_rank + model.latent.rope_dim
    return 2 * model.kv_heads * model.head_dim


def kv_bytes(model: Model, tokens: float, bytes_per_element: float) -> float:
    """Bytes of the cache of one sequence; layers with a window hold only that, and only models that write keep a cache.

    >>> from chipwise.workload.presets import preset
    >>> kv_bytes(preset("llama-3.1-70b"), 1, 2)  # 2 x 80 layers x 8 heads x 128 x 2 bytes
    327680.0
    >>> kv_bytes(preset("deepseek-v3"), 1, 2)  # 61 layers x (512 + 64) x 2 bytes
    70272.0
    """
    if not model.writes:
        return 0.0
    if model.ssm:
        state = model.ssm.layers * recurrent.state_bytes(model.ssm)
        return float(model.attention_layers * tokens * kv_width(model) * bytes_per_element + state)
    windowed = model.windowed_layers
    held = (model.written_layers - windowed) * tokens + (windowed * min(tokens, model.window) if windowed else 0.0)
    return float(held * kv_width(model) * bytes_per_element)
