"""The data files: complete, sourced, dated and in the right order of magnitude."""

import re
from collections import Counter
from math import prod

import pytest

from chipwise.catalog import DTYPES, Chip, load, plain_stack
from chipwise.catalog.compilers import capabilities, option_sets, tpu_compilers
from chipwise.catalog.load import FABRIC_COUNTS, FABRIC_RATES
from chipwise.catalog.names import _index, _squash
from chipwise.catalog.vendors import vendors

CATALOG = load()
CHIPS = list(CATALOG.chips.values())
TPUS = [chip for chip in CHIPS if chip.family == "tpu"]
REQUIRED = {
    *(
        "p100",
        "p4",
        "v100",
        "v100-32gb",
        "v100-pcie",
        "t4",
        "a10g",
        "a40",
        "a100-40gb",
        "a100-80gb",
        "a100-40gb-pcie",
    ),
    *("a100-80gb-pcie", "l4", "l40s", "h100", "h100-pcie", "h100-nvl", "h100-96gb-hbm2e", "h800", "h200"),
    *("gh200", "gh200-144gb", "b200", "gb200", "b300", "gb300", "rtx-pro-6000"),
    *("mi210", "mi250x", "mi300x", "mi325x", "mi350x", "mi355x"),
    *("gaudi2", "gaudi3", "trainium1", "trainium2", "inferentia2"),
    *("v2", "v3", "v4", "v5e", "v5p", "v6e", "v7x"),
}
FIGURES = {
    *("memory_bytes", "usable_bytes", "bandwidth", "onchip_bytes", "cores", "mxu", "clock_hz"),
    *("tdp_w", "idle_w", "devices"),
}
UNITS = {"FLOP/s", "bytes", "bytes/s", "count", "Hz", "W"}
DATE = re.compile(r"20\d\d(-[01]\d(-[0-3]\d)?)?")
MAY_BE_ZERO = {"mxu", "fabric.dims", "fabric.wrap"}
each_chip = pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.id)


def test_every_required_chip_is_present():
    assert set(CATALOG.chips) >= REQUIRED


@each_chip
def test_every_figure_has_a_positive_value_a_unit_a_source_and_a_date(chip: Chip):
    wanted = {f"peak.{d}" for d in chip.peak} | FIGURES | {f"fabric.{f}" for f in (*FABRIC_COUNTS, *FABRIC_RATES)}
    assert set(chip.figures) == wanted
    for name, figure in chip.figures.items():
        assert figure.value > 0 or (name in MAY_BE_ZERO and figure.value == 0), name
        assert figure.unit in UNITS, name
        assert len(figure.source) > 5, name
        assert DATE.fullmatch(figure.date), (name, figure.date)


@each_chip
def test_figures_agree_with_fields(chip: Chip):
    for name in FIGURES:
        assert getattr(chip, name) == chip.figures[name].value
    for name in (*FABRIC_COUNTS, *FABRIC_RATES):
        assert getattr(chip.fabric, name) == chip.figures[f"fabric.{name}"].value


@each_chip
def test_peaks_are_known_dtypes_in_a_sensible_order(chip: Chip):
    assert chip.peak and set(chip.peak) <= set(DTYPES)
    peak = chip.peak
    assert all(1e10 < rate < 1e17 for rate in peak.values())
    for slow, fast in (("fp64", "fp32"), ("fp32", "tf32"), ("tf32", "bf16"), ("bf16", "fp8"), ("fp8", "fp4")):
        if slow in peak and fast in peak:
            assert peak[slow] <= 1.01 * peak[fast], (
                slow,
                fast,
            )  # A10G: fp32 and tf32 differ by a clock rounding
    if "bf16" in peak and "fp16" in peak and chip.id != "gaudi3":  # Gaudi 3 runs fp16 at the tf32 rate
        assert peak["bf16"] == peak["fp16"]


@each_chip
def test_sizes_and_powers_are_consistent(chip: Chip):
    assert chip.usable_bytes <= chip.memory_bytes <= 1.2 * chip.usable_bytes
    assert chip.onchip_bytes < chip.memory_bytes / 10
    assert 0 < chip.idle_w < chip.tdp_w <= 1500
    assert 0.5e9 < chip.clock_hz < 3e9
    assert chip.devices in (1, 2, 8)


@pytest.mark.parametrize("chip", [c for c in CHIPS if c.mxu], ids=lambda chip: chip.id)
def test_systolic_arrays_times_clock_give_the_bf16_peak(chip: Chip):
    derived = chip.cores * 2 * chip.mxu**2 * chip.clock_hz
    assert derived == pytest.approx(chip.peak["bf16"], rel=0.01)


