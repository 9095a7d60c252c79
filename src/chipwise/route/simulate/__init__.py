"""Policies tried on a trace: the same functions, on a clock of our own."""
