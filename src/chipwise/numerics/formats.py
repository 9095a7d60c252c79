"""Number formats below fp32: what they can hold, and how a value is rounded to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format; subnormals are kept, as tensor cores keep them.

    `saturates`: what is too large becomes the largest number, as casts to fp8 do, instead of infinity.
    """

    name: str
    mantissa_bits: int
    least_exponent: int  # of the smallest normal number
    largest: float
    saturates: bool = False

    @property
    def smallest(self) -> float:
        """The smallest positive number; half of it and less rounds to 0.

        >>> FP16.smallest, E4M3.smallest
        (5.960464477539063e-08, 0.001953125)
        """
        return float(2.0 ** (self.least_exponent - self.mantissa_bits))

    @property
    def range_of_fp32(self) -> bool:
        """Whether nothing that fp32 holds is too large or too small (but for its own subnormals)."""
        return self.least_exponent == -126


# IEEE 754 binary16; bfloat16; and the two of "FP8 Formats for Deep Learning" (arXiv 2209.05433)
FP16 = Format("fp16", 10, -14, 65_504.0)
BF16 = Format("bf16", 7, -126, float(2.0**127 * (2 - 2.0**-7)))
E4M3 = Format("e4m3", 3, -6, 448.0, saturates=True)
E5M2 = Format("e5m2", 2, -14, 57_344.0, saturates=True)


def rounded(values: NDArray[np.float32], to: Format) -> NDArray[np.float32]:
    """Values rounded to the nearest number of a format, ties to even: the definition the engines are held to.

    >>> import numpy as np
    >>> rounded(np.float32([1.001, 70000.0, 2e-8]), FP16).tolist()
    [1.0009765625, inf, 0.0]
    >>> rounded(np.float32([1.001, 70000.0]), E4M3).tolist()
    [1.0, 448.0]
    """
    import numpy as np

    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        exponent = np.maximum(np.frexp(wide)[1] - 1, to.least_exponent)
        step = np.exp2((exponent - to.mantissa_bits).astype(np.float64))
        near = np.round(wide / step) * step
        if to.saturates:
            near = np.where(np.isinf(wide), wide, np.clip(near, -to.largest, to.largest))
        else:
            near = np.where(np.abs(near) > to.largest, np.copysign(np.inf, wide), near)
        near = np.where(np.isfinite(wide), near, wide)
    return near.astype(np.float32)