def test_tpus_have_no_fp16_and_old_gpus_no_bf16():
    assert all("fp16" not in chip.peak and "fp64" not in chip.peak for chip in TPUS)
    assert all("bf16" not in CATALOG.chips[name].peak for name in ("p100", "p4", "v100", "v100-pcie", "t4"))


@each_chip
def test_words_are_complete(chip: Chip):
    assert chip.family in {"gpu", "tpu", "other"}
    assert (chip.family == "tpu") == (chip.vendor == "google")
    assert DATE.fullmatch(chip.launched)
    assert chip.name and chip.architecture and chip.fabric.name
    assert set(chip.frameworks) <= {"pytorch", "jax", "tensorflow"} and chip.frameworks
    assert chip.programming and chip.limits


@each_chip
def test_fabric_is_complete(chip: Chip):
    fabric = chip.fabric
    assert fabric.kind in {"switch", "mesh", "pcie", "torus"}
    assert (fabric.kind == "torus") == (chip.family == "tpu")
    assert 1 <= fabric.host_chips <= 16 and fabric.domain >= 1
    assert fabric.scale_out <= fabric.scale_up
    assert fabric.scale_up <= chip.bandwidth
    if fabric.kind == "torus":
        assert fabric.dims in (2, 3) and fabric.wrap > 0
        assert fabric.scale_up == pytest.approx(fabric.link * 2 * fabric.dims)
    else:
        assert fabric.link == fabric.scale_up and fabric.dims == 0 and fabric.wrap == 0


def test_names_are_unique():
    names = Counter()
    for chip in CHIPS:
        names.update({_squash(name) for name in (chip.id, *chip.aliases)})
    assert [name for name, times in names.items() if times > 1] == []
    for chip in CHIPS:
        for name in (chip.id, chip.name, *chip.aliases):
            assert _index()[_squash(name)] == chip.id


def test_match_words_point_to_one_chip_each():
    sets = Counter(frozenset(words) for each in CATALOG.match.values() for words in each)
    assert max(sets.values()) == 1
    assert set(CATALOG.match) == set(CATALOG.chips)


def test_assumptions_say_so():
    """A figure with no published value names the arithmetic or the analogue it comes from."""
    unpublished = {"v5e": "tdp_w", "v5p": "tdp_w", "v6e": "tdp_w", "v7x": "tdp_w", "t4": "usable_bytes"}
    for chip_id, figure in unpublished.items():
        assert CATALOG.chips[chip_id].figures[figure].note.startswith("assumed:")
    for chip in CHIPS:
        for figure in chip.figures.values():
            if figure.note.startswith("assumed:"):
                assert len(figure.note) > 12


@pytest.mark.parametrize("legal", CATALOG.slices.values(), ids=CATALOG.slices.keys())
def test_slices_fit_their_chip(legal):
    chip = CATALOG.chips[legal.chip_id]
    assert chip.family == "tpu" and legal.source and DATE.fullmatch(legal.date)
    assert all(len(shape) == chip.fabric.dims for shape in legal.shapes)
    assert all(prod(shape) <= legal.max_chips <= chip.fabric.domain for shape in legal.shapes)
    assert legal.counts in {"cores", "chips"} and legal.billed_by in {"chip", "board"}
    counts = legal.chip_counts()
    assert counts[-1] == legal.max_chips and counts == tuple(sorted(set(counts)))
    for count in counts:
        shape = legal.shape_for(count)
        assert shape is not None and prod(shape) == count
        assert legal.canonical(shape) == shape


def test_every_tpu_has_slices():
    assert set(CATALOG.slices) == {chip.id for chip in TPUS}


def test_stacks_are_complete():
    wanted = {
        "megatron",
        "megatron-deepspeed",
        "maxtext",
        "torchtitan",
        "fsdp",
        "pytorch",
        "tensorflow",
        "deepspeed",
    }
    assert wanted <= set(CATALOG.stacks)
    defaults = Counter(default for stack in CATALOG.stacks.values() for default in stack.default_for)
    assert set(defaults) == {f"{w}:{f}" for w in ("train", "serve") for f in ("gpu", "tpu", "other")}
    for stack in CATALOG.stacks.values():
        assert stack.name and stack.words and stack.aliases and stack.frameworks and stack.families
        for default in stack.default_for:
            work, family = default.split(":")
            assert work in stack.work and family in stack.families


def test_every_family_has_a_stack_for_models_that_are_no_language_models():
    wanted = {f"{work}:{family}" for work in ("train", "serve") for family in ("gpu", "tpu", "other")}
    assert {plain for stack in CATALOG.stacks.values() for plain in stack.plain_for} == wanted
    for chip in CHIPS:
        assert plain_stack(chip, "train").frameworks and plain_stack(chip, "serve").serving is not None


