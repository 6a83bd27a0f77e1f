"""Which perceptrons a user selects: by name pattern, by type, by a function of name and module."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from torch import nn

from ..errors import OptionError

Where: TypeAlias = str | type[nn.Module] | Callable[[str, nn.Module], bool] | Sequence[Any]
"""A shell pattern on dotted names, a class, a function `(name, module) -> bool`, or several of these."""


def select(model: nn.Module, where: Where, candidates: Collection[str]) -> list[str]:
    """Names of the candidates that `where` selects, in the model's order; a module selects everything inside it.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4)))
    >>> select(model, "1", ["0", "1.0"])
    ['1.0']
    """
    conditions = _conditions(where)
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
    """Whether `where` spells out this name: then the user asked for this module, not for whatever can be found."""
    return any(isinstance(condition, str) and condition == name for condition in _conditions(where))


def _conditions(where: Where) -> list[Any]:
    return [where] if isinstance(where, str) or not isinstance(where, Sequence) else list(where)


def _is_in(name: str, matched: Collection[str]) -> bool:
    """Whether a module or one around it is matched."""
    parts = name.split(".") if name else []
    return any(".".join(parts[:length]) in matched for length in range(len(parts) + 1))


def _matcher(condition: Any) -> Callable[[str, nn.Module], bool]:
    if isinstance(condition, str):
        return lambda name, _: fnmatch.fnmatchcase(name, condition)
    if isinstance(condition, type) and issubclass(condition, nn.Module):
        return lambda _, module: isinstance(module, condition)
    if callable(condition) and not isinstance(condition, type | nn.Module):
        return lambda name, module: bool(condition(name, module))
    raise OptionError(
        f"where must be a name pattern, a class of modules, a function (name, module) -> bool, or several: "
        f"got {condition!r:.80}"
    )


def _nothing(condition: Any, found: Collection[str], candidates: Collection[str]) -> str:
    """The error where nothing is selected, with similar names."""
    if not candidates:
        return "the model must have an nn.Linear or a Conv1D of transformers to convert: it has none"
    is_name = isinstance(condition, str)
    shown = f"{condition!r}" if is_name else getattr(condition, "__qualname__", f"{condition!r:.60}")
    if found:
        nearest = min(found, key=lambda name: (len(name), name)) or "the model"
        return f"where must select perceptrons: {shown} matches {nearest}, which has none"
    near = " or ".join(map(repr, _near(condition, candidates))) if is_name else repr(next(iter(candidates)))
    hint = f"did you mean {near}?" if is_name else f"try {near}"
    return f"where must select perceptrons: {shown} matches no module of the model; {hint}"


def _near(pattern: str, candidates: Collection[str]) -> list[str]:
    """The up to three names that are most similar to a pattern, part by part, without numbers and wildcards."""
    wanted = [part for part in re.split(r"[.*?\[\]]+", pattern) if part and not part.isdigit()]

    def similarity(name: str) -> float:
        parts = [part for part in name.split(".") if not part.isdigit()] or [name]
        return sum(max(difflib.SequenceMatcher(None, want, part).ratio() for part in parts) for want in wanted)

    shapes: dict[str, str] = {}
    for name in candidates:
        shapes.setdefault(re.sub(r"\b\d+\b", "*", name), name)  # the first of each numbered list
    return sorted(shapes.values(), key=similarity, reverse=True)[:3]
