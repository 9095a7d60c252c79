"""Encoders, encoder-decoders, vision and diffusion models of transformers and diffusers; see reference_models.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffusers
import torch
import transformers
from reference_decoders import sizes

from chipwise.workload.model import Model

Built = tuple[Any, Any]  # a module on the meta device, and what its forward pass takes or None


def bert(m: Model) -> Built:
    """The class of bert models with a preset's dimensions."""
    config = transformers.BertConfig(**sizes(m, max_position_embeddings=m.learned_positions))
    if m.vocab_head:
        return transformers.BertForPreTraining(config), None
    return transformers.BertModel(config), {"input_ids": torch.empty(1, m.learned_positions, dtype=torch.long)}


def roberta(m: Model) -> Any:
    """The class of roberta models with a preset's dimensions."""
    keys = sizes(m, max_position_embeddings=m.learned_positions, type_vocab_size=m.token_types, pad_token_id=1)
    return transformers.RobertaModel(transformers.RobertaConfig(**keys))


def distilbert(m: Model) -> Any:
    """The class of distilbert models with a preset's dimensions."""
    return transformers.DistilBertModel(
        transformers.DistilBertConfig(n_layers=m.layers, dim=m.d_model, n_heads=m.heads, hidden_dim=m.d_ff,
                                      vocab_size=m.vocab, max_position_embeddings=m.learned_positions)
    )  # fmt: skip


def mpnet(m: Model) -> Any:
    """The class of mpnet models with a preset's dimensions."""
    return transformers.MPNetModel(
        transformers.MPNetConfig(**sizes(m, max_position_embeddings=m.learned_positions, pad_token_id=1))
    )


def backbone(name: str, cls: str) -> Callable[[Model], Any]:
    """A decoder's layers without its output layer, as embedding models have them."""
    return lambda m: getattr(transformers, cls)(getattr(transformers, name)(**sizes(m)))


def xlm_roberta(m: Model) -> Any:
    """The class of xlm-roberta models with a preset's dimensions."""
    config = transformers.XLMRobertaConfig(**sizes(m, max_position_embeddings=m.learned_positions + 2, pad_token_id=1))
    return transformers.XLMRobertaModel(config, add_pooling_layer=False)


def modernbert(m: Model) -> Any:
    """The class of modernbert models with a preset's dimensions."""
    return transformers.ModernBertForMaskedLM(
        transformers.ModernBertConfig(**sizes(m, global_attn_every_n_layers=m.global_every, tie_word_embeddings=True))
    )


def t5(m: Model) -> Any:
    """The class of t5 models with a preset's dimensions."""
    assert m.encoder is not None
    config = transformers.T5Config(
        d_model=m.d_model, d_kv=m.head_dim, d_ff=m.d_ff, num_layers=m.encoder.layers, vocab_size=m.vocab,
        num_decoder_layers=m.layers - m.encoder.layers, num_heads=m.heads,
        relative_attention_num_buckets=m.encoder.relative_buckets,
        feed_forward_proj="gated-gelu" if m.gated else "relu",
    )  # fmt: skip
    module = transformers.T5ForConditionalGeneration(config)
    if not m.tied:  # the output layer alone: the class would separate both parts' embeddings as well
        module.lm_head = torch.nn.Linear(m.d_model, m.vocab, bias=False)
    return module


def whisper(m: Model) -> Built:
    """The class of whisper models with a preset's dimensions."""
    e = m.encoder
    assert e is not None
    module = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            d_model=m.d_model, encoder_layers=e.layers, decoder_layers=m.layers - e.layers, vocab_size=m.vocab,
            encoder_attention_heads=m.heads, decoder_attention_heads=m.heads, encoder_ffn_dim=m.d_ff,
            decoder_ffn_dim=m.d_ff, num_mel_bins=e.mels, max_source_positions=e.tokens,
            max_target_positions=m.learned_positions,
        )
    )  # fmt: skip
    return module, {
        "input_features": torch.empty(1, e.mels, 2 * e.tokens), "decoder_input_ids": torch.empty(1, 1, dtype=torch.long)
    }  # fmt: skip


