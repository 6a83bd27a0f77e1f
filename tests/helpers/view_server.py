"""The page's real server in a thread of the tests, and plain questions to it."""

import contextlib
import http.client
import json
import threading

import uvicorn

from dendritree_lab.view.server import HOST, make_app, open_socket


@contextlib.contextmanager
def serving(gallery):
    """The port at which a gallery is shown while the block runs."""
    with open_socket() as listening:
        server = uvicorn.Server(uvicorn.Config(make_app(gallery), log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


def ask(port, path, method="GET", body=None, **headers):
    """Status, headers and content of an answer; JSON is read, in which NaN and Infinity do not exist."""
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Connection": "close", **headers})
        answer = connection.getresponse()
        content = answer.read()
        kind = answer.getheader("Content-Type", "")
    return (
        answer.status,
        dict(answer.getheaders()),
        json.loads(content, parse_constant=_reject) if "json" in kind else content,
    )


def _reject(name):
    raise ValueError(f"{name} is not JSON")
