"""`dendritree data`: list, fetch and verify the data sets."""

from __future__ import annotations

from dendritree.errors import DendritreeError, check_one_of

from .messages import print_columns, tell
from .options import DATA_DIR, Arguments, Option


def run(arguments: Arguments) -> int:
    """List, fetch or verify the data sets."""
    from ..data import DATASETS
    from ..data.catalog import COLLECTIONS

    known = [*DATASETS, *COLLECTIONS]
    names = [check_one_of("data set", name, known) for name in arguments.names] or known
    actions = {"list": _list, "get": _get, "verify": _verify}
    return actions[arguments.action](names, arguments.data_dir)


def _list(names: list[str], data_dir: str | None) -> int:
    """Print what each data set is and where its files are, without reading them."""
    from ..data import DATASETS
    from ..data.catalog import COLLECTIONS, FILE_SETS
    from ..data.fetch import whereabouts

    summaries = {name: data_set.summary for name, data_set in DATASETS.items()} | COLLECTIONS
    sizes = {name: f"{FILE_SETS[name].size / 1e6:.1f} MB" if name in FILE_SETS else "" for name in names}
    rows = [(name, summaries[name], sizes[name], whereabouts(name, data_dir)) for name in names]
    print_columns(("name", "description", "size", "where"), rows)
    return 0


def _get(names: list[str], data_dir: str | None) -> int:
    """Fetch the missing data sets; a failure does not affect the others."""
    from ..data.catalog import FILE_SETS
    from ..data.fetch import obtain, whereabouts

    status = 0
    for name in names:
        try:
            if name in FILE_SETS:
                obtain(FILE_SETS[name], data_dir=data_dir)
            print(f"{name}: {whereabouts(name, data_dir)}", flush=True)
        except DendritreeError as error:
            status = 2
            tell(error)
    return status


def _verify(names: list[str], data_dir: str | None) -> int:
    """Read every copy of every file on this machine; return 1 if one is corrupt."""
    from ..data.fetch import verify

    rows = verify(names, data_dir)
    print_columns(("name", "file", "state", "where"), rows)
    return int(any(state == "corrupt" for _, _, state, _ in rows))


OPTIONS = [
    Option(
        "action list|get|verify",
        "list: describe and locate them; get: fetch missing ones; verify: check all files (status 1: one is corrupt)",
    ),
    Option("names [NAME ...]", "data sets (default: all)"),
    DATA_DIR,
]
EXAMPLES = "dendritree data list\ndendritree data verify mnist adult\ndendritree data get mnist"
