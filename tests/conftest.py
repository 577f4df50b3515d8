"""How many examples a property is tried on, for all tests.

Every run draws new ones, so that many runs see what one does not; `--hypothesis-profile=thorough` draws
many at once.
Tests may share the machine with anything: no example has a deadline, pytest-timeout watches them all.
"""

from hypothesis import settings

settings.register_profile("everyday", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=400)
settings.load_profile("everyday")
