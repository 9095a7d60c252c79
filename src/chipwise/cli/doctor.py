"""chipwise doctor: which compilers are installed, and what each enables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import OutFile, TableJson

if TYPE_CHECKING:
    from chipwise.compiled.cache import Cache
    from chipwise.compiled.worker.versions import Installed
    from chipwise.present.blocks import Block

EXAMPLES = """\b
Examples:
  chipwise doctor
  chipwise doctor --require tpu,torch
  chipwise doctor -o json
"""
MISSING = 1  # exit status: something required is not usable
_ALIASES = {"gpu": "cuda"}


def doctor(
    require: Annotated[
        str | None,
        typer.Option(
            "--require",
            metavar="LIST",
            help="Leave with 1 unless these are usable: tpu, gpu, torch, export. Of those, what this platform can "
            "have.",
            show_default=False,
        ),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Show the compilers installed, and what each enables.

    For a missing one, the command that installs it, and under which licence it comes; where this platform can't have
    it, the ways out.
    """
    from chipwise.compiled.cache import default_cache
    from chipwise.compiled.worker.versions import installed
    from chipwise.present.output import emit, emit_json, formats

    formats(output, "table", "json")
    found = installed()
    wanted = _wanted(require, found)
    cache = default_cache()
    if output == "json":
        emit_json(_record(found, cache), out)
    else:
        emit(_blocks(found, cache), out)
    unusable = [each for each in found if each.toolchain.id in wanted and not each.usable]
    lacking = [each.toolchain.id for each in unusable if each.available]
    for each in unusable:
        if not each.available:
            typer.echo(f"chipwise: not required here: {each.error()}", err=True)
    if lacking:
        typer.echo(f"chipwise: required but not usable: {', '.join(lacking)}", err=True)
        raise typer.Exit(MISSING)


def _wanted(require: str | None, found: tuple[Installed, ...]) -> set[str]:
    from chipwise.errors import InputError

    known = [each.toolchain.id for each in found]
    names = [name.strip().lower() for name in (require or "").split(",") if name.strip()]
    wanted = {_ALIASES.get(name, name) for name in names}
    for name in names:
        if _ALIASES.get(name, name) not in known:
            accepted = ", ".join({value: key for key, value in _ALIASES.items()}.get(each, each) for each in known)
            raise InputError("--require", name, f"some of {accepted}")
    return wanted


def _record(found: tuple[Installed, ...], cache: Cache) -> dict[str, Any]:
    from chipwise.cli.records import head

    entries = cache.entries()
    return {
        **head("doctor"),
        "compilers": [
            {
                "id": each.toolchain.id,
                "name": each.toolchain.name,
                "usable": each.usable,
                "available": each.available,
                "versions": dict(each.versions),
                "missing": list(each.missing),
                "problem": each.problem,
                "enables": each.toolchain.enables,
                "install": _install(each),
                "elsewhere": "" if each.usable else each.toolchain.elsewhere(),
                "licence": each.toolchain.licence,
            }
            for each in found
        ],
        "cache": {
            "folder": str(cache.root),
            "entries": len(entries),
            "bytes": sum(e.bytes for e in entries),
            "limit_bytes": cache.limit_bytes,
        },
    }


def _install(each: Installed) -> str:
    return each.toolchain.command() if not each.usable and each.toolchain.runs_here() else ""


def _blocks(found: tuple[Installed, ...], cache: Cache) -> list[Block]:
    from chipwise.present.blocks import Table, Text
    from chipwise.present.numbers import plural
    from chipwise.units import format_bytes

    rows = [
        [
            each.toolchain.name,
            "yes" if each.usable else "no",
            ", ".join(f"{name} {version}" for name, version in each.versions.items()) or "-",
            each.toolchain.enables,
        ]
        for each in found
    ]
    out: list[Block] = [
        Table(
            ["compiler", "usable", "versions", "enables"],
            rows,
            frozenset({"compiler", "usable", "versions", "enables"}),
            under=("versions",),
        )
    ]
    missing = [each for each in found if not each.usable]
    if missing:
        out.append(Text("Missing", True))
    for each in missing:
        out.append(Text(f"  {each.toolchain.name}: {each.problem}"))
        unlock = _install(each) or each.toolchain.elsewhere()
        out += [Text(f"    {unlock}")] if unlock else []
    out.append(Text("Licences", True))
    out += [Text(f"  {each.toolchain.name}: {each.toolchain.licence}") for each in found if each.toolchain.licence]
    entries = cache.entries()
    used = format_bytes(float(sum(entry.bytes for entry in entries)))
    limit = format_bytes(float(cache.limit_bytes))
    return [
        *out,
        Text("Cache", True),
        Text(
            f"  {cache.root}: {plural(len(entries), 'program')}, {used} of {limit}; "
            "$CHIPWISE_CACHE and $CHIPWISE_CACHE_BYTES change them"
        ),
    ]
