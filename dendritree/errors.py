"""The errors of dendritree and the checks that raise them.

Every error states the rule first and the offending value second. All are `ValueError`s, so that code written
against plain PyTorch catches them; command-line code catches `DendritreeError` and prints one line.
"""

from __future__ import annotations

import difflib
import importlib
import math
import operator
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

__all__ = [
    "DendritreeError",
    "FormatError",
    "MissingDataError",
    "MissingExtraError",
    "OptionError",
    "ShapeError",
    "check_float",
    "check_index",
    "check_int",
    "check_module",
    "check_number",
    "check_one_of",
    "check_probability",
    "import_extra",
    "nearest",
]


class DendritreeError(ValueError):
    """Base class of all errors that dendritree raises."""


class ShapeError(DendritreeError):
    """Sizes that do not fit each other: inputs, neurons, branching, depth."""


class OptionError(DendritreeError):
    """An option that is out of range or of the wrong type, or an unknown name."""


class DeviceError(DendritreeError, RuntimeError):
    """Tensors that must be on one device but are not; also a RuntimeError, as PyTorch's own layers raise."""


class FormatError(DendritreeError):
    """A file or state dict of another version, another tree or another wiring; a data file that is not genuine."""


class MissingDataError(DendritreeError, FileNotFoundError):
    """A data set that is not on this machine and could not be fetched."""


class MissingExtraError(DendritreeError, ImportError):
    """An optional package that is not installed."""


def check_int(name: str, value: Any, *, least: int = 1) -> int:
    """Return `value` as an int, or raise an error that `name` must be an integer of at least `least`.

    >>> check_int("depth", 3)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise OptionError(f"{name} must be an integer of at least {least}: got {value!r}")
    return number


def check_index(name: str, value: Any, count: int) -> int:
    """Return `value` as an int if it is one of 0 ... `count` - 1, or raise an error.

    >>> check_index("neuron", 2, 3)
    2
    """
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < count:
        raise OptionError(f"{name} must be one of 0 ... {count - 1}: got {value!r}")
    return number


def check_probability(name: str, value: Any) -> float:
    """Return `value` as a float in [0, 1), or raise an error that states the rule.

    >>> check_probability("dropout", 0.4)
    0.4
    """
    return check_float(name, value, "a probability in [0, 1)", lambda number: 0.0 <= number < 1.0)


def check_float(name: str, value: Any, rule: str, holds: Callable[[float], bool]) -> float:
    """Return `value` as a float, or raise an error unless the rule holds; `holds` must be False for NaN.

    >>> check_float("scale", 5, "a positive number", lambda number: number > 0)
    5.0
    """
    try:
        number = (
            math.nan if isinstance(value, (bool, str)) else float(value)
        )  # older versions of torch cannot trace bool | str
    except (TypeError, ValueError):
        number = math.nan
    if not holds(number):
        raise OptionError(f"{name} must be {rule}: got {value!r}")
    return number


def check_number(name: str, value: Any, *, positive: bool = True) -> float:
    """Return `value` as a finite float, greater than 0 if `positive`, or raise an error.

    >>> check_number("k", 5)
    5.0
    """
    rule = f"a {'positive' if positive else 'finite'} number"
    return check_float(name, value, rule, lambda number: math.isfinite(number) and (number > 0 or not positive))


def check_one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`; otherwise list them, the nearest first.

    >>> check_one_of("output", "logits", ["probabilities", "logits"])
    'logits'
    """
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    near = nearest(value, known)
    hint = f"; did you mean {near!r}?" if near else ""
    raise OptionError(f"{name} must be one of {', '.join(map(repr, known))}: got {value!r}{hint}")


def nearest(value: Any, known: Iterable[str]) -> str | None:
    """The known name that was probably meant.

    >>> nearest("tre", ["tree", "dense"])
    'tree'
    """
    near = difflib.get_close_matches(value, list(known), n=1, cutoff=0.5) if isinstance(value, str) else []
    return near[0] if near else None


def check_module(model: Any) -> None:
    """Reject anything that is not an `nn.Module`; for an estimator, say where to find its network."""
    if not hasattr(model, "named_parameters"):
        hint = "; pass its network_" if hasattr(model, "get_params") else ""
        raise OptionError(f"the model must be an nn.Module: got {type(model).__name__}{hint}")


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional package, or raise an error with the command that installs it.

    >>> import_extra("json", "none").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"could not import {package}: {error}; pip install 'dendritree[{extra}]'") from None
