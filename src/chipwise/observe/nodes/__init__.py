"""Nodes of a cluster: which are sick, by what exporters and agents said of them, and what a router is to avoid."""
