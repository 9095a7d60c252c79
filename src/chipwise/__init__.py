"""chipwise: which accelerator, how many, split how, at what price."""

__version__ = "0.1.0"
