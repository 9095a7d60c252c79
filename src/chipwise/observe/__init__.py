"""What really happened: logs of training and serving, their faults, and how they compare with predictions."""

from chipwise.observe.own_loop import step as step
