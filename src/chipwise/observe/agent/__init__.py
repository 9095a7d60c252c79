"""An agent on a node: what its devices, its kernel and its cloud say, as one set of series."""
