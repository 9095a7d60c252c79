"""The ledger: jobs, decisions, attempts and events, in SQLite or PostgreSQL."""
