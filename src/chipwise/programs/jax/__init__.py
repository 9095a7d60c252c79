"""Reference programs in JAX: transformers, their serving, ResNets, on any mesh of devices."""
