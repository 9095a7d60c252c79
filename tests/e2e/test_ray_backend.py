"""The Ray backend on a real cluster of several nodes: crash-safe, idempotent, honest about what is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from command import good
from ray_cluster import RayCluster, free_port, strays

from backend_contract import BackendContract, with_folder
from chipwise.errors import UnknownName
from chipwise.predict.estimate import Estimate
from chipwise.route.backend import (
    CANCELLED,
    ENDED,
    FAILED,
    LOST,
    PENDING,
    RUNNING,
    SUCCEEDED,
    BackendDown,
    BackendRefused,
    Launch,
)
from chipwise.route.backends.ray.backend import RayBackend, make
from chipwise.route.backends.ray.link import RayLink
from chipwise.route.job import Job, Variant
from chipwise.route.launch import launch_file, write_launch
from chipwise.route.ledger import open_ledger
from chipwise.route.option import Option
from chipwise.route.pool import Pool
from patience import ENDS_S, PATIENCE_S, leave

pytestmark = pytest.mark.service

UID = "u7"
NODES = {
    "h200-0": {"resources": {"chips": 8}, "labels": {"pool": "h200", "node": "h200-0"}},
    "h200-1": {"resources": {"chips": 8}, "labels": {"pool": "h200", "node": "h200-1"}},
    "v5e-0": {
        "resources": {"chips": 4},
        "labels": {
            "pool": "v5e",
            "ray.io/tpu-slice-name": "s",
            "ray.io/tpu-topology": "2x4",
            "ray.io/tpu-worker-id": "1",
        },
    },
    "v5e-1": {
        "resources": {"chips": 4},
        "labels": {
            "pool": "v5e",
            "ray.io/tpu-slice-name": "s",
            "ray.io/tpu-topology": "2x4",
            "ray.io/tpu-worker-id": "0",
        },
    },
}


def patient(address):
    """A link that a busy machine may keep waiting."""
    return RayLink(address, connect_s=PATIENCE_S, answer_s=ENDS_S)


@pytest.fixture(scope="module")
def cluster():
    found = RayCluster(NODES)
    yield found
    found.stop()
    assert not strays(found.scratch)


@pytest.fixture(scope="module")
def pools(cluster):
    at = {"address": cluster.address, "resource": "chips", "secrets": "NODE_KEY_WORD,NODE_OTHER_WORD,NO_SUCH_SECRET"}
    return {
        "h200": Pool("h200", "ray", "h200", "gpu", 16, address=tuple({**at, "label": "pool=h200"}.items())),
        "v5e": Pool("v5e", "ray", "v5e", "tpu", 8, unit=4, address=tuple({**at, "label": "pool=v5e"}.items())),
    }


@pytest.fixture(scope="module")
def backend(pools):
    found = RayBackend(list(pools.values()), UID, patient)
    yield found
    found.close()


@pytest.fixture
def launch(tmp_path, pools):
    made = []

    def make(
        script, pool="h200", chips=1, name="", topology="", shared=True, secrets=(), time_limit=None, environment=None
    ):
        number = len(made) + 1
        attempt = f"{UID}-{name or os.urandom(4).hex()}-{number}"
        folder = tmp_path / attempt
        variant = Variant(
            "only", pools[pool].family, chips, command=(sys.executable, "-c", script), secrets=tuple(secrets)
        )
        option = Option(pool, "only", chips, topology, Estimate(60.0, 50.0, 70.0, "measured"), 1.0, 1.0)
        one = Launch(
            attempt,
            1,
            "j",
            Job("j", (variant,)),
            variant,
            pools[pool],
            option,
            folder,
            {"CHIPWISE_ATTEMPT": attempt, **(environment or {})},
            time_limit,
        )
        if shared:
            write_launch(one.folder, launch_file(one))
        made.append(one)
        return one

    return make


def until(backend, launch, states):
    """The attempt once it is in one of these states."""
    states = {states} if isinstance(states, str) else set(states)
    end = time.time() + PATIENCE_S
    while True:
        seen = [s for s in backend.list() if s.attempt == launch.attempt]
        assert len(seen) <= 1
        if seen and seen[0].state in states:
            return seen[0]
        assert time.time() < end, seen
        time.sleep(0.2)


def patiently(call):
    """As routers do: a backend that is down is asked again."""
    end = time.time() + PATIENCE_S
    while True:
        try:
            return call()
        except BackendDown:
            assert time.time() < end
            time.sleep(1)


def waiting(path: Path):
    end = time.time() + PATIENCE_S
    while not path.exists():
        assert time.time() < end, path
        time.sleep(0.1)
    return path


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"


@contextmanager
def holding(backend, launch, pool, chips):
    """Chips that are taken meanwhile."""
    one = launch("import time; time.sleep(600)", pool, chips)
    identity = backend.submit(one)
    try:
        until(backend, one, RUNNING)
        yield one
    finally:
        backend.cancel(identity)
    until(backend, one, CANCELLED)


def free_at_last(backend, pool, chips):
    """The pool's room once so many chips are free: Ray tells of them a moment after an actor has come or gone."""
    end = time.time() + PATIENCE_S
    while (room := backend.capacity([pool])[pool.name]).free != chips:
        assert time.time() < end, room
        time.sleep(0.2)
    return room


