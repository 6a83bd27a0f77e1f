"""Count parameters and multiply-adds, and find the control of the same size.

`count(model).total` is the sum of `p.numel()`: nothing hidden, nothing estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .errors import OptionError, check_int, check_module
from .layers import DendriticLayer
from .levels import level_sizes
from .models import MLP, ConvMLN, ConvMLP, MLNBinaryClassifier, MLNClassifier, create_model

__all__ = [
    "Count",
    "PaperRow",
    "check_budget",
    "count",
    "fill_budget",
    "matched_mln",
    "matched_mlp",
    "paper_rows",
    "parse_count",
    "stated_input_shape",
]


@dataclass(frozen=True)
class Count:
    """What a model costs."""

    weights: int
    biases: int
    multiply_adds: int | None
    """For one sample, or None where it depends on an input shape that was not given."""
    masked_weights: int
    """Weights the same model stores when its trees are the paper's masked dense matrices."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.weights + self.biases


UNITS = {"": 1, "k": 1000, "K": 1000, "M": 1_000_000}


def parse_count(name: str, text: str | int) -> int:
    """A number of parameters as people write it.

    >>> parse_count("budget", "9k"), parse_count("budget", "1.5M"), parse_count("budget", 800)
    (9000, 1500000, 800)
    """
    if isinstance(text, str):
        found = re.fullmatch(r"([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(\.[0-9]{1,12})?([kKM]?)", text.strip())
        number = Decimal(found[1].replace(",", "") + (found[2] or "")) * UNITS[found[3]] if found else None
        if number is None or number != int(number):
            raise OptionError(f"{name} must be a whole number of parameters, as 9000, 9k or 1.5M: got {text!r:.60}")
        text = int(number)
    return check_int(name, text)


def check_budget(budget: float | int | str) -> float | int:
    """A share of the present parameters as a float in (0, 1], or a number of parameters as an int.

    >>> check_budget(0.5), check_budget("9k")
    (0.5, 9000)
    """
    if isinstance(budget, float):
        if not 0.0 < budget <= 1.0:
            raise OptionError(f"budget must be a share in (0, 1] or a whole number of parameters: got {budget!r}")
        return budget
    return parse_count("budget", budget)


def count(model: nn.Module, input_shape: tuple[int, ...] | None = None) -> Count:
    """Count a model's weights, biases and multiply-adds, each parameter once.

    Args:
        model: any module. Linear layers and convolutions are known to the multiply-add count; every other layer may
            state its own, for one sample and all of its parts, as an attribute `multiply_adds`.
        input_shape: shape of one sample, needed only for multiply-adds of models that do not state theirs.

    Example:
        >>> count(MLNClassifier(1024, 10, branching=2))
        Count(weights=20460, biases=10230, multiply_adds=20460, masked_weights=69905000)
    """
    check_module(model)
    weights = biases = masked_extra = 0
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[2].startswith("bias"):  # nn.LSTM has bias_ih_l0
            biases += parameter.numel()
        else:
            weights += parameter.numel()
    for module in model.modules():
        if isinstance(module, DendriticLayer):
            masked_extra += module.forest.masked_weights - module.forest.edges
    return Count(weights, biases, _multiply_adds(model, input_shape), weights + masked_extra)


