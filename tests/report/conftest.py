"""A browser for the pages of reports."""

import pytest
from browser import CHROMIUM, Browser


@pytest.fixture(scope="session")
def browser():
    """A running Chromium; tests that ask for it are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium to show the page in: install `chromium`")
    with Browser() as running:
        yield running
