"""Names people type for models: Hugging Face ids and variants of them, read as a model and a precision.

A name is looked up as it stands; then without the words that say how the weights are stored, then without those that
say how the model was tuned, then without dates and versions. What was left out is kept, so that it can be said.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# words of a name -> the precision they imply; int4, nf4 and int8w are weights alone
STORED = {
    "fp8": "fp8", "float8": "fp8", "f8": "fp8", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "fp4": "fp4",
    "awq": "int4", "gptq": "int4", "int4": "int4", "4bit": "int4", "w4a16": "int4", "autoround": "int4", "gguf": "int4",
    "nf4": "nf4", "hqq": "int4", "w4afp8": "int4", "2bit": "int4", "3bit": "int4", "5bit": "int4", "6bit": "int4",
    "int8": "int8", "w8a8": "int8", "8bit": "int8w", "w8a16": "int8w",
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "f16": "fp16", "fp32": "fp32",
}  # fmt: skip
WEIGHTS_ALONE = ("gptq", "awq", "gguf", "bnb")  # beside int8 or q8 they say that only weights are so small
_STORED_NOISE = {
    "bnb", "dynamic", "block", "quantized", "quant", "kv", "exl2", "qat", "mlx", "onnx", "gguf",
    "unsloth", "ud", "ct2", "dwq",
}  # fmt: skip
TUNED = {
    "instruct", "it", "chat", "base", "hf", "thinking", "reasoning", "preview", "pt", "sft", "dpo", "meta", "nvidia",
    "diffusers", "dev", "text", "nonreasoning",
}  # fmt: skip
_BITS = re.compile(r"q(\d)")  # of llama.cpp: q4_k_m, q8_0
_DATED = re.compile(r"\d{4}|\d{6}|\d{8}|\d+k|v[01](\.\d+)*|1m|1\.0|latest")
_VERSION = re.compile(r"v\d+")
_ACTIVE = re.compile(r"a\d+b")  # of 30B-A3B
_STEM = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Match:
    """A known name that a text was read as, and the precision its words imply; "" where they imply none."""

    name: str
    precision: str = ""
    exact: bool = True  # the text is one of the model's own names


def folded(name: str) -> str:
    """Fold case and drop separators, so `Llama3.1_8B` and `llama-3.1-8b` meet."""
    return re.sub(r"[\s_\-]+", "", name.strip().lower())


def words(name: str) -> list[str]:
    """The words of a name without its organization.

    >>> words("RedHatAI/Llama-3.1-8B-Instruct-quantized.w8a8")
    ['llama', '3.1', '8b', 'instruct', 'quantized', 'w8a8']
    """
    last = name.strip().rstrip("/").rsplit("/", 1)[-1].lower()
    return [word for word in re.split(r"[\s_\-:]+|\.(?=[a-z])", last) if word]


def match(name: str, index: Mapping[str, str]) -> Match | None:
    """The name in `index` (folded spelling -> name) that a text means, if any.

    >>> index = {"qwen332b": "qwen3-32b", "mistral7bv0.3": "mistral-7b-v0.3", "deepseekr1": "deepseek-r1"}
    >>> match("Qwen/Qwen3-32B-FP8", index)
    Match(name='qwen3-32b', precision='fp8', exact=False)
    >>> match("mistralai/Mistral-7B-Instruct-v0.3", index).name, match("DeepSeek-R1-0528-NVFP4-v2", index).name
    ('mistral-7b-v0.3', 'deepseek-r1')
    """
    said = words(name)
    for spelling in (folded(name), "".join(said)):
        if spelling in index:
            return Match(index[spelling])
    precision, kept = _without_stored(said)
    tuned = [word for word in kept if word not in TUNED]
    undated = [word for i, word in enumerate(tuned) if not i or not _DATED.fullmatch(word)]
    for rest in (kept, tuned, undated):
        spelling = "".join(rest)
        if rest and spelling in index:
            return Match(index[spelling], precision, exact=False)
        sized = {
            known for key, known in index.items() if key.startswith(spelling) and _ACTIVE.fullmatch(key, len(spelling))
        }
        if rest and len(sized) == 1:  # without the parameters that a token uses
            return Match(sized.pop(), precision, exact=False)
    return None


def _without_stored(said: list[str]) -> tuple[str, list[str]]:
    """The precision that words imply, and the other words: a version after such a word is that of the quantization."""
    precision, kept, stored = "", [], False
    for i, word in enumerate(said):
        bits = _BITS.fullmatch(word)
        if i and bits:  # what follows says how: k_m, 0
            precision = "int8w" if int(bits[1]) >= 8 else "int4"
            break
        if i and (word in STORED or word in _STORED_NOISE):
            precision = precision if precision and word == "gguf" else STORED.get(word, precision)
            stored = True
        elif not (stored and _VERSION.fullmatch(word)):
            kept.append(word)
    if "unquantized" in said:  # tuned for few bits, stored in 16
        precision = "bf16"
    if precision == "int8" and any(word in WEIGHTS_ALONE for word in said):
        precision = "int8w"
    if precision == "int4" and "bnb" in said:  # bitsandbytes: NF4 unless its config says otherwise
        precision = "nf4"
    return precision, kept


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Known names that a text may have meant: of the same stem first, else those that are spelled alike.

    >>> nearest("qwen3-33b", ["qwen3-32b", "qwen2.5-7b", "dbrx"]), nearest("sdxk", ["sdxl", "dbrx"])
    (['qwen3-32b', 'qwen2.5-7b'], ['sdxl'])
    """
    text = "-".join(words(name)) or name.lower()
    stem = _STEM.match(text)
    names = sorted(set(known))
    related = [k for k in names if stem and len(stem[0]) > 2 and k.lower().startswith(stem[0])]
    ranked = sorted(related, key=lambda k: (-difflib.SequenceMatcher(None, text, k.lower()).ratio(), k))
    return ranked[:most] or difflib.get_close_matches(text, names, n=most, cutoff=0.6)
