"""Whatever a file's name leads to, it is read in bounds or refused in one line: pipes, devices, sockets and folders too."""

import ast
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from command import EXAMPLE, ROOT, chipwise_alone, chipwise_here

from chipwise.catalog import bench_files, edge_calibration
from chipwise.catalog import calibration as calibration_files
from chipwise.catalog.chip_file import read_chip_file
from chipwise.compare.diff import document as decision
from chipwise.compiled.check.resolve import program_spec
from chipwise.cost.migration_check import read_check
from chipwise.errors import BrokenFile, NoSuchFile
from chipwise.io.endpoint import read_token
from chipwise.io.files import read_json, read_text
from chipwise.io.regular_file import check_regular, read_bytes, text_lines
from chipwise.observe.log import read_lines
from chipwise.observe.text import MAX_DOCUMENT_BYTES, lines_of
from chipwise.prices.focus_import import read_focus
from chipwise.route.backend import BackendDown
from chipwise.route.backends.kubernetes.api import Cluster
from chipwise.workload.presets import preset
from chipwise.workload.trace import read_trace
from patience import PATIENCE_S

SOURCE = ROOT / "src" / "chipwise"
ALARM_S = 30  # a reader that waits is stopped, and the test fails

HELLO = ROOT / "examples" / "jobs" / "hello.yaml"
POOLS = ROOT / "examples" / "pools" / "local.yaml"
# how the command line is given each kind of file: FILE stands for its name
COMMANDS = {
    "workload": "compare FILE.yaml --on h100",
    "model": "compare FILE.json --tokens 1B --batch 64 --sequence 4096 --on h100",
    "chip": "chips mine --chip FILE.yaml",
    "chip in toml": "chips mine --chip FILE.toml",
    "prices": f"cost {EXAMPLE} --on h100 --prices FILE.csv",
    "requests": "serving capacity llama-3.1-8b --on h100 --trace FILE.csv",
    "demand": "fleet plan FILE.yaml",
    "jobs": f"jobs submit FILE.yaml --ledger ledger.db --pools {POOLS}",
    "job": f"jobs render FILE.yaml --pool here --pools {POOLS}",
    "pools": "pools --pools FILE.yaml",
    "routed pools": "router run --pools FILE.yaml --ledger ledger.db",
    "token": f"router run --pools {POOLS} --ledger ledger.db --metrics 127.0.0.1:0 --token-file FILE",
    "ledger": "jobs list --ledger FILE.db",
    "simulated jobs": f"simulate FILE.yaml --pools {POOLS}",
    "simulated csv": f"simulate FILE.csv --pools {POOLS}",
    "gavel trace": "simulate --gavel-trace .",
    "bench": "bench show FILE.json",
    "packed bench": "bench show FILE.json.gz",
    "benches": "bench diff FILE.json FILE.json",
    "calibration": "calibrate bench FILE.json",
    "rows": "validate --rows FILE.csv",
    "log": "observe read FILE.log",
    "packed log": "observe read FILE.log.gz",
    "decision": "diff FILE.json FILE.json",
    "check": f"cost {EXAMPLE} --on h100 --check FILE.json",
    "bill": "prices import focus FILE.csv --out own.csv",
    "packed bill": "prices import focus FILE.csv.gz --out own.csv",
    "catalog of prices": "prices import skypilot FILE.csv --cloud gcp --out own.csv",
    "update": "prices update FILE.csv --cloud gcp",
    "heads": "audit verify --heads FILE.json --ledger ledger.db",
    "program": "check FILE.mlir --on h100",
}
READERS = {
    "text": read_text,
    "json": read_json,
    "bytes": lambda path: read_bytes(path, 10),
    "lines": lambda path: list(text_lines(path)),
    "packed lines": lambda path: list(text_lines(path, packed=True)),
    "check": lambda path: check_regular(path, 10),
    "chip": read_chip_file,
    "bench calibration": bench_files.read,
    "calibration": calibration_files._read,
    "edge calibration": edge_calibration._read,
    "decision": lambda path: decision(path, "before"),
    "checked": read_check,
    "requests": lambda path: read_trace(path, preset("gpt2")),
    "bill": lambda path: read_focus([path]),
    "token": read_token,
    "log": lambda path: list(lines_of(str(path))),
    "program": lambda path: program_spec(str(path.rename(path.with_suffix(".mlir"))), path.parent),
    "kubeconfig": lambda path: Cluster(str(path), "").check_link("kubeconfig"),
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch, tmp_path):
    def over(number, frame):
        raise AssertionError(f"a reader waited for {ALARM_S} s")

    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(ALARM_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def made(kind, path, monkeypatch):
    """What is no regular file, at that path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.chdir(path.parent)  # the path of a socket may be short alone
        with socket.socket(socket.AF_UNIX) as held:
            held.bind(path.name)
    return path


KINDS = ("pipe", "device", "folder", "socket")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_by_every_reader(reader, kind, tmp_path, monkeypatch):
    path = made(kind, tmp_path / "file", monkeypatch)
    with pytest.raises(BrokenFile, match=rf"a file, not a {kind}") as refused:
        READERS[reader](path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_is_one_line_of_every_command(command, kind, tmp_path, monkeypatch):
    words = COMMANDS[command].split()
    names = [word for word in words if word.startswith("FILE")]
    for name in dict.fromkeys(names or ("jobs.csv", "throughput.csv", "cluster.csv")):
        made(kind, tmp_path / name, monkeypatch)
    if command == "heads":
        chipwise_here("jobs", "submit", "--pools", POOLS, HELLO, "--ledger", tmp_path / "ledger.db")
    done = chipwise_here(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    wanted = "it is a folder, a pipe or a device" if command == "ledger" else f"a file, not a {kind}"
    assert wanted in done.stderr


def test_a_kubeconfig_that_is_no_file_is_down_when_it_is_used(tmp_path, monkeypatch):
    path = made("pipe", tmp_path / "config", monkeypatch)
    with pytest.raises(BackendDown, match="a file, not a pipe"):
        Cluster(str(path), "")._connect()


def test_what_is_no_file_in_a_catalog_of_ones_own_is_one_line(tmp_path, monkeypatch):
    shutil.copytree(SOURCE / "catalog" / "data", tmp_path / "data")
    (tmp_path / "data" / "chips.toml").unlink()
    made("pipe", tmp_path / "data" / "chips.toml", monkeypatch)
    done = chipwise_alone(
        "chips", env={**os.environ, "CHIPWISE_CATALOG": str(tmp_path / "data")}
    )  # read once a process
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "a file, not a pipe" in done.stderr


def test_links_and_what_is_redirected_to_standard_input_are_files(tmp_path):
    (tmp_path / "file").write_text("a: 1\n")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_text(tmp_path / "link") == "a: 1\n"
    line = "from chipwise.io.files import *; print(read_text(Path('/dev/stdin')))"
    with (tmp_path / "file").open() as stdin:
        done = subprocess.run(
            [sys.executable, "-c", line], stdin=stdin, capture_output=True, text=True, timeout=PATIENCE_S
        )
    assert done.stdout == "a: 1\n\n", done.stderr


def test_limits_are_held_and_stated(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1001)
    for refused in (lambda: read_bytes(path, 1000), lambda: read_text(path, 1000), lambda: check_regular(path, 1000)):
        with pytest.raises(BrokenFile, match=r"expected at most 1 kB$"):
            refused()
    packed = tmp_path / "file.gz"
    packed.write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(BrokenFile, match=r"expected at most 1 MB$"):
        read_bytes(packed, 1_000_000, packed=True)
    with pytest.raises(BrokenFile, match=r"lines of at most 1 MB \(line 1\)$"):
        list(text_lines(packed, packed=True))
    with pytest.raises(NoSuchFile):
        read_bytes(tmp_path / "absent", 10)
    with pytest.raises(BrokenFile, match=r"expected a readable file"):
        read_bytes(path, 2000, packed=True)
    packed.write_bytes(gzip.compress(b"a\n" * 1000)[:-9])
    with pytest.raises(BrokenFile, match=r"expected a readable file"):
        list(text_lines(packed, packed=True))
    with pytest.raises(BrokenFile, match=r"expected a readable file"):
        read_bytes(Path("a\0b"), 10)


def test_lines_of_a_bill_are_read_one_by_one_and_in_utf8(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa,\xc3\xa9\r\n1,2")
    assert list(text_lines(path)) == ["a,\u00e9\r\n", "1,2"]
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(BrokenFile, match=r"UTF-8 text \(line 2 is not\)"):
        list(text_lines(path))


def test_a_log_that_begins_like_a_document_and_never_ends_is_read_line_by_line():
    """Only what may be one document is held in memory."""
    read, line = 0, '{"a": ' + "1" * 60_000

    def lines():
        nonlocal read
        for _ in range(400):
            read += 1
            yield line
        yield "completed step: 7, seconds: 1.5, TFLOP/s/device: 10, Tokens/s/device: 3, total_weights: 3, loss: 2"

    log = read_lines(lines())
    assert read == 400 and log.lines == 401 and len(line) * read > 2 * MAX_DOCUMENT_BYTES
    assert [step.step for step in log.steps] == [7]


def _reads(tree):
    """Calls that open files by themselves to read them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, words = node.func, [a.value for a in node.args if isinstance(a, ast.Constant)]
        if any(isinstance(word, str) and re.fullmatch(r"[wax]b?|r\+", word) for word in words):
            continue
        if isinstance(function, ast.Attribute) and function.attr in ("read_text", "read_bytes", "open"):
            owner = function.value.id if isinstance(function.value, ast.Name) else ""
            if function.attr != "open" or owner not in ("os", "webbrowser", "Image"):
                yield node.lineno
        elif isinstance(function, ast.Name) and function.id == "open":
            yield node.lineno


# rooms and modules that open files which no user points at
OWN = {
    "io/regular_file.py": "the one reader",
    "io/worker.py": "what our own worker printed",
    "io/jit.py": "our own sources",
    "bench": "the kernel's answers, the worker's order",
    "calibrate": "the rows and sweeps of this repository, and what was fitted to them",
    "compiled/cache.py": "our own cache",
    "compiled/compiler.py": "what our own worker answered",
    "compiled/worker": "our own sources, orders of our own parent, the kernel's answers",
    "compiled/check/resolve.py": "sources of a program that is imported next",
    "deploy/data_files.py": "data of the package",
    "deploy/targets/slurm/cloud_nodes.py": "runs on controllers and imports nothing of ours",
    "launch/tools.py": "data of the package",
    "numerics/data.py": "data of the package",
    "observe/agent": "the kernel's answers",
    "observe/data_files.py": "data of the package",
    "report": "data of the package, what the browser wrote",
    "route/backends": "our own sources, the kernel's answers; the shim imports nothing of ours",
    "route/ledger/disks.py": "the kernel's answers",
    "validate/compiled.py": "data of the package",
    "validate/kept.py": "data of the package",
    "workload/presets.py": "data of the package",
}


def test_only_one_reader_opens_what_users_point_at():
    unused = dict(OWN)
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        places = list(_reads(ast.parse(path.read_text())))
        owner = next((own for own in OWN if name == own or name.startswith(own + "/")), None)
        if places:
            assert owner is not None, (
                f"{name}:{places[0]} opens a file by itself; chipwise.io.files and regular_file do"
            )
            unused.pop(owner, None)
    assert not unused, "no longer open files by themselves"