class Attempts:
    """Attempts as actors of Ray's."""

    def __init__(self, backend, launch, pools, folder):
        self.backend, self.make, self.pools, self.folder = backend, launch, pools, folder
        self.others = []

    def another(self):
        self.others.append(RayBackend(list(self.pools.values()), UID, patient))
        return self.others[-1]

    def launch(self, script):
        name = os.urandom(4).hex()
        return self.make(with_folder(script, self.folder / f"{UID}-{name}-1"), name=name)

    def lose(self, one):
        shim, _ = (one.folder / "pids").read_text().split()
        os.kill(int(shim), signal.SIGKILL)


class TestContract(BackendContract):
    @pytest.fixture
    def site(self, backend, launch, pools, tmp_path):
        made = Attempts(backend, launch, pools, tmp_path)
        yield made
        for other in made.others:
            other.close()


def test_attempts_of_another_ledger_are_not_listed(backend, launch, pools):
    one = launch("pass")
    backend.submit(one)
    until(backend, one, ENDED)
    another = RayBackend(list(pools.values()), "u8", patient)
    assert another.list() == []
    another.close()


@pytest.mark.slow
def test_chips_are_free_again_when_the_program_has_ended_and_not_before(backend, launch, pools):
    with holding(backend, launch, "h200", 8):
        room = free_at_last(backend, pools["h200"], 8)
        assert (room.total, room.down) == (16, 0)
        assert free_at_last(backend, pools["v5e"], 8).total == 8
    failing = launch("import sys; sys.exit(3)", chips=8)
    backend.submit(failing)
    seen = until(backend, failing, ENDED)
    assert (seen.state, seen.exit_code) == (FAILED, 3)
    free_at_last(backend, pools["h200"], 16)
    assert backend.predicted_start(failing) is None


def test_the_router_may_die_while_the_program_runs(launch, pools):
    one = launch("import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(.1)")
    first = RayBackend(list(pools.values()), UID, patient)
    first.submit(one)
    driver = next(iter(first._links.values())).driver
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    second = RayBackend(list(pools.values()), UID, patient)
    try:
        until(second, one, RUNNING)
        (one.folder / "go").touch()
        assert until(second, one, ENDED).state == SUCCEEDED
    finally:
        second.close()
        first.close()


@pytest.mark.slow
def test_drivers_killed_at_any_moment_of_a_submission_leave_one_run_of_each_attempt(launch, pools):
    chance = random.Random(7)
    backend = RayBackend(list(pools.values()), UID, patient)
    every, lost_answers = [], 0
    try:
        backend.list()
        link = next(iter(backend._links.values()))
        for _ in range(20):
            one = launch("open('ran', 'a').write('x')", shared=False)  # no claim to lean on
            one = replace(
                one,
                variant=replace(
                    one.variant, command=(sys.executable, "-c", f"open({str(one.folder)!r} + '.ran', 'a').write('x')")
                ),
            )
            killer = threading.Timer(chance.uniform(0, 0.08), link.driver.kill)
            killer.start()
            try:
                backend.submit(one)
            except BackendDown:
                lost_answers += 1
            killer.join()
            patiently(lambda one=one: backend.submit(one))
            every.append(one)
        for one in every:
            assert until(backend, one, ENDED).state == SUCCEEDED
            assert one.folder.with_name(one.folder.name + ".ran").read_text() == "x"
        assert lost_answers  # some were killed in the middle
    finally:
        backend.close()


