"""Parameter counts of the families beyond plain transformers and CNNs, each in the names of `Params`."""
