import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.docs.site import SITE
from tests.viz.browser import LOCAL, Browser


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    """Of the site, served from this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory, address):
    opened = Browser(tmp_path_factory.mktemp("profile"), allowed=(*LOCAL, "blob:", address))
    yield opened
    opened.close()


@pytest.fixture
def page(browser):
    """Nothing may go wrong on the page, nothing may be asked of another machine."""
    browser.problems.clear()
    yield browser
    assert browser.problems == []
