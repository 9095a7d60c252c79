"""Policies: pure functions from a `View` to `Wishes`, by name."""
