"""Kubernetes: attempts as Jobs, JobSets or RayJobs."""
