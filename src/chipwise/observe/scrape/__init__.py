"""Telemetry from exporters that run already: pages of Prometheus' metrics, as one set of series."""
