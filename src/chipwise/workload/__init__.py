"""What must be computed: models, training runs, streams of requests, and the ways people describe them."""

from chipwise.workload.criteria import metrics_that_matter
from chipwise.workload.hf import from_hf_config
from chipwise.workload.load import load_any, load_serving, load_workload, schema, write_schema
from chipwise.workload.model import Conv, Experts, Latent, Model, Train, Workload
from chipwise.workload.params import Params, count, kv_bytes, lora_params
from chipwise.workload.presets import preset, preset_names

__all__ = [
    "Conv",
    "Experts",
    "Latent",
    "Model",
    "Params",
    "Train",
    "Workload",
    "count",
    "from_hf_config",
    "kv_bytes",
    "load_any",
    "load_serving",
    "load_workload",
    "lora_params",
    "metrics_that_matter",
    "preset",
    "preset_names",
    "schema",
    "write_schema",
]
