"""Gavel's simulator as a benchmark: its rounds, our policies at their boundaries, and its own figures beside ours.

Gavel: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020;
github.com/stanford-futuredata/gavel. `python -m benchmarks.gavel FOLDER` replays any Gavel trace by its rules.
"""
