"""What a store of telemetry holds, as files of rows that other tools read."""
