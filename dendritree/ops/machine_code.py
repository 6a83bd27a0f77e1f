"""Machine code of kernels, cached in files and loaded with LLVM only.

Importing and initializing Numba takes longer than everything else in a first call, so only a process that compiles
does so. Code is loaded the same way whether it was just compiled or read from a file.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DendritreeError
from ..files import write_whole

__all__ = ["Code", "CodeFile", "Loaded", "file_of", "load", "source_stamp"]

KERNELS = Path(__file__).parent / "kernels"
SETTINGS = ("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
"""Numba settings that affect the compiled code: the environment variables NUMBA_..."""


class Code(NamedTuple):
    """A compiled kernel."""

    symbol: str
    """Its name within the object."""
    needs: Sequence[str]
    """Functions of other libraries that it calls, except those of the C library that LLVM itself provides."""
    content: bytes
    """The object file."""


class Loaded(NamedTuple):
    """A kernel in memory."""

    address: int
    engine: Any
    """The object that keeps it in memory."""


def load(code: Code) -> Loaded | None:
    """Load a kernel into memory; None if this process lacks a function that it calls."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)  # registers C library symbols too
    if any(binding.address_of_symbol(name) is None for name in code.needs):  # LLVM would abort the process
        return None
    engine.add_object_file(binding.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    return Loaded(engine.get_function_address(code.symbol), engine)


class CodeFile:
    """The file of one kernel, in the first of several folders that has it or that is writable.

    It begins with a digest of its content, of our sources, of Numba's version and of the machine, and is used only if
    the digest matches: a damaged disk may have left anything there, and wrong machine code crashes the process.
    """

    def __init__(self, folders: Sequence[Path], name: str, about: str) -> None:
        self.paths = [folder / f"{name}.code" for folder in folders]
        self.about = f"{name} {about} "

    def read(self) -> Code | None:
        """The stored code; None if there is no file or its digest does not match."""
        size = hashlib.sha256().digest_size
        for path in self.paths:
            try:
                whole = path.read_bytes() if path.is_file() else b""  # opening a pipe would block
            except OSError:
                continue
            if whole and whole[:size] == self._digest(whole[size:]):
                first, _, content = whole[size:].partition(b"\n")
                symbol, needs = json.loads(first)
                return Code(symbol, needs, content)
        return None

    def write(self, code: Code) -> None:
        """Store the code if possible; a failure is ignored, since the file only saves time."""
        if (path := self.writable()) is not None:
            content = json.dumps([code.symbol, list(code.needs)]).encode() + b"\n" + code.content
            try:
                write_whole(path, self._digest(content) + content)
            except DendritreeError:  # a full disk
                return

    def writable(self) -> Path | None:
        """The path at which the file can be written, if any."""
        for path in self.paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=path.parent):
                    return path
            except OSError:
                continue
        return None

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(self.about.encode() + content).digest()


def file_of(kernel: str) -> CodeFile:
    """The file of a kernel: in `NUMBA_CACHE_DIR` if it is set, else in `kernels/__pycache__` or the user's cache."""
    about, machine = _about()
    return CodeFile(_folders(), f"{kernel}-{machine}", about)


def _folders() -> list[Path]:
    own = f"dendritree-{hashlib.sha256(os.fsencode(KERNELS)).hexdigest()[:16]}"  # other versions may be next to it
    if asked := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(asked) / own]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return [KERNELS / "__pycache__", cache / "dendritree" / own]


@functools.cache
def _about() -> tuple[str, str]:
    """Everything that a kernel's code depends on, and a part of the file name that identifies the machine."""
    from llvmlite import binding

    host = [binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    host += [os.environ.get(f"NUMBA_{name}", "") for name in SETTINGS]
    about = [version("numba"), version("llvmlite"), source_stamp(KERNELS), *host]
    return " ".join(about), hashlib.sha256(" ".join(host).encode()).hexdigest()[:8]


def source_stamp(folder: Path) -> str:
    """A digest of the sources that the kernels are compiled from."""
    sources = sorted([*folder.glob("*.py"), folder.parent / "header.py"])
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