def vit(m: Model) -> Built:
    """The class of vit models with a preset's dimensions."""
    config = transformers.ViTConfig(
        **sizes(m), image_size=m.image, patch_size=m.patch, num_channels=m.channels, num_labels=m.classes
    )
    return transformers.ViTForImageClassification(config), {"pixel_values": torch.empty(1, 3, m.image, m.image)}


def resnet(m: Model) -> Built:
    """The class of resnet models with a preset's dimensions."""
    blocks = {"resnet-18": [2, 2, 2, 2], "resnet-50": [3, 4, 6, 3], "resnet-101": [3, 4, 23, 3],
              "resnet-152": [3, 8, 36, 3]}[m.name]  # fmt: skip
    kind, widths = ("basic", [64, 128, 256, 512]) if m.name == "resnet-18" else ("bottleneck", [256, 512, 1024, 2048])
    config = transformers.ResNetConfig(layer_type=kind, depths=blocks, hidden_sizes=widths, num_labels=m.classes)
    return transformers.ResNetForImageClassification(config), {"pixel_values": torch.empty(1, 3, m.image, m.image)}


def dit(m: Model) -> Built:
    """The class of dit models with a preset's dimensions."""
    module = diffusers.DiTTransformer2DModel(
        num_attention_heads=m.heads, attention_head_dim=m.head_dim, in_channels=m.channels, num_layers=m.layers,
        out_channels=m.out_channels, sample_size=m.image, patch_size=m.patch, num_embeds_ada_norm=m.classes,
    )  # fmt: skip
    for block in module.transformer_blocks[1:]:  # the authors' code has one embedder for all blocks
        block.norm1.emb = module.transformer_blocks[0].norm1.emb
    return module, {
        "hidden_states": torch.empty(1, m.channels, m.image, m.image),
        "timestep": torch.empty(1, dtype=torch.long), "class_labels": torch.empty(1, dtype=torch.long),
    }  # fmt: skip


