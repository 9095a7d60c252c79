"""Demand over time into what to rent or buy: a mixed-integer program, and its answer in words."""
