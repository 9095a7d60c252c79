"""Count parameters and FLOPs of the presets by building the classes of transformers and diffusers on the meta device.

Their code is not ours: a class built from a preset's dimensions has the parameters that its authors gave it, so the
count is a check of the formulas of `chipwise.workload`. A forward pass over meta tensors counts FLOPs the same way.
Nothing is downloaded and no weight takes memory.

    python scripts/reference_models.py tests/integrity/reference_models.csv

needs transformers >= 5.22 and diffusers >= 0.42 beside PyTorch; the file says which versions counted.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import reference_decoders as decoders
import reference_others as others
import torch
from torch.utils.flop_counter import FlopCounterMode

from chipwise.workload.model import Model
from chipwise.workload.presets import preset, preset_names

# how the names begin that have no class of their architecture in either library
ABSENT = ("palm-", "resnext-", "mpt-")  # MPT's class in transformers has neither the biases nor the positions


# how names begin -> the class; the longest beginning decides
BUILDERS: dict[str, Callable[[Model], Any]] = {
    "all-minilm": others.bert,
    "bge-": others.bert,
    "bert-": others.bert,
    "bge-m3": others.xlm_roberta,
    "xlm-roberta": others.xlm_roberta,
    "multilingual-e5": others.xlm_roberta,
    "modernbert": others.modernbert,
    "qwen3-embedding": others.backbone("Qwen3Config", "Qwen3Model"),
    "t5-": others.t5,
    "ul2": others.t5,
    "whisper": others.whisper,
    "distil-whisper": others.whisper,
    "roberta": others.roberta,
    "distilbert": others.distilbert,
    "all-mpnet": others.mpnet,
    "multilingual-minilm": others.bert,
    "e5-mistral": others.backbone("MistralConfig", "MistralModel"),
    "embeddinggemma": others.backbone("Gemma3TextConfig", "Gemma3TextModel"),
    "vit-": others.vit,
    "resnet": others.resnet,
    "dit-": others.dit,
    "sdxl": others.unet,
    "sd1": others.unet,
    "sd2": others.unet,
    "sd3": others.sd3,
    "flux": others.flux,
    "qwen-image": others.qwen_image,
    "wan": others.wan,
    "gpt2": decoders.gpt2,
    "gpt3": decoders.gpt2,
    "megatron": decoders.gpt2,
    "opt-": decoders.opt,
    "bloom": decoders.bloom,
    "gpt-j": decoders.gpt_j,
    "deepseek-coder": decoders.llama,
    "deepseek-llm": decoders.llama,
    "deepseek-coder-v2": decoders.with_latent("DeepseekV2Config"),
    "deepseek-r1-0528-qwen3": decoders.of("Qwen3Config"),
    "qwen3-coder-next": decoders.linear("Qwen3NextConfig", "Qwen3NextForCausalLM"),
    "qwen1.5": decoders.of("Qwen2Config"),
    "qwen2-": decoders.of("Qwen2Config"),
    "llava": decoders.llama,
    "codestral": decoders.of("MistralConfig"),
    "pixtral": decoders.of("MistralConfig"),
    "glm-4-9b": decoders.of("GlmConfig", attention_bias=True),
    "yi-": decoders.llama,
    "starcoder2": decoders.of("Starcoder2Config"),
    "command-r": decoders.of("CohereConfig"),
    "mamba-": decoders.mamba,
    "command-r-plus": decoders.of("CohereConfig", use_qk_norm=True),
    "granite-3": decoders.of("GraniteConfig"),
    "olmo-3": decoders.of("Olmo3Config"),
    "gpt-neox": decoders.of("GPTNeoXConfig"),
    "pythia": decoders.of("GPTNeoXConfig"),
    "falcon-": decoders.falcon,
    "falcon3": decoders.llama,
    "llama-": decoders.llama,
    "codellama": decoders.llama,
    "tiny-llama": decoders.llama,
    "smollm2": decoders.llama,
    "salamandra": decoders.llama,
    "deepseek-r1-distill-llama": decoders.llama,
    "deepseek-r1-distill-qwen": decoders.of("Qwen2Config"),
    "llama-4": decoders.llama4,
    "mistral": decoders.of("MistralConfig"),
    "ministral": decoders.of("MistralConfig"),
    "mathstral": decoders.of("MistralConfig"),
    "mixtral": decoders.mixture("MixtralConfig"),
    "dbrx": decoders.dbrx,
    "gemma-": decoders.of("GemmaConfig"),
    "codegemma": decoders.of("GemmaConfig"),
    "gemma-2-": decoders.of("Gemma2Config"),
    "gemma-3-": decoders.of("Gemma3TextConfig"),
    "olmo-": decoders.of("OlmoConfig"),
    "olmo-2": decoders.of("Olmo2Config"),
    "qwen2.5": decoders.of("Qwen2Config"),
    "qwq": decoders.of("Qwen2Config"),
    "mimo": decoders.of("Qwen2Config"),
    "qwen3-": decoders.of("Qwen3Config"),
    "qwen3-30b": decoders.mixture("Qwen3MoeConfig"),
    "qwen3-235b": decoders.mixture("Qwen3MoeConfig"),
    "qwen3-coder": decoders.mixture("Qwen3MoeConfig"),
    "qwen3-vl-235b": decoders.mixture("Qwen3MoeConfig"),
    "qwen3-vl-30b": decoders.mixture("Qwen3MoeConfig"),
    "qwen3-next": decoders.linear("Qwen3NextConfig", "Qwen3NextForCausalLM"),
    "qwen3.5-": decoders.linear("Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM"),
    "qwen3.5-27b": decoders.linear("Qwen3_5TextConfig", "Qwen3_5ForCausalLM"),
    "qwen3.5-0.8b": decoders.linear("Qwen3_5TextConfig", "Qwen3_5ForCausalLM"),
    "qwen3.5-2b": decoders.linear("Qwen3_5TextConfig", "Qwen3_5ForCausalLM"),
    "qwen3.5-4b": decoders.linear("Qwen3_5TextConfig", "Qwen3_5ForCausalLM"),
    "qwen3.5-9b": decoders.linear("Qwen3_5TextConfig", "Qwen3_5ForCausalLM"),
    "deepseek-v2": decoders.with_latent("DeepseekV2Config"),
    "deepseek-v3": decoders.with_latent("DeepseekV3Config"),
    "deepseek-v3.2": decoders.with_latent("DeepseekV32Config"),
    "kimi-k2": decoders.with_latent("DeepseekV3Config"),
    "glm-5": decoders.with_latent("GlmMoeDsaConfig"),
    "glm-4.7-flash": decoders.with_latent("Glm4MoeLiteConfig"),
    "glm-4.5": decoders.mixture("Glm4MoeConfig", attention_bias=True, use_qk_norm=True),
    "glm-4.5-air": decoders.mixture("Glm4MoeConfig", attention_bias=True),
    "minimax-m2": decoders.mixture("MiniMaxM2Config"),
    "minimax-m3": decoders.minimax_m3,
    "gpt-oss": decoders.mixture("GptOssConfig"),
    "phi-1": decoders.of("PhiConfig"),
    "phi-2": decoders.of("PhiConfig"),
    "phi-3": decoders.of("Phi3Config"),
    "phi-4": decoders.of("Phi3Config"),
    "phi-3.5-moe": decoders.mixture("PhimoeConfig", attention_bias=True, lm_head_bias=True),
    "smollm3": decoders.of("SmolLM3Config"),
    "nemotron-4": decoders.of("NemotronConfig"),
    "nemotron-": decoders.nemotron_h,
    "mamba2": decoders.mamba2,
    "bamba": decoders.bamba,
    "jamba": decoders.jamba,
}


def built(m: Model) -> tuple[Any, Any] | None:
    """The library's module of a preset, and the inputs of a pass; None where neither library has the architecture."""
    starts = [start for start in BUILDERS if m.name.startswith(start)]
    if m.name.startswith(ABSENT) or not starts:
        return None
    with torch.device("meta"):
        made = BUILDERS[max(starts, key=len)](m)
    return made if isinstance(made, tuple) else (made, None)


