"""The verb that measures this machine, and reads, compares and draws what was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.verbs import defaults

if TYPE_CHECKING:
    from chipwise.bench.diff import BenchDiff
    from chipwise.bench.file import BenchFile
    from chipwise.bench.roofline import Roofline
    from chipwise.bench.run import BenchRun
    from chipwise.bench.session import BenchPlan, Event


class Bench:
    """Measure this machine: ``bench("kernels", quick=True)``; `plan`, `show`, `diff` and `roofline` as the command has.

    >>> plan = bench.plan("kernels", device="cpu", suite_size="tiny", frameworks="torch")  # ``bench(plan)`` measures it
    >>> plan.total > 10, bench.show("examples/bench/cpu.json").device.platform
    (True, 'cpu')
    >>> bench("games")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: suite: 'games' is not accepted; expected one of all, kernels, train, serve, vision, \
collectives
    """

    def __call__(
        self,
        suite: str | BenchPlan = defaults.SUITE,
        *,
        out: str | Path | None = None,
        progress: Callable[[Event], None] | None = None,
        **options: Any,
    ) -> BenchRun:
        """Measure a suite with the `options` of `plan`, or a plan made by it; kept in the file `out`."""
        from chipwise.bench.run import measure

        plan = self.plan(suite, **options) if isinstance(suite, str) else suite
        return measure(plan, None if out is None else Path(out), progress)

    @staticmethod
    def plan(
        suite: str = defaults.SUITE,
        *,
        device: str = defaults.DEVICE,
        frameworks: str | None = None,
        suite_size: str | None = None,
        quick: bool = False,
        seconds: str | float | None = None,
        hostname: bool = False,
    ) -> BenchPlan:
        """Open this machine's device through each framework, and list what would be measured on it.

        `suite` is kernels, train, serve, vision, collectives or all; `device` auto, cuda, tpu, rocm or cpu;
        `frameworks` ``"torch,jax"`` (default: those installed); `suite_size` tiny, quick (also by `quick`) or full. No
        point is begun after `seconds`. `hostname` records the machine's name.

        >>> bench.plan("kernels", suite_size="huge")
        Traceback (most recent call last):
            ...
        chipwise.errors.InputError: suite_size: 'huge' is not accepted; expected one of tiny, quick, full
        """
        from chipwise.bench.run import read_request
        from chipwise.bench.session import plan

        return plan(read_request(suite, device, frameworks, suite_size, quick, seconds, hostname))

    @staticmethod
    def show(file: str | Path, *, framework: str | None = None) -> BenchFile:
        """Read a bench file: times, rates, their share of the chip's peak; of one `framework` where it is named.

        >>> card = bench.show("examples/bench/h200-1.json.gz", framework="jax")
        >>> card.chip, {point.framework for point in card.points}
        ('h200', {'jax'})
        """
        from chipwise.bench.file import read

        measured = read(Path(file))
        return measured if framework is None else measured.of_framework(framework)

    @staticmethod
    def diff(before: str | Path, after: str | Path, *, fail_above: float | None = None) -> BenchDiff:
        """Compare two bench files point by point: Mann-Whitney U tests, held to 5 % false alarms by Benjamini-Hochberg.

        With `fail_above`, ``failures`` are the points significantly slower by more than so many percent.

        >>> changes = bench.diff("examples/bench/cpu.json", "examples/bench/cpu.json", fail_above=5)
        >>> {change.ratio for change in changes.changes}, changes.failures
        ({1.0}, ())
        """
        from chipwise.bench.diff import diff
        from chipwise.bench.file import read

        return diff(read(Path(before)), read(Path(after)), fail_above)

    @staticmethod
    def roofline(file: str | Path, *, plot: str | Path | None = None) -> Roofline:
        """The ceilings that a bench file measured, beside the catalog's; drawn to `plot`, an .svg or a .png.

        >>> card = bench.roofline("examples/bench/h200-1.json.gz")
        >>> card.measured["bf16"] < card.stated["bf16"]
        True
        """
        from chipwise.bench.file import read
        from chipwise.bench.roofline import draw, roofline

        ceilings = roofline(read(Path(file)))
        if plot is not None:
            draw(ceilings, Path(plot))
        return ceilings


bench = Bench()
