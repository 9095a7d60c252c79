"""Serving: the steps of an engine, continuous batching under load, and the largest rate within a promise."""
