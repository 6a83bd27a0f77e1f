"""`convert`: an existing model with dendritic neurons in place of its perceptrons."""

from __future__ import annotations

import copy
import difflib
import fnmatch
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torch import nn
from torch.nn.parameter import is_lazy

from ..errors import OptionError, check_module
from ..models.sizing import check_budget
from ..tree.levels import AUTO, Branching, check_shape
from ..wiring import Tied, Wiring, resolve_wiring
from .mlps import feed_forward, group, trace_forwards
from .perceptrons import CONVOLUTIONS, find_perceptrons
from .replacement import fit_blocks, least_budget, put_in
from .report import ConversionReport, LayersLeftAlone, LeftAlone

Where: TypeAlias = str | type[nn.Module] | Callable[[str, nn.Module], bool] | Sequence[Any]
"""A shell pattern on dotted names, a class, a function `(name, module) -> bool`, or several of these."""
NOT_SELECTED = "where= does not select it"


def convert(
    model: nn.Module,
    *,
    where: Where | None = None,
    budget: float | int | str = 0.5,
    wiring: str | Wiring = "random",
    branching: Branching = AUTO,
    convolutions: bool = False,
    dry_run: bool = False,
) -> tuple[nn.Module, ConversionReport]:
    """A copy of a model with trees in place of its feed-forward blocks, and a report of the changes.

    A feed-forward block, two or more linear layers with activations between, becomes hidden dendritic neurons and a
    linear read-out: the budget determines the hidden width, and the somas use the model's own activation. Unless
    `where` names other layers, only these blocks and the head of a CNN are replaced: attention projections, poolers and
    classifiers stay. A single `nn.Linear`, or `Conv1D` of transformers, becomes as many trees with linear roots as it
    has outputs, with as many synapses as the budget allows. With `convolutions=True`, an `nn.Conv2d` or `nn.Conv1d`
    becomes a `DendriticConv2d` or `DendriticConv1d` with as many filters, each a tree over a part of its patch.
    Shapes, device, dtype, training mode and the names of modules stay. New weights are random, from torch's seed, on
    the scale of those they replace, and they require gradients; the model then needs training, or `distill`.

    All other linear layers are left alone and listed in the report with the reason: those that were not selected, and
    those that cannot be swapped: shared modules, tied weights, weights that other code reads directly (attention's
    `out_proj`), computed, lazy or quantized weights, layers with hooks, and layers too small for their budget. If
    `where` names such a layer in full, an error is raised.

    Args:
        model: any model; it is not changed.
        where: which modules: a shell pattern on dotted names (`"*.mlp.*"`, or `"*"` for every linear layer), a class of
            modules, a function `(name, module) -> bool`, or a list of these. A module selects everything inside it. By
            default the feed-forward blocks and the head of a CNN.
        budget: maximum number of parameters of the new modules: a share in (0, 1] of those they replace, as a float, or
            a number for all of them together (`9000`, `"9k"`), divided in proportion to their current sizes.
        wiring: which inputs a tree reads, as in `DendriticLayer`: `"random"` (all inputs are read about equally often),
            `"strided"` or `"local"`. Second hidden layers are always wired at random.
        branching: branching of the trees, as in `DendriticLayer`; `"auto"` means four dendrites of eight synapses for
            the hidden neurons of an MLP, and two levels near the square root of the fan-in for single layers.
        convolutions: whether to convert convolutions too, among the modules that `where` selects.
        dry_run: only report; the given model is returned unchanged.

    Example:
        >>> mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        >>> smaller, report = convert(mlp, budget=0.25)
        >>> print(report)
        module           before     after [tree]         parameters   multiply-adds
        (0, 2)           64-128-10  64-46-10 [8, 4]  9,610 -> 2,356  9,472 -> 2,116
        the whole model                              9,610 -> 2,356
        <BLANKLINE>
        The new weights are random: train the model, or distill the original into it. Train a narrower model
        of the same size beside it: where we measured, the two scored within a few points, either one ahead.
    """
    check_module(model)
    allowed, resolved, branching = check_budget(budget), resolve_wiring(wiring), check_shape(branching)
    if isinstance(resolved, Tied) or not resolved.any_fan_in:
        raise OptionError(
            "wiring must let each neuron read any number of inputs with weights of its own, as 'random', 'strided' and "
            f"'local' do: got {resolved}"
        )
    flow = trace_forwards(model)
    perceptrons, reasons = find_perceptrons(model, flow.readers, convolutions=convolutions)
    candidates = [name for name, _ in model.named_modules() if name in perceptrons or name in reasons]
    if not candidates:
        raise OptionError(f"the model has no nn.Linear or Conv1D of transformers to convert{_hint(model)}")
    selected = candidates if where is None else _select(model, where, candidates)
    groups = group(model, {name: perceptrons[name] for name in selected if name in perceptrons}, flow)
    if where is None:
        groups, others = feed_forward(model, groups, reasons)
        reasons |= others
    own = sum(perceptron.parameters for block in groups for perceptron in block)
    if groups and isinstance(allowed, int) and allowed > own:
        raise OptionError(f"budget must be at most the {own:,} parameters of the layers to convert: got {allowed:,}")
    replacements, too_small = fit_blocks(groups, allowed, resolved, branching)
    unnamed = not any(name in _conditions(where) for name in too_small)
    if unnamed and not replacements and (least := least_budget(groups, allowed, resolved, branching)) is not None:
        raise OptionError(f"budget must be at least {least:,} to convert any layer here: got {allowed:,}")
    reasons |= too_small | {name: NOT_SELECTED for name in candidates if name not in selected}
    left_alone = LayersLeftAlone(LeftAlone(name, reasons[name]) for name in candidates if name in reasons)
    _check_skipped(where, left_alone, everything=not replacements)
    changes = tuple(replacement.change() for replacement in replacements)
    before = sum(parameter.numel() for parameter in model.parameters() if not is_lazy(parameter))
    after = before + sum(change.parameters_after - change.parameters_before for change in changes)
    report = ConversionReport(changes, left_alone, before, after)
    if dry_run:
        return model, report
    try:
        converted = copy.deepcopy(model)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise OptionError(f"the model must support copy.deepcopy: {error}") from error
    return put_in(converted, {name: new for each in replacements for name, new in each.build().items()}), report


