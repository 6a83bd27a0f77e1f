"""A folder that takes seconds to make and that tests only read: made once, however many workers need it."""

import os

from filelock import FileLock


def made_once(tmp_path_factory, name, make):
    """The folder `name` that `make(folder)` fills, made by the first worker that asks; the others wait for it."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # each worker has a folder of its own in the one of the run
    folder, scratch = place / name, place / f"{name}.{os.getpid()}"
    with FileLock(place / f"{name}.lock"):
        if not folder.exists():
            scratch.mkdir(exist_ok=True)
            make(scratch)
            scratch.rename(folder)
    return folder
