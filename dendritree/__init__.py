"""Dendritic-tree neurons for PyTorch: the names used most often. Everything else is imported from its own module."""

import ast
import importlib
import importlib.util
from pathlib import Path
from typing import Any

__version__ = "0.1.0.dev0"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOMES = {
    alias.name: f".{node.module}" for node in _STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name], __name__), name)
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
