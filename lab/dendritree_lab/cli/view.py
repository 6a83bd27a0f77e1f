"""`dendritree view`: the live page of a model."""

from __future__ import annotations

from functools import partial

from dendritree.errors import OptionError

from .options import DATA_HELP, TARGET, Arguments, Option

PIXELS = {None: None, "unit": False, "normalized": True}


def run(arguments: Arguments) -> None:
    """Explore a model's neurons on a live page, and draw digits for it."""
    from ..data.naming import parse_image_shape
    from ..view import demo_gallery, open_gallery, serve

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
            target=arguments.target,
            normalized=PIXELS[arguments.pixels],
        )
    serve(gallery, port=arguments.port, browser=not arguments.no_browser, say=partial(print, flush=True))


OPTIONS = [
    Option("path [MODEL_OR_RUN]", "folder of a saved model, or of a run with kept models"),
    Option("--demo", "train two small models in a few seconds and show them"),
    Option("--image HxW", "image shape of the inputs, or none (default: automatic)"),
    Option("--data DATA", f"{DATA_HELP} (default: automatic)"),
    TARGET,
    Option("--pixels unit|normalized", "unit: as stored; normalized: scaled as in `tune` (default: automatic)"),
    Option("--port N", "port of the server (default: any free one)", type=int),
    Option("--no-browser", "print the page's address without opening a browser"),
]
EXAMPLES = "dendritree view --demo\ndendritree view tuned/\ndendritree view my-model --data pets/ --port 8000"