def unet(m: Model) -> Built:
    """The class of unet models with a preset's dimensions."""
    u = m.unet
    assert u is not None
    down = tuple("CrossAttnDownBlock2D" if depth else "DownBlock2D" for depth in u.depth)
    up = tuple("CrossAttnUpBlock2D" if depth else "UpBlock2D" for depth in reversed(u.depth))
    added = {"addition_embed_type": "text_time", "addition_time_embed_dim": 256,
             "projection_class_embeddings_input_dim": u.added_dim} if u.added_dim else {}  # fmt: skip
    module = diffusers.UNet2DConditionModel(
        sample_size=m.image, in_channels=m.channels, out_channels=m.channels, down_block_types=down, up_block_types=up,
        block_out_channels=u.channels, layers_per_block=u.blocks, cross_attention_dim=u.text_dim,
        transformer_layers_per_block=tuple(max(depth, 1) for depth in u.depth), use_linear_projection=True,
        attention_head_dim=tuple(c // 64 for c in u.channels), **added,
    )  # fmt: skip
    inputs: dict[str, Any] = {
        "sample": torch.empty(1, m.channels, m.image, m.image), "timestep": torch.empty(1),
        "encoder_hidden_states": torch.empty(1, u.text_tokens, u.text_dim),
    }  # fmt: skip
    if added:
        text, sizes = torch.empty(1, u.added_dim - 6 * 256), torch.empty(1, 6)
        inputs["added_cond_kwargs"] = {"text_embeds": text, "time_ids": sizes}
    return module, inputs


def sd3(m: Model) -> Built:
    """The class of sd3 models with a preset's dimensions."""
    j = m.joint
    assert j is not None
    module = diffusers.SD3Transformer2DModel(
        sample_size=m.image, patch_size=m.patch, in_channels=m.channels, num_layers=j.double,
        attention_head_dim=m.head_dim, num_attention_heads=m.heads, joint_attention_dim=j.text_dim,
        caption_projection_dim=m.d_model, pooled_projection_dim=j.pooled_dim, out_channels=m.channels,
        pos_embed_max_size=j.position_side, dual_attention_layers=tuple(range(j.dual)),
        qk_norm="rms_norm" if m.qk_norm else None,
    )  # fmt: skip
    return module, {
        "hidden_states": torch.empty(1, m.channels, m.image, m.image), "timestep": torch.empty(1),
        "encoder_hidden_states": torch.empty(1, j.text_tokens, j.text_dim),
        "pooled_projections": torch.empty(1, j.pooled_dim),
    }  # fmt: skip


def flux(m: Model) -> Built:
    """The class of flux models with a preset's dimensions."""
    j = m.joint
    assert j is not None
    inside, image = m.channels * m.patch**2, (m.image // m.patch) ** 2
    common = {"in_channels": inside, "num_layers": j.double, "num_single_layers": j.single,
              "attention_head_dim": m.head_dim, "num_attention_heads": m.heads, "joint_attention_dim": j.text_dim,
              "guidance_embeds": j.guidance}  # fmt: skip
    inputs = {"hidden_states": torch.empty(1, image, inside), "timestep": torch.empty(1),
              "encoder_hidden_states": torch.empty(1, j.text_tokens, j.text_dim)}  # fmt: skip
    if j.guidance:
        inputs["guidance"] = torch.empty(1)
    if j.shared_modulation:
        module = diffusers.Flux2Transformer2DModel(patch_size=1, mlp_ratio=m.d_ff / m.d_model, **common)
        ids = {"img_ids": torch.empty(image, 4), "txt_ids": torch.empty(j.text_tokens, 4)}
        return module, {**inputs, **ids}
    module = diffusers.FluxTransformer2DModel(patch_size=1, pooled_projection_dim=j.pooled_dim, **common)
    ids = {"img_ids": torch.empty(image, 3), "txt_ids": torch.empty(j.text_tokens, 3)}
    return module, {**inputs, **ids, "pooled_projections": torch.empty(1, j.pooled_dim)}


def qwen_image(m: Model) -> Built:
    """The class of qwen-image models with a preset's dimensions."""
    j = m.joint
    assert j is not None
    module = diffusers.QwenImageTransformer2DModel(
        patch_size=m.patch, in_channels=m.channels * m.patch**2, out_channels=m.channels, num_layers=j.double,
        attention_head_dim=m.head_dim, num_attention_heads=m.heads, joint_attention_dim=j.text_dim,
    )  # fmt: skip
    side = m.image // m.patch
    return module, {
        "hidden_states": torch.empty(1, side * side, m.channels * m.patch**2), "timestep": torch.empty(1),
        "encoder_hidden_states": torch.empty(1, j.text_tokens, j.text_dim), "img_shapes": [[(1, side, side)]],
        "encoder_hidden_states_mask": torch.ones(1, j.text_tokens, dtype=torch.long),
    }  # fmt: skip


def wan(m: Model) -> Built:
    """The class of wan models with a preset's dimensions."""
    v = m.video
    assert v is not None
    module = diffusers.WanTransformer3DModel(
        num_attention_heads=m.heads, attention_head_dim=m.head_dim, in_channels=m.channels,
        out_channels=m.out_channels or m.channels, ffn_dim=m.d_ff, num_layers=m.layers, text_dim=v.text_dim,
        image_dim=v.image_dim or None, added_kv_proj_dim=m.d_model if v.image_dim else None,
    )  # fmt: skip
    inputs = {
        "hidden_states": torch.empty(1, m.channels, v.frames, m.image, v.width), "timestep": torch.empty(1),
        "encoder_hidden_states": torch.empty(1, v.text_tokens, v.text_dim),
    }  # fmt: skip
    if v.image_dim:
        inputs["encoder_hidden_states_image"] = torch.empty(1, v.image_tokens, v.image_dim)
    return module, inputs
