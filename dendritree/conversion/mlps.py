"""Find MLPs, Linear-activation-Linear: perceptron layers whose hidden width can change.

`torch.fx` traces the forward passes of a model and shows where the output of a layer goes. Modules of transformers that
it cannot trace are recognized by the names of their layers. All other layers are single.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import fx, nn

from ..layers.images import Stages
from .perceptrons import Perceptron, is_perceptron

Block: TypeAlias = tuple[Perceptron, ...]
"""What is replaced as a unit: a perceptron layer, or the layers of an MLP in their order."""

BLOCKS: tuple[tuple[str, ...], ...] = (
    ("fc1", "fc2"),
    ("linear1", "linear2"),  # nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    ("lin1", "lin2"),
    ("c_fc", "c_proj"),  # GPT-2
    ("intermediate.dense", "output.dense"),  # BERT
    ("dense_h_to_4h", "dense_4h_to_h"),
    ("wi", "wo"),
    ("hidden", "readout"),  # our own MLP
)
"""Names of the layers of an MLP, relative to the module that holds them, in the packages of `TRUSTED`."""
TRUSTED = ("torch.nn.modules.transformer", "transformers.", "dendritree.")
"""Packages in which modules with the names in `BLOCKS` are MLPs."""

ACTIVATIONS = {
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leakyrelu", "logsigmoid", "mish",
    "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
    "threshold",
}  # fmt: skip
"""Names of modules, functions and methods that act on each number alone, in lower case and without underscores."""
PASSES = {"alphadropout", "dropout", "identity"}
SINGLE = "not part of an MLP (two linear layers with an activation between); name it in where= to convert it"


# --------------------------------------------------------------------------------------------------- forward passes


@dataclass(frozen=True)
class Flow:
    """What the forward passes of a model do with its linear layers, by their full names."""

    calls: dict[str, list[str | None]] = field(default_factory=lambda: defaultdict(list))
    """For every call of a layer, the layer that its output goes to through activations alone; None if there is none."""
    readers: dict[str, str] = field(default_factory=dict)
    """Layers whose weight or bias a forward pass reads directly, and the class of the module that does."""
    untraced: set[str] = field(default_factory=set)
    """Modules whose forward pass cannot be traced."""

    def chains(self, names: Mapping[str, Perceptron]) -> Iterator[list[str]]:
        """Runs of two or more of these layers whose outputs go to the next one and nowhere else."""
        follows = {
            name: second
            for name, goals in self.calls.items()
            if name in names and len(set(goals)) == 1 and (second := goals[0]) in names
            if second is not None and len(self.calls[second]) == len(goals)
        }
        for start in (name for name in follows if name not in follows.values()):
            run = [start]
            while run[-1] in follows:
                run.append(follows[run[-1]])
            yield run


Plain: TypeAlias = bool | int | float | str | None
"""Types of default arguments with which a forward pass is traced."""


class _Tracer(fx.Tracer):
    """Records calls of modules without looking into them, except for `nn.Sequential`, whose modules it records."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return forward(*args, **kwargs) if is_plain_sequential(m) else super().call_module(m, forward, args, kwargs)


def trace_forwards(model: nn.Module) -> Flow:
    """Trace each module that has linear layers below it.

    >>> dict(trace_forwards(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4))).calls)
    {'0': ['2'], '2': [None]}
    """
    flow, sequences, forwards = Flow(), [], []
    for name, module in model.named_modules():
        if is_plain_sequential(module):
            sequences.append(name)
        elif not type(module).__module__.startswith("torch.") and any(map(is_perceptron, module.modules())):
            forwards.append(name)
        if isinstance(module, nn.MultiheadAttention):  # hands the weights of its projection to a fused function
            flow.readers[f"{name}.out_proj".lstrip(".")] = type(module).__name__
    for name in forwards:
        _record(flow, name, model.get_submodule(name))
    for name in sequences:
        module, prefix = model.get_submodule(name), f"{name}." if name else ""
        layers = {prefix + inner: each for inner, each in module.named_modules() if is_perceptron(each)}
        if not flow.calls.keys().isdisjoint(layers):
            continue  # a traced module calls it
        owner = max((each for each in forwards if not each or prefix.startswith(f"{each}.")), key=len, default=None)
        # A forward pass that cannot be traced may use a part of the sequence.
        if owner not in flow.untraced or not _uses_hidden_size(model.get_submodule(owner), [*layers.values()]):
            _record(flow, name, module)
    return flow


