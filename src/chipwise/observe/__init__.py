"""What really happened: logs of training and serving, their faults, and how they compare with predictions."""
