"""Slurm: the configuration of a cluster whose nodes come and go with its jobs, and the programs that make them."""
