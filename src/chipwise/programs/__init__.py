"""Reference programs in JAX and PyTorch: what bench measures, compiled compiles and numerics trains is the same code.

Frameworks are optional and slow to load: only `program` and `optimizers` may be imported without one.
"""