def test_a_cancelled_program_may_save_its_work_and_a_waiting_one_never_starts(backend, launch):
    script = (
        "import signal, sys, time\ndef save(*_):\n    open('saved', 'w').close()\n    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, save)\nopen('up', 'w').close()\ntime.sleep(600)"
    )
    one = launch(script)
    identity = backend.submit(one)
    waiting(one.folder / "up")
    backend.cancel(identity)
    assert until(backend, one, ENDED).state == CANCELLED
    assert (one.folder / "saved").exists()
    with holding(backend, launch, "v5e", 4), holding(backend, launch, "v5e", 4):
        late = launch("open('ran', 'w').close()", "v5e", 4)
        identity = backend.submit(late)
        seen = until(backend, late, PENDING)
        assert "free" in seen.reason
        backend.cancel(identity)
        assert until(backend, late, ENDED).state == CANCELLED
    assert not (late.folder / "claim").exists()


def test_what_no_node_can_hold_is_refused_in_words(backend, launch, pools):
    with pytest.raises(
        BackendRefused, match=r"8 \+ 8 \+ 8 on hosts of their own; nodes with labels pool=h200 have 8, 8"
    ):
        backend.submit(launch("", chips=24))
    stray = Pool("b200", "ray", "b200", "gpu", 8, address=(*pools["h200"].address[:2], ("label", "pool=b200")))
    one = launch("")
    with pytest.raises(BackendRefused, match="no node with labels pool=b200 has chips"):
        backend.submit(Launch(one.attempt, 1, "j", one.job, one.variant, stray, one.option, one.folder, {}))
    big = launch("", environment={"X": "x" * 100_000})
    with pytest.raises(BackendRefused, match="bytes"):
        backend.submit(big)
    image = launch("")
    with pytest.raises(BackendRefused, match="container: none"):
        backend.submit(replace(image, variant=replace(image.variant, image="img")))
    with pytest.raises(UnknownName, match="did you mean label"):
        make("ray", [replace(stray, address=(("lable", "a=b"),))], one.folder, UID)
    assert not any(s.attempt in (one.attempt, big.attempt, image.attempt) for s in backend.list())


def test_a_gang_gets_all_hosts_of_its_slice_at_once_in_the_slices_order(backend, launch):
    script = (
        "import os, pathlib\nf = pathlib.Path(os.environ['CHIPWISE_FOLDER'])\n"
        "names = ('RANK', 'WORLD', 'HOSTS')\n"
        "(f / ('told' + os.environ['CHIPWISE_RANK'])).write_text(' '.join(os.environ['CHIPWISE_' + n] for n in names) "
        "+ ' ' + os.environ['TPU_WORKER_ID'])\n"
    )
    one = launch(script, "v5e", 8, topology="2x4")
    one.environment["CHIPWISE_FOLDER"] = str(one.folder)
    (one.folder / "launch.json").unlink()
    one.folder.rmdir()
    write_launch(one.folder, launch_file(one))
    with holding(backend, launch, "v5e", 4):
        backend.submit(one)
        end = time.time() + PATIENCE_S
        while "hosts" not in until(backend, one, PENDING).reason:
            assert time.time() < end
            time.sleep(0.2)
    seen = until(backend, one, ENDED)
    assert (seen.state, seen.exit_code, seen.where) == (SUCCEEDED, 0, "127.0.0.1,127.0.0.1"), seen
    assert (one.folder / "told0").read_text() == "0 2 127.0.0.1,127.0.0.1 0"
    assert (one.folder / "told1").read_text() == "1 2 127.0.0.1,127.0.0.1 1"
    failing = launch(
        "import os, sys, time\nif os.environ['CHIPWISE_RANK'] == '1': sys.exit(5)\ntime.sleep(600)", "v5e", 8
    )
    backend.submit(failing)
    seen = until(backend, failing, ENDED)
    assert (seen.state, seen.exit_code) == (FAILED, 5) and "host 1" in seen.reason
    with pytest.raises(BackendRefused):
        backend.submit(launch("", "v5e", 8, topology="4x4"))


