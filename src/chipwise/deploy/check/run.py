"""The whole check of a tree: which parts ran, and what each found."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.machine_pools import WrittenPool, by_name, written_pools
from chipwise.deploy.check.objects import check_fields, core_is_checked, read_objects
from chipwise.deploy.check.terraform import check_terraform, modules_of, provider_schema
from chipwise.deploy.check.work import check_work
from chipwise.deploy.deployment import HOURS_A_MONTH
from chipwise.deploy.pools_file import PATH as POOLS_PATH
from chipwise.deploy.tree import MANIFEST, manifest_of
from chipwise.errors import BrokenFile, InputError
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text

FMT_STATUSES = (0, 3)  # of fmt -check: all is formatted, something is not
TIMEOUT_S = 120  # of one run of terraform, which reads a few files
CENT = 0.01  # dollars: prices in the pools file have six digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found, and by what."""

    findings: tuple[Finding, ...]
    ran: tuple[str, ...]  # the checks that ran
    left_out: tuple[str, ...]  # those that did not, and why
    pools: int
    objects: int


def check_tree(folder: Path) -> Checked:
    """Check a tree; an `InputError` where it is none that deploy wrote."""
    if not folder.is_dir():
        raise InputError("folder", str(folder), "a folder that `deploy write` wrote")
    if not (folder / MANIFEST).is_file():
        raise InputError("folder", str(folder), f"a folder that `deploy write` wrote (it has no {MANIFEST})")
    facts = manifest_of(folder)
    modules = modules_of(folder)
    if "." not in modules:
        raise InputError("folder", str(folder), "a folder with files of Terraform (*.tf)")
    schema = provider_schema()
    findings = list(check_terraform(modules))
    readable = not modules["."].broken  # else pools may be missed that are there
    pools, of_pools = written_pools(modules["."]) if readable else ([], [])
    objects, unread = read_objects(folder)
    findings += [*of_pools, *unread, *check_fields(objects)]
    ran = [f"Terraform against the schema of {schema['provider']} {schema['version']}, read here"]
    ran.append("Kueue and JobSet by the fields of their types")
    left_out = []
    if readable and not unread:
        queues = {item.name for item in objects if item.kind == "LocalQueue"}
        findings += [*check_work(objects, by_name(pools)), *_check_router(folder, by_name(pools), queues, facts)]
        ran.append("the chain from pods to chips")
    else:
        left_out.append("the chain from pods to chips: a file of it can't be read")
    if core_is_checked():
        ran.append("Kubernetes' own kinds by its schemas")
    else:
        left_out.append("Kubernetes' own kinds: pip install kubernetes-validate")
    of_terraform, by_terraform, without = _run_terraform(folder)
    findings += of_terraform
    order = sorted(set(findings), key=lambda finding: (finding.file, finding.line, finding.field, finding.what))
    return Checked(
        findings=tuple(order),
        ran=(*ran, *by_terraform),
        left_out=(*left_out, *without),
        pools=len(pools),
        objects=len(objects),
    )


def _check_router(
    folder: Path, pools: Mapping[str, WrittenPool], queues: set[str], facts: Mapping[str, Any]
) -> Iterator[Finding]:
    """The router's pools are the machines, in queues that are there, at no more than what was planned."""

    def finding(defect: Defect, field: str, what: str, fix: str) -> Finding:
        return Finding(defect=defect, file=POOLS_PATH, field=field, what=what, fix=fix)

    try:
        text = read_text(folder / POOLS_PATH, MAX_YAML_BYTES)
        rows = parse_yaml(text, POOLS_PATH, such="`pools:` with a list of them").get("pools")
    except BrokenFile as error:
        yield finding(Defect.SYNTAX, error.field, f"{error.value!r} can't be read", error.accepted)
        return
    usd_month = 0.0
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        where = f"pools[{index}]"
        if not isinstance(row, Mapping):
            yield finding(Defect.ROUTER, where, "is no pool", "keys and values")
            continue
        pool = pools.get(str(row.get("name")))
        count, price = row.get("count"), row.get("price", 0)
        if isinstance(count, int) and isinstance(price, int | float):
            usd_month += count * price * HOURS_A_MONTH
        if pool is None:
            yield finding(Defect.ROUTER, f"{where}.name", f"Terraform has no pool {row.get('name')}", ", ".join(pools))
            continue
        if pool.machine is not None and count != pool.chips:
            what = f"{count} chips, Terraform puts up {pool.chips}"
            yield finding(Defect.ROUTER, f"{where}.count", what, f"count: {pool.chips}")
        queue = (row.get("address") or {}).get("queue")
        if queue is not None and queue not in queues:
            yield finding(
                Defect.QUEUE, f"{where}.address.queue", f"there is no queue {queue}", ", ".join(sorted(queues))
            )
    planned = facts.get("usd_month")
    if isinstance(planned, int | float) and usd_month > planned * (1 + 1e-6) + CENT:
        what = f"all up it costs ${usd_month:,.0f} a month, the decision was ${planned:,.0f}"
        yield finding(Defect.BUDGET, "pools", what, "fewer chips, or write the new decision")


def _run_terraform(folder: Path) -> tuple[list[Finding], list[str], list[str]]:
    """Terraform's own checks, as far as they run here."""
    program = shutil.which("terraform") or shutil.which("tofu")
    if program is None:
        return [], [], ["terraform fmt and validate: terraform is not on the PATH"]
    name = Path(program).name
    formatted = _run([program, "fmt", "-check", "-list=true", "-recursive", "-no-color"], folder)
    findings = [
        Finding(defect=Defect.FORMAT, file=file, field="", what="is not formatted", fix=f"{name} fmt {file}")
        for file in formatted.stdout.split()
    ]
    if formatted.returncode not in FMT_STATUSES:
        words = " ".join(formatted.stderr.replace("│", " ").replace("╷", " ").replace("╵", " ").split())
        what = words[words.find("Error") :][:200]
        findings.append(Finding(defect=Defect.TERRAFORM, file="", field="", what=what, fix=f"{name} fmt says where"))
    if not (folder / ".terraform").is_dir():
        return (
            findings,
            [f"{name} fmt"],
            [f"{name} validate: needs `{name} init` in the folder, which loads the provider"],
        )
    validated = _run([program, "validate", "-json"], folder)
    try:
        diagnostics = json.loads(validated.stdout).get("diagnostics", [])
    except ValueError:
        raise InputError("folder", str(folder), f"one that {name} validate reads ({validated.stderr[:100]})") from None
    for diagnostic in diagnostics:
        place = diagnostic.get("range") or {}
        findings.append(
            Finding(
                defect=Defect.TERRAFORM,
                file=str(place.get("filename", "")),
                line=int((place.get("start") or {}).get("line", 0)),
                field=str((diagnostic.get("snippet") or {}).get("context") or ""),
                what=str(diagnostic.get("summary", "")),
                fix=" ".join(str(diagnostic.get("detail", "")).split()),
            )
        )
    return findings, [f"{name} fmt", f"{name} validate"], []


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
