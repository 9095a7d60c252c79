"""Servers by the counters and histograms that a store has of them: whose engines they are, requests, latencies."""