def _check_skipped(where: Where | None, left_alone: Sequence[LeftAlone], *, everything: bool) -> None:
    """Raise an error if nothing can be converted, or if a module requested by its full name cannot."""
    named = [each for each in left_alone if each.module in _conditions(where)]
    asked = named or [each for each in left_alone if everything and each.reason != NOT_SELECTED]
    if asked:
        listed = "; ".join(f"{each.module or 'the model'}: {each.reason}" for each in asked[:3])
        raise OptionError(f"cannot convert {listed}" + (f"; and {len(asked) - 3} more" if len(asked) > 3 else ""))


# -------------------------------------------------------------------------------------------------------- selection


def _select(model: nn.Module, where: Where, candidates: Sequence[str]) -> list[str]:
    """Names of the candidates that `where` selects; a module selects everything inside it.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4)))
    >>> _select(model, "1", ["0", "1.0"])
    ['1.0']
    """
    conditions = _conditions(where)
    if not conditions:
        raise OptionError("where must have at least one pattern, class or function: got none")
    selected: set[str] = set()
    for condition in conditions:
        matches = [name for name, module in model.named_modules() if _matches(condition, name, module)]
        inside = {name for name in candidates for match in matches if not match or f"{name}.".startswith(f"{match}.")}
        shown = repr(condition) if isinstance(condition, str) else getattr(condition, "__qualname__", repr(condition))
        if matches and not inside:
            raise OptionError(
                f"where must select perceptrons: {shown} matches {matches[0]}, which has none{_hint(model)}"
            )
        if not inside:
            near = _near_glob(condition, model) or difflib.get_close_matches(shown, candidates, n=3, cutoff=0.0)
            hint = f"did you mean {' or '.join(map(repr, near))}?"
            raise OptionError(f"where must select perceptrons: {shown} matches no module of the model; {hint}")
        selected |= inside
    return [name for name in candidates if name in selected]


def _near_glob(condition: Any, model: nn.Module) -> list[str]:
    """A shell pattern that matches something, with the nearest names of the model in place of the words of another."""
    if not isinstance(condition, str) or not set(condition) & set("*?["):
        return []
    names = [name for name, _ in model.named_modules()]
    words = {word for name in names for word in name.split(".")}
    near = ".".join(
        word if set(word) & set("*?[") else difflib.get_close_matches(word, words, n=1, cutoff=0.0)[0]
        for word in condition.split(".")
    )
    return [near] if fnmatch.filter(names, near) else []


def _hint(model: nn.Module) -> str:
    has_any = any(isinstance(module, tuple(CONVOLUTIONS)) for module in model.modules())
    return "; convolutions=True also converts convolutions" if has_any else ""


def _conditions(where: Where | None) -> list[Any]:
    return [where] if isinstance(where, str) or not isinstance(where, Sequence) else list(where)


def _matches(condition: Any, name: str, module: nn.Module) -> bool:
    if isinstance(condition, str):
        return fnmatch.fnmatchcase(name, condition)
    if isinstance(condition, type) and issubclass(condition, nn.Module):
        return isinstance(module, condition)
    if callable(condition) and not isinstance(condition, type | nn.Module):
        return bool(condition(name, module))
    raise OptionError(
        "where must be a name pattern, a class of modules, a function (name, module) -> bool, or several: "
        f"got {condition!r:.80}"
    )