def _multiply_adds(model: nn.Module, input_shape: tuple[int, ...] | None) -> int | None:
    """Run one sample through the model and add up what its layers did with it."""
    shape = input_shape or stated_input_shape(model)
    parameter = next(model.parameters(), None)
    if shape is None or parameter is None or parameter.is_meta:
        return None
    total = 0

    def add(module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        stated = getattr(module, "multiply_adds", None)
        if stated is not None:
            total += output.shape[:-1].numel() * stated
        elif isinstance(module, nn.Linear):
            total += output.numel() * module.in_features
        elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            total += output.numel() * module.weight[0].numel()

    modes = [(module, module.training) for module in model.modules()]
    hooks = [module.register_forward_hook(add) for module in _counted(model)]
    try:
        model.eval()
        with torch.no_grad():
            model(torch.zeros(1, *shape, device=parameter.device, dtype=parameter.dtype))
    except (RuntimeError, ValueError, IndexError):
        if input_shape is not None:
            raise
        return None  # a shape read off the first layer need not be the model's
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes:
            module.training = training
    return total


def _counted(module: nn.Module) -> Iterator[nn.Module]:
    """A module and its parts, but for the parts of one that states its multiply-adds."""
    seen: set[nn.Module] = set()
    pending = [module]
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            yield each
            if getattr(each, "multiply_adds", None) is None:
                pending += each.children()


def stated_input_shape(model: nn.Module) -> tuple[int, ...] | None:
    """The shape of one sample, if the model or its first layer states it.

    >>> stated_input_shape(MLP(16, 3, hidden=4))
    (16,)
    """
    for module in model.modules():
        for attribute in ("input_shape", "in_features"):
            value = getattr(module, attribute, None)
            if value is not None:
                return (value,) if isinstance(value, int) else tuple(value)
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            return None
    return None


# -------------------------------------------------------------------------------------------------------- filling


def fill_budget(network: str, config: Mapping[str, Any], shape: Sequence[float], budget: int) -> list[int] | None:
    """The widest hidden layers, in these shares, whose model is within a budget; None if two neurons are too many.

    >>> fill_budget("dense-network", {"in_features": 784, "out_features": 10}, (1.0,), 8000)
    [10]
    """

    def hidden(width: int) -> list[int]:
        return [max(1, round(share * width)) for share in shape]

    def parameters(width: int) -> int:
        model = create_model(network, **config, hidden=hidden(width), device="meta")
        return sum(p.numel() for p in model.parameters())

    low, least = 2, parameters(2)
    if least > budget:
        return None
    # More than linear in the width: the line through two of them overshoots, if anything.
    slope = parameters(3) - least
    high = low + (budget - least) // max(1, slope) + 1
    while parameters(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if parameters(middle) <= budget else (low, middle)
    return hidden(low)


# --------------------------------------------------------------------------------------------------------- matching


def matched_mlp(model: nn.Module, *, min_hidden: int = 2, **options: Any) -> MLP | ConvMLP:
    """The control MLP whose true parameter count is nearest to that of a dendritic model.

    Args:
        model: a `DendriticLayer`, `MLNBinaryClassifier`, `MLNClassifier` or `ConvMLN`.
        min_hidden: fewest hidden units; with one, the MLP is no more than a perceptron.
        options: passed on to the control, for example `dropout` and `output`.

    Example:
        >>> control = matched_mlp(MLNClassifier(1024, 10, branching=4))
        >>> control.hidden_features, count(control).total
        (16, 16570)
    """
    min_hidden = check_int("min_hidden", min_hidden)
    layer = _dendritic_layer(model)
    total = sum(p.numel() for p in layer.parameters())
    ins, outs = layer.in_features, layer.out_features
    # h (in + 1) weights and biases of the hidden layer, (h + 1) out of the read-out: linear in h
    each = ins + 1 + outs
    hidden = max(min_hidden, min((total - outs) // each, (total - outs) // each + 1, key=_distance(total - outs, each)))
    if isinstance(model, ConvMLN):
        return ConvMLP(outs, hidden=hidden, **options)
    return MLP(ins, outs, hidden=hidden, **options)


def matched_mln(
    control: MLP | ConvMLP, *, ragged: bool = False, **options: Any
) -> MLNBinaryClassifier | MLNClassifier | ConvMLN:
    """The paper's dendritic model whose true parameter count is nearest to that of a control.

    The branching factors tried are those that fit the inputs, or all of them with `ragged=True`.

    Example:
        >>> count(matched_mln(MLP(1024, 10, hidden=30))).total
        30690
    """
    head = control.head if isinstance(control, ConvMLP) else control
    if not isinstance(head, MLP):
        raise OptionError(f"matched_mln takes an MLP or a ConvMLP: got {type(control).__name__}")
    ins, outs = head.in_features, head.out_features
    total = sum(p.numel() for p in head.parameters())
    bias = options.get("bias", True)
    sizes = {
        b: outs * (sum(s[:-1]) + (sum(s[1:]) if bias else 0))  # edges and nodes
        for b in range(2, max(ins, 2) + 1)
        if (s := _sizes(b, ins, ragged))
    }
    if not sizes:
        raise OptionError(f"in_features must be a power of some branching factor, or ragged=True: got {ins}")
    branching = min(sizes, key=lambda b: (abs(sizes[b] - total), b))
    if isinstance(control, ConvMLP):
        return ConvMLN(outs, branching=branching, ragged=ragged, **options)
    if outs == 1:
        return MLNBinaryClassifier(ins, branching=branching, ragged=ragged, **options)
    return MLNClassifier(ins, outs, branching=branching, ragged=ragged, **options)


def _distance(target: int, each: int) -> Any:
    return lambda hidden: (abs(hidden * each - target), hidden)


def _sizes(branching: int, fan_in: int, ragged: bool) -> list[int] | None:
    """Level sizes, or None where the branching does not fit: `fan_in` of 2 ... 2**31 asked many times over."""
    if not ragged:
        power = branching
        while power < fan_in:
            power *= branching
        if power != fan_in:
            return None
    return level_sizes(branching, fan_in=fan_in, ragged=ragged)


def _dendritic_layer(model: nn.Module) -> DendriticLayer:
    if isinstance(model, DendriticLayer):
        return model
    head = model.head if isinstance(model, ConvMLN) else model
    if isinstance(head, MLNBinaryClassifier | MLNClassifier):
        return head.layer
    raise OptionError(
        f"matched_mlp takes a DendriticLayer, MLNBinaryClassifier, MLNClassifier or ConvMLN: got {type(model).__name__}"
    )


# ------------------------------------------------------------------------------------------ the paper's three tables


class PaperRow(NamedTuple):
    """One row of the paper's parameter tables beside what the model really has."""

    table: str
    model: str
    paper_weights: int
    paper_biases: int
    weights: int
    biases: int

    @property
    def paper_total(self) -> int:
        """The total the paper prints."""
        return self.paper_weights + self.paper_biases

    @property
    def total(self) -> int:
        """The true total."""
        return self.weights + self.biases

    @property
    def erratum(self) -> bool:
        """Whether the paper's numbers are wrong."""
        return (self.paper_weights, self.paper_biases) != (self.weights, self.biases)


def paper_rows() -> list[PaperRow]:
    """The paper's three parameter tables, 17 rows, counted on real models. The b=4 rows on 1024 inputs are errata.

    >>> [(row.table, row.model, row.paper_total, row.total) for row in paper_rows() if row.erratum]
    [('binary', 'b=4', 1449, 1705), ('multiclass', 'b=4', 14490, 17050)]
    """
    published = {
        "binary": [
            ("b=2", 2046, 1023),
            ("h=3", 3075, 4),
            ("b=4", 1364, 85),
            ("b=32", 1056, 33),
            ("h=2", 2050, 3),
        ],
        "multiclass": [
            ("b=2", 20460, 10230),
            ("h=30", 31020, 40),
            ("b=4", 13640, 850),
            ("h=14", 14476, 24),
            ("b=32", 10560, 330),
            ("h=11", 11374, 21),
        ],
        "cnn": [
            ("b=2", 5100, 2550),
            ("h=29", 7714, 39),
            ("b=4", 3400, 850),
            ("h=16", 4256, 26),
            ("b=16", 2720, 170),
            ("h=11", 2926, 21),
        ],
    }
    return list(_counted_rows(published))


def _counted_rows(published: dict[str, list[tuple[str, int, int]]]) -> Iterable[PaperRow]:
    sizes = {"binary": (1024, 1), "multiclass": (1024, 10), "cnn": (256, 10)}  # the cnn table counts the head alone
    for table, rows in published.items():
        ins, outs = sizes[table]
        for name, weights, biases in rows:
            family, _, size = name.partition("=")
            with torch.random.fork_rng(devices=[]):
                head: nn.Module = (
                    MLNClassifier(ins, outs, branching=int(size)) if family == "b" else MLP(ins, outs, hidden=int(size))
                )
            counted = count(head)
            yield PaperRow(table, name, weights, biases, counted.weights, counted.biases)
