"""What is used where nothing is said. Importing this module imports nothing else: option lists name it."""

DEFAULT_POLICY = "cheapest-within-deadline"  # of `simulate`, and of `jobs submit` before a router has said its own
