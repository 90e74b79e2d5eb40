"""Property tests here are limited by their number of examples, not by a busy machine's clock."""

from hypothesis import settings

settings.register_profile("theory", deadline=None)
settings.load_profile("theory")
