"""Telemetry kept: samples, rolled up to five minutes and to hours, each for as long as it is worth."""
