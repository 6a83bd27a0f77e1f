"""Find MLPs, Linear-activation-Linear: perceptrons that are the layers of one MLP, whose hidden width can change.

They are recognized in an `nn.Sequential`, by name in known modules, and where a forward pass hands one layer's output
to the next only through activations. Otherwise the report says why not.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import OptionError
from .forwards import Forward, Mention, read
from .perceptrons import Perceptron
from .report import TakenApart

Block: TypeAlias = tuple[Perceptron, ...]
"""What is replaced as a unit: a perceptron layer, or the layers of an MLP in their order."""

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
"""Common names of the layers of an MLP, relative to the module that holds them; longest first."""

TRUSTED = ("torch.nn.modules.transformer", "transformers.")
"""Packages in which modules with the names in `BLOCKS` are MLPs, whatever their forward looks like."""

PASSES = (nn.Dropout, nn.AlphaDropout, nn.Identity)
ACTIVATIONS = (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid,
    nn.Mish, nn.ReLU, nn.RReLU, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh,
    nn.Tanhshrink, nn.Threshold,
)  # fmt: skip


def _functions(*names: str) -> list[object]:
    """All functions of PyTorch with these names, including in-place variants."""
    endings, homes = ("", "_"), (F, torch, Tensor)
    found = (getattr(home, f"{name}{end}", None) for home in homes for name in names for end in endings)
    return [function for function in found if function is not None]


ACTIVATION_FUNCTIONS = _functions(*(kind.__name__.lower() for kind in ACTIVATIONS), "leaky_relu", "relu6")
PASS_FUNCTIONS = _functions("dropout", "alpha_dropout")


def group(
    model: nn.Module, perceptrons: Mapping[str, Perceptron], blocks: Sequence[Sequence[str]] = BLOCKS
) -> list[Block]:
    """Group the perceptrons into blocks, in the model's order: MLPs where they form one, the others one by one.

    >>> from .perceptrons import find_perceptrons
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 5))
    >>> [[perceptron.name for perceptron in block] for block in group(model, find_perceptrons(model)[0])]
    [['0', '2'], ['4']]
    """
    for names in blocks:
        if isinstance(names, str) or len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise OptionError(f"blocks must have the names of two layers or more each: got {names!r}")
    found: dict[str, Block] = {}  # by the names of their layers
    linear = {name: perceptron for name, perceptron in perceptrons.items() if not perceptron.is_convolution}
    for names in (*_sequences(model), *_named(model, blocks), *_chains(model, linear)):
        block = tuple(linear[name] for name in names if name in linear)
        follow = all(a.out_features == b.in_features for a, b in itertools.pairwise(block))
        if len(block) == len(names) and found.keys().isdisjoint(names) and follow:
            found |= dict.fromkeys(names, block)
    grouped = {name: found.get(name, (perceptron,)) for name, perceptron in perceptrons.items()}
    return [block for name, block in grouped.items() if block[0].name == name]


def _sequences(model: nn.Module) -> Iterator[list[str]]:
    """Runs of two or more linear layers with activations between them, in (nested) `nn.Sequential`s."""
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
            elif not isinstance(step, PASSES):  # also for two linear layers in a row, which are not an MLP
                if len(run) > 1:
                    yield run
                run = [place] if isinstance(step, nn.Linear) else []
                activated = False


def _steps(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module | None]]:
    """The modules that a sequence runs, one after another."""
    if not _is_plain_sequential(module):
        yield name, module
        return
    for child, inner in module._modules.items():  # `named_children` skips an activation that is used again
        assert inner is not None
        yield from _steps(f"{name}.{child}".lstrip("."), inner)


def _named(model: nn.Module, blocks: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Layers with the names of an MLP, in modules with a custom forward."""
    for name, holder in model.named_modules():
        for block in blocks:
            try:
                layers = [holder.get_submodule(child) for child in block]
            except AttributeError:
                continue
            is_known = tuple(block) in BLOCKS  # otherwise `_chains` determines whether they are an MLP
            if type(holder).__module__.startswith(TRUSTED) or not (is_known or _uses_hidden_size(holder, layers)):
                yield [f"{name}.{child}".lstrip(".") for child in block]


# --------------------------------------------------------------------------------------------------- forward passes


def _chains(model: nn.Module, perceptrons: Mapping[str, Perceptron]) -> Iterator[list[str]]:
    """Names of two or more perceptrons that a custom forward runs as an MLP, whatever their names."""
    for name, holder in model.named_modules():
        named = dict.fromkeys(".".join(mention.path) for mention in read(holder).mentions if mention.call)
        below = {child: perceptrons[full] for child in named if (full := f"{name}.{child}".lstrip(".")) in perceptrons}
        follows = {
            first: second
            for first, second in itertools.permutations(below, 2)
            if below[first].out_features == below[second].in_features and not _why_apart(holder, first, second)
        }
        for start in (child for child in below if child not in follows.values()):
            run = [start]
            while run[-1] in follows:
                run.append(follows[run[-1]])
            if len(run) > 1 and not _is_opened(model, name, [below[child].module for child in run]):
                yield [f"{name}.{child}".lstrip(".") for child in run]


