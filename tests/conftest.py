"""For all tests: properties have no deadline, so that a busy machine fails nothing."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
