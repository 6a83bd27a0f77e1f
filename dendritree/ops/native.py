"""The library of CPU kernels that the package builds from `cpu/`: its structs; importing this module loads it."""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path

import torch

from ..errors import check_one_of
from .sheets import Sheet

__all__ = ["DenseCall", "Kernels", "NormCall", "TreeCall", "kernels", "missing", "warn_if_missing", "workers_for"]

FILE = Path(__file__).parent / "cpu" / "libdendritree.so"

NOT_BUILT = (
    "the CPU kernels were not built: install a C++ compiler (gcc 12 or newer, or clang), then run "
    "`pip install --no-cache-dir --force-reinstall --no-deps dendritree`"
)

PARALLEL_FROM = 200_000
"""Multiply-adds below which one thread does all the work."""


def _pointers(names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_void_p) for name in names.split()]


def _integers(names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_int64) for name in names.split()]


class TreeCall(ctypes.Structure):
    """The struct `Call` of `cpu/call.hpp`, which describes every field."""

    _fields_ = [
        ("counters", ctypes.c_int64 * 13),
        *_integers("failed"),
        *_pointers("caller"),
        *_integers("features neurons nodes edges chunks slots widest"),
        *_pointers("places rows chunk_table"),
        *_integers("batch blocks block_tiles input_numbers row_numbers"),
        ("sheet", ctypes.c_int64 * len(Sheet._fields)),
        *_integers("kind root_linear limit"),
        ("slope", ctypes.c_double),
        ("scale", ctypes.c_double),
        *_integers("groups parts"),
        *_pointers("x"),
        *_integers("x_sample x_feature"),
        *_pointers("weight bias seed y"),
        *_integers("y_sample y_feature"),
        *_pointers("inputs trace silent work products"),
        *_integers("work_bytes"),
        *_pointers("gx gw gb"),
        *_integers("gx_numbers"),
    ]


class DenseCall(ctypes.Structure):
    """The struct `DenseCall` of `cpu/kernels.hpp`."""

    _fields_ = [
        *_integers("step"),
        *_pointers("x weight other gy least out least_out total_out of_x of_weight of_other nearest"),
        *_integers("inputs dendrites samples"),
        ("temperature", ctypes.c_double),
        *_integers("taken"),
    ]


class NormCall(ctypes.Structure):
    """The struct `NormCall` of `cpu/kernels.hpp`."""

    _fields_ = [
        *_integers("step"),
        *_pointers("x gy weight bias out moments gw gb rows sums"),
        *_integers("pixels channels period chunk chunks kind"),
        ("slope", ctypes.c_double),
        ("eps", ctypes.c_double),
        *_integers("taken"),
    ]


class Kernels:
    """The loaded library: its functions, the instruction set they use, and the threads they run on."""

    def __init__(self, file: Path) -> None:
        library = ctypes.CDLL(str(file))
        library.dendritree_instruction_sets.restype = ctypes.c_char_p
        library.dendritree_size.restype = ctypes.c_int64
        for which, struct in enumerate((TreeCall, DenseCall, NormCall)):
            assert library.dendritree_size(which) == ctypes.sizeof(struct), f"{file} is not of this version"
        self.built, self.supported = (
            library.dendritree_instruction_sets(flag).decode().split() for flag in (False, True)
        )
        self.selected = os.environ.get("DENDRITREE_CPU") or self.supported[0]
        check_one_of("DENDRITREE_CPU on this machine", self.selected, self.supported)
        library.dendritree_select(self.selected.encode())
        self.forward, self.backward, self.dense, self.normalize = (
            getattr(library, f"dendritree_{name}") for name in ("forward", "backward", "dense", "normalize")
        )
        for function in (self.forward, self.backward, self.dense, self.normalize):
            function.restype = None
            function.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * (2 if function is self.dense else 3)]
        library.dendritree_use_openmp.argtypes = [ctypes.c_void_p]
        self._library = library
        self.uses_openmp = self.use_openmp(True)

    def use_openmp(self, wanted: bool) -> bool:
        """Run on the OpenMP threads of torch, if it is built with gcc's; otherwise on a pool of our own."""
        parallel = None
        if wanted:
            try:
                torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
                parallel = ctypes.cast(torch_cpu.GOMP_parallel, ctypes.c_void_p)
            except (OSError, AttributeError):
                pass
        return bool(self._library.dendritree_use_openmp(parallel))


def _load() -> tuple[Kernels | None, str | None]:
    if not FILE.exists():
        return None, NOT_BUILT
    try:
        return Kernels(FILE), None
    except OSError as error:
        return None, f"the CPU kernels cannot be loaded: {error}"


kernels, missing = _load()
"""The kernels, or None and the reason why there are none."""


def warn_if_missing() -> None:
    """Warn once that there are no kernels."""
    global _warned
    if missing is not None and not _warned and not torch.compiler.is_compiling():
        _warned = True
        warnings.warn(f"PyTorch's own operations are used, which are slower: {missing}", stacklevel=4)


_warned = False


def workers_for(multiply_adds: int) -> int:
    """The number of threads worth waking for this much work."""
    return torch.get_num_threads() if multiply_adds >= PARALLEL_FROM else 1
