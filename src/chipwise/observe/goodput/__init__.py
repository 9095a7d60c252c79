"""Goodput: which part of a run's time was steps that count, and where the rest went."""