def stored(module: Any) -> int:
    """Parameters, and the table of positions that SD3 stores beside them."""
    tables = sum(b.numel() for name, b in module.named_buffers() if name == "pos_embed.pos_embed" and b.dim() > 2)
    return sum(p.numel() for p in module.parameters()) + (tables if "SD3" in type(module).__name__ else 0)


def flops(module: Any, inputs: dict[str, Any]) -> int:
    """FLOPs of one forward pass over meta tensors."""
    counter = FlopCounterMode(display=False)
    with torch.device("meta"), torch.no_grad(), counter:
        module.eval()(**inputs)
    return int(counter.get_total_flops())


def rows() -> list[dict[str, Any]]:
    """One row for each preset that a library can build."""
    made = []
    for name in preset_names():
        pair = built(preset(name))
        if pair is None:
            print(f"{name}: no class", file=sys.stderr)
            continue
        module, inputs = pair
        library = type(module).__module__.split(".")[0]
        count = stored(module)
        passed = flops(module, inputs) if inputs else ""
        row = {"name": name, "library": library, "version": version(library), "class": type(module).__name__,
               "parameters": count, "pass_flops": passed}  # fmt: skip
        print(*row.values(), file=sys.stderr)
        made.append(row)
    return made


def main() -> None:
    """Write the table to the file that is named."""
    warnings.simplefilter("ignore")
    table = rows()
    with Path(sys.argv[1]).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
