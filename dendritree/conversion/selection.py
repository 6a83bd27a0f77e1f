"""Which perceptrons a user means: by name pattern, by type, by a function of name and module."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from torch import nn

from ..errors import OptionError

__all__ = ["Where", "names_one", "select"]

Where: TypeAlias = str | type[nn.Module] | Callable[[str, nn.Module], bool] | Sequence[Any]
"""A shell pattern on dotted names, a class, a function `(name, module) -> bool`, or several of these."""


def select(model: nn.Module, where: Where, candidates: Collection[str]) -> list[str]:
    """Names of the candidates that `where` means, in the model's order; a module stands for all that is inside it.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4)))
    >>> select(model, "1", ["0", "1.0"])
    ['1.0']
    """
    conditions = [where] if isinstance(where, str) or not isinstance(where, Sequence) else list(where)
    if not conditions:
        raise OptionError("where must have at least one pattern, class or function: got none")
    modules = list(model.named_modules())
    matched: set[str] = set()
    for condition in conditions:
        matches = _matcher(condition)
        found = {name for name, module in modules if matches(name, module)}
        if not any(_is_in(name, found) for name in candidates):
            raise OptionError(_nothing(condition, found, candidates))
        matched |= found
    return [name for name, _ in modules if name in candidates and _is_in(name, matched)]


def names_one(where: Where, name: str) -> bool:
    """Whether `where` spells out this very name: then the user asked for this one and not for what can be found."""
    conditions = [where] if isinstance(where, str) or not isinstance(where, Sequence) else where
    return any(isinstance(condition, str) and condition == name for condition in conditions)


def _is_in(name: str, matched: Collection[str]) -> bool:
    """Whether a module or one around it is matched."""
    parts = name.split(".") if name else []
    return any(".".join(parts[:length]) in matched for length in range(len(parts) + 1))


def _matcher(condition: Any) -> Callable[[str, nn.Module], bool]:
    if isinstance(condition, str):
        return lambda name, _: fnmatch.fnmatchcase(name, condition)
    if isinstance(condition, type) and issubclass(condition, nn.Module):
        kind = condition
        return lambda _, module: isinstance(module, kind)
    if callable(condition) and not isinstance(condition, type | nn.Module):
        function = condition
        return lambda name, module: bool(function(name, module))
    raise OptionError(
        f"where must be a name pattern, a class of modules, a function (name, module) -> bool, or several: "
        f"got {condition!r:.80}"
    )


def _nothing(condition: Any, found: Collection[str], candidates: Collection[str]) -> str:
    """What to say when nothing is selected: the near names."""
    if not candidates:
        return "the model must have an nn.Linear or a Conv1D of transformers to convert: it has none"
    shown = f"{condition!r}" if isinstance(condition, str) else getattr(condition, "__qualname__", f"{condition!r:.60}")
    if found:
        nearest = min(found, key=lambda name: (len(name), name)) or "the model"
        return f"where must select perceptrons: {shown} matches {nearest}, which has none"
    near = _near(condition, candidates) if isinstance(condition, str) else list(candidates)[:3]
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if isinstance(condition, str) else f"; try {near[0]!r}"
    return f"where must select perceptrons: {shown} matches no module of the model{hint}"


def _near(pattern: str, candidates: Collection[str]) -> list[str]:
    """Up to three names that are most like a pattern, part by part, numbers and wildcards apart."""
    wanted = [part for part in re.split(r"[.*?\[\]]+", pattern) if part and not part.isdigit()]

    def likeness(name: str) -> float:
        parts = [part for part in name.split(".") if not part.isdigit()] or [name]
        best = (max(difflib.SequenceMatcher(None, want, part).ratio() for part in parts) for want in wanted)
        return sum(best)

    shapes: dict[str, str] = {}
    for name in candidates:
        shapes.setdefault(re.sub(r"\b\d+\b", "*", name), name)  # the first of each numbered list
    return sorted(shapes.values(), key=likeness, reverse=True)[:3]
