"""The pools of Terraform's root module: do machine, topology, counts, terms and reservation hold together?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from chipwise.catalog import load
from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.schema import nearest
from chipwise.deploy.check.terraform import Module
from chipwise.deploy.deployment import Term
from chipwise.deploy.hcl_read import HclBlock
from chipwise.deploy.machines import Machine, machines


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPool:
    """A pool as Terraform's files have it, as far as its values are plain."""

    name: str
    file: str
    line: int
    machine: Machine | None
    topology: str
    slice_hosts: int  # hosts of each slice; 0 for GPUs
    hosts: int
    min_hosts: int
    term: str
    reservation: str

    @property
    def chips(self) -> int:
        """Chips in all."""
        return self.hosts * (self.machine.chips if self.machine else 0)


def written_pools(root: Module) -> tuple[list[WrittenPool], list[Finding]]:
    """The pools, and what is wrong with each by itself."""
    pools: list[WrittenPool] = []
    findings: list[Finding] = []
    for file, call in root.blocks("module"):
        source = str(call.value("source") or "")
        if source.endswith(("/tpu-pool", "/gpu-pool")):
            pool = _pool(file, call, tpu=source.endswith("/tpu-pool"))
            pools.append(pool)
            findings += _check(pool, call)
    return pools, findings


def _whole(call: HclBlock, name: str) -> int:
    value = call.value(name)
    return int(value) if isinstance(value, float) and value == int(value) else 0


def _text(call: HclBlock, name: str) -> str:
    value = call.value(name)
    return value if isinstance(value, str) else ""


def _pool(file: str, call: HclBlock, tpu: bool) -> WrittenPool:
    by_name = {machine.name: machine for machine in machines() if machine.provider == "gcp"}
    slices, slice_hosts = _whole(call, "slices"), _whole(call, "hosts_per_slice")
    return WrittenPool(
        name=_text(call, "name"),
        file=file,
        line=call.line,
        machine=by_name.get(_text(call, "machine_type")),
        topology=_text(call, "topology"),
        slice_hosts=slice_hosts if tpu else 0,
        hosts=slices * slice_hosts if tpu else _whole(call, "nodes"),
        min_hosts=_whole(call, "min_slices") * slice_hosts if tpu else _whole(call, "min_nodes"),
        term=_text(call, "term"),
        reservation=_text(call, "reservation"),
    )


def _check(pool: WrittenPool, call: HclBlock) -> Iterator[Finding]:
    machine = pool.machine
    if machine is None:
        names = [known.name for known in machines() if known.provider == "gcp"]
        type_name = _text(call, "machine_type")
        yield _finding(
            Defect.MACHINE,
            pool,
            call,
            "machine_type",
            f"{type_name!r} is no machine type known",
            nearest(type_name, names),
        )
        return
    if pool.topology:
        yield from _check_slice(pool, call, machine)
    else:
        yield from _check_gpus(pool, call, machine)
    if pool.term in list(Term) and Term(pool.term) not in machine.terms:
        have = " or ".join(term for term in Term if term in machine.terms)
        yield _finding(Defect.TERM, pool, call, "term", f"{machine.name} is not to be had {pool.term}", have)
    if pool.term == Term.RESERVED and "reservation" not in call.arguments:
        yield _finding(
            Defect.RESERVATION, pool, call, "term", "reserved, and no reservation is named", 'reservation = "NAME"'
        )
    if pool.term == Term.RESERVED and pool.min_hosts < pool.hosts:
        field, most = ("min_slices", "slices") if pool.topology else ("min_nodes", "nodes")
        what = f"the autoscaler may give back {pool.hosts - pool.min_hosts} hosts that are paid for"
        yield _finding(Defect.RECLAIMED, pool, call, field, what, f"{field} = {most}")


def _check_slice(pool: WrittenPool, call: HclBlock, machine: Machine) -> Iterator[Finding]:
    legal = load().slices.get(machine.chip)
    axes = tuple(int(axis) for axis in pool.topology.split("x") if axis.isdecimal())
    if legal is None or len(axes) != pool.topology.count("x") + 1 or legal.canonical(axes) != axes:
        shapes = "no slices" if legal is None else ", ".join("x".join(map(str, shape)) for shape in legal.shapes)
        yield _finding(Defect.TOPOLOGY, pool, call, "topology", f"{machine.chip} has no slice {pool.topology}", shapes)
        return
    hosts = _whole(call, "hosts_per_slice")
    if hosts * machine.chips != prod(axes):
        what = f"{hosts} hosts of {machine.chips} chips are not the {prod(axes)} chips of a {pool.topology}"
        fix = f"hosts_per_slice = {prod(axes) // machine.chips}"
        if prod(axes) % machine.chips:
            fix = f"a machine whose chips divide {prod(axes)}"
        yield _finding(Defect.TOPOLOGY, pool, call, "hosts_per_slice", what, fix)
    policy = call.value("workload_policy")
    if isinstance(policy, bool) and policy != (machine.chip == "v7x"):
        needed = "true" if machine.chip == "v7x" else "false"
        what = f"{machine.chip} has its shape {'by a workload policy' if machine.chip == 'v7x' else 'in the node pool'}"
        yield _finding(Defect.TOPOLOGY, pool, call, "workload_policy", what, f"workload_policy = {needed}")


def _check_gpus(pool: WrittenPool, call: HclBlock, machine: Machine) -> Iterator[Finding]:
    if _text(call, "accelerator") not in ("", machine.accelerator):
        what = f"{machine.name} has {machine.accelerator}"
        yield _finding(Defect.MACHINE, pool, call, "accelerator", what, f'accelerator = "{machine.accelerator}"')
    gpus = _whole(call, "gpus_per_node")
    if gpus and gpus != machine.chips:
        what = f"{machine.name} has {machine.chips} GPUs, not {gpus}"
        yield _finding(Defect.COUNT, pool, call, "gpus_per_node", what, f"gpus_per_node = {machine.chips}")


def _finding(defect: Defect, pool: WrittenPool, call: HclBlock, field: str, what: str, fix: str) -> Finding:
    line = call.arguments[field].line if field in call.arguments else call.line
    where = f"module.{call.labels[0] if call.labels else pool.name}.{field}"
    return Finding(defect=defect, file=pool.file, line=line, field=where, what=what, fix=fix)


def by_name(pools: list[WrittenPool]) -> Mapping[str, WrittenPool]:
    """The pools by their names."""
    return {pool.name: pool for pool in pools}
