"""Targets: what a deployment can be written for."""