def test_stacks_that_serve_say_how_and_where_from():
    for stack in CATALOG.stacks.values():
        assert (stack.serving is not None) == ("serve" in stack.work), stack.id
        assert not stack.releases.values or sourced(stack.releases)
        assert all(2020 < year < 2030 for year in stack.releases.values.values())
        if stack.serving is not None:
            assert sourced(stack.serving), stack.id
            assert stack.serving.most_sequences > 0 and stack.serving.most_tokens > 0
            assert 0 < stack.serving.memory_share <= 1


def sourced(entry) -> bool:
    return len(entry.source) > 5 and DATE.fullmatch(entry.date) is not None


def test_designs_name_known_chips_of_their_own_and_say_where_from():
    for design in CATALOG.designs.values():
        assert sourced(design), design.id
        for chip_id in (*design.leaders, *([design.power_reference] if design.power_reference else [])):
            assert CATALOG.chips[chip_id].design == design.id
        for cited in (design.attention, design.links):
            assert not cited.values or sourced(cited), design.id
        assert 0 <= design.matmul_share < 1 and all(0 < share < 1 for share in design.attention.values.values())
        assert not design.trains_with or design.trains_with in design.attention.values
    assert set(CATALOG.designs) <= {chip.design for chip in CHIPS}


def test_tpus_that_libtpu_compiles_for_say_how_and_where_from():
    assert all(sourced(each) for each in option_sets().values())
    for chip_id, compiler in tpu_compilers().items():
        chip = CATALOG.chips[chip_id]
        assert chip.family == "tpu" and compiler.libtpu and sourced(compiler), chip_id
        assert compiler.splash_block % 128 == 0
        if compiler.sweep is not None:
            assert sourced(compiler.sweep), chip_id
            assert 0 <= compiler.sweep.prefetch_bytes_recipe <= compiler.sweep.prefetch_bytes < 256e6
            assert set(compiler.sweep.ragged) <= set(chip.peak)
            assert 0 <= compiler.sweep.clock_hz < 3e9


@each_chip
def test_nvidia_chips_and_no_others_have_a_compute_capability(chip: Chip):
    assert bool(re.fullmatch(r"\d+\.\d", chip.compute_capability)) == (chip.vendor == "nvidia")


def test_capabilities_are_of_known_chips_and_sourced():
    assert set(capabilities()) <= {chip.compute_capability for chip in CHIPS}
    for name, capability in capabilities().items():
        assert str(capability) == name and sourced(capability)
        assert capability.shared_block <= capability.shared <= 256 * 1024 and capability.threads in (1024, 1536, 2048)


def test_every_vendor_is_known_and_sourced():
    assert {chip.vendor for chip in CHIPS} == set(vendors())
    assert all(sourced(vendor) and "/" in vendor.kubernetes_resource for vendor in vendors().values())


def test_slices_on_gke_are_sourced_and_of_whole_machines():
    known = {chip_id: legal.gke for chip_id, legal in CATALOG.slices.items() if legal.gke is not None}
    assert {"v4", "v5e", "v5p", "v6e", "v7x"} <= set(known)
    for chip_id, gke in known.items():
        assert sourced(gke) and gke.accelerator and gke.host_chips <= CATALOG.chips[chip_id].fabric.host_chips


def test_device_kinds_are_of_one_chip_each():
    kinds = Counter(kind.lower() for chip in CHIPS for kind in chip.device_kinds)
    assert all(times == 1 for times in kinds.values())


def test_networks_are_for_known_chips():
    assert "gcp-a3-high" in CATALOG.networks
    for network in CATALOG.networks.values():
        assert network.chips and set(network.chips) <= set(CATALOG.chips)
        assert network.per_chip * network.host_chips == pytest.approx(network.per_host)
        assert 1e9 < network.per_chip <= 100e9
        assert network.source and DATE.fullmatch(network.date[:10])


@pytest.mark.parametrize(
    "name",
    [
        "figures.csv",
        "fabrics.csv",
        "chips.toml",
        "stacks.toml",
        "slices.toml",
        "designs.toml",
        "compilers.toml",
        "vendors.toml",
        "capabilities.csv",
        "offers.csv",
        "commitments.csv",
        "instances.csv",
        "google_hosts.csv",
    ],
)
def test_data_files_hold_no_local_paths(name: str):
    from chipwise.catalog.files import text

    content = text(name)
    assert not re.search(r"(^|[,\s\"])/[a-z]", content) and "\r" not in content
