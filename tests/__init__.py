"""Tests may share the machine with anything: no example has a deadline, pytest-timeout watches them all."""

from hypothesis import settings

settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")