@pytest.mark.slow
def test_an_attempt_whose_shim_is_killed_is_lost_and_its_program_is_gone(backend, launch):
    one = launch(
        "import os, time; open('pids.new', 'w').write(f'{os.getppid()} {os.getpid()}'); os.rename('pids.new', 'pids'); time.sleep(600)"
    )
    backend.submit(one)
    shim, program = map(int, waiting(one.folder / "pids").read_text().split())
    os.kill(shim, signal.SIGKILL)
    seen = until(backend, one, ENDED)
    assert seen.state == LOST and "signal 9" in seen.reason
    end = time.time() + PATIENCE_S
    while alive(program):
        assert time.time() < end
        time.sleep(0.1)


@pytest.mark.slow
def test_secrets_come_from_the_node_limits_hold_and_a_folder_that_is_not_shared_is_said(backend, launch):
    one = launch(
        "import os; assert os.environ['NODE_KEY_WORD'] == 'from the node' and os.environ['NODE_PLAIN']; "
        "assert not {'NODE_OTHER_WORD', 'NODE_TOKEN'} & set(os.environ)",
        secrets=["NODE_KEY_WORD"],
        shared=False,
    )
    backend.submit(one)
    seen = until(backend, one, ENDED)
    assert seen.state == SUCCEEDED and "not seen from the node" in seen.reason
    two = launch("", secrets=["NO_SUCH_SECRET"])
    backend.submit(two)
    seen = until(backend, two, ENDED)
    assert seen.state == FAILED and "NO_SUCH_SECRET" in seen.reason
    with pytest.raises(
        BackendRefused, match=r"may not hand NODE_TOKEN to jobs; expected secrets: \[NODE_TOKEN\].*backends.ray"
    ):
        backend.submit(launch("", secrets=["NODE_TOKEN"]))
    slow = launch("import time; time.sleep(600)", time_limit=1.0)
    backend.submit(slow)
    seen = until(backend, slow, ENDED)
    assert seen.state == FAILED and "time limit" in seen.reason


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_words_reach_the_program_byte_for_byte(backend, launch, tmp_path, shared):
    words = ["$(HOME)", "`id`", "; exit 3 #", "'", '"', "\\", "\n", "", " ", "é😀", "\udcff", "--", "{{.}}", "%s", "-c"]
    found = tmp_path / "words"
    script = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(b'\\0'.join([*map(os.fsencode, sys.argv[2:]), os.environb[b'W']]))"
    one = launch("", shared=False, environment={"W": "".join(words)})
    one = replace(one, variant=replace(one.variant, command=(sys.executable, "-c", script, str(found), *words)))
    if shared:
        write_launch(one.folder, launch_file(one))
    backend.submit(one)
    seen = until(backend, one, ENDED)
    assert seen.state == SUCCEEDED, seen
    assert found.read_bytes().split(b"\0") == [os.fsencode(word) for word in (*words, "".join(words))]


@pytest.mark.slow
def test_a_node_that_dies_loses_its_attempt_and_the_next_one_runs_elsewhere(cluster, backend, launch, pools):
    gang = launch(
        "import os, time; open('pid' + os.environ['CHIPWISE_RANK'], 'w').write(str(os.getpid())); time.sleep(600)",
        "h200",
        16,
    )
    backend.submit(gang)
    until(backend, gang, RUNNING)
    pids = [int(waiting(gang.folder / f"pid{rank}").read_text() or 0) for rank in (0, 1)]
    cluster.say("kill", "h200-0")
    try:
        seen = until(backend, gang, ENDED)
        assert seen.state == LOST and seen.reason
        end = time.time() + PATIENCE_S
        while left := [pid for pid in pids if pid and alive(pid)]:
            assert time.time() < end, left
            time.sleep(0.2)
        while (
            room := backend.capacity([pools["h200"]])["h200"]
        ).down != 8:  # Ray misses a node after some health checks
            assert time.time() < end, room
            time.sleep(0.2)
        room = free_at_last(backend, pools["h200"], 8)
        assert (room.total, room.down) == (8, 8) and "1 dead" in room.note
        again = launch("pass", "h200", 8)
        backend.submit(again)
        assert until(backend, again, ENDED).state == SUCCEEDED
        single = launch("import time; time.sleep(600)", "v5e", 4)
        backend.submit(single)
        until(backend, single, RUNNING)
    finally:
        cluster.say("add", "h200-0")
    backend.cancel(until(backend, single, RUNNING).backend_id)
    until(backend, single, CANCELLED)
    assert backend.capacity([pools["h200"]])["h200"].total == 16


