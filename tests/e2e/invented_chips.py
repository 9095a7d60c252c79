"""A copy of the catalog's data with two GPUs, a TPU and a serving stack that nobody makes."""

import shutil
from importlib.resources import files
from pathlib import Path

SOURCE = Path(str(files("chipwise.catalog"))) / "data"
NOTED = "an invented data sheet,2030-01,"
CITED = 'source = "an invented data sheet"\ndate = "2030-01"\n'

CHIPS = """
[[chip]]
id = "v8"
name = "TPU v8"
vendor = "google"
family = "tpu"
architecture = "TPU v8"
launched = "2030-01"
aliases = ["tpu-v8", "tpuv8"]
match = [["v8"]]
device_kinds = ["TPU8 whole"]
fabric_kind = "torus"
fabric = "ICI"
frameworks = ["jax", "pytorch"]
programming = ["xla", "pallas"]
limits = ["slices come only in listed shapes"]

[[chip]]
id = "mi400"
name = "AMD Instinct MI400"
vendor = "amd"
family = "gpu"
architecture = "CDNA5"
design = "cdna5"
launched = "2030-01"
aliases = ["instinct-mi400"]
match = [["mi400"]]
fabric_kind = "mesh"
fabric = "Infinity Fabric"
frameworks = ["pytorch", "jax"]
programming = ["rocm", "triton"]
limits = ["CUDA binaries do not run"]

[[chip]]
id = "r100"
name = "NVIDIA R100"
vendor = "nvidia"
family = "gpu"
architecture = "Rubin"
design = "rubin"
compute_capability = "13.0"
launched = "2030-01"
aliases = ["rubin-r100"]
match = [["r100"]]
fabric_kind = "switch"
fabric = "NVLink 6"
frameworks = ["pytorch", "jax"]
programming = ["cuda", "triton"]
limits = ["fp8 needs library support"]
"""

FIGURES = {
    "peak.bf16": ("4e15", "FLOP/s"),
    "peak.fp8": ("8e15", "FLOP/s"),
    "memory_bytes": ("300e9", "bytes"),
    "usable_bytes": ("290e9", "bytes"),
    "bandwidth": ("12e12", "bytes/s"),
    "onchip_bytes": ("256e6", "bytes"),
    "cores": ("256", "count"),
    "mxu": ("0", "count"),
    "clock_hz": ("2e9", "Hz"),
    "tdp_w": ("1400", "W"),
    "idle_w": ("160", "W"),
    "devices": ("1", "count"),
}
TPU_FIGURES = {"peak.bf16": ("3355443200000000", "FLOP/s"), "cores": ("8", "count"), "mxu": ("320", "count")}
FABRIC = {
    "domain": ("8", "count"),
    "scale_up": ("1e12", "bytes/s"),
    "link": ("1e12", "bytes/s"),
    "dims": ("0", "count"),
    "wrap": ("0", "count"),
    "host_chips": ("8", "count"),
    "scale_out": ("100e9", "bytes/s"),
    "host_link": ("128e9", "bytes/s"),
}
TORUS = {
    "domain": ("4096", "count"),
    "scale_up": ("1.2e12", "bytes/s"),
    "link": ("200e9", "bytes/s"),
    "dims": ("3", "count"),
    "wrap": ("4", "count"),
    "host_chips": ("4", "count"),
    "scale_out": ("25e9", "bytes/s"),
}

SLICES = f"""
[[slice]]
chip = "v8"
shapes = ["1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4"]
cube = 4
max_chips = 4096
counts = "chips"
note = ""
{CITED}
[slice.gke]
accelerator = "tpu8-slice"
host_chips = 4
{CITED}"""

COMPILERS = f"""
[[tpu]]
chip = "v8"
libtpu = "tpu8"
recipe = ["vmem-64m", "fused-gathers"]
splash_block = 1024
search = ["vmem-32m"]
{CITED}"""

STACKS = f"""
[[stack]]
id = "flume"
name = "Flume"
work = ["serve"]
frameworks = ["jax", "pytorch"]
families = ["gpu", "tpu"]
aliases = ["flume"]
default_for = []
compiled = true
words = "nobody makes it"
release = 2030.0

[stack.serving]
most_sequences = 48
most_tokens = 2048
block = 32
mixed = false
reserve = true
memory_share = 0.5
{CITED}"""

TOOLS = f"""
[[tool]]
id = "flume"
name = "Flume"
work = "serve"
stacks = ["flume"]
endings = [".flume.sh"]
version = "1"
command = [
  {{ text = "flume run {{model}} --split {{tp}}" }},
  {{ text = "--narrow", when = "fp8" }},
  {{ text = "--at-once {{most_sequences}} --chunk {{most_tokens}}" }},
]
{CITED}"""

OFFER = "{chip},gcp,us-central1,{name},{chips},{usd},{spot},2026-08-21,an invented data sheet,"


def _lines(chip: str, figures: dict[str, tuple[str, str]]) -> str:
    return "".join(f"{chip},{name},{value},{unit},{NOTED}\n" for name, (value, unit) in figures.items())


def invented_catalog(folder: Path) -> Path:
    """The package's data files with the invented entries added: no file of code is touched."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("calibration"))
    gpus = ("mi400", "r100")
    figures = "".join(_lines(chip, FIGURES) for chip in gpus) + _lines("v8", FIGURES | TPU_FIGURES)
    fabrics = "".join(_lines(chip, FABRIC) for chip in gpus) + _lines("v8", FABRIC | TORUS)
    added = {
        "joined.csv": "gcp,x8|y8,yes,an invented fabric,an invented data sheet,2026-08-21\n",
        "chips.toml": CHIPS,
        "figures.csv": figures,
        "fabrics.csv": fabrics,
        "slices.toml": SLICES,
        "compilers.toml": COMPILERS,
        "stacks.toml": STACKS,
        "tools.toml": TOOLS,
        "capabilities.csv": f"13.0,2048,256,255,128,1,{NOTED[:-1]}\n",
        "offers.csv": "".join(
            OFFER.format(chip=chip, name=name, chips=chips, usd=usd, spot=usd / 2) + "\n"
            for chip, name, chips, usd in (
                ("v8", "v8-64", 64, 320.0),
                ("mi400", "x8", 8, 50.0),
                ("r100", "y8", 8, 60.0),
            )
        ),
    }
    for name, text in added.items():
        path = folder / name
        path.chmod(0o644)
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return folder
