"""How kernels compile, and the files that keep what was compiled."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile

from .parts import OPTIONS

def jit(function: Callable[..., Any]) -> Any:
    """Compile without the GIL and keep the result on disk, or in memory alone where no folder can be written."""
    try:
        dispatcher = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # numba found no place for its cache
        return njit(**OPTIONS)(function)
    keep(dispatcher)
    return dispatcher


class KernelFile(IndexDataCacheFile):
    """Numba's files of one kernel, its index and its codes, read only if they are what was written.

    Each begins with a digest of itself, of Numba's version and of all our sources: Numba calls its files stale when the
    function's own source file changes, and a kernel has parts in several. It also loads whatever code the name in the
    index leads to. A process that was killed between the two writes may leave old code there, a bad disk anything, and
    wrong machine code ends the process that calls it.
    """

    def save(self, key, data):
        """Write a code with what it is of."""
        super().save(key, (key, data))

    def load(self, key):
        """Read a code; None if there is none of exactly that."""
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self):
        return self._read(self._index_path) or {}

    def _save_index(self, overloads):
        self._write(self._index_path, overloads)

    def _load_data(self, name):
        return self._read(self._data_path(name))

    def _save_data(self, name, data):
        self._write(self._data_path(name), data)

    def _write(self, path, value):
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._digest(content) + content)

    def _read(self, path):
        file = Path(path)
        if not file.is_file():  # to open a pipe would wait for somebody to write
            return None
        whole = file.read_bytes()
        size = hashlib.sha256().digest_size
        return pickle.loads(whole[size:]) if whole[:size] == self._digest(whole[size:]) else None

    def _digest(self, content):
        return hashlib.sha256(f"{self._version} {self._source_stamp} ".encode() + content).digest()


def keep(function: Any) -> None:
    """Let a function that Numba keeps on disk have files of ours."""
    function._cache._cache_file.__class__ = KernelFile
    function._cache._cache_file._source_stamp = SOURCE_STAMP


def source_stamp(folder: Path) -> str:
    """A digest of all that the kernels are compiled from."""
    sources = sorted([*folder.glob("*.py"), folder.parent / "header.py"])
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


SOURCE_STAMP = source_stamp(Path(__file__).parent)
