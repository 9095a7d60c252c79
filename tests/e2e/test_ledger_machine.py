"""The ledger stays sound whatever is done to it, on SQLite and on a real PostgreSQL."""

import itertools

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from ledger_machine import LedgerMachine

pytestmark = pytest.mark.service

CALM = settings(deadline=None, stateful_step_count=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        ("sqlite", 25),
        ("postgresql", 10),
        pytest.param("sqlite", 150, marks=pytest.mark.slow),
        pytest.param("postgresql", 60, marks=pytest.mark.slow),
    ],
)
def test_any_steps_in_any_order_leave_the_ledger_sound(kind, examples, tmp_path, request):
    if kind == "sqlite":
        run(lambda n: str(tmp_path / f"{n}.db"), examples)
    else:
        server = request.getfixturevalue("postgres")
        run(lambda n: server.database(f"ledger{examples}_{n}"), examples)


def run(url, examples):
    numbers = itertools.count()

    class Machine(LedgerMachine):
        def url(self):
            return url(next(numbers))

    run_state_machine_as_test(Machine, settings=settings(CALM, max_examples=examples))
