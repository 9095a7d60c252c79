"""chipwise router: the loop that sends jobs to pools, and how it stands."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.completion import complete_policies, complete_yaml
from chipwise.cli.declare import group, option
from chipwise.cli.options import OutFile, TableJson
from chipwise.route.names import DEFAULT_POLICY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.cli.router_log import RouterLog
    from chipwise.route.ledger import Ledger
    from chipwise.route.load import Pools
    from chipwise.route.router import Router
    from chipwise.route.router.service import ServiceOptions

EXAMPLES = """\b
Examples:
  chipwise router run --pools examples/pools/local.yaml --until-idle
  chipwise router status
"""
RUN_EXAMPLES = """\b
Examples:
  chipwise router run --pools examples/pools/local.yaml --until-idle
  chipwise router run --pools pools.yaml --policy cheapest --metrics 127.0.0.1:9464
  chipwise router run --pools pools.yaml --ledger postgresql://router@db/chipwise --policy max-min-fair
"""
STATUS_EXAMPLES = """\b
Examples:
  chipwise router status
  chipwise router status --ledger postgresql://router@db/chipwise -o json
"""

app = group("router", "Send the jobs of a ledger to the pools that suit them.", EXAMPLES)


LedgerOpt = Annotated[
    str,
    option(
        "--ledger",
        "URL",
        "A file, postgresql://..., or a service: unix:///PATH (CHIPWISE_LEDGER; default: yours).",
        envvar="CHIPWISE_LEDGER",
        show_default=False,
        show_envvar=False,
    ),
]
POOLS = option(
    "--pools",
    "FILE",
    "The pools file (YAML; CHIPWISE_POOLS).",
    complete_yaml,
    envvar="CHIPWISE_POOLS",
    show_envvar=False,
)
MetricsOpt = Annotated[
    str | None,
    option("--metrics", "HOST:PORT", "Serve /metrics there, for Prometheus. Off loopback a token is needed."),
]
TokenFileOpt = Annotated[
    Path | None, option("--token-file", "FILE", "The bearer token of /metrics (or CHIPWISE_METRICS_TOKEN).")
]
PoolsFile = Annotated[Path, POOLS]
PoolsOpt = Annotated[Path | None, POOLS]


@app.command("run", epilog=RUN_EXAMPLES)
def run(
    pools: PoolsFile,
    policy: Annotated[
        str, option("--policy", "NAME", "How pools are chosen: a policy's name, or one of your own.", complete_policies)
    ] = DEFAULT_POLICY,
    ledger: LedgerOpt = "",
    interval: Annotated[str, option("--interval", "TIME", "Between two scheduling passes.")] = "2s",
    lease: Annotated[str, option("--lease", "TIME", "Lease timeout before another router takes over.")] = "30s",
    weights: Annotated[
        list[str] | None, option("--weight", "NAME=VALUE", "A weight of the policy: cost=2, delay=20. Repeatable.")
    ] = None,
    metrics: MetricsOpt = None,
    token_file: TokenFileOpt = None,
    keep: Annotated[
        str, option("--keep", "TIME", "How long folders of attempts stay once their jobs are over; or forever.")
    ] = "30d",
    once: Annotated[bool, typer.Option("--once", help="Do one scheduling pass and stop.")] = False,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Leave when no job is open.")] = False,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Send jobs to pools until told to stop; it may be killed at any moment.

    Each scheduling pass: what the backends show is brought together with the ledger, ended attempts are settled
    (succeeded, tried again elsewhere, or failed with the reason), the policy decides, and what it decided is written
    down before any backend hears of it. Several routers may share a ledger. Ctrl-C or SIGTERM leaves in good order;
    what runs goes on.
    """
    from chipwise.errors import InputError
    from chipwise.io.atomic import check_writable
    from chipwise.io.endpoint import read_token
    from chipwise.present.output import show
    from chipwise.route.ledger import open_ledger
    from chipwise.route.load import read_pools
    from chipwise.route.router.service import ServiceOptions

    check_writable(out)
    options = ServiceOptions.read(policy, interval, lease, keep, weights, once, until_idle)
    if token_file is not None and metrics is None:
        raise InputError("--token-file", str(token_file), "--metrics beside it")
    read, token = read_pools(pools), read_token(token_file)
    with open_ledger(ledger) as book:
        quiet = output == "json" or out is not None
        log = _run(book, read, options, metrics, token, quiet=quiet)
        if quiet:  # while the ledger is open: what it counts is read from there
            show(log, output, out)


def _run(
    book: Ledger, pools: Pools, options: ServiceOptions, metrics: str | None, token: str, *, quiet: bool
) -> RouterLog:
    from chipwise.cli.router_log import RouterLog
    from chipwise.io.endpoint import Endpoint
    from chipwise.present.progress import waiting
    from chipwise.route.router.service import router_of, serve

    gauges = endpoint = None
    if metrics is not None:
        from chipwise.route.router.metrics import Metrics

        gauges = Metrics(pools.pools, options.lease_s)
        endpoint = Endpoint(metrics, token, gauges.text)
    try:
        with router_of(book, pools, options) as router, _leaving_when_asked(router):
            with waiting("router: compiling the scheduler, once on this machine", every_s=10.0):
                router.warm()
            log = RouterLog(router, pools, options.interval_s, quiet)
            if endpoint is not None:
                endpoint.start()
                log.say(f"metrics: port {endpoint.port}, /metrics" + (", with the bearer token" if token else ""))
            log.end(serve(router, options, log.tick, gauges, log.trouble))
    finally:
        if endpoint is not None:
            endpoint.stop()
    return log


@contextmanager
def _leaving_when_asked(made: Router) -> Iterator[None]:
    """SIGTERM and SIGINT end compiling at once, else the loop after its scheduling pass; a second ends the process."""
    import signal
    from types import FrameType

    from chipwise.route.router.plan import Told

    def asked(number: int, frame: FrameType | None) -> None:
        made.stopping.set()
        signal.signal(number, before[signal.Signals(number)])
        if made.planner.warming:
            raise Told

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@app.command("status", epilog=STATUS_EXAMPLES)
def status(
    ledger: LedgerOpt = "",
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """How routing stands: routers, backends with what they last said, jobs by state, what is wrong in the ledger."""
    from chipwise.present import output as present
    from chipwise.route.router.status import router_status

    present.show(router_status(ledger), output, out)
