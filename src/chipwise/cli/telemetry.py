"""chipwise observe scrape, agent, devices, rules, dashboards: telemetry collected, kept and watched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_yaml, one_of
from chipwise.cli.declare import argument, option, output_format, refuse
from chipwise.cli.options import EnergyPriceOpt, OutFile, SiteOpt, TableJsonCsv
from chipwise.cli.router import MetricsOpt, TokenFileOpt

SCRAPE_EXAMPLES = """\b
Examples:
  chipwise observe scrape gpu-1:9400 gpu-2:9400
  chipwise observe scrape http://serve-1:8000/metrics --interval 30s --store postgresql://ann@db/chipwise
  chipwise observe scrape --prometheus http://prometheus:9090 --since 6h --match 'cluster="a"'
"""
AGENT_EXAMPLES = """\b
Examples:
  chipwise observe agent --rounds 1
  chipwise observe agent --metrics 127.0.0.1:9466
  chipwise observe agent --store postgresql://agent@db/chipwise --store-interval 10s
"""
DEVICES_EXAMPLES = """\b
Examples:
  chipwise observe devices
  chipwise observe devices --since 1h -o csv
"""
StoreOpt = Annotated[
    str,
    option(
        "--store", "URL", "A file, or postgresql://...; default: yours.", envvar="CHIPWISE_STORE", show_envvar=False
    ),
]
RECEIVE_EXAMPLES = """\b
Examples:
  chipwise observe receive
  chipwise observe receive --listen 0.0.0.0:4318 --token-file token --store postgresql://ann@db/chipwise
"""
EXPORT_EXAMPLES = """\b
Examples:
  chipwise observe export --to october.parquet --since 31d --resolution 1h
  chipwise observe export --to power.csv --series device_power --host gpu-1,gpu-2
  chipwise observe export --to telemetry.db --resolution samples --since 6h
"""
RULES_EXAMPLES = """\b
Examples:
  chipwise observe rules --out chipwise.rules.yml
  chipwise observe rules --about serving --slo examples/llama-3.1-70b-serve.yaml
  chipwise observe rules -o table
"""
DASHBOARDS_EXAMPLES = """\b
Examples:
  chipwise observe dashboards
  chipwise observe dashboards --to dashboards --site germany
"""
RULE_FORMATS = ("yaml", "table", "json", "csv")
INSTRUMENTS = ("nvidia", "amd", "tpu", "host", "kernel", "notices")
RESOLUTIONS = ("samples", "5min", "1h")
FILE_FORMATS = ("csv", "sqlite", "parquet")
TOPICS = ("devices", "serving", "router", "jobs")


def scrape(
    endpoints: Annotated[
        list[str] | None, argument("ENDPOINT...", "Pages of metrics: host:port, or http://host:port/metrics.")
    ] = None,
    store: StoreOpt = "",
    interval: Annotated[str, option("--interval", "TIME", "Between two rounds.")] = "10s",
    rounds: Annotated[
        int | None, option("--rounds", "N", "So many rounds; default: until it is stopped.", min=1)
    ] = None,
    prometheus: Annotated[
        str | None, option("--prometheus", "URL", "Instead of endpoints: a Prometheus that has their metrics already.")
    ] = None,
    since: Annotated[
        str | None, option("--since", "TIME", "What --prometheus has since so long ago. Default: what is new.")
    ] = None,
    step: Annotated[
        str | None, option("--step", "TIME", "Between two values of a series, with --prometheus. Default: 30s.")
    ] = None,
    match: Annotated[
        str | None, option("--match", "LABELS", 'Of --prometheus only these, as PromQL has them: cluster="a".')
    ] = None,
    token_file: Annotated[Path | None, option("--token-file", "FILE", "The bearer token of --prometheus.")] = None,
    token_env: Annotated[
        str | None, option("--token-env", "NAME", "The variable that holds the bearer token of --prometheus.")
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Ask exporters that run already, and keep what they say as one set of series, whichever exporter it is.

    dcgm-exporter, nvidia_gpu_exporter, AMD's exporter, GKE's TPU device plugin, Ray, vLLM, SGLang, Kueue, `observe
    agent`; or a Prometheus that scrapes them. What they leave out is absent and not zero. An endpoint that is down is
    told on stderr and does not stop the others.
    """
    from chipwise import api
    from chipwise.present.output import show

    def tell(words: str) -> None:
        typer.echo(f"observe scrape: {words}", err=True)

    answer = api.scrape(
        endpoints or (),
        store=store,
        interval=interval,
        rounds=rounds,
        prometheus=prometheus,
        since=since,
        step=step,
        match=match,
        token_file=token_file,
        token_env=token_env,
        tell=tell,
    )
    show(answer, output, out)


