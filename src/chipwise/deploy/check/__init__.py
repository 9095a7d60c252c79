"""A tree that was written, and perhaps edited, checked as a whole before it is applied."""