def _why_apart(holder: nn.Module, first: str, second: str) -> str:
    """Why two layers below a module are not taken as the layers of one MLP; empty if they can be."""
    forward = read(holder)
    if not forward.complete:
        return "the source of the forward pass cannot be read"
    uses = [_uses(forward, each) for each in (first, second)]
    for each, found in zip((first, second), uses, strict=True):
        if len(found) != 1 or found[0][1].call is None:
            return f"the forward pass does not call {each} in one place"
    (function, begin), (other, end) = uses[0][0], uses[1][0]
    calls = begin.call, end.call
    passed = function.between(*calls) if function is other and calls[0] and calls[1] else None
    if passed is None:
        return f"the output of {first} goes to more than one place, or through something other than functions"
    steps = [
        (step, getattr(Tensor, step, None) if isinstance(step, str) else function.meaning(step, holder))
        for step in passed
    ]
    for step, meaning in steps:
        if not _is_activation(meaning) and not _is_pass(meaning):
            shown = step if isinstance(step, str) else ast.unparse(step)
            return f"{shown} between them is not a known activation"
    return "" if any(_is_activation(meaning) for _, meaning in steps) else "there is no activation between them"


def _uses(forward: Forward, name: str) -> list[tuple[Any, Mention]]:
    path = tuple(name.split("."))
    return [(function, each) for function in forward.functions for each in function.mentions if each.path == path]


def taken_apart(model: nn.Module, blocks: Sequence[Sequence[Perceptron]]) -> tuple[TakenApart, ...]:
    """Pairs of layers that were converted one by one but look like an MLP: one widens, the next one narrows."""
    single = {block[0].name: block[0] for block in blocks if len(block) == 1 and not block[0].is_convolution}
    found = []
    for first, second in itertools.combinations(single.values(), 2):
        place, _, one = first.name.rpartition(".")
        hidden = first.out_features
        widened = hidden == second.in_features and hidden not in (first.in_features, second.out_features)
        if not widened or second.name.rpartition(".")[0] != place:
            continue
        holder, two = model.get_submodule(place), second.name.rpartition(".")[2]
        if _is_plain_sequential(holder):
            continue
        beside = _uses_hidden_size(holder, [first.module, second.module])
        why = _why_apart(holder, one, two) or "code around them reaches into the module that holds them"
        if beside:
            why = f"something else next to them has their hidden size, {hidden}"
        found.append(TakenApart((first.name, second.name), why, () if beside else (one, two)))
    return tuple(found)


def _is_plain_sequential(module: nn.Module) -> bool:
    """Whether it is an `nn.Sequential` that runs its modules one after another."""
    return isinstance(module, nn.Sequential) and getattr(module.forward, "__func__", None) is nn.Sequential.forward


def _is_activation(step: Any) -> bool:
    """Whether a module or function is an activation."""
    known = isinstance(step, ACTIVATIONS) or type(step).__module__ == "transformers.activations"
    return known or any(step is function for function in ACTIVATION_FUNCTIONS)


def _is_pass(step: Any) -> bool:
    """Whether a module or function is dropout, or does nothing."""
    return isinstance(step, PASSES) or any(step is function for function in PASS_FUNCTIONS)


def _is_opened(model: nn.Module, name: str, layers: Sequence[nn.Module]) -> bool:
    """Whether code around the module of these layers reaches into it, and may use their hidden outputs."""
    parts = name.split(".") if name else []
    may_be_handed_on = not isinstance(model.get_submodule(name), nn.Sequential)  # it has a forward, and no indices
    for length in range(len(parts)):
        around, inner = model.get_submodule(".".join(parts[:length])), parts[length:]
        forward = read(around)
        if not forward.complete and _uses_hidden_size(around, layers):
            return True
        for mention in forward.mentions:
            more = len(mention.path) - len(inner)
            reaches = more >= 0 and all(a in ("*", b) for a, b in zip(mention.path, inner, strict=False))
            if reaches and (more or not (mention.call or may_be_handed_on)):
                return True
    return False


def _uses_hidden_size(holder: nn.Module, layers: Sequence[nn.Module]) -> bool:
    """Whether something else in the holder has a hidden size of the layers, such as a norm or gate between them."""
    own = {id(parameter) for layer in layers for parameter in layer.parameters()}
    hidden = {getattr(layer, "out_features", None) or getattr(layer, "nf", None) for layer in layers[:-1]}
    return any(not hidden.isdisjoint(p.shape) for p in holder.parameters() if id(p) not in own)
