"""Pages in a browser, and the demonstration, trained once for all tests of it."""

import pytest
from view_page import READY
from view_server import serving

from dendritree_lab.view import demo_gallery


@pytest.fixture(scope="session")
def demo_port():
    gallery = demo_gallery()
    assert gallery[0].describe()["layers"][0]["neurons"] == 10
    with serving(gallery) as port:
        yield port


@pytest.fixture
def show(browser, request):
    """Open the page of a server, or of the demonstration, at a width and wait until it is ready."""

    def opened(width, port=None, ready=READY, **options):
        port = port or request.getfixturevalue("demo_port")
        page = browser.open(f"http://127.0.0.1:{port}/", width, **options)
        page.wait_until(ready)
        return page

    return opened
