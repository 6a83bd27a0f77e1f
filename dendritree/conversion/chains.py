"""Which layers a forward pass hands on to each other through activations alone, and why it does not others."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .forwards import Forward, Mention, read
from .perceptrons import Perceptron
from .report import TakenApart

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


def chains(model: nn.Module, perceptrons: Mapping[str, Perceptron]) -> Iterator[list[str]]:
    """Names of two perceptrons or more that a forward of one's own runs as an MLP, whatever they are called."""
    for name, holder in model.named_modules():
        named = dict.fromkeys(".".join(mention.path) for mention in read(holder).mentions if mention.call)
        below = {child: perceptrons[full] for child in named if (full := f"{name}.{child}".lstrip(".")) in perceptrons}
        follows = {
            first: second
            for first, second in itertools.permutations(below, 2)
            if below[first].out_features == below[second].in_features and not why_apart(holder, first, second)
        }
        for start in (child for child in below if child not in follows.values()):
            run = [start]
            while run[-1] in follows:
                run.append(follows[run[-1]])
            if len(run) > 1 and not is_opened(model, name, [below[child].module for child in run]):
                yield [f"{name}.{child}".lstrip(".") for child in run]


def why_apart(holder: nn.Module, first: str, second: str) -> str:
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
        return f"the output of {first} goes to more than one place, or through something else than functions"
    steps = [
        (step, getattr(Tensor, step, None) if isinstance(step, str) else function.meaning(step, holder))
        for step in passed
    ]
    for step, meaning in steps:
        if not is_activation(meaning) and not is_pass(meaning):
            shown = step if isinstance(step, str) else ast.unparse(step)
            return f"{shown} between them is not a known activation"
    return "" if any(is_activation(meaning) for _, meaning in steps) else "there is no activation between them"


def _uses(forward: Forward, name: str) -> list[tuple[Any, Mention]]:
    path = tuple(name.split("."))
    return [(function, each) for function in forward.functions for each in function.mentions if each.path == path]


def taken_apart(model: nn.Module, blocks: Sequence[Sequence[Perceptron]]) -> tuple[TakenApart, ...]:
    """Pairs of layers that were taken one by one and look like an MLP: one widens, the next one narrows."""
    single = {block[0].name: block[0] for block in blocks if len(block) == 1}
    found = []
    for first, second in itertools.combinations(single.values(), 2):
        place, _, one = first.name.rpartition(".")
        hidden = first.out_features
        widened = hidden == second.in_features and hidden not in (first.in_features, second.out_features)
        if not widened or second.name.rpartition(".")[0] != place:
            continue
        holder, two = model.get_submodule(place), second.name.rpartition(".")[2]
        if is_plain_sequential(holder):
            continue
        beside = uses_hidden_size(holder, [first.module, second.module])
        why = why_apart(holder, one, two) or "code around them reaches into the module that holds them"
        if beside:
            why = f"something else beside them has their hidden size, {hidden}"
        found.append(TakenApart((first.name, second.name), why, () if beside else (one, two)))
    return tuple(found)


def is_plain_sequential(module: nn.Module) -> bool:
    """Whether it is an `nn.Sequential` that runs its modules one after the other."""
    return isinstance(module, nn.Sequential) and getattr(module.forward, "__func__", None) is nn.Sequential.forward


def is_activation(step: Any) -> bool:
    """Whether a module or function is an activation."""
    known = isinstance(step, ACTIVATIONS) or type(step).__module__ == "transformers.activations"
    return known or any(step is function for function in ACTIVATION_FUNCTIONS)


def is_pass(step: Any) -> bool:
    """Whether a module or function is dropout, or does nothing."""
    return isinstance(step, PASSES) or any(step is function for function in PASS_FUNCTIONS)


def is_opened(model: nn.Module, name: str, layers: Sequence[nn.Module]) -> bool:
    """Whether code around the module of these layers reaches into it, and may use what is hidden there."""
    parts = name.split(".") if name else []
    may_be_handed_on = not isinstance(model.get_submodule(name), nn.Sequential)  # it has a forward, and no indices
    for length in range(len(parts)):
        around, inner = model.get_submodule(".".join(parts[:length])), parts[length:]
        forward = read(around)
        if not forward.complete and uses_hidden_size(around, layers):
            return True
        for mention in forward.mentions:
            more = len(mention.path) - len(inner)
            reaches = more >= 0 and all(a in ("*", b) for a, b in zip(mention.path, inner, strict=False))
            if reaches and (more or not (mention.call or may_be_handed_on)):
                return True
    return False


def uses_hidden_size(holder: nn.Module, layers: Sequence[nn.Module]) -> bool:
    """Whether something else in the holder has a hidden size of the layers: a norm or a gate between them, perhaps."""
    own = {id(parameter) for layer in layers for parameter in layer.parameters()}
    hidden = {getattr(layer, "out_features", None) or getattr(layer, "nf", None) for layer in layers[:-1]}
    return any(not hidden.isdisjoint(p.shape) for p in holder.parameters() if id(p) not in own)
