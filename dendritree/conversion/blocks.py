"""Linear-activation-Linear: which perceptrons are the layers of one MLP, so that its hidden width is free."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import OptionError
from .forwards import read
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

PASSES = (nn.Dropout, nn.AlphaDropout, nn.Identity)
ACTIVATIONS = (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid,
    nn.Mish, nn.ReLU, nn.RReLU, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh,
    nn.Tanhshrink, nn.Threshold,
)  # fmt: skip


def _functions(*names: str) -> list[object]:
    """All that PyTorch has under these names, in place or not."""
    endings, homes = ("", "_"), (F, torch, Tensor)
    found = (getattr(home, f"{name}{end}", None) for home in homes for name in names for end in endings)
    return [function for function in found if function is not None]


ACTIVATION_FUNCTIONS = _functions(*(kind.__name__.lower() for kind in ACTIVATIONS), "leaky_relu", "relu6")
PASS_FUNCTIONS = _functions("dropout", "alpha_dropout")


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
    for names in (*_sequences(model), *_named(model, blocks)):
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
        if not _is_plain_sequential(module) or id(module) in inside:
            continue
        if _is_opened(model, name, [inner for inner in module.modules() if isinstance(inner, nn.Linear)]):
            continue
        inside |= {id(inner) for inner in module.modules() if _is_plain_sequential(inner)}
        run: list[str] = []
        activated = False
        for place, step in [*_steps(name, module), ("", None)]:
            if _is_activation(step):
                activated = True
            elif isinstance(step, nn.Linear) and activated and run:
                run.append(place)
                activated = False
            elif not isinstance(step, PASSES):  # also a linear layer right after another: they are not an MLP
                if len(run) > 1:
                    yield run
                run = [place] if isinstance(step, nn.Linear) else []
                activated = False


def _is_plain_sequential(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and getattr(module.forward, "__func__", None) is nn.Sequential.forward


def _steps(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module | None]]:
    """The modules that a sequence runs, one after the other."""
    if not _is_plain_sequential(module):
        yield name, module
        return
    for child, inner in module._modules.items():  # `named_children` leaves out an activation that is used again
        assert inner is not None
        yield from _steps(f"{name}.{child}".lstrip("."), inner)


def _is_activation(step: Any) -> bool:
    known = isinstance(step, ACTIVATIONS) or type(step).__module__ == "transformers.activations"
    return known or any(step is function for function in ACTIVATION_FUNCTIONS)


def _is_pass(step: Any) -> bool:
    return isinstance(step, PASSES) or any(step is function for function in PASS_FUNCTIONS)


def _named(model: nn.Module, blocks: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Layers with the names of an MLP, in modules with a forward of their own."""
    for name, holder in model.named_modules():
        for block in blocks:
            try:
                layers = [holder.get_submodule(child) for child in block]
            except AttributeError:
                continue
            if type(holder).__module__.startswith(TRUSTED):
                is_mlp = True
            elif tuple(block) in BLOCKS:  # a guess, to be checked
                is_mlp = _is_chain(holder, block) and not _is_opened(model, name, layers)
            else:
                is_mlp = not _hidden_size_is_used(holder, layers)
            if is_mlp:
                yield [f"{name}.{child}".lstrip(".") for child in block]


def _is_chain(holder: nn.Module, block: Sequence[str]) -> bool:
    """Whether each layer's output goes through activations and dropout to the next layer, and nowhere else."""
    forward = read(holder)
    paths = [tuple(child.split(".")) for child in block]
    calls = [
        (function, mention.call)
        for path in paths
        for function in forward.functions
        for mention in function.mentions
        if mention.path == path
    ]
    if not forward.complete or len(calls) != len(block) or len({function for function, _ in calls}) > 1:
        return False
    for (function, first), (_, last) in itertools.pairwise(calls):
        passed = function.between(first, last) if first and last else None
        steps = [
            getattr(Tensor, step, None) if isinstance(step, str) else function.meaning(step, holder)
            for step in passed or ()
        ]
        if not any(map(_is_activation, steps)) or not all(_is_activation(step) or _is_pass(step) for step in steps):
            return False
    return True


def _is_opened(model: nn.Module, name: str, layers: Sequence[nn.Module]) -> bool:
    """Whether code around the module of these layers reaches into it, and may use what is hidden there."""
    parts = name.split(".") if name else []
    may_be_handed_on = not isinstance(model.get_submodule(name), nn.Sequential)  # it has a forward, and no indices
    for length in range(len(parts)):
        around, inner = model.get_submodule(".".join(parts[:length])), parts[length:]
        forward = read(around)
        if not forward.complete and _hidden_size_is_used(around, layers):
            return True
        for mention in forward.mentions:
            more = len(mention.path) - len(inner)
            reaches = more >= 0 and all(a in ("*", b) for a, b in zip(mention.path, inner, strict=False))
            if reaches and (more or not (mention.call or may_be_handed_on)):
                return True
    return False


def _hidden_size_is_used(holder: nn.Module, layers: Sequence[nn.Module]) -> bool:
    """Whether something else in the holder has a hidden size of the layers: a norm or a gate between them, perhaps."""
    own = {id(parameter) for layer in layers for parameter in layer.parameters()}
    hidden = {getattr(layer, "out_features", None) or getattr(layer, "nf", None) for layer in layers[:-1]}
    return any(not hidden.isdisjoint(p.shape) for p in holder.parameters() if id(p) not in own)
