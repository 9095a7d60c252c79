"""A tree of the target `slurm` as a whole: nodes, partitions, chips, switches, machines and the router's pools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.slurm_files import ConfLine, hosts, read_conf
from chipwise.deploy.deployment import HOURS_A_MONTH, Term
from chipwise.deploy.pools_file import PATH as POOLS_PATH
from chipwise.errors import BrokenFile
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text

SETTINGS_PATH = "power/cloud_nodes.json"
CENT = 0.01  # dollars: prices in the pools file have six digits
# what cloud nodes need of slurm.conf, and what happens without
NEEDED = {
    "resumeprogram": "nobody makes the machines",
    "suspendprogram": "machines that idle are never removed",
    "resumefailprogram": "nodes whose machine does not come stay down for good",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNodes:
    """Nodes of one line: what each has."""

    line: ConfLine
    names: tuple[str, ...]
    gres: tuple[str, str, int]  # kind, type, count
    cloud: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmTree:
    """The files of a tree, read."""

    settings: Mapping[str, str]  # of slurm.conf, keys in small letters
    nodes: tuple[SlurmNodes, ...]
    partitions: tuple[ConfLine, ...]
    gres: tuple[ConfLine, ...]
    switches: tuple[ConfLine, ...]
    machines: Mapping[str, Mapping[str, Any]]  # pools of cloud_nodes.json

    def of(self, name: str) -> SlurmNodes | None:
        """The line that has a node."""
        return next((nodes for nodes in self.nodes if name in nodes.names), None)


def check_slurm(folder: Path, facts: Mapping[str, Any]) -> tuple[list[Finding], int]:
    """What is found, and how many partitions there are."""
    lines, findings = read_conf(folder, "slurm.conf")
    gres, of_gres = read_conf(folder, "gres.conf")
    switches, of_switches = read_conf(folder, "topology.conf")
    findings += [*of_gres, *of_switches]
    nodes = []
    for line in lines:
        if line.kind == "nodename":
            these, broken = _nodes(line)
            findings += broken
            nodes += these
    machines, wrong = _machines(folder)
    findings += wrong
    settings = {
        key: value
        for line in lines
        if line.kind not in ("nodename", "partitionname")
        for key, value in line.values.items()
    }
    tree = SlurmTree(
        settings=settings,
        nodes=tuple(nodes),
        partitions=tuple(line for line in lines if line.kind == "partitionname"),
        gres=tuple(gres),
        switches=tuple(switches),
        machines=machines,
    )
    if not findings:  # else what is missing may stand on a line that can't be read
        for check in (_names, _chips, _cloud, _slices, _reserved):
            findings += check(tree, facts)
        findings += _router(folder, tree, facts)
    return findings, len(tree.partitions)


def _at(line: ConfLine, defect: Defect, field: str, what: str, fix: str) -> Finding:
    return Finding(defect=defect, file=line.file, line=line.line, field=field, what=what, fix=fix)


def _nodes(line: ConfLine) -> tuple[list[SlurmNodes], list[Finding]]:
    text = line.values.get("gres", "")
    parts = text.split(":")
    try:
        names = hosts(line.values["nodename"])
    except ValueError:
        return [], []  # told where the line is read
    if len(parts) != 3 or not parts[2].isdigit():
        return [], [
            _at(line, Defect.WRONG_TYPE, "Gres", f"{text or 'nothing'} is no kind, type and count", "Gres=gpu:h200:8")
        ]
    gres = (parts[0], parts[1], int(parts[2]))
    cloud = line.values.get("state", "").lower() == "cloud"
    return [SlurmNodes(line=line, names=tuple(names), gres=gres, cloud=cloud)], []


def _machines(folder: Path) -> tuple[Mapping[str, Mapping[str, Any]], list[Finding]]:
    path = folder / SETTINGS_PATH
    if not path.is_file():
        return {}, []
    try:
        pools = json.loads(read_text(path))["pools"]
        for pool in pools.values():
            for part in ("machines", "placements", "always"):
                pool[part]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"can't be read: {type(error).__name__}: {error}"
        return {}, [Finding(defect=Defect.SYNTAX, file=SETTINGS_PATH, field="", what=what, fix="write the tree again")]
    return pools, []


def _names(tree: SlurmTree, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Every node that is named is there."""
    names = {name for nodes in tree.nodes for name in nodes.names}
    lines = [*((line, "Nodes") for line in tree.partitions), *((line, "NodeName") for line in tree.gres)]
    for line, key in [*lines, *((line, "Nodes") for line in tree.switches)]:
        listed = line.values.get(key.lower(), "")
        absent = [] if listed in ("", "ALL") else [name for name in hosts(listed) if name not in names]
        if absent:
            yield _at(
                line,
                Defect.UNKNOWN_REFERENCE,
                key,
                f"{absent[0]} is no node of nodes.conf",
                "name nodes that are there",
            )
    in_partitions = {name for line in tree.partitions for name in hosts(line.values.get("nodes", ""))}
    for nodes in tree.nodes:
        alone = [name for name in nodes.names if name not in in_partitions]
        if alone:
            yield _at(
                nodes.line,
                Defect.UNKNOWN_REFERENCE,
                "NodeName",
                f"{alone[0]} is in no partition: no job gets it",
                "a PartitionName with it",
            )
    for pool, record in tree.machines.items():
        for machine, listed in record["machines"].items():
            absent = [name for name in listed if name not in names]
            if absent:
                what = f"{machine} is a machine for {absent[0]}, which is no node of nodes.conf"
                yield Finding(
                    defect=Defect.UNKNOWN_REFERENCE,
                    file=SETTINGS_PATH,
                    field=pool,
                    what=what,
                    fix="write the tree again",
                )


