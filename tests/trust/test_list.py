"""The tests that docs/security.md names are there, and `make test-trust` runs them."""

import re

import pytest

from core.domain.settings import PROJECT

pytestmark = pytest.mark.trust


def test_every_test_that_the_promises_name_is_there():
    """docs/security.md names a file, a test in it, or with `::` alone one more test of the file before."""
    promised = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8").rpartition("## Promises")[2]
    file, count = "", 0
    for named in re.findall(r"`((?:tests/[\w/]+\.py)?(?:::\w+)?)`", promised):
        where, _, test = named.partition("::")
        file = where or file
        text = (PROJECT / file).read_text(encoding="utf-8")
        assert not test or f"\ndef {test}(" in text, named
        assert "pytest.mark.trust" in text, file
        count += 1
    assert count > 20
