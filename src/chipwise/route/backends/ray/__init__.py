"""Ray: attempts as detached actors."""
