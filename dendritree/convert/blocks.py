"""Linear-activation-Linear: which perceptrons are the layers of one MLP, so that its hidden width is free."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from torch import nn

from ..errors import OptionError
from .perceptrons import Perceptron

__all__ = ["BLOCKS", "Part", "group"]

Part: TypeAlias = tuple[Perceptron, ...]
"""What is swapped as one: a perceptron layer, or the layers of an MLP in their order."""

BLOCKS: tuple[tuple[str, ...], ...] = (
    ("fc1", "fc2", "fc3"),
    ("fc1", "fc2"),
    ("linear1", "linear2"),  # nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    ("lin1", "lin2"),
    ("c_fc", "c_proj"),  # GPT-2
    ("intermediate.dense", "output.dense"),  # BERT
    ("dense_h_to_4h", "dense_4h_to_h"),
    ("wi", "wo"),
    ("hidden", "readout"),
)
"""Names of the layers of an MLP below the module that holds them, where its forward is its own; longest first."""

TRUSTED = ("torch.nn.", "transformers.")
"""Where a module with the names of `BLOCKS` is one, whatever else of the hidden size it has beside it."""

PASSES = (nn.Dropout, nn.AlphaDropout, nn.Identity)
ACTIVATIONS = (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid,
    nn.Mish, nn.ReLU, nn.RReLU, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh,
    nn.Tanhshrink, nn.Threshold,
)  # fmt: skip


def group(
    model: nn.Module, perceptrons: Mapping[str, Perceptron], blocks: Sequence[Sequence[str]] = BLOCKS
) -> list[Part]:
    """The perceptrons as parts, in the model's order: MLPs where they are one, the others by themselves.

    >>> from .perceptrons import find_perceptrons
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 5))
    >>> [[perceptron.name for perceptron in part] for part in group(model, find_perceptrons(model)[0])]
    [['0', '2'], ['4']]
    """
    for names in blocks:
        if isinstance(names, str) or len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise OptionError(f"blocks must have the names of two layers or more each: got {names!r}")
    parts: list[Part] = []
    taken: set[str] = set()
    for names in (*_sequences(model), *_named(model, blocks)):
        part = tuple(perceptrons[name] for name in names if name in perceptrons)
        if len(part) == len(names) and taken.isdisjoint(names) and _fits(part):
            parts.append(part)
            taken.update(names)
    parts += [(perceptron,) for name, perceptron in perceptrons.items() if name not in taken]
    order = {name: place for place, name in enumerate(perceptrons)}
    return sorted(parts, key=lambda part: order[part[0].name])


def _fits(part: Part) -> bool:
    return all(a.out_features == b.in_features for a, b in itertools.pairwise(part))


def _sequences(model: nn.Module) -> Iterator[list[str]]:
    """Runs of two linear layers or more with activations between, in `nn.Sequential`s; also in nested ones."""
    inside: set[int] = set()
    for name, module in model.named_modules():
        if not _is_plain_sequential(module) or id(module) in inside:
            continue
        inside |= {id(inner) for inner in module.modules() if _is_plain_sequential(inner)}
        run: list[str] = []
        activated = False
        for place, layer in _steps(name, module):
            if isinstance(layer, nn.Linear):
                if run and not activated:  # nothing between two linear layers: they are no MLP
                    yield from _runs(run)
                    run = []
                run.append(place)
                activated = False
            elif _is_activation(layer):
                activated = True
            elif not isinstance(layer, PASSES):
                yield from _runs(run)
                run = []
        yield from _runs(run)


def _runs(run: list[str]) -> Iterator[list[str]]:
    if len(run) > 1:
        yield run


def _is_plain_sequential(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward


def _steps(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """What a sequence does, one after the other."""
    if not _is_plain_sequential(module):
        yield name, module
        return
    for child, inner in module._modules.items():  # `named_children` leaves out an activation that is used again
        assert inner is not None
        yield from _steps(f"{name}.{child}".lstrip("."), inner)


def _is_activation(module: nn.Module) -> bool:
    return isinstance(module, ACTIVATIONS) or type(module).__module__ == "transformers.activations"


def _named(model: nn.Module, blocks: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Layers with the names of an MLP, in modules with a forward of their own."""
    for name, holder in model.named_modules():
        for block in blocks:
            try:
                layers = [holder.get_submodule(child) for child in block]
            except AttributeError:
                continue
            if type(holder).__module__.startswith(TRUSTED) or not _hidden_size_is_used(holder, layers):
                yield [f"{name}.{child}".lstrip(".") for child in block]


def _hidden_size_is_used(holder: nn.Module, layers: Sequence[nn.Module]) -> bool:
    """Whether something else in the holder has a hidden size of the layers: a norm or a gate between them, perhaps."""
    own = {id(parameter) for layer in layers for parameter in layer.parameters()}
    hidden = {getattr(layer, "out_features", None) or getattr(layer, "nf", None) for layer in layers[:-1]}
    return any(not hidden.isdisjoint(p.shape) for p in holder.parameters() if id(p) not in own)
