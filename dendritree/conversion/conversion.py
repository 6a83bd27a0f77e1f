"""`convert`: an existing model with dendritic neurons in the place of its perceptrons."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import nn
from torch.nn.parameter import is_lazy

from ..errors import OptionError, check_module
from ..levels import AUTO, Branching, check_shape
from ..models.sizing import check_budget
from ..wiring import Wiring, resolve_wiring
from .blocks import BLOCKS, group
from .perceptrons import find_perceptrons, refusals
from .replacement import build, put_in
from .report import Change, ConversionReport, LeftAlone
from .selection import Where, names_one, select
from .sizes import Plan, plan_parts

__all__ = ["convert"]


def convert(
    model: nn.Module,
    *,
    where: Where = "*",
    budget: float | int | str = 0.5,
    wiring: str | Wiring = "random",
    branching: Branching = AUTO,
    blocks: Sequence[Sequence[str]] = BLOCKS,
    dry_run: bool = False,
) -> tuple[nn.Module, ConversionReport]:
    """A copy of a model with trees in the place of perceptrons, and a report of what was done.

    A single `nn.Linear`, or `Conv1D` of transformers, becomes as many trees with linear roots, of as many synapses as
    the budget allows. Two or more of them with activations between, an MLP, become hidden dendritic neurons and a
    linear read-out: the hidden width is what the budget allows, and the model's own activation is that of the somas.
    Shapes, device, dtype, training mode and the names of modules stay. New weights are random, from torch's seed, on
    the scale of those they replace, and they require gradients; the model wants training, or `distill`.

    What cannot be swapped is left alone and named in the report with the reason: shared modules, tied weights, weights
    that other code reads directly (attention's `out_proj`), computed, lazy or quantised weights, layers with hooks,
    layers too small for their budget. A layer that `where` names in full is refused with an error instead.

    Args:
        model: any model; it is not changed.
        where: which modules: a shell pattern on dotted names (`"*.mlp.*"`), a class of modules, a function `(name,
            module) -> bool`, or a list of these. A module stands for all that is inside it.
        budget: parameters of the new modules: a share in (0, 1] of those they replace, as a float, or a number for
            all of them together (`9000`, `"9k"`), in proportion to what they have now. Never exceeded.
        wiring: which inputs a tree reads, as in `DendriticLayer`; by default dealt from shuffled decks, so that all
            inputs are read about equally often. Second hidden layers are always wired at random.
        branching: of the trees, as in `DendriticLayer`; `"auto"` has four dendrites of eight synapses for the hidden
            neurons of an MLP, and two levels near the square root of the fan-in for single layers.
        blocks: names of the layers of an MLP, relative to the module that holds them, for modules with a forward of
            their own. The usual names are an MLP where `forward` shows it; other names are taken at your word. In an
            `nn.Sequential` that is only called, layers are found by themselves.
        dry_run: only report; the model that is returned is the given one.

    Example:
        >>> mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        >>> smaller, report = convert(mlp, budget=0.25)
        >>> print(report)
        module           before     after [tree]         parameters   multiply-adds
        (0, 2)           64-128-10  64-46-10 [8, 4]  9,610 -> 2,356  9,472 -> 2,116
        the whole model                              9,610 -> 2,356
    """
    check_module(model)
    allowed, resolved, branching = check_budget(budget), resolve_wiring(wiring), check_shape(branching)
    perceptrons, reasons = find_perceptrons(model)
    reasons |= refusals(model, perceptrons)
    candidates = [name for name, _ in model.named_modules() if name in perceptrons or name in reasons]
    selected = select(model, where, candidates)
    parts = group(model, {name: perceptrons[name] for name in selected if name not in reasons}, blocks)
    plans, too_small = plan_parts(parts, allowed, resolved, branching)
    for part in parts:
        if part[0].name in too_small:
            reasons |= {perceptron.name: too_small[part[0].name] for perceptron in part}
    left_alone = tuple(LeftAlone(name, reasons[name]) for name in selected if name in reasons)
    _check_refused(where, left_alone, plans)
    report = _report(model, plans, left_alone, len(candidates) - len(selected))
    if dry_run:
        return model, report
    return put_in(_copy(model), {name: module for plan in plans for name, module in build(plan).items()}), report


def _check_refused(where: Where, left_alone: Sequence[LeftAlone], plans: Sequence[Plan]) -> None:
    """An error where nothing can be converted, or not what was asked for by its full name."""
    asked = [each for each in left_alone if names_one(where, each.module)]
    if asked or not plans:
        shown = (asked or list(left_alone))[:3]
        more = len(asked or left_alone) - len(shown)
        listed = "; ".join(f"{each.module or 'the model'}: {each.reason}" for each in shown)
        raise OptionError(f"cannot convert {listed}" + (f"; and {more} more" if more else ""))


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise OptionError(f"the model must be one that copy.deepcopy can copy: {error}") from error


def _report(
    model: nn.Module, plans: Sequence[Plan], left_alone: tuple[LeftAlone, ...], not_selected: int
) -> ConversionReport:
    changes = tuple(_change(plan) for plan in plans)
    before = sum(parameter.numel() for parameter in model.parameters() if not is_lazy(parameter))
    difference = sum(change.parameters_after - change.parameters_before for change in changes)
    return ConversionReport(changes, left_alone, not_selected, before, before + difference)


def _change(plan: Plan) -> Change:
    before = [plan.part[0].in_features, *(perceptron.out_features for perceptron in plan.part)]
    after = [before[0], *(trees.out_features for trees in plan.trees), *before[-1:] * (len(plan.part) > 1)]
    return Change(
        modules=tuple(perceptron.name for perceptron in plan.part),
        before="-".join(map(str, before)),
        after=f"{'-'.join(map(str, after))} {plan.trees[0].shape}",
        parameters_before=sum(perceptron.parameters for perceptron in plan.part),
        parameters_after=plan.parameters,
        multiply_adds_before=sum(perceptron.multiply_adds for perceptron in plan.part),
        multiply_adds_after=plan.multiply_adds,
    )
