"""JAX and PyTorch behind one small interface: see `interface`."""
