"""One way to split a workload over chips (`Layout`), and many of them as arrays (`Layouts`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InputError
from chipwise.io.brief import brief

RECOMPUTE = ("none", "selective", "full", "offload")
AXES = ("dp", "fsdp", "tp", "pp", "cp", "ep", "vpp", "mbs", "zero", "shard")


@dataclass(frozen=True, slots=True)
class Layout:
    """dp x tp x pp x cp chips; `shard` of the dp replicas share one copy of the state by ZeRO stage `zero`.

    `ep` experts groups lie inside dp x cp. `pipe_inner` puts pipeline neighbours closer together than data
    replicas on the wires; otherwise the pipeline is the outermost axis.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    micro_batch: float = 1
    zero: int = 0
    shard: int = 1
    recompute: str = "none"
    pipe_inner: bool = False

    @property
    def chips(self) -> int:
        """Chips the layout uses."""
        return self.dp * self.tp * self.pp * self.cp

    def __str__(self) -> str:
        parts = []
        if self.zero == 3:
            parts.append(f"fsdp={self.shard}")
            if self.dp > self.shard:
                parts.append(f"dp={self.dp // self.shard}")
        else:
            parts.append(f"dp={self.dp}")
            if self.zero:
                parts.append(f"zero={self.zero}")
                if self.shard != self.dp:
                    parts.append(f"shard={self.shard}")
        for name in ("tp", "pp", "cp", "ep", "vpp"):
            if getattr(self, name) > 1:
                parts.append(f"{name}={getattr(self, name)}")
        parts.append(f"mbs={self.micro_batch:g}")
        if self.recompute != "none":
            parts.append(f"recompute={self.recompute}")
        if self.pipe_inner and self.pp > 1:
            parts.append("pipe=inner")
        return ",".join(parts)


