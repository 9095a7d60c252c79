"""From an optimized module to seconds: the schedule it holds, each operation timed, the step put together."""
