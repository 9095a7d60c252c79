"""Slurm: attempts as batch jobs, by its commands or slurmrestd."""
