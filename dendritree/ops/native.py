"""The library of CPU kernels: built with the package from `cpu/`, loaded when it is first needed."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch

__all__ = ["DenseCall", "Library", "TreeCall", "library", "problem"]

FILE = Path(__file__).parent / "cpu" / "libdendritree.so"
JOBS = 4
POINTERS = ("x weight bias seed y inputs trace silent work products gx gw gb places rows chunk_table").split()

Library = ctypes.CDLL


class Sheet(ctypes.Structure):
    """How the images of a block are laid out in planes: see `cpu/layout.hpp`."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "images channels height width top left row_step column_step rows columns plane out_rows out_columns"
        ).split()
    ]


def _fields(names: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_void_p if name in POINTERS else ctypes.c_int64) for name in names.split()]


class TreeCall(ctypes.Structure):
    """The struct `Call` of `cpu/call.hpp`, which describes every field."""

    _fields_ = [
        ("counters", ctypes.c_int64 * (2 * JOBS + 1)),
        *_fields("failed features neurons nodes edges chunks slots widest places rows chunk_table"),
        *_fields("batch blocks block_tiles input_numbers row_numbers"),
        ("sheet", Sheet),
        *_fields("kind root_linear limit"),
        ("slope", ctypes.c_double),
        ("scale", ctypes.c_double),
        *_fields("groups parts x x_sample x_feature weight bias seed y y_sample y_feature inputs trace silent"),
        *_fields("work products work_bytes gx gw gb gx_numbers"),
    ]


class DenseCall(ctypes.Structure):
    """The struct `DenseCall` of `cpu/kernels.hpp`."""

    _fields_ = [
        ("step", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in "x weight other gy least out least_out total_out".split()),
        *((name, ctypes.c_void_p) for name in "of_x of_weight of_other nearest".split()),
        *((name, ctypes.c_int64) for name in "inputs dendrites samples".split()),
        ("temperature", ctypes.c_double),
        ("taken", ctypes.c_int64),
    ]


@functools.cache
def library() -> Library | None:
    """The kernels; None if they were not built or cannot be loaded (`problem` says why)."""
    return None if problem() else _load()


@functools.cache
def problem() -> str | None:
    """Why there are no kernels, or None."""
    if not FILE.exists():
        return "its kernels were not built: install a C++ compiler (gcc or clang), then reinstall dendritree"
    try:
        _load()
    except OSError as error:
        return f"its kernels cannot be loaded: {error}"
    return None


@functools.cache
def _load() -> Library:
    kernels = ctypes.CDLL(str(FILE))
    kernels.dendritree_cpu.restype = ctypes.c_char_p
    kernels.dendritree_size.restype = ctypes.c_int64
    for which, struct in enumerate((TreeCall, DenseCall)):
        assert kernels.dendritree_size(which) == ctypes.sizeof(struct), struct.__name__
    for name in ("forward", "backward"):
        function = getattr(kernels, f"dendritree_{name}")
        function.argtypes, function.restype = [ctypes.c_void_p, *[ctypes.c_int] * 3], None
    kernels.dendritree_dense.argtypes, kernels.dendritree_dense.restype = [ctypes.c_void_p, *[ctypes.c_int] * 2], None
    kernels.dendritree_use_openmp.argtypes, kernels.dendritree_use_openmp.restype = [ctypes.c_void_p], None
    try:  # the OpenMP threads of torch itself, if it is built with gcc's
        torch_cpu = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        kernels.dendritree_use_openmp(ctypes.cast(torch_cpu.GOMP_parallel, ctypes.c_void_p))
    except (OSError, AttributeError):
        pass
    return kernels
