"""The server of the page: static files and some JSON, for this machine only."""

from __future__ import annotations

import asyncio
import json
import math
import mimetypes
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any

import numpy as np
import torch
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dendritree.errors import DendritreeError, OptionError, check_index

from .column_inputs import CellValue
from .exhibit import Exhibit
from .opened_models import Gallery
from .trees import tree_json

HOST = "127.0.0.1"
MOST_BYTES = 1 << 20
"""Maximum size of a request body; the largest drawing is a fraction of it."""
HEADERS = {
    # The page loads only from its own server, and no other page may frame it or read from it.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def make_app(gallery: Gallery) -> Starlette:
    """The web application that shows a gallery.

    Models run one after another in one thread on one core: a response takes a millisecond or two, so ten people who
    draw at once wait less for each other than they would for thread switches.
    """
    worker = ThreadPoolExecutor(1, "dendritree-view", initializer=torch.set_num_threads, initargs=(1,))

    def route(path: str, answer: Callable[[Exhibit, dict[str, str], bytes], Any], method: str = "GET") -> Route:
        """The JSON endpoint at a path below one model."""

        async def endpoint(request: Request) -> Response:
            model, query = request.path_params["model"], dict(request.query_params)

            def content() -> bytes:
                return _json(answer(gallery[model], query, body))

            try:
                body = await _body(request)
                return _response(await asyncio.get_running_loop().run_in_executor(worker, content))
            except DendritreeError as error:
                return _response(_json({"error": str(error)}), status=400)
            except Exception as error:  # shown on the page; a traceback would only fill the terminal
                return _response(_json({"error": f"{type(error).__name__}: {error}"}), status=500)

        return Route(f"/api/models/{{model:int}}{path}", endpoint, methods=[method])

    async def models(_: Request) -> Response:
        about = {"title": gallery.title, "models": list(gallery.names), "training": gallery.is_training}
        return _response(_json(about))

    return Starlette(
        routes=[
            Route("/", _file),
            Route("/static/{name}", _file),
            Route("/api/models", models),
            route("", lambda exhibit, *_: exhibit.describe()),
            route("/samples", _samples),
            route("/tree", lambda exhibit, query, _: tree_json(exhibit.tree(*_neuron(query)))),
            route("/activity", _activity, "POST"),
        ],
        # A page whose host name was pointed at this machine (DNS rebinding) sends its own name and is rejected.
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"], www_redirect=False),
            Middleware(SameOrigin),
        ],
    )


class SameOrigin:
    """Rejects requests from pages of other origins: browsers send them, and only block reading the response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with status 403."""
        headers = dict(scope.get("headers", ()))  # names are lower case
        origin = headers.get(b"origin")
        if origin in (None, b"http://" + headers.get(b"host", b"")):
            await self.app(scope, receive, send)
        else:
            rule = f"requests must come from this server's own page: got the origin {origin.decode('latin-1')!r:.80}"
            await _response(_json({"error": rule}), status=403)(scope, receive, send)


def _samples(exhibit: Exhibit, *_: Any) -> list[list[CellValue]]:
    """The examples of a model's data set: pixels from 0 to 255, features, or the cells of a table's row."""
    if exhibit.pixels:
        return [(sample.x[0] * 255).round().int().tolist() for sample in exhibit.samples]
    return [list(sample.cells or sample.x[0].tolist()) for sample in exhibit.samples]


def _activity(exhibit: Exhibit, query: dict[str, str], body: bytes) -> dict[str, Any]:
    """The model's response to a drawing, a row of a table, or a sample."""
    if "sample" in query:
        x = exhibit.samples[check_index("sample", _number(query, "sample"), len(exhibit.samples))].x
    elif exhibit.columns and body:
        try:
            cells = json.loads(body)
        except (ValueError, RecursionError):
            raise OptionError(f"a row must be a list of cells in JSON: got {body!r:.60}") from None
        x = exhibit.columns.to_input(cells)
    elif exhibit.pixels is None:
        x = torch.zeros(1, exhibit.in_features)
    else:
        height, width = exhibit.pixels.raster
        if len(body) != height * width:
            raise OptionError(f"a drawing must have {height * width} bytes, one per pixel: got {len(body)}")
        drawing = np.frombuffer(body, dtype=np.uint8).reshape(height, width)
        x = exhibit.pixels.of_drawing(drawing, centered=query.get("centered") == "1")
    return exhibit.activity(x, *_neuron(query))


def _neuron(query: dict[str, str]) -> tuple[int, int]:
    return _number(query, "layer"), _number(query, "neuron")


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise OptionError(f"{name} must be an integer: got {text!r:.40}")
    return int(text)


def _json(value: Any) -> bytes:
    """Encode JSON, with null in place of NaN and infinity, which JSON lacks."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            return body  # too long for any drawing, as the response will state
    return body


async def _file(request: Request) -> Response:
    """A file in static/."""
    name = request.path_params.get("name", "index.html")
    files = {file.name: file for file in resources.files(__package__).joinpath("static").iterdir()}
    if name not in files:
        return _response(b"not found", "text/plain", 404)
    return _response(files[name].read_bytes(), mimetypes.guess_type(name)[0] or "text/plain")


def _response(content: bytes, kind: str = "application/json", status: int = 200) -> Response:
    return Response(content, status, HEADERS, media_type=kind)


# ----------------------------------------------------------------------------------------------------------- listening


def open_socket(port: int | None = None) -> socket.socket:
    """A socket that listens only on this machine, on a given port or on any free one.

    >>> with open_socket() as free:
    ...     free.getsockname()[0]
    '127.0.0.1'
    """
    try:
        return socket.create_server((HOST, check_index("port", port or 0, 65536)), backlog=128)
    except OSError as error:
        raise OptionError(f"port must be a free port of this machine: got {port} ({error.strerror})") from None


def serve(
    gallery: Gallery, *, port: int | None = None, browser: bool = True, say: Callable[[str], None] = print
) -> None:
    """Show a gallery until Ctrl-C.

    Args:
        gallery: the models.
        port: the port to listen on; by default any free port.
        browser: whether to open the page in the user's browser.
        say: called with the line that contains the address.
    """
    with open_socket(port) as listening:
        gallery[0]  # raise errors of the model now, not on the page, and compile its kernels
        app = make_app(gallery)
        url = f"http://{HOST}:{listening.getsockname()[1]}/"
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1, lifespan="off")
        say(f"{gallery.title}: {url}  (press Ctrl-C to stop)")
        if browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return  # uvicorn has released everything and re-raises the signal


def _has_screen() -> bool:
    """Whether there is a screen for a browser: without one, a text browser would take over the terminal."""
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