def parse_layout(text: str, chips: int, global_batch: int, heads: int = 0) -> Layout:
    """A layout from words: ``fsdp=128``, ``tp=8,pp=4,vpp=2,mbs=1,recompute=full``; dp fills what is left.

    >>> parse_layout("tp=8,pp=4", 128, 256).dp
    4
    >>> str(parse_layout("fsdp=16,tp=2", 32, 64))
    'fsdp=16,tp=2,mbs=4'
    """
    given: dict[str, int] = {}
    seen: set[str] = set()
    recompute, inner = "none", False
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        key, _, value = part.partition("=")
        key = {"mb": "mbs", "micro_batch": "mbs", "vp": "vpp"}.get(key.lower(), key.lower())
        if key in seen:
            raise InputError("layout", part, f"each axis once; {key} is given twice")
        seen.add(key)
        if key == "recompute":
            if value not in RECOMPUTE:
                raise InputError("layout recompute", value, "one of " + ", ".join(RECOMPUTE))
            recompute = value
        elif key == "pipe":
            if value not in ("inner", "outer"):
                raise InputError("layout pipe", value, "inner or outer")
            inner = value == "inner"
        elif key not in AXES:
            raise InputError("layout", part, "axis=number with an axis of " + ", ".join(AXES))
        elif not (value.isascii() and value.isdigit()) or (int(value) < 1 and key != "zero") or int(value) > 1_000_000:
            raise InputError(f"layout {key}", value, "a whole number of at least 1")
        else:
            given[key] = int(value)
    zero = given.get("zero", 3 if "fsdp" in given else 0)
    if zero > 3 or ("fsdp" in given and zero != 3):
        raise InputError("layout zero", zero, "a ZeRO stage from 0 to 3; fsdp is stage 3")
    tp, pp, cp = given.get("tp", 1), given.get("pp", 1), given.get("cp", 1)
    model = tp * pp * cp
    if chips % model:
        raise InputError(
            "layout",
            text,
            f"axes that divide the chips: tp({tp}) * pp({pp}) * cp({cp}) = {model} does not divide {chips}",
        )
    dp = chips // model
    asked = given.get("dp", 0) * given.get("fsdp", 1) if "dp" in given else given.get("fsdp", 0)
    if "dp" in given and "fsdp" not in given:
        asked = given["dp"]
    if "fsdp" in given and "dp" not in given and dp % given["fsdp"] == 0:
        asked = dp  # what is left over replicates the sharded groups
    if asked and asked != dp:
        words = " * ".join(f"{k}({given[k]})" for k in ("dp", "fsdp", "tp", "pp", "cp") if k in given)
        raise InputError("layout", text, f"axes that multiply to the chips: {words} != chips({chips})")
    shard = given.get("fsdp", given.get("shard", dp if zero else 1))
    if dp % shard or (shard > 1 and not zero):
        raise InputError("layout shard", shard, f"a divisor of dp({dp}), with a ZeRO stage of at least 1")
    if global_batch % dp:
        raise InputError("layout dp", dp, f"a divisor of the global batch {global_batch}")
    mbs = given.get("mbs", 0) or (_largest_divisor(global_batch // dp, 4) if pp == 1 else 1)
    if (global_batch // dp) % mbs:
        raise InputError("layout mbs", mbs, f"a divisor of the {global_batch // dp} sequences a replica has")
    ep = given.get("ep", 1)
    if (dp * cp) % ep:
        raise InputError("layout ep", ep, f"a divisor of dp({dp}) * cp({cp}) = {dp * cp}")
    vpp = given.get("vpp", 1)
    if vpp > 1 and pp == 1:
        raise InputError("layout vpp", vpp, "1 when pp is 1")
    if heads and heads % tp:
        raise InputError("layout tp", tp, f"a divisor of the model's {heads} heads")
    return Layout(dp, tp, pp, cp, ep, vpp, mbs, zero, shard, recompute, inner)


def _largest_divisor(n: int, limit: int) -> int:
    return max(d for d in range(1, min(n, limit) + 1) if n % d == 0)


@brief
@dataclass(frozen=True, slots=True)
class Layouts:
    """Many layouts as arrays. `key` points into the distinct (micro-batch, tp, cp, ep) of `key_*`.

    Everything that needs kernel shapes is computed once per key and gathered, which is what makes a million
    layouts a second possible.
    """

    dp: NDArray[np.float64]
    pp: NDArray[np.float64]
    vpp: NDArray[np.float64]
    zero: NDArray[np.int8]
    shard: NDArray[np.float64]
    recompute: NDArray[np.int8]
    pipe_inner: NDArray[np.bool_]
    key: NDArray[np.intp]
    key_micro_batch: NDArray[np.float64]
    key_tp: NDArray[np.float64]
    key_cp: NDArray[np.float64]
    key_ep: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.dp)

    @property
    def tp(self) -> NDArray[np.float64]:
        """Tensor-parallel size of each layout."""
        return self.key_tp[self.key]

    @property
    def cp(self) -> NDArray[np.float64]:
        """Context-parallel size of each layout."""
        return self.key_cp[self.key]

    @property
    def ep(self) -> NDArray[np.float64]:
        """Expert-parallel size of each layout."""
        return self.key_ep[self.key]

    @property
    def micro_batch(self) -> NDArray[np.float64]:
        """Sequences of a micro-batch of each layout."""
        return self.key_micro_batch[self.key]

    def at(self, i: int) -> Layout:
        """The i-th layout on its own."""
        k = int(self.key[i])
        return Layout(
            int(self.dp[i]),
            int(self.key_tp[k]),
            int(self.pp[i]),
            int(self.key_cp[k]),
            int(self.key_ep[k]),
            int(self.vpp[i]),
            float(self.key_micro_batch[k]),
            int(self.zero[i]),
            int(self.shard[i]),
            RECOMPUTE[int(self.recompute[i])],
            bool(self.pipe_inner[i]),
        )

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Layouts:
        """Some of the layouts."""
        per_key = ("key_micro_batch", "key_tp", "key_cp", "key_ep")
        return Layouts(
            **{
                f.name: getattr(self, f.name) if f.name in per_key else getattr(self, f.name)[rows]
                for f in fields(self)
            }
        )

    @classmethod
    def of(cls, layouts: Sequence[Layout]) -> Layouts:
        """Arrays from single layouts."""
        keys = sorted({(x.micro_batch, x.tp, x.cp, x.ep) for x in layouts})
        index = {k: i for i, k in enumerate(keys)}
        table = np.array(keys, float).reshape(-1, 4)
        return cls(
            np.array([x.dp for x in layouts], float),
            np.array([x.pp for x in layouts], float),
            np.array([x.vpp for x in layouts], float),
            np.array([x.zero for x in layouts], np.int8),
            np.array([x.shard for x in layouts], float),
            np.array([RECOMPUTE.index(x.recompute) for x in layouts], np.int8),
            np.array([x.pipe_inner for x in layouts], bool),
            np.array([index[(x.micro_batch, x.tp, x.cp, x.ep)] for x in layouts], np.intp),
            table[:, 0],
            table[:, 1],
            table[:, 2],
            table[:, 3],
        )