def _record(flow: Flow, name: str, module: nn.Module) -> None:
    """Trace a module and add what its forward pass does."""
    prefix = f"{name}." if name else ""
    try:
        graph = _trace(module)
    except Exception:  # forward passes may contain any code and raise any error
        flow.untraced.add(name)
        return
    for node in graph.nodes:
        if node.op == "call_module" and is_perceptron(module.get_submodule(node.target)):
            goal = _destination(node, module)
            flow.calls[prefix + node.target].append(None if goal is None else prefix + goal)
        elif node.op == "get_attr" and not all(user.target is getattr for user in node.users):  # such as weight.dtype
            flow.readers[prefix + node.target.rpartition(".")[0]] = type(module).__name__


def _trace(module: nn.Module) -> fx.Graph:
    if "forward" in vars(module):
        raise TypeError("it was replaced on the object")
    parameters = inspect.signature(type(module).forward).parameters
    defaults = {each.name: each.default for each in parameters.values() if isinstance(each.default, Plain)}
    # A forward pass may draw random numbers and set attributes, here those of a shallow copy.
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Tracer().trace(copy.copy(module), defaults)


def _destination(node: fx.Node, module: nn.Module) -> str | None:
    """The linear layer that the output of a call goes to, through activations and dropout alone; None if none."""
    activated = False
    while True:
        user = next(iter(node.users), None)
        if user is None or len(node.users) > 1 or user.all_input_nodes != [node] or user.op == "output":
            return None
        step = module.get_submodule(str(user.target)) if user.op == "call_module" else user.target
        if isinstance(step, nn.Module) and is_perceptron(step):
            return str(user.target) if activated else None
        name = type(step).__name__ if isinstance(step, nn.Module) else str(getattr(step, "__name__", step))
        key = name.replace("_", "").lower()
        if key in ACTIVATIONS or type(step).__module__ == "transformers.activations":
            activated = True
        elif key not in PASSES:
            return None
        node = user


# ----------------------------------------------------------------------------------------------------------- blocks


def group(model: nn.Module, perceptrons: Mapping[str, Perceptron], flow: Flow) -> list[Block]:
    """Group the perceptrons into blocks, in the model's order: MLPs where they form one, the others one by one."""
    block_of: dict[str, Block] = {}  # by the names of their layers
    linear = {name: perceptron for name, perceptron in perceptrons.items() if not perceptron.is_convolution}
    for names in (*_named(model), *flow.chains(linear)):
        block = tuple(linear[name] for name in names if name in linear)
        follow = all(a.out_features == b.in_features for a, b in itertools.pairwise(block))
        if len(block) == len(names) and block_of.keys().isdisjoint(names) and follow:
            block_of |= dict.fromkeys(names, block)
    grouped = {name: block_of.get(name, (perceptron,)) for name, perceptron in perceptrons.items()}
    return [block for name, block in grouped.items() if block[0].name == name]


def feed_forward(model: nn.Module, blocks: Sequence[Block], unfit: Iterable[str]) -> tuple[list[Block], dict[str, str]]:
    """The blocks that are replaced by default, and the reason why others are not, by layer name.

    These are MLPs, convolutions if requested, and the head of a CNN: the only other linear layer of a model
    with convolutions. A model that is one layer is replaced too.

    Args:
        model: any model.
        blocks: all blocks of the model.
        unfit: names of its layers that cannot be replaced.
    """
    single = [block[0] for block in blocks if len(block) == 1 and not block[0].is_convolution]
    convolves = any(isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in model.modules())
    alone = len(single) == 1 and not any(is_perceptron(model.get_submodule(name)) for name in unfit)
    is_head = alone and (convolves or not single[0].name)
    others = {} if is_head else {perceptron.name: SINGLE for perceptron in single}
    return [block for block in blocks if block[0].name not in others], others


def _named(model: nn.Module) -> Iterator[list[str]]:
    """Names that the layers of an MLP have in known packages, whether or not the model has them."""
    for name, holder in model.named_modules():
        for block in BLOCKS if str(type(holder).forward.__module__).startswith(TRUSTED) else ():
            yield [f"{name}.{child}".lstrip(".") for child in block]


def is_plain_sequential(module: nn.Module) -> bool:
    """Whether it is an `nn.Sequential` that runs its modules one after another."""
    return getattr(module.forward, "__func__", None) in (nn.Sequential.forward, Stages.forward)


def _uses_hidden_size(holder: nn.Module, layers: Sequence[nn.Module]) -> bool:
    """Whether something else in the holder has a hidden size of the layers, such as a norm or gate between them."""
    own = {id(parameter) for layer in layers for parameter in layer.parameters()}
    hidden = {getattr(layer, "out_features", None) or getattr(layer, "nf", None) for layer in layers[:-1]}
    return any(not hidden.isdisjoint(p.shape) for p in holder.parameters() if id(p) not in own)
