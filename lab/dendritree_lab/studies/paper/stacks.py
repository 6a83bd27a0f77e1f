"""Several trials as one model. A stack of E models is simply a larger layer whose neurons read different rows.

Each model keeps its own weights, images and dropout; they only share the overhead of a call. Inputs and outputs are
features-major: (trials, features, images) -> (trials, outputs, images).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dendritree.layers import DendriticLayer
from dendritree.models import MLP, MLNBinaryClassifier, MLNClassifier, Perceptrons
from dendritree.tree import Forest, IntArray
from dendritree.wiring import Shared, Wiring


class Stack(nn.Module):
    """Models of the same shape, trained together."""

    def prepare(self, x: Tensor) -> Tensor:
        """Convert images (trials, features, images) to the input of `forward`: done once, not in every step."""
        return x

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Outputs (trials, outputs, images) for prepared images, without the models' last sigmoid or softmax."""

    @abstractmethod
    def state_of(self, trial: int) -> dict[str, Tensor]:
        """Copies of the parameters of one trial, by their names in its model."""

    def seed_dropout(self, seed: int) -> None:
        """Seed the stack's own random generators, if it has any besides torch's."""


def stack_models(models: Sequence[nn.Module]) -> Stack:
    """Stack models of the same shape, with their current weights.

    >>> stack = stack_models([Perceptrons(4, 2) for _ in range(3)])
    >>> stack(stack.prepare(torch.randn(3, 4, 7))).shape
    torch.Size([3, 2, 7])
    """
    first = models[0]
    if isinstance(first, MLNClassifier | MLNBinaryClassifier):
        return TreeStack([model.layer for model in models])  # type: ignore[misc]
    if isinstance(first, MLP):
        return DenseStack(models, ("hidden", "readout"), first.dropout.p)
    if isinstance(first, Perceptrons):
        return DenseStack(models, ("units",), first.dropout.p)
    return LoneModel(models)


# ---------------------------------------------------------------------------------------------------------- dendrites


@dataclass(frozen=True)
class Grouped(Wiring):
    """Neurons in equal groups, each of which reads one slice of the inputs completely."""

    name: ClassVar[str] = "grouped"
    groups: int

    def fan_in(self, in_features: int, out_features: int) -> int:
        """The size of a slice."""
        return in_features // self.groups

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """The slice of each neuron's group, in order."""
        group = forest.neuron_of_synapse // (forest.neurons // self.groups)
        return (Shared().index(forest, in_features) + group * (in_features // self.groups)).astype(np.int32)


class TreeStack(Stack):
    """Dendritic layers as one: neurons of trial e read slice e of the inputs."""

    def __init__(self, layers: Sequence[DendriticLayer]) -> None:
        super().__init__()
        first, trials = layers[0], len(layers)
        self.outputs = first.out_features
        self.layer = DendriticLayer(
            trials * first.in_features,
            trials * first.out_features,
            branching=first.branching,
            wiring=Grouped(trials),
            dropout=first.dropout,
            activation=first.activation,
            root_activation=first.root_activation,
            backend=first.backend,
        )
        ours, theirs = self.layer.forest, first.forest
        # Neuron by neuron, the edges and nodes of a stack are in the same order as those of its models.
        our_edges, their_edges = (forest.neuron_of_node[forest.node_of_edge] for forest in (ours, theirs))
        self._edges = _by_neuron(our_edges, their_edges, trials)
        self._nodes = _by_neuron(ours.neuron_of_node, theirs.neuron_of_node, trials)
        with torch.no_grad():
            for trial, layer in enumerate(layers):
                self.layer.weight[self._edges[trial]] = layer.weight
                if layer.bias is not None and self.layer.bias is not None:
                    self.layer.bias[self._nodes[trial]] = layer.bias

    def prepare(self, x: Tensor) -> Tensor:
        """(images, trials * features), features-major in memory."""
        return x.flatten(0, 1).t()

    def forward(self, x: Tensor) -> Tensor:
        """The roots of all trees."""
        out: Tensor = self.layer(x)  # (images, trials * outputs), features-major in memory
        return out.t().view(-1, self.outputs, len(x))

    def state_of(self, trial: int) -> dict[str, Tensor]:
        """Weights and biases of one trial."""
        state = {"layer.weight": self.layer.weight.detach()[self._edges[trial]]}
        if self.layer.bias is not None:
            state["layer.bias"] = self.layer.bias.detach()[self._nodes[trial]]
        return state


def _by_neuron(ours: IntArray, theirs: IntArray, trials: int) -> Tensor:
    """For each trial and each item of its model, the index of that item in the stack."""
    sorted_ours = np.argsort(ours, kind="stable").reshape(trials, -1)
    rank = np.argsort(np.argsort(theirs, kind="stable"), kind="stable")
    return torch.from_numpy(sorted_ours[:, rank])


# --------------------------------------------------------------------------------------------------------- perceptrons


class DenseStack(Stack):
    """MLPs or perceptrons as batched matmuls; ReLU between layers, dropout on the inputs."""

    def __init__(self, models: Sequence[nn.Module], layers: Sequence[str], dropout: float) -> None:
        super().__init__()
        self.names, self.dropout = tuple(layers), dropout
        self.weights = nn.ParameterList(_stacked(models, f"{name}.weight") for name in layers)
        self.biases = nn.ParameterList(_stacked(models, f"{name}.bias") for name in layers)
        self._random: list[np.random.Generator] = []

    def seed_dropout(self, seed: int) -> None:
        """Give each trial its own random stream."""
        children = np.random.SeedSequence(seed).spawn(len(self.weights[0]))
        self._random = [np.random.Generator(np.random.SFC64(child)) for child in children]

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of the last layer."""
        scale = 1.0
        if self.training and self.dropout:
            x, scale = x * self._kept(x), 1 / (1 - self.dropout)
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias[:, :, None], weight, torch.relu(x) if depth else x, alpha=1.0 if depth else scale)
        return x

    def _kept(self, x: Tensor) -> Tensor:
        """1 where an input is kept, decided by 16 random bits, which are many times cheaper than a float."""
        limit, shape = round(self.dropout * 65536), tuple(x.shape[1:])
        kept = np.empty(x.shape, np.float32)
        for mask, random in zip(kept, self._random, strict=True):
            np.greater_equal(random.integers(0, 65536, shape, np.uint16), limit, out=mask, casting="unsafe")
        return torch.from_numpy(kept)

    def state_of(self, trial: int) -> dict[str, Tensor]:
        """Weights and biases of one trial."""
        state: dict[str, Tensor] = {}
        for name, weight, bias in zip(self.names, self.weights, self.biases, strict=True):
            state |= {f"{name}.weight": weight.detach()[trial].clone(), f"{name}.bias": bias.detach()[trial].clone()}
        return state


def _stacked(models: Sequence[nn.Module], name: str) -> Tensor:
    return torch.stack([model.get_parameter(name).detach() for model in models])


class LoneModel(Stack):
    """A single model that cannot be stacked: a CNN. Uses channels last, nearly twice as fast as channels first."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        assert len(models) == 1, "a CNN is trained alone: its spec must say stack = 1"
        self.model: Any = models[0].to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.head.output = nn.Identity()

    def prepare(self, x: Tensor) -> Tensor:
        """(images, 1, height, width)"""
        images = x[0].t().reshape(-1, *self.model.input_shape)
        return images.contiguous(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of the head."""
        out: Tensor = self.model(x)
        return out.t()[None]

    def state_of(self, trial: int) -> dict[str, Tensor]:
        """All parameters and running statistics."""
        del trial
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}
