"""What costs assume of failures, interruptions and use, as a ledger's jobs met it."""
