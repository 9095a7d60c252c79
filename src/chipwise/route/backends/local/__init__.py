"""This machine: attempts as processes."""