def agent(
    only: Annotated[
        str | None,
        option(
            "--only",
            "LIST",
            f"Of {', '.join(INSTRUMENTS)} these, comma separated. Default: all that are here.",
            one_of(*INSTRUMENTS),
        ),
    ] = None,
    interval: Annotated[str, option("--interval", "TIME", "Between two looks.")] = "1s",
    metrics: MetricsOpt = None,
    token_file: TokenFileOpt = None,
    store: Annotated[
        str | None, option("--store", "URL", "Keep it: a file, or postgresql://... Default: it is not kept.")
    ] = None,
    store_interval: Annotated[
        str | None, option("--store-interval", "TIME", "Between two samples kept. Default: 10s.")
    ] = None,
    rounds: Annotated[
        int | None, option("--rounds", "N", "So many rounds; default: until it is stopped.", min=1)
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Read what this node has: its GPUs or TPUs, its host, faults in its kernel log, and what its cloud says is coming.

    Serves it to Prometheus (--metrics), keeps it (--store), or shows it (--rounds 1). Devices are told with the
    attempt, job or pod that uses them. What does not answer is told, and does not stop the others.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.present.output import show

    if metrics is None and store is None and rounds is None:
        raise InputError("--rounds", "none", "--rounds 1, or --metrics or --store for what is read until it is stopped")
    if metrics is None:
        refuse({"--token-file": str(token_file) if token_file else None}, "--metrics beside it")
    if store is None:
        refuse({"--store-interval": store_interval}, "--store beside it")

    def tell(words: str) -> None:
        typer.echo(f"observe agent: {words}", err=True)

    names = [] if only is None else [name.strip() for name in only.split(",")]
    reading = api.observe_node(
        names,
        interval=interval,
        listen=metrics,
        token_file=token_file,
        store=store,
        store_interval=store_interval or "10s",
        rounds=rounds,
        tell=tell if rounds is None or metrics is not None else None,  # else the table says it
    )
    show(reading, output, out)


def devices(
    store: StoreOpt = "",
    since: Annotated[str, option("--since", "TIME", "Values no older than this.")] = "5min",
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Devices, and services, by the newest value of each series that was kept."""
    from chipwise import api
    from chipwise.present.output import show

    show(api.devices(store, since=since), output, out)


def receive(
    listen: Annotated[
        str, option("--listen", "HOST:PORT", "Where programs send to. Off loopback a token is needed.")
    ] = "127.0.0.1:4318",
    store: StoreOpt = "",
    seconds: Annotated[str | None, option("--for", "TIME", "So long; default: until it is stopped.")] = None,
    token_file: TokenFileOpt = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Take the metrics that programs and collectors send by OpenTelemetry's protocol, and keep them as the same series.

    OTLP over HTTP, in protobuf or JSON, at /v1/metrics. What training programs tell of their steps, what servers and
    exporters tell by way of a collector, and hw.gpu; anything else is ignored.
    """
    from chipwise import api
    from chipwise.present.output import show

    def tell(words: str) -> None:
        typer.echo(f"observe receive: {words}", err=True)

    show(api.receive_telemetry(listen, store, seconds=seconds, token_file=token_file, tell=tell), output, out)


def export(
    to: Annotated[Path, option("--to", "FILE", "The file to write: .csv, .db (SQLite) or .parquet.")],
    store: StoreOpt = "",
    format: Annotated[
        str | None,
        option("--format", "FORMAT", "csv, sqlite or parquet. Default: by the ending.", one_of(*FILE_FORMATS)),
    ] = None,
    resolution: Annotated[
        str,
        option("--resolution", "NAME", "samples (2 days), 5min (31 days) or 1h (400 days).", one_of(*RESOLUTIONS)),
    ] = "5min",
    since: Annotated[str, option("--since", "TIME", "How long ago, or a moment: 7d, 2026-11-02T10:00:00Z.")] = "1d",
    until: Annotated[str, option("--until", "TIME", "A moment, or now.")] = "now",
    series: Annotated[str | None, option("--series", "NAMES", "These, comma separated. Default: all.")] = None,
    host: Annotated[str | None, option("--host", "NAMES", "Of these, comma separated. Default: all.")] = None,
    device: Annotated[str | None, option("--device", "NAMES", "Of these, comma separated. Default: all.")] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Write what was kept into a file of rows that other tools read: CSV, a SQLite database, or Parquet.

    A row a value: at, series, host, device, labels, unit, count, mean, least, most. Parquet takes pyarrow.
    """
    from chipwise import api
    from chipwise.present.output import show

    def names(text: str | None) -> list[str]:
        return [] if text is None else [name.strip() for name in text.split(",")]

    answer = api.export_telemetry(
        to,
        store,
        format=format,
        resolution=resolution,
        since=since,
        until=until,
        series=names(series),
        hosts=names(host),
        devices=names(device),
    )
    show(answer, output, out)


def rules(
    about: Annotated[
        str | None,
        option("--about", "WHAT", f"Alerts about {', '.join(TOPICS)}, comma separated. Default: all.", one_of(*TOPICS)),
    ] = None,
    slo: Annotated[
        str | None, option("--slo", "FILE", "Watch the SLO of this workload of serving.", complete_yaml)
    ] = None,
    output: Annotated[str, output_format("yaml (for Prometheus), table, json or csv.", *RULE_FORMATS)] = "yaml",
    out: OutFile = None,
) -> None:
    """Write rules for Prometheus: what exporters call by many names as one set of series, and alerts on them.

    Of dcgm-exporter, nvidia_gpu_exporter, AMD's exporter, GKE's TPU device plugin, Ray, vLLM, SGLang, a router's
    --metrics, `observe agent --metrics` and `observe jobs --metrics`. A rule whose exporter you do not run stays empty.
    """
    from chipwise import api
    from chipwise.present.output import show, write

    topics = [] if about is None else [name.strip() for name in about.split(",")]
    answer = api.alert_rules(about=topics, slo=slo)
    if output == "yaml":
        write(answer.text, out)
    else:
        show(answer, output, out)


def dashboards(
    to: Annotated[Path | None, option("--to", "DIR", "A folder for their files. Default: list the panels.")] = None,
    site: SiteOpt = None,
    energy_price: EnergyPriceOpt = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Make dashboards for Grafana over what `observe rules` records: fleet, pools, jobs, serving and cost."""
    from chipwise import api
    from chipwise.present.output import show

    show(api.dashboards(to, site=site, energy_price=energy_price), output, out)