def _chips(tree: SlurmTree, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Nodes have the chips that gres.conf gives them."""
    kinds = set(tree.settings.get("grestypes", "").split(","))
    lines = {name: line for line in tree.gres for name in hosts(line.values.get("nodename", ""))}
    for nodes in tree.nodes:
        kind, _, count = nodes.gres
        if kind not in kinds:
            yield _at(
                nodes.line,
                Defect.NOT_COVERED,
                "Gres",
                f"GresTypes of slurm.conf lacks {kind}: jobs that ask for it are refused",
                f"GresTypes with {kind}",
            )
        line = lines.get(nodes.names[0])
        if line is None:
            yield _at(
                nodes.line,
                Defect.COUNT,
                "Gres",
                f"gres.conf has no line for {nodes.names[0]}: it registers without chips",
                f"a line with {count} chips",
            )
            continue
        files = line.values.get("file", "")
        there = len(hosts(files)) if files else int(line.values.get("count", "0") or 0)
        if there != count:
            yield _at(
                line,
                Defect.COUNT,
                "File" if files else "Count",
                f"{there} chips, nodes.conf has {count}: slurmd drains the node",
                f"{count} of them",
            )


def _cloud(tree: SlurmTree, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Cloud nodes have programs and settings, and a machine each."""
    cloud = [nodes for nodes in tree.nodes if nodes.cloud]
    if not cloud:
        return
    for key, without in NEEDED.items():
        if not tree.settings.get(key):
            yield Finding(
                defect=Defect.MISSING_ARGUMENT,
                file="slurm/site.conf",
                field=key,
                what=f"is not set: {without}",
                fix="as it was written",
            )
    parameters = tree.settings.get("slurmctldparameters", "").split(",")
    if "idle_on_node_suspend" not in parameters:
        what = "lacks idle_on_node_suspend: a node that was down when it was powered down stays down"
        yield Finding(
            defect=Defect.MISSING_ARGUMENT,
            file="slurm/slurm.conf",
            field="SlurmctldParameters",
            what=what,
            fix="add it",
        )
    if "cloud" not in tree.settings.get("privatedata", "").split(","):
        what = "lacks cloud: powered-down nodes are hidden, and the router sees no chips"
        yield Finding(
            defect=Defect.MISSING_ARGUMENT, file="slurm/slurm.conf", field="PrivateData", what=what, fix="add it"
        )
    made = {name for record in tree.machines.values() for nodes in record["machines"].values() for name in nodes}
    for nodes in cloud:
        missing = [name for name in nodes.names if name not in made]
        if missing:
            yield _at(
                nodes.line,
                Defect.MACHINE,
                "State",
                f"no machine of {SETTINGS_PATH} is for {missing[0]}: it never comes up",
                "write the tree again",
            )


def _slices(tree: SlurmTree, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """A slice of several hosts is one switch, or a job gets parts of two."""
    switches = [set(hosts(line.values.get("nodes", ""))) for line in tree.switches]
    for pool, record in tree.machines.items():
        for machine, listed in record["machines"].items():
            if len(listed) > 1 and set(listed) not in switches:
                what = f"the hosts of {machine} are no switch of their own: a job may get parts of two slices"
                yield Finding(
                    defect=Defect.TOPOLOGY,
                    file="slurm/topology.conf",
                    field=pool,
                    what=what,
                    fix=f"SwitchName={machine} Nodes={','.join(listed)}",
                )
    for row in facts.get("pools", []):
        record = tree.machines.get(str(row.get("name")), {})
        sizes = {len(listed) for listed in record.get("machines", {}).values()}
        topology, chips = str(row.get("topology") or ""), row.get("host_chips")
        if not (topology and sizes and isinstance(chips, int)):
            continue
        wanted = 1
        for axis in topology.split("x"):
            wanted *= int(axis)
        wrong = [size for size in sizes if size * chips != wanted]
        if wrong:
            what = f"{wrong[0]} hosts of {chips} chips are no {topology}, which has {wanted}"
            yield Finding(
                defect=Defect.TOPOLOGY,
                file=SETTINGS_PATH,
                field=str(row["name"]),
                what=what,
                fix=f"{wanted // chips} nodes a machine",
            )


def _reserved(tree: SlurmTree, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """What is paid for in any case is not given back, and taken of its reservation."""
    spared = set(hosts(tree.settings.get("suspendexcnodes", "")))
    for row in facts.get("pools", []):
        record = tree.machines.get(str(row.get("name")))
        if record is None or row.get("term") != Term.RESERVED:
            continue
        name, reservation = str(row["name"]), str(row.get("reservation") or "")
        loose = [node for listed in record["machines"].values() for node in listed if node not in spared]
        if loose:
            what = f"{loose[0]} of the reserved pool {name} may be powered down: it is paid for, and others may get it"
            yield Finding(
                defect=Defect.RECLAIMED,
                file="slurm/slurm.conf",
                field="SuspendExcNodes",
                what=what,
                fix="all nodes of the pool",
            )
        for placement in record["placements"]:
            if reservation and not any(reservation in str(word) for word in placement.get("create", [])):
                what = f"{placement.get('name')}: machines are not taken of the reservation {reservation}"
                yield Finding(
                    defect=Defect.RESERVATION, file=SETTINGS_PATH, field=name, what=what, fix="write the tree again"
                )


def _router(folder: Path, tree: SlurmTree, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """The router's pools are partitions that are there, with their chips, at no more than what was planned."""
    partitions = {line.values["partitionname"]: line for line in tree.partitions}

    def finding(defect: Defect, field: str, what: str, fix: str) -> Finding:
        return Finding(defect=defect, file=POOLS_PATH, field=field, what=what, fix=fix)

    try:
        rows = parse_yaml(
            read_text(folder / POOLS_PATH, MAX_YAML_BYTES), POOLS_PATH, such="`pools:` with a list of them"
        ).get("pools")
    except BrokenFile as error:
        yield finding(Defect.SYNTAX, error.field, f"{error.value!r} can't be read", error.accepted)
        return
    usd_month = 0.0
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        where = f"pools[{index}]"
        address = row.get("address") or {} if isinstance(row, Mapping) else {}
        line = partitions.get(str(address.get("partition")))
        if line is None:
            what = f"there is no partition {address.get('partition')}"
            yield finding(Defect.ROUTER, f"{where}.address.partition", what, ", ".join(partitions))
            continue
        count, price = row.get("count"), row.get("price", 0)
        members = [nodes for name in hosts(line.values.get("nodes", "")) if (nodes := tree.of(name)) is not None]
        chips = sum(nodes.gres[2] for nodes in members)
        if count != chips:
            yield finding(
                Defect.ROUTER, f"{where}.count", f"{count} chips, the partition has {chips}", f"count: {chips}"
            )
        gres = {f"{nodes.gres[0]}:{nodes.gres[1]}" for nodes in members}
        if gres and address.get("gres") not in gres:
            yield finding(
                Defect.ROUTER,
                f"{where}.address.gres",
                f"{address.get('gres')}, its nodes have {', '.join(sorted(gres))}",
                f"gres: {min(gres)}",
            )
        if isinstance(count, int) and isinstance(price, int | float):
            usd_month += count * price * HOURS_A_MONTH
    planned = facts.get("usd_month")
    if isinstance(planned, int | float) and usd_month > planned * (1 + 1e-6) + CENT:
        what = f"all up it costs ${usd_month:,.0f} a month, the decision was ${planned:,.0f}"
        yield finding(Defect.BUDGET, "pools", what, "fewer chips, or write the new decision")
