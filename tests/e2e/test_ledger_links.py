"""The way to a PostgreSQL ledger: a server that says nothing, and one that may not be who it should be."""

import os
import shutil
import signal
import time

import chaos
import pytest
from postgres_server import SERVER, postgres_server

from certificates import Authority
from chipwise.route.ledger import Ledger, LedgerError, connection, open_ledger
from chipwise.route.ledger.connection import parameters, weak_tls
from chipwise.route.ledger.postgres import PostgreSQL
from patience import ENDS_S, PATIENCE_S, raised_by, until

pytestmark = pytest.mark.service

POOLS = """
folder: {folder}
pools:
  - {{name: near, backend: local, chip: cpu, count: 2}}
"""
# an address of this machine that is not of loopback by its number: what holds for other machines holds for it
HERE = "0.0.0.0"


@pytest.fixture(scope="module")
def server():
    with postgres_server() as running:
        yield running


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(connection, "STATEMENT_S", 0.5)
    monkeypatch.setattr(connection, "SILENT_S", 0.5)


def test_every_connection_has_its_time_outs(server):
    with open_ledger(server.database("settings")) as ledger:
        settings = {
            name: ledger._db.one("SELECT setting FROM pg_settings WHERE name = ?", name)[0]
            for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        }
        assert settings == {
            "statement_timeout": "25000",
            "lock_timeout": "20000",
            "idle_in_transaction_session_timeout": "60000",
        }
        libpq = ledger._db._link.info.get_parameters()
    wanted = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    assert {name: libpq[name] for name in wanted} == {name: str(connection.LIBPQ[name]) for name in wanted}
    given = parameters("postgresql://db/x?keepalives_idle=99")
    assert "keepalives_idle" not in given and given["keepalives_count"] == 3  # what the URL says stands


def test_a_server_that_is_stopped_is_given_up_in_one_line_and_found_again(server, short):
    url = server.database("stopped")
    ledger = Ledger(PostgreSQL(url, busy_s=0.2))
    assert ledger.jobs() == []
    with server.silent(server.backends("stopped")):
        error = raised_by(ledger.jobs)
        assert isinstance(error, LedgerError) and error.temporary
        assert "does not answer (nothing heard from it for 1.2 s)" in str(error) and "\n" not in str(error)
        assert ledger.jobs() == []  # over a new connection: the server itself lives
    with server.silent(server.backends("stopped"), whole=True):
        ledger.hurry_when(lambda: True)
        assert "does not answer" in str(raised_by(ledger.jobs))
        assert "does not answer" in str(raised_by(ledger.jobs))  # nor does it take new connections
    assert ledger.jobs() == []
    ledger.close()


def test_a_step_that_takes_too_long_is_ended_by_the_server(server, short):
    with open_ledger(server.database("late")) as ledger:
        ledger._db.run("SET statement_timeout = 100")
        with pytest.raises(LedgerError, match="took too long") as late:
            ledger._db.all("SELECT pg_sleep(30)")
        assert late.value.temporary and ledger.jobs() == []


@pytest.fixture
def routed(server, tmp_path, request):
    """A router at work on a database of its own, with jobs of a second or so."""
    (tmp_path / "pools.yaml").write_text(POOLS.format(folder=tmp_path / "state"), encoding="utf-8")
    name, idle = request.node.name[:40], "recovers" in request.node.name
    url = server.database(name)
    with open_ledger(url) as ledger:
        ledger.submit(chaos.jobs(tmp_path / "logs", 6, [chaos.option("near", 0.1)], (0.5,)), time.time())
    words = ["router", "run", "--pools", tmp_path / "pools.yaml", "--ledger", url, "--policy", "fastest"]
    words += ["--interval", "0.1s"] + (["--until-idle"] if idle else [])
    router = chaos.RouterProcess(chaos.command(*words), tmp_path / "router.txt", chaos.environment())
    until(lambda: "submitted" in router.said() or router.process.poll() is not None, router.said)
    yield router, name, url
    if router.process.poll() is None:
        router.kill()


def test_a_router_whose_database_is_silent_says_so_and_recovers(server, routed, tmp_path):
    router, name, url = routed
    with server.silent(server.backends(name)):
        until(lambda: "does not answer" in router.said() or router.process.poll() is not None, router.said)
        assert router.process.poll() is None, router.said()
    assert router.process.wait(PATIENCE_S) == 0, router.said()
    said = router.said()
    assert "tried again" in said and "answers again" in said and "hunter2" not in said
    with open_ledger(url) as ledger:
        assert {row.state for row in ledger.jobs()} == {"succeeded"} and ledger.check() == []
    logs = [(tmp_path / "logs" / f"{n}.log").read_text().split() for n in range(6)]
    assert all(words.count("start") == words.count("end") == 1 for words in logs)


