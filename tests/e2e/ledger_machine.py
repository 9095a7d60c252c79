"""Two routers and their users do anything in any order to one ledger; a model of it says what must come of that."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from ledger_cases import POOLS, job, options, start, submission

from chipwise.errors import InputError
from chipwise.route.backend import AttemptStatus
from chipwise.route.cluster_state import Decision
from chipwise.route.ledger import Conflict, open_ledger
from chipwise.route.ledger.records import ENDS, OVER, UNDER_WAY, AttemptEnd
from chipwise.route.ledger.states import AFTER, JOB_STEPS

FAULT = {"failed", "lost", "refused"}
LEASE = 30.0


class LedgerMachine(RuleBasedStateMachine):
    """`url()` of a subclass names a new, empty ledger."""

    def __init__(self):
        super().__init__()
        self.now, self.jobs, self.attempts, self.keys, self.closed, self.seen_change, self.board = (
            1e9,
            {},
            {},
            {},
            set(),
            0.0,
            {},
        )

    @initialize()
    def begin(self):
        url = self.url()
        self.ledgers = {"r1": open_ledger(url), "r2": open_ledger(url)}
        self.ledger = self.ledgers["r1"]
        for _ in range(3):  # enough to fill every pool
            self.submit("", "x", "r1")

    def teardown(self):
        for ledger in getattr(self, "ledgers", {}).values():
            ledger.close()

    def refused(self, call, *arguments, **more):
        """A step that must be refused and leave no trace."""
        before = self.ledger.events()
        try:
            call(*arguments, **more)
        except (Conflict, InputError) as error:
            assert "\n" not in str(error)
        else:
            raise AssertionError(f"{call} {arguments} was let through")
        assert self.ledger.events() == before

    def any_job(self, at):
        waiting = [job_id for job_id, row in self.jobs.items() if row["state"] == "pending"]
        names = [*waiting, *self.jobs, str(1 + len(self.jobs))]  # the last of them is not there
        return names[at % len(names)]

    def any_attempt(self, at):
        going = [name for name, row in self.attempts.items() if row["state"] in UNDER_WAY]
        names = [*going, *going, *going, *self.attempts, "nobody-1-1"]
        return names[at % len(names)]

    def under_way(self, job_id):
        return next((a for a, row in self.attempts.items() if row["job"] == job_id and row["state"] in UNDER_WAY), None)

    @rule(seconds=st.floats(-5, 50))
    def time_passes(self, seconds):
        self.now += seconds  # clocks of two routers differ: it may go back

    @rule(
        key=st.sampled_from(["", "", "a", "b\x00", "\ud800"]),
        name=st.sampled_from(["x", "y"]),
        router=st.sampled_from(["r1", "r2"]),
    )
    def submit(self, key, name, router):
        one = submission(name, key)
        if key and self.keys.get(key, (None, name))[1] != name:
            self.refused(self.ledgers[router].submit, [submission("z"), one], self.now)
            return
        first, second = self.ledgers[router].submit([one, submission(name, key)], self.now)
        if key:
            assert first == second == self.keys.get(key, (first, name))[0]
            self.keys[key] = (first, name)
        for job_id in {first, second} - set(self.jobs):
            self.jobs[job_id] = {
                "state": "pending",
                "spent": 0.0,
                "failures": 0,
                "failed_at": None,
                "not_before": 0.0,
                "cancel": False,
                "done": 0.0,
            }
            assert self.ledger.job(job_id).job == job(name, key)

    @rule(
        picks=st.lists(st.tuples(st.integers(0, 30), st.sampled_from(sorted(POOLS))), min_size=1, max_size=8),
        router=st.sampled_from(["r1", "r2"]),
        down=st.sampled_from([0, 0, 0, 3]),
    )
    def decide_starts(self, picks, router, down):
        room = {pool: count - down for pool, count in POOLS.items()}
        wanted = [(self.any_job(at), pool) for at, pool in picks]
        begun = self.ledgers[router].decide(
            router, "fastest", [start(job_id, pool) for job_id, pool in wanted], self.now, LEASE, room
        )
        expected = []
        for job_id, pool in wanted:
            chips = {"h100": 2, "v5e": 4}[pool]
            held = sum(
                {"h100": 2, "v5e": 4}[r["pool"]]
                for r in self.attempts.values()
                if r["pool"] == pool and r["state"] in UNDER_WAY
            )
            row = self.jobs.get(job_id)
            if (
                row is None
                or row["state"] != "pending"
                or row["not_before"] > self.now
                or pool in self.closed
                or held + chips > room[pool]
            ):
                continue
            number = 1 + sum(r["job"] == job_id for r in self.attempts.values())
            name = f"{self.ledger.uid}-{job_id}-{number}"
            self.attempts[name] = {
                "job": job_id,
                "pool": pool,
                "state": "intended",
                "backend_id": "",
                "router": router,
                "lease": self.now + LEASE,
                "stop": "",
            }
            row["state"] = "running"
            expected.append(name)
        assert [a.id for a in begun] == expected and all(a.option in options() for a in begun)

    @rule(at=st.integers(0, 30), pool=st.sampled_from(sorted(POOLS)), kind=st.sampled_from(["wait", "stop"]))
    def decide_others(self, at, pool, kind):
        job_id = self.any_job(at)
        assert (
            self.ledger.decide(
                "r1", "fastest", [Decision(job_id, kind, pool, reason=f"full at {self.now}")], self.now, LEASE, POOLS
            )
            == []
        )
        if kind == "stop" and (name := self.under_way(job_id)) and not self.attempts[name]["stop"]:
            self.attempts[name]["stop"] = "preempt"

    @rule(router=st.sampled_from(["r1", "r2"]))
    def take(self, router):
        taken = {a.id for a in self.ledgers[router].take(router, self.now, LEASE)}
        due = {
            n
            for n, a in self.attempts.items()
            if a["state"] in UNDER_WAY and (a["router"] == router or a["lease"] < self.now)
        }
        assert taken == due
        for name in due:
            self.attempts[name] |= {"router": router, "lease": self.now + LEASE}

    @rule(at=st.integers(0, 30))
    def hand_over(self, at):
        name = self.any_attempt(at)
        row = self.attempts.get(name)
        if row is not None and row["state"] == "intended":
            self.ledger.mark_submitted(name, f"e-{name}", self.now)
            row |= {"state": "submitted", "backend_id": f"e-{name}"}
        if row is not None and row["backend_id"] == f"e-{name}":
            self.ledger.mark_submitted(name, f"e-{name}", self.now)  # said twice
        else:
            self.refused(self.ledger.mark_submitted, name, "another", self.now)

    @rule(at=st.integers(0, 30), state=st.sampled_from(["pending", "running", "succeeded"]), restarts=st.integers(0, 2))
    def see(self, at, state, restarts):
        name = self.any_attempt(at)
        row = self.attempts.get(name)
        what = AttemptStatus(name, f"e-{name}", state, where="node\x00\ud800", restarts=restarts)
        if row is None or row["state"] not in UNDER_WAY or state == "succeeded":
            self.refused(self.ledger.observe, name, what, self.now)
            return
        self.ledger.observe(name, what, self.now)
        row |= {"state": {"pending": "submitted", "running": "running"}[state], "backend_id": f"e-{name}"}

    @rule(
        at=st.integers(0, 30),
        state=st.sampled_from(sorted(ENDS)),
        then=st.sampled_from(["legal", "legal", "pending", *JOB_STEPS]),
        spent=st.floats(0, 1e6),
        done=st.floats(0, 1),
        wait=st.sampled_from([0.0, 20.0]),
        pick=st.integers(0, 2),
    )
    def end(self, at, state, then, spent, done, wait, pick):
        after = sorted(AFTER[state])[-1 - pick % len(AFTER[state])] if then == "legal" else then
        name = self.any_attempt(at)
        row = self.attempts.get(name)
        how = AttemptEnd(
            state,
            after,
            exit_code=1,
            reason="why\x00\ud800",
            spent=spent,
            done=done,
            not_before=self.now + wait,
        )
        call = (self.ledger.end, name, how, self.now)
        if row is not None and row["state"] == state:
            assert call[0](*call[1:]) is False
            return
        owner = self.jobs.get(row["job"]) if row else None
        becomes = "cancelled" if owner and owner["cancel"] and state != "succeeded" else after
        if row is None or row["state"] not in UNDER_WAY or becomes not in AFTER[state]:
            self.refused(*call)
            return
        assert call[0](*call[1:]) is True
        row |= {"state": state, "stop": ""}
        owner |= {
            "state": becomes,
            "spent": owner["spent"] + spent,
            "failures": owner["failures"] + (state == "failed"),
            "cancel": False,
            "failed_at": (row["pool"], {"h100": "gpu", "v5e": "tpu"}[row["pool"]]) if state in FAULT else None,
            "not_before": self.now + wait,
            "done": 1.0 if state == "succeeded" else max(owner["done"], done),
        }

    @rule(
        at=st.integers(0, 30),
        pool=st.sampled_from(sorted(POOLS)),
        state=st.sampled_from(sorted(ENDS)),
        spent=st.floats(0, 1e6),
        done=st.floats(0, 1),
        wait=st.sampled_from([0.0, 20.0]),
        asked=st.sampled_from([False, False, True]),
        pick=st.sampled_from([0, 0, 0, 1, 2]),
    )
    def try_one(self, at, pool, state, spent, done, wait, asked, pick):
        """A whole attempt, so that jobs have many; some are cancelled while it runs."""
        before = set(self.attempts)
        self.decide_starts([(at, pool)], "r1", 0)
        for name in set(self.attempts) - before:
            spot = next(i for i in range(3 * len(self.attempts) + 1) if self.any_attempt(i) == name)
            self.see(spot, "running", 0)
            if asked and state != "succeeded":
                self.cancel(next(i for i in range(3 * len(self.jobs)) if self.any_job(i) == self.attempts[name]["job"]))
            self.end(spot, state, "legal", spent, done, wait, pick)

    @rule(at=st.integers(0, 30))
    def cancel(self, at):
        job_id = self.any_job(at)
        row = self.jobs.get(job_id)
        if row is None or row["state"] == "succeeded":
            self.refused(self.ledger.ask_cancel, job_id, self.now)
            return
        answer = self.ledger.ask_cancel(job_id, self.now)
        if row["state"] == "running":
            row["cancel"] = True
            self.attempts[self.under_way(job_id)]["stop"] = "cancel"
        else:
            row["state"] = "cancelled"
        assert answer == row["state"]

    @rule(at=st.integers(0, 30))
    def retry(self, at):
        job_id = self.any_job(at)
        row = self.jobs.get(job_id)
        if row is None or row["state"] not in ("failed", "cancelled"):
            self.refused(self.ledger.retry, job_id, self.now)
            return
        self.ledger.retry(job_id, self.now)
        row |= {"state": "pending", "failures": 0, "failed_at": None, "not_before": 0.0}

    @rule(at=st.integers(0, 30), action=st.sampled_from(["fail", "revise"]))
    def park_or_revise(self, at, action):
        job_id = self.any_job(at)
        row = self.jobs.get(job_id)
        call = (
            (self.ledger.fail, job_id, "fits nowhere\x00", self.now)
            if action == "fail"
            else (self.ledger.revise, job_id, options(), (), self.now)
        )
        if row is None or row["state"] != "pending":
            self.refused(*call)
            return
        call[0](*call[1:])
        if action == "fail":
            row["state"] = "failed"

    @rule(at=st.integers(0, 30), why=st.sampled_from(["cancel", "preempt", "move", "boredom"]))
    def stop(self, at, why):
        name = self.any_attempt(at)
        row = self.attempts.get(name)
        if row is None or row["state"] not in UNDER_WAY or why == "boredom":
            self.refused(self.ledger.ask_stop, name, why, self.now)
            return
        self.ledger.ask_stop(name, why, self.now)
        row["stop"] = row["stop"] if row["stop"] == "cancel" else why

    @rule(pool=st.sampled_from(sorted(POOLS)), on=st.booleans())
    def drain(self, pool, on):
        self.ledger.drain(pool, on, "upgrade\x00", self.now)
        (self.closed.add if on else self.closed.discard)(pool)
        assert set(self.ledger.drained()) == self.closed

    @invariant()
    def the_ledger_is_sound_and_as_the_model_says(self):
        if not hasattr(self, "ledger"):
            return
        assert self.ledger.check() == []
        for row in self.ledger.jobs():
            model = self.jobs[row.id]
            assert (row.state, row.failures, row.failed_at, row.cancel) == tuple(
                model[k] for k in ("state", "failures", "failed_at", "cancel")
            )
            assert abs(row.spent - model["spent"]) <= 1e-9 * (1 + row.spent) and row.done == model["done"]
        found = {a.id: (a.state, a.stop, a.router) for a in self.ledger.attempts()}
        assert found == {name: (a["state"], a["stop"], a["router"]) for name, a in self.attempts.items()}

    @invariant()
    def one_who_reads_changes_alone_knows_all_open_jobs(self):
        if not hasattr(self, "ledger"):
            return
        for row in self.ledgers["r2"].open_jobs(self.seen_change):
            self.seen_change = max(self.seen_change, row.changed)
            self.board.pop(row.id, None)
            if row.state not in OVER:
                self.board[row.id] = row.state
        assert self.board == {r.id: r.state for r in self.ledger.open_jobs()}
