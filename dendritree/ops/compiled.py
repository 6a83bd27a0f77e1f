"""Compiling the kernels: once, for all processes, kept on disk."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..files import Lock

__all__ = ["kernel", "typed_activation"]

SIGNATURES = {
    "forward": ["intp"] * 14 + ["real", "real", "intp", "boolean"],
    "backward": ["intp"] * 17 + ["real", "real", "intp", "boolean"],
    "input_gradient": ["intp"] * 13 + ["real", "real", "intp"],
    "transpose": ["intp"] * 6 + ["real"],
    "log_products": ["intp"] * 10 + ["real"],
    "log_products_backward": ["intp"] * 14 + ["real"],
    "depths": ["intp"] * 12 + ["real"],
    "smooth_depths": ["intp"] * 13 + ["real", "real"],
    "smooth_depths_backward": ["intp"] * 15 + ["real", "real"],
}
"""Arguments of the kernels; an activation comes last where there is one."""


@functools.cache
def kernel(name: str, dtype: torch.dtype, activation: str | None = None) -> Callable[..., None]:
    """The compiled entry of a kernel for one number type and activation; it skips Numba's own dispatch.

    Compiled now or loaded from the cache on disk; of many processes that start together one compiles.
    """
    import numba

    from . import kernels

    real = numba.float32 if dtype == torch.float32 else numba.float64
    signature = [real if kind == "real" else getattr(numba, kind) for kind in SIGNATURES[name]]
    if activation is not None:
        signature.append(numba.types.NamedUniTuple(real, 1, _activation_type(activation)))  # type: ignore[no-untyped-call]
    dispatcher = getattr(kernels, name)
    with _one_process_at_a_time(dispatcher):
        entry: Callable[..., None] = dispatcher.compile(tuple(signature))
    return entry


@functools.cache
def _activation_type(name: str) -> Callable[[float], Any]:
    from . import kernels

    return next(kind for kind in kernels.ACTIVATIONS if kind.__name__ == name)


@functools.lru_cache(maxsize=256)
def typed_activation(name: str, slope: float) -> Any:
    """An activation as the kernels take it: its type chooses their code."""
    return _activation_type(name)(slope)


def _one_process_at_a_time(dispatcher: Any) -> contextlib.AbstractContextManager[Any]:
    """A lock beside Numba's cache while compiling; nothing where there is no cache or no lock."""
    folder = getattr(dispatcher._cache, "cache_path", None)
    with contextlib.suppress(OSError):
        if folder is not None:
            return Lock(Path(folder) / "dendritree.lock", on_wait=lambda _: None)
    return contextlib.nullcontext()