def test_a_router_whose_database_is_silent_obeys_sigterm(server, routed):
    router, name, _ = routed
    with server.silent(server.backends(name), whole=True):
        router.process.send_signal(signal.SIGTERM)
        assert router.process.wait(ENDS_S) == 2
    last = router.said().splitlines()[-1]
    assert last.startswith("chipwise: ledger postgresql://") and "does not answer" in last and "hunter2" not in last


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "known")


@pytest.fixture(scope="module")
def secured(authority):
    """A function that starts a server of TCP with a certificate for a name, or without TLS; its port."""
    with postgres_server() as server:
        server.database("tls")
        server.stop()
        server.port = free_port()

        def start(alternative=""):
            server.stop()
            settings = [f"listen_addresses={HERE}"]
            if alternative:
                made = authority.certificate("server", alternative)
                for file, kept in ((made.file, "tls.crt"), (made.key, "tls.key")):
                    shutil.copy(file, server.folder / kept)
                    (server.folder / kept).chmod(0o600)
                    if os.geteuid() == 0:
                        shutil.chown(server.folder / kept, SERVER)
                settings += [
                    "ssl=on",
                    f"ssl_cert_file={server.folder}/tls.crt",
                    f"ssl_key_file={server.folder}/tls.key",
                ]
            server.start(*settings)
            return f"postgresql://chipwise:hunter2@{HERE}:{server.port}/tls"

        yield start


def free_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def refused(url):
    with pytest.raises(LedgerError) as error:
        open_ledger(url)
    assert "\n" not in str(error.value) and "hunter2" not in str(error.value)
    return str(error.value)


def test_a_server_elsewhere_must_prove_who_it_is(secured, authority, tmp_path):
    good = secured(f"IP:{HERE}")
    with open_ledger(f"{good}?sslrootcert={authority.file}") as ledger:
        assert ledger._db.all("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [(True,)]
        assert ledger.warning == ""
    other = Authority(tmp_path, "other")
    assert "certificate verify failed" in refused(f"{good}?sslrootcert={other.file}")
    assert "TLS" in refused(good)  # the system's authorities don't know it either
    wrong = secured("DNS:db.example")
    assert "does not match host name" in refused(f"{wrong}?sslrootcert={authority.file}")
    with open_ledger(f"{wrong}?sslmode=verify-ca&sslrootcert={authority.file}") as ledger:
        assert "sslmode=verify-ca" in ledger.warning


def test_a_server_elsewhere_without_tls_is_refused_unless_the_url_says_so(secured, tmp_path):
    plain = secured()
    assert "does not support SSL" in refused(plain)
    (tmp_path / "pools.yaml").write_text(POOLS.format(folder=tmp_path / "state"), encoding="utf-8")
    words = ["router", "run", "--pools", tmp_path / "pools.yaml", "--policy", "fastest", "--once"]
    router = chaos.RouterProcess(
        chaos.command(*words, "--ledger", f"{plain}?sslmode=disable"), tmp_path / "router.txt", chaos.environment()
    )
    assert router.process.wait(PATIENCE_S) == 0, router.said()
    warnings = [line for line in router.said().splitlines() if line.startswith("warning:")]
    assert len(warnings) == 1 and "sslmode=disable" in warnings[0] and "in clear" in warnings[0]


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://db/x", "verify-full"),
        ("postgresql://10.0.0.1/x", "verify-full"),
        ("postgresql:///x?host=/run/postgresql,db", "verify-full"),
        ("postgresql:///x?service=far", "verify-full"),
        ("postgresql://localhost/x?hostaddr=10.0.0.1", "verify-full"),
        ("postgresql://db/x?sslmode=require", None),
        ("postgresql://db/x?hostaddr=127.0.0.1", None),
        ("postgresql://127.0.0.1/x", None),
        ("postgresql://[::1]/x", None),
        ("postgresql://localhost/x", None),
        ("postgresql:///x", None),
        ("postgresql:///x?host=/run/postgresql", None),
    ],
)
def test_verification_is_the_default_off_this_machine(url, mode, monkeypatch):
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGSSLMODE", "disable")  # not for a variable to weaken
    assert parameters(url).get("sslmode") == mode
    assert bool(weak_tls(url)) == ("require" in url)


def test_a_statement_over_the_whole_ledger_may_take_its_time(postgres):
    """A migration of a large ledger is no server that hangs; what comes after it has the usual limit again."""
    db = PostgreSQL(postgres.database("patience"))
    try:
        connection.allow(db._connect(), 0.5)
        with pytest.raises(LedgerError, match="statement timeout"):
            db.one("SELECT pg_sleep(1.5)")
        with db.patient():
            db.one("SELECT pg_sleep(1.5)")
        with pytest.raises(LedgerError, match="statement timeout"):
            db.one("SELECT pg_sleep(1.5)")
    finally:
        db.close()
