"""The service in front of a ledger: who asks, by a unix socket, and what their role allows."""
