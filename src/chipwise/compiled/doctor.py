"""Which compilers are installed, what each enables, what is missing, and where compiled programs are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.compiled.cache import default_cache
from chipwise.compiled.worker.versions import Installed, installed
from chipwise.errors import InputError
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, padded, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.units import format_bytes

ALIASES = {"gpu": "cuda"}  # as people say it -> as the toolchain is known


def _install(state: Installed) -> str:
    """The command that installs it, where something is missing that this platform can have."""
    return state.toolchain.command() if not state.usable and state.toolchain.runs_here() else ""


def _versions(state: Installed) -> str:
    return ", ".join(f"{name} {version}" for name, version in state.versions.items()) or "-"


COMPILERS: list[Column[Installed]] = [
    Column("id", lambda s: s.toolchain.id, help="tpu, cuda, torch or export"),
    Column("name", lambda s: s.toolchain.name, "compiler", words=True, help="in words"),
    Column("usable", lambda s: s.usable, "usable", lambda s: "yes" if s.usable else "no", words=True, help="here"),
    Column("available", lambda s: s.available, help="whether this platform can have it"),
    Column("versions", lambda s: dict(s.versions), "versions", _versions, words=True, under=True, help="of packages"),
    Column("missing", lambda s: list(s.missing), help="packages that are not installed"),
    Column("problem", lambda s: s.problem, help="why it can't be used"),
    Column("enables", lambda s: s.toolchain.enables, "enables", words=True, help="what it is for"),
    Column("install", _install, help="the command, or empty"),
    Column("elsewhere", lambda s: "" if s.usable else s.toolchain.elsewhere(), help="where to run instead"),
    Column("license", lambda s: s.toolchain.license, help="it comes under"),
]


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The folder of compiled programs, and how full it is."""

    folder: str
    entries: int
    bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Result):
    """The compilers of this machine, and those of them that were required."""

    VERB: ClassVar[str] = "doctor"
    compilers: tuple[Installed, ...]
    cache: CacheUse
    required: frozenset[str] = frozenset()

    @property
    def lacking(self) -> tuple[Installed, ...]:
        """Required, not usable, though this platform can have them."""
        return tuple(state for state in self._unusable() if state.available)

    @property
    def impossible(self) -> tuple[Installed, ...]:
        """Required, though this platform can't have them."""
        return tuple(state for state in self._unusable() if not state.available)

    def _unusable(self) -> list[Installed]:
        return [state for state in self.compilers if state.toolchain.id in self.required and not state.usable]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        cache = self.cache
        return {
            "compilers": [record(COMPILERS, state) for state in self.compilers],
            "cache": {
                "folder": cache.folder,
                "entries": cache.entries,
                "bytes": cache.bytes,
                "limit_bytes": cache.limit_bytes,
            },
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row a compiler."""
        return padded([flat(COMPILERS, state) for state in self.compilers])

    def blocks(self) -> list[Block]:
        """For people."""
        missing = []
        for state in (state for state in self.compilers if not state.usable):
            unlock = _install(state) or state.toolchain.elsewhere()
            missing += [f"{state.toolchain.name}: {state.problem}", *([f"  {unlock}"] if unlock else [])]
        licenses = [f"{s.toolchain.name}: {s.toolchain.license}" for s in self.compilers if s.toolchain.license]
        cache = self.cache
        kept = (
            f"{cache.folder}: {plural(cache.entries, 'program')}, {format_bytes(float(cache.bytes))} of "
            f"{format_bytes(float(cache.limit_bytes))}; $CHIPWISE_CACHE and $CHIPWISE_CACHE_BYTES change them"
        )
        blocks: list[Block] = [table(COMPILERS, self.compilers), *section("Missing", missing)]
        return [*blocks, *section("Licenses", licenses), Text("Cache", True), Text(f"  {kept}")]


def diagnose(require: str | None = None) -> Diagnosis:
    """Look at what is installed; `require` names compilers that must be usable, such as ``"tpu,gpu"``."""
    compilers, cache = installed(), default_cache()
    entries = cache.entries()
    use = CacheUse(str(cache.root), len(entries), sum(entry.bytes for entry in entries), cache.limit_bytes)
    return Diagnosis(compilers, use, _required(require, compilers))


def _required(require: str | None, compilers: tuple[Installed, ...]) -> frozenset[str]:
    ids = [state.toolchain.id for state in compilers]
    names = [name.strip().lower() for name in (require or "").split(",") if name.strip()]
    for name in names:
        if ALIASES.get(name, name) not in ids:
            spoken = {toolchain: alias for alias, toolchain in ALIASES.items()}
            raise InputError("require", name, f"some of {', '.join(spoken.get(id, id) for id in ids)}")
    return frozenset(ALIASES.get(name, name) for name in names)