@pytest.mark.slow  # Ray starts a server of its own for each client: tens of seconds on a busy machine
def test_through_rays_own_client_it_is_the_same(cluster, launch, pools):
    at = tuple(
        (k, f"ray://127.0.0.1:{cluster.pids['client']}" if k == "address" else v) for k, v in pools["h200"].address
    )
    far = Pool("h200", "ray", "h200", "gpu", 16, address=at)
    backend = RayBackend([far], UID)
    try:
        one = launch("pass", "h200", 8)
        one = Launch(one.attempt, 1, "j", one.job, one.variant, far, one.option, one.folder, one.environment)
        first = patiently(lambda: backend.submit(one))
        assert patiently(lambda: backend.submit(one)) == first
        assert patiently(lambda: until(backend, one, ENDED)).state == SUCCEEDED
        assert patiently(lambda: backend.capacity([far]))["h200"].total == 16
        with pytest.raises(BackendRefused, match="on hosts of their own"):
            patiently(
                lambda: backend.submit(
                    Launch(
                        "u7-x-1",
                        1,
                        "j",
                        one.job,
                        one.variant,
                        far,
                        Option("h200", "only", 99, "", one.option.seconds, 1.0, 1.0),
                        one.folder,
                        {},
                    )
                )
            )
    finally:
        backend.close()


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_down_and_may_come_back(cluster, backend, launch, pools):
    with holding(backend, launch, "h200", 1) as one:
        hasty = RayBackend([pools["h200"]], UID, lambda at: RayLink(at, answer_s=2.0))
        assert any(s.attempt == one.attempt for s in hasty.list())
        os.kill(cluster.pids["gcs"], signal.SIGSTOP)
        try:
            with pytest.raises(BackendDown, match="no answer within 2 s"):
                hasty.list()
        finally:
            os.kill(cluster.pids["gcs"], signal.SIGCONT)
        end = time.time() + PATIENCE_S
        while True:
            try:
                assert any(s.attempt == one.attempt and s.state == RUNNING for s in hasty.list())
                break
            except BackendDown:
                assert time.time() < end
        hasty.close()


@pytest.mark.slow
def test_a_cluster_that_is_gone_is_down_until_there_is_one_again(launch):
    port = free_port()
    pool = Pool("any", "ray", "cpu", "cpu", 2, address=(("address", f"127.0.0.1:{port}"),))
    backend = RayBackend([pool], UID, lambda at: RayLink(at, answer_s=5.0))
    with pytest.raises(BackendDown, match="refused"):
        backend.list()
    try:
        for _ in range(2):
            small = RayCluster({}, port)
            try:
                end = time.time() + PATIENCE_S
                while True:
                    try:
                        assert backend.list() == []
                        break
                    except BackendDown:
                        assert time.time() < end
                assert backend.capacity([pool])["any"].free == 2
            finally:
                small.stop()
            with pytest.raises(BackendDown):
                backend.list()
    finally:
        backend.close()


