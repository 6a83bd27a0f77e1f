"""`convert`: an existing model with dendritic neurons in place of its perceptrons."""

from __future__ import annotations

import copy
import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from torch import nn
from torch.nn.parameter import is_lazy

from ..errors import OptionError, check_module
from ..models.sizing import check_budget
from ..tree.levels import AUTO, Branching, check_shape
from ..wiring import Tied, Wiring, resolve_wiring
from .blocks import BLOCKS, group, taken_apart
from .perceptrons import CONVOLUTIONS, find_perceptrons
from .replacement import fit_blocks, put_in
from .report import ConversionReport, LeftAlone

Where: TypeAlias = str | type[nn.Module] | Callable[[str, nn.Module], bool] | Sequence[Any]
"""A shell pattern on dotted names, a class, a function `(name, module) -> bool`, or several of these."""


def convert(
    model: nn.Module,
    *,
    where: Where = "*",
    budget: float | int | str = 0.5,
    wiring: str | Wiring = "random",
    branching: Branching = AUTO,
    blocks: Sequence[Sequence[str]] = BLOCKS,
    convolutions: bool = False,
    dry_run: bool = False,
) -> tuple[nn.Module, ConversionReport]:
    """A copy of a model with trees in place of perceptrons, and a report of what was done.

    A single `nn.Linear`, or `Conv1D` of transformers, becomes as many trees with linear roots, of as many synapses as
    the budget allows. Two or more of them with activations between, an MLP, become hidden dendritic neurons and a
    linear read-out: the hidden width is what the budget allows, and the model's own activation is that of the somas.
    With `convolutions=True`, an `nn.Conv2d` or `nn.Conv1d` becomes a `DendriticConv2d` or `DendriticConv1d` with as
    many filters, each a tree over a part of its patch.
    Shapes, device, dtype, training mode and the names of modules stay. New weights are random, from torch's seed, on
    the scale of those they replace, and they require gradients; the model then needs training, or `distill`.

    Anything that cannot be swapped is left alone and listed in the report with the reason: shared modules, tied
    weights, weights that other code reads directly (attention's `out_proj`), computed, lazy or quantized weights,
    layers with hooks, layers too small for their budget. If `where` names such a layer in full, an error is raised.

    Args:
        model: any model; it is not changed.
        where: which modules: a shell pattern on dotted names (`"*.mlp.*"`), a class of modules, a function `(name,
            module) -> bool`, or a list of these. A module selects everything inside it.
        budget: parameters of the new modules: a share in (0, 1] of those they replace, as a float, or a number for
            all of them together (`9000`, `"9k"`), in proportion to what they have now. Never exceeded.
        wiring: which inputs a tree reads, as in `DendriticLayer`; by default dealt from shuffled decks, so that all
            inputs are read about equally often. Second hidden layers are always wired at random. Not `Tied`.
        branching: of the trees, as in `DendriticLayer`; `"auto"` has four dendrites of eight synapses for the hidden
            neurons of an MLP, and two levels near the square root of the fan-in for single layers.
        blocks: names of the layers of an MLP, relative to the module that holds them, for modules whose `forward` does
            not show it: these names are trusted. Where the source of `forward` does show it, and in an `nn.Sequential`
            that is only called, the layers are found automatically, whatever their names.
        convolutions: whether convolutions are converted too, among the modules that `where` selects.
        dry_run: only report; the model that is returned is the given one.

    Example:
        >>> mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        >>> smaller, report = convert(mlp, budget=0.25)
        >>> print(report)
        module           before     after [tree]         parameters   multiply-adds
        (0, 2)           64-128-10  64-46-10 [8, 4]  9,610 -> 2,356  9,472 -> 2,116
        the whole model                              9,610 -> 2,356
        <BLANKLINE>
        The new weights are random: train the model, or distill the original into it. Where we measured,
        trees then scored within about a point of a narrower MLP of the same size, ahead or behind: train
        one beside them.
    """
    check_module(model)
    allowed, resolved, branching = check_budget(budget), resolve_wiring(wiring), check_shape(branching)
    if isinstance(resolved, Tied):
        raise OptionError(
            f"convert gives each neuron dendrites of its own: wiring cannot be {resolved}; 'local' reads such windows "
            "too, and create_model('dendritic', image_shape=...) builds tied trees"
        )
    perceptrons, reasons = find_perceptrons(model, convolutions=convolutions)
    candidates = [name for name, _ in model.named_modules() if name in perceptrons or name in reasons]
    selected = _select(model, where, candidates)
    found = group(model, {name: perceptrons[name] for name in selected if name in perceptrons}, blocks)
    replacements, too_small = fit_blocks(found, allowed, resolved, branching)
    reasons |= too_small
    left_alone = tuple(LeftAlone(name, reasons[name]) for name in selected if name in reasons)
    _check_skipped(where, left_alone, everything=not replacements)
    changes = tuple(replacement.change() for replacement in replacements)
    before = sum(parameter.numel() for parameter in model.parameters() if not is_lazy(parameter))
    after = before + sum(change.parameters_after - change.parameters_before for change in changes)
    apart = taken_apart(model, [replacement.block for replacement in replacements])
    report = ConversionReport(changes, left_alone, len(candidates) - len(selected), before, after, apart)
    if dry_run:
        return model, report
    try:
        converted = copy.deepcopy(model)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise OptionError(f"the model must be one that copy.deepcopy can copy: {error}") from error
    return put_in(converted, {name: new for each in replacements for name, new in each.build().items()}), report


def _check_skipped(where: Where, left_alone: Sequence[LeftAlone], *, everything: bool) -> None:
    """Raise an error if nothing can be converted, or if a module requested by its full name cannot."""
    spelled_out = [condition for condition in _conditions(where) if isinstance(condition, str)]
    asked = [each for each in left_alone if each.module in spelled_out] or (list(left_alone) if everything else [])
    if asked:
        listed = "; ".join(f"{each.module or 'the model'}: {each.reason}" for each in asked[:3])
        raise OptionError(f"cannot convert {listed}" + (f"; and {len(asked) - 3} more" if len(asked) > 3 else ""))


# -------------------------------------------------------------------------------------------------------- selection


def _select(model: nn.Module, where: Where, candidates: Collection[str]) -> list[str]:
    """Names of the candidates that `where` selects, in the model's order; a module selects everything inside it.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4)))
    >>> _select(model, "1", ["0", "1.0"])
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
            missed = any(isinstance(module, tuple(CONVOLUTIONS)) and name not in candidates for name, module in modules)
            hint = "; convolutions=True also converts convolutions" if missed else ""
            raise OptionError(_nothing(condition, found, candidates) + hint)
        matched |= found
    return [name for name, _ in modules if name in candidates and _is_in(name, matched)]


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
    """The error message if nothing is selected, with similar names."""
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
    """Up to three names that are most similar to a pattern, part by part, ignoring numbers and wildcards."""
    wanted = [part for part in re.split(r"[.*?\[\]]+", pattern) if part and not part.isdigit()]

    def similarity(name: str) -> float:
        parts = [part for part in name.split(".") if not part.isdigit()] or [name]
        return sum(max(difflib.SequenceMatcher(None, want, part).ratio() for part in parts) for want in wanted)

    shapes: dict[str, str] = {}
    for name in candidates:
        shapes.setdefault(re.sub(r"\b\d+\b", "*", name), name)  # the first of each numbered list
    return sorted(shapes.values(), key=similarity, reverse=True)[:3]
