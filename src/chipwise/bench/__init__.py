"""Measure this machine: kernels, training steps, serving steps, vision models and collectives."""
