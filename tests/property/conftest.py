"""Property tests try the same examples on every machine, however slow it is."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
