"""Runs that were observed become a correction of predictions: shown as a difference, accepted, taken back."""
