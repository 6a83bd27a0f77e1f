"""`dendritree view`: the live page of a model."""

from __future__ import annotations

import argparse
from functools import partial

from ..errors import OptionError, import_extra
from .command import Command

__all__ = ["VIEW"]

PIXELS = {"unit": False, "normalised": True}


def _view(arguments: argparse.Namespace) -> int:
    import_extra("uvicorn", extra="view")  # before anything is trained or read
    import_extra("starlette", extra="view")
    from ..view import demo_gallery, open_gallery, serve
    from ..view.pixels import parse_image_shape

    if (arguments.path is None) != arguments.demo:
        raise OptionError("view takes the folder of a model or of a run, or --demo")
    if arguments.demo:
        print("training two small models on scikit-learn's digits ...", flush=True)
        gallery = demo_gallery()
    else:
        image = arguments.image
        gallery = open_gallery(
            arguments.path,
            image=image if image in (None, "none") else parse_image_shape(image),
            data=arguments.data,
            normalized=None if arguments.pixels is None else PIXELS[arguments.pixels],
        )
    serve(gallery, port=arguments.port, browser=not arguments.no_browser, say=partial(print, flush=True))
    return 0


VIEW = Command(
    "look into a model's neurons on a live page; draw digits for it",
    "",
    _view,
    [
        (("path",), {"nargs": "?", "metavar": "MODEL_OR_RUN", "help": "a folder of `save`, or a run with kept models"}),
        (("--demo",), {"action": "store_true", "help": "train two small models now, in a few seconds, and show them"}),
        (("--image",), {"metavar": "HxW", "help": "the image that the inputs are, or none (default: found out)"}),
        (("--data",), {"metavar": "NAME", "help": "data set to take examples from (default: found out)"}),
        (
            ("--pixels",),
            {"choices": tuple(PIXELS), "help": "from 0 to 1, or normalised as in the paper (default: found out)"},
        ),
        (("--port",), {"type": int, "metavar": "N", "help": "port to listen at (default: a free one)"}),
        (("--no-browser",), {"action": "store_true", "help": "only print the page's address"}),
    ],
    usage="dendritree view [options] MODEL_OR_RUN",
    network_example="dendritree view --demo\n  dendritree view digits-model --port 8000",
)
