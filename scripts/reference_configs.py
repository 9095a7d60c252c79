"""Count the parameters of every decoder of transformers by building its class from its own default config.

    python scripts/reference_configs.py tests/integrity/reference_configs.json

needs transformers >= 5.22 beside PyTorch. Nothing is downloaded and no weight takes memory. Kept are the configs that
`chipwise.workload.hf` reads, each with the parameters that the library's own class has.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

from chipwise.errors import ChipwiseError
from chipwise.workload.hf import model_from_config

WRAPPERS = ("gemma3", "got_ocr2", "moss_transcribe_diarize")  # with an encoder, which a text model does not count
WORDS = ("id2label", "label2id", "architectures", "rope_parameters", "transformers_version", "_name_or_path")


def plain(config: dict[str, Any]) -> dict[str, Any]:
    """What of a config says anything of the model's shape."""
    return {
        key: value
        for key, value in config.items()
        if value is not None and key not in WORDS and not key.endswith("_token_id") and not isinstance(value, float)
    }


def parameters(kind: str, config: Any) -> int | None:
    """Parameters of the class of a kind of model, or None where its default config builds none."""
    name = CLASSES[kind]
    try:
        with torch.device("meta"):
            model = getattr(transformers, name if isinstance(name, str) else name[0])(config)
    except Exception as error:  # theirs: a default config that does not build its own class
        print(f"{kind}: not built: {error}", file=sys.stderr)
        return None
    return sum(parameter.numel() for parameter in model.parameters())


def main(path: Path) -> None:
    """Write the configs that are read and the counts."""
    warnings.simplefilter("ignore")
    rows = []
    for kind in sorted(set(CLASSES) - set(WRAPPERS)):
        try:
            config = transformers.AutoConfig.for_model(kind)
        except Exception as error:  # theirs, as above
            print(f"{kind}: no default config: {error}", file=sys.stderr)
            continue
        try:
            model_from_config(plain(config.to_dict()))
        except ChipwiseError as error:
            print(f"{kind}: not read: {error}", file=sys.stderr)
            continue
        count = parameters(kind, config)
        if count is not None:
            rows.append({"config": plain(config.to_dict()), "parameters": count})
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
    path.write_text(f'{{"transformers": "{version("transformers")}", "rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
