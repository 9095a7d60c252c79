"""Small real models in the form of a user's program: one file for each preset and framework."""
