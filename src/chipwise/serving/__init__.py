"""Serving: the steps of a replica, continuous batching under load, and the largest rate within an SLO."""
