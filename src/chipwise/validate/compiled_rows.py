"""A published TPU training row as a job for the compiler: its real shapes, its own sharding and recomputation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from chipwise.compiled.job import Job
from chipwise.compiled.reference import training_job
from chipwise.errors import Refusal
from chipwise.predict.site import slice_for
from chipwise.programs.program import KEPT, Recompute
from chipwise.validate.training_rows import TrainingRow

# MaxText's names of saved tensors, as its tables write them
_NAMES = {
    "decoder_layer_input": ("decoder_layer_input",),
    "query_proj": ("query_proj",),
    "key_proj": ("key_proj",),
    "value_proj": ("value_proj",),
    "qkv": ("query_proj", "key_proj", "value_proj"),
    "q/k/v": ("query_proj", "key_proj", "value_proj"),
    "out_proj": ("out_proj",),
    "mlpwo": ("mlpwo",),
    "context": ("context",),
}


def recompute_of(text: str) -> Recompute:
    """What the row keeps on the chip, offloads to the host, or computes again.

    >>> recompute_of("custom (out_proj:device; mlpwo:device)").keep
    ('out_proj', 'mlpwo')
    >>> recompute_of("custom (decoder_layer_input and q/k/v proj offload)").offload
    ('decoder_layer_input', 'query_proj', 'key_proj', 'value_proj')
    >>> recompute_of("minimal").policy, recompute_of("full").keep
    ('dots', ())
    """
    low = text.lower()
    if "minimal" in low:
        return Recompute("dots")
    if "save_dot_except_mlpwi" in low:
        return Recompute(keep=KEPT)
    keep: list[str] = []
    offload: list[str] = []
    marked = re.findall(r"(\w+):(device|offload)", low)
    for name, where in marked:
        (offload if where == "offload" else keep).extend(_NAMES.get(name, ()))
    if not marked:
        goes = offload if "offload" in low else keep
        for word, names in _NAMES.items():
            if word in low and "remat" not in low[low.index(word) : low.index(word) + len(word) + 6]:
                goes.extend(n for n in names if n not in goes)
    return Recompute(keep=tuple(keep), offload=tuple(offload))


def job_of(row: TrainingRow, text: Mapping[str, str]) -> Job:
    """The row's step in one slice. MaxText takes the whole batch of a replica at once: it accumulates nothing."""
    acc = slice_for(row.chip, row.chips, row.slices)
    if row.layout is None:
        raise Refusal("the row states no layout to compile")
    whole = replace(row.layout, micro_batch=row.workload.train.global_batch / row.layout.dp)
    return training_job(row.workload, acc, whole, recompute_of(text.get("remat", "")))
