"""Linear-activation-Linear: which perceptrons are the layers of one MLP, so that its hidden width is free."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from torch import nn

from ..errors import OptionError
from .chains import PASSES, chains, is_activation, is_opened, is_plain_sequential, uses_hidden_size
from .perceptrons import Perceptron

Block: TypeAlias = tuple[Perceptron, ...]
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
"""Names that the layers of an MLP often have below the module that holds them; longest first."""

TRUSTED = ("torch.nn.modules.transformer", "transformers.")
"""Where modules with the names of `BLOCKS` are MLPs, whatever their forward looks like."""


def group(
    model: nn.Module, perceptrons: Mapping[str, Perceptron], blocks: Sequence[Sequence[str]] = BLOCKS
) -> list[Block]:
    """The perceptrons as blocks, in the model's order: MLPs where they form one, the others one by one.

    >>> from .perceptrons import find_perceptrons
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 5))
    >>> [[perceptron.name for perceptron in block] for block in group(model, find_perceptrons(model)[0])]
    [['0', '2'], ['4']]
    """
    for names in blocks:
        if isinstance(names, str) or len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise OptionError(f"blocks must have the names of two layers or more each: got {names!r}")
    found: dict[str, Block] = {}  # by the names of their layers
    for names in (*_sequences(model), *_named(model, blocks), *chains(model, perceptrons)):
        block = tuple(perceptrons[name] for name in names if name in perceptrons)
        follow = all(a.out_features == b.in_features for a, b in itertools.pairwise(block))
        if len(block) == len(names) and found.keys().isdisjoint(names) and follow:
            found |= dict.fromkeys(names, block)
    grouped = {name: found.get(name, (perceptron,)) for name, perceptron in perceptrons.items()}
    return [block for name, block in grouped.items() if block[0].name == name]


def _sequences(model: nn.Module) -> Iterator[list[str]]:
    """Runs of two linear layers or more with activations between, in `nn.Sequential`s; also in nested ones."""
    inside: set[int] = set()
    for name, module in model.named_modules():
        if not is_plain_sequential(module) or id(module) in inside:
            continue
        if is_opened(model, name, [inner for inner in module.modules() if isinstance(inner, nn.Linear)]):
            continue
        inside |= {id(inner) for inner in module.modules() if is_plain_sequential(inner)}
        run: list[str] = []
        activated = False
        for place, step in [*_steps(name, module), ("", None)]:
            if is_activation(step):
                activated = True
            elif isinstance(step, nn.Linear) and activated and run:
                run.append(place)
                activated = False
            elif not isinstance(step, PASSES):  # also a linear layer right after another: they are not an MLP
                if len(run) > 1:
                    yield run
                run = [place] if isinstance(step, nn.Linear) else []
                activated = False


def _steps(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module | None]]:
    """The modules that a sequence runs, one after the other."""
    if not is_plain_sequential(module):
        yield name, module
        return
    for child, inner in module._modules.items():  # `named_children` leaves out an activation that is used again
        assert inner is not None
        yield from _steps(f"{name}.{child}".lstrip("."), inner)


def _named(model: nn.Module, blocks: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Layers with the names of an MLP, in modules with a forward of their own."""
    for name, holder in model.named_modules():
        for block in blocks:
            try:
                layers = [holder.get_submodule(child) for child in block]
            except AttributeError:
                continue
            is_known = tuple(block) in BLOCKS  # elsewhere, `chains` reads whether they are an MLP
            if type(holder).__module__.startswith(TRUSTED) or not (is_known or uses_hidden_size(holder, layers)):
                yield [f"{name}.{child}".lstrip(".") for child in block]
