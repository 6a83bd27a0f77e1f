"""Machine code of kernels, kept in files and loaded by LLVM alone.

To import Numba and to prepare it takes longer than everything else about a first call, so only a process that compiles
does. Code is loaded in one way, whether it was compiled just now or long ago.
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
"""Numba's own settings that change what it compiles to: variables NUMBA_... of the environment."""


class Code(NamedTuple):
    """A compiled kernel."""

    symbol: str
    """Its name within the object."""
    needs: Sequence[str]
    """Functions of other libraries that it calls, except those of C that LLVM itself provides."""
    content: bytes
    """The object, as a linker would take it."""


class Loaded(NamedTuple):
    """A kernel in memory."""

    address: int
    engine: Any
    """What holds it there."""


def load(code: Code) -> Loaded | None:
    """Bring a kernel into memory; None where this process lacks something that it calls."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)  # which makes symbols of C known, too
    if any(binding.address_of_symbol(name) is None for name in code.needs):  # LLVM itself would end the process
        return None
    engine.add_object_file(binding.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    return Loaded(engine.get_function_address(code.symbol), engine)


class CodeFile:
    """The file of one kernel, in the first of some folders that has it or that can be written.

    It begins with a digest of itself, of our sources, of Numba's version and of the machine, and is read only if that
    is right. A bad disk may have left anything there, and wrong machine code ends the process that calls it.
    """

    def __init__(self, folders: Sequence[Path], name: str, about: str) -> None:
        self.paths = [folder / f"{name}.code" for folder in folders]
        self.about = f"{name} {about} "

    def read(self) -> Code | None:
        """What was written; None if there is nothing, or anything else."""
        size = hashlib.sha256().digest_size
        for path in self.paths:
            try:
                whole = path.read_bytes() if path.is_file() else b""  # to open a pipe would wait for somebody to write
            except OSError:
                continue
            if whole and whole[:size] == self._digest(whole[size:]):
                first, _, content = whole[size:].partition(b"\n")
                symbol, needs = json.loads(first)
                return Code(symbol, needs, content)
        return None

    def write(self, code: Code) -> None:
        """Keep a code where that is possible: it only saves time."""
        if (path := self.writable()) is not None:
            content = json.dumps([code.symbol, list(code.needs)]).encode() + b"\n" + code.content
            try:
                write_whole(path, self._digest(content) + content)
            except DendritreeError:  # a full disk
                return

    def writable(self) -> Path | None:
        """Where it can be written, if anywhere."""
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
    """The file of a kernel: where `NUMBA_CACHE_DIR` says; else with the package or in the user's cache."""
    about, machine = _about()
    return CodeFile(_folders(), f"{kernel}-{machine}", about)


def _folders() -> list[Path]:
    own = f"dendritree-{hashlib.sha256(os.fsencode(KERNELS)).hexdigest()[:16]}"  # other versions may lie beside it
    if asked := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(asked) / own]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return [KERNELS / "__pycache__", cache / "dendritree" / own]


@functools.cache
def _about() -> tuple[str, str]:
    """All that a kernel's code depends on; and the machine alone, as a part of a name."""
    from llvmlite import binding

    host = [binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    host += [os.environ.get(f"NUMBA_{name}", "") for name in SETTINGS]
    about = [version("numba"), version("llvmlite"), source_stamp(KERNELS), *host]
    return " ".join(about), hashlib.sha256(" ".join(host).encode()).hexdigest()[:8]


def source_stamp(folder: Path) -> str:
    """A digest of all that the kernels are compiled from."""
    sources = sorted([*folder.glob("*.py"), folder.parent / "header.py"])
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
