"""dstack's models of a task and of a service."""

from cases import answer
from dstack._internal.core.models.configurations import parse_run_configuration


def read(task: dict) -> None:
    """The contents of a file."""
    parse_run_configuration(task)


answer(read)
