"""Storage for the trials of a comparison on a user's table, so that an interrupted fit can be resumed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from dendritree.errors import FormatError, import_extra

from ..engine.store import RunStore


@contextlib.contextmanager
def kept_trials(
    folder: str | os.PathLike[str] | None, frame: Any, config: Mapping[str, Any], *, anew: bool = False
) -> Iterator[RunStore | None]:
    """A context with the store of a fit in its own folder; None without a folder, or if file locks are unavailable.

    A folder without trials is removed when the context ends.

    Args:
        folder: the folder of the store, created if necessary.
        frame: the table.
        config: what else determines the trials. A table or config that differs from the store's raises `FormatError`.
        anew: remove a store that differs, and start a new one, instead of raising.
    """
    if folder is None:
        yield None
        return
    config = {"table": table_digest(frame), **config}
    try:
        try:
            store = RunStore.create_or_open(folder, config)
        except FormatError as error:
            if not anew:
                raise FormatError(f"{error}; remove that folder to start over") from None
            shutil.rmtree(folder)
            store = RunStore.create_or_open(folder, config)
    except NoLocksError:
        shutil.rmtree(folder)
        yield None
        return
    try:
        yield store
    finally:
        empty = not len(store)
        store.close()
        if empty:
            shutil.rmtree(folder)


def table_digest(frame: Any) -> str:
    """A digest that differs for tables with other cells, columns or types.

    >>> import pandas
    >>> table_digest(pandas.DataFrame({"rooms": [3, 4]})) == table_digest(pandas.DataFrame({"rooms": [3, 5]}))
    False
    """
    pandas = import_extra("pandas", extra="tables")
    found = hashlib.sha256(repr([(name, str(kind)) for name, kind in frame.dtypes.items()]).encode())
    for _, cells in frame.items():
        try:
            hashes = pandas.util.hash_pandas_object(cells, index=False)
        except TypeError:  # cells that are lists, which Parquet allows
            hashes = pandas.util.hash_pandas_object(cells.astype(str), index=False)
        found.update(hashes.to_numpy().tobytes())
    return found.hexdigest()[:16]