class Site:
    """A pools file, a ledger and a router on the cluster, all through the command line."""

    def __init__(self, cluster, folder):
        self.folder = folder
        ray = {"address": cluster.address, "resource": "chips"}
        self.pools = folder / "pools.yaml"
        self.pools.write_text(
            json.dumps(
                {
                    "folder": str(folder / "shared"),
                    "backends": {"ray": ray},
                    "pools": [  # JSON is YAML
                        {
                            "name": "v5e",
                            "backend": "ray",
                            "chip": "v5e",
                            "count": 8,
                            "shapes": ["2x4"],
                            "terms": "owned",
                            "price": 0.6,
                            "address": {"label": {"pool": "v5e"}},
                        },
                        {
                            "name": "h200",
                            "backend": "ray",
                            "chip": "h200",
                            "count": 16,
                            "terms": "owned",
                            "price": 1.8,
                            "address": {"label": {"pool": "h200"}},
                        },
                    ],
                }
            )
        )
        self.ledger = str(folder / "ledger.db")
        self.options = ("--pools", self.pools, "--ledger", self.ledger)

    def submit(self, **job):
        file = self.folder / f"{job['name']}.yaml"
        file.write_text(json.dumps(job))
        good("jobs", "submit", file, *self.options)
        with open_ledger(self.ledger) as ledger:
            return next(row.id for row in ledger.jobs() if row.job.name == job["name"])

    def until(self, identity, state):
        """The attempts of a job when one of them is in that state, or the job has ended in it."""
        end = time.time() + PATIENCE_S
        while True:
            with open_ledger(self.ledger) as ledger:
                job, attempts = ledger.job(identity), ledger.attempts(identity)
            ended = () if job.state == "running" else (job.state,)  # a job runs from the moment it is decided on
            if state in (*ended, *(a.state for a in attempts)):
                return attempts
            assert time.time() < end, (job, attempts, (self.folder / "router.log").read_text()[-2000:])
            time.sleep(0.2)

    @contextmanager
    def router(self):
        with (self.folder / "router.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "chipwise",
                    "router",
                    "run",
                    *map(str, self.options),
                    "--policy",
                    "fastest",
                    "--interval",
                    "0.5s",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            leave(process)


@pytest.mark.slow
def test_the_router_runs_the_gpu_variant_when_tpus_are_taken_and_goes_elsewhere_when_its_node_dies(cluster, tmp_path):
    site = Site(cluster, tmp_path)
    hold = site.submit(
        name="hold", variants={"tpu": {"chips": 8, "command": ["sleep", "600"]}}, estimates={"tpu": "600s"}
    )
    with site.router() as router:
        site.until(hold, "running")
        mine = site.submit(
            name="mine",
            variants={
                "tpu": {"chips": 8, "command": ["echo", "tpu words"]},
                "gpu": {"chips": 8, "command": ["sleep", "600"]},
            },
            estimates={"tpu": "10s", "gpu": "30s"},
            checkpoint={"folder": str(tmp_path / "kept"), "every": "1s"},
        )
        (attempt,) = site.until(mine, "running")
        assert (attempt.pool, attempt.variant) == ("h200", "gpu")
        router.kill()  # the work must not notice
        router.wait()
    where = held_node(site, attempt)
    with site.router():
        cluster.say("kill", where)
        try:
            site.until(mine, "lost")
            good("jobs", "cancel", hold, *site.options[2:])
            site.until(hold, "cancelled")
            first, second = site.until(mine, "succeeded")
        finally:
            cluster.say("add", where)
    assert (first.state, first.pool, second.state, second.pool, second.variant) == (
        "lost",
        "h200",
        "succeeded",
        "v5e",
        "tpu",
    )
    (output,) = (tmp_path / "shared").rglob(f"attempts/{second.id}/output")
    assert output.read_text() == "tpu words\n"
    told = good("jobs", "explain", mine, *site.options[2:])
    assert (
        "its node has died" in told or "watches over the program" in told
    ) and "as gpu" in told  # whichever is seen first


def held_node(site, attempt):
    """The name of the node that an attempt of one host runs on."""
    link = RayLink(json.loads(site.pools.read_text())["backends"]["ray"]["address"])
    try:
        census = link.ask("census", uid=attempt.id.rsplit("-", 2)[0])
        (actor,) = (a for a in census["actors"] if a["attempt"] == attempt.id)
        assert actor["state"] == "ALIVE", (actor, census["records"].get(attempt.id))
        return next(node["labels"]["node"] for node in link.ask("nodes") if node["id"] == actor["node"])
    finally:
        link.close()
