"""Checks of programs on pull requests: what compilers make of them, held against the base branch, and the workflows."""
