"""A real Prometheus and Alertmanager in a scratch folder, and pages of exporters for them to read."""

import json
import shutil
import socket
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from patience import until

ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
needed = pytest.mark.skipif(
    shutil.which("prometheus") is None or ALERTMANAGER is None,
    reason="Prometheus and Alertmanager are not installed: make packages",
)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def listening(answer):
    """An HTTP server: `answer` takes a path and a body and gives the page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(answer(self.path, b""))

        def do_POST(self):
            self.reply(answer(self.path, self.rfile.read(int(self.headers["Content-Length"]))))

        def reply(self, page):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Prometheus:
    """One that runs."""

    def __init__(self, address):
        self.url = f"http://{address}"

    def get(self, path, **parameters):
        """The data of an answer."""
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """What a query gives now."""
        return self.get("query", query=expression)["result"]


@contextmanager
def prometheus(folder, targets, rules, webhook):
    """Prometheus that reads `targets` (name of a job: address and path) every second, and tells a webhook."""
    own, manager = (f"127.0.0.1:{free_port()}" for _ in range(2))
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    _write(
        folder / "prometheus.yml",
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
            "scrape_configs": [
                {"job_name": name, "metrics_path": path, "static_configs": [{"targets": [address]}]}
                for name, (address, path) in targets.items()
            ],
        },
    )
    _write(
        folder / "alertmanager.yml",
        {
            "route": {"receiver": "hook", "group_by": ["..."], "group_wait": "1s", "group_interval": "1s"},
            "receivers": [{"name": "hook", "webhook_configs": [{"url": f"http://{webhook}/"}]}],
        },
    )
    commands = [
        [
            ALERTMANAGER,
            "--config.file=alertmanager.yml",
            "--storage.path=alerts",
            f"--web.listen-address={manager}",
            "--cluster.listen-address=",
        ],
        [
            "prometheus",
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address={own}",
        ],
    ]
    with ExitStack() as stack:
        for command in commands:
            log = stack.enter_context((folder / f"{command[0].rpartition('/')[2]}.log").open("wb"))
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
        server = Prometheus(own)
        until(lambda: _answers(server), lambda: (folder / "prometheus.log").read_text()[-2000:])
        yield server


def _answers(server):
    try:
        return server.query("vector(1)")
    except (URLError, OSError):
        return False


def _write(path, document):
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
