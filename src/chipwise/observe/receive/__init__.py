"""Telemetry that programs send: OpenTelemetry's metrics over HTTP."""
