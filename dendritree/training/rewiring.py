"""Rewiring (structural plasticity): while a model trains, its weakest synapses move to other inputs.

The number of parameters never changes. A synapse that moved starts over: its weight is 0 and its optimizer state is
cleared. Lightning and transformers are not required: their classes are subclassed when a callback is created.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..errors import MissingExtraError, OptionError, check_float, check_int, check_one_of, check_probability
from ..layers.forest_layer import ForestLayer
from ..layers.neuron_layer import index_of
from ..tree import Forest, IntArray
from ..wiring.interface import dendrite_of_synapse, generator, rank_in_group

WHERE = ("anywhere", "window")
MOVABLE = "'random', 'local', 'tied' or custom"
"""Wirings whose synapses can move, for error messages."""


@dataclass(frozen=True)
class Rewiring:
    """A callback for `dendritree.fit`: after an epoch, move the weakest synapses of every neuron.

    The share that moves falls along a cosine from `fraction` to 0. Which synapses move depends only on the seed, the
    epoch and the weights, so a resumed run moves the same ones. Nothing moves after the last epoch, when nothing more
    is learned.

    Args:
        fraction: share of a neuron's synapses that move after the first epoch.
        until: share of the run's epochs after which nothing moves.
        every: epochs between two moves.
        where: `"anywhere"`, or `"window"`: to inputs of the dendrite's own window, only in layers wired `Local` or
            `Tied`.
        seed: seed of the draw of new inputs.

    Example:
        >>> from dendritree import FitConfig, fit
        >>> from dendritree.models import DendriticNetwork
        >>> data = torch.randn(100, 64), torch.arange(100) % 10
        >>> net = DendriticNetwork(64, [20], 10, fan_in=8, output="logits")
        >>> history = fit(net, data, FitConfig(epochs=2), callbacks=[Rewiring(0.2)])
    """

    fraction: float = 0.1
    until: float = 0.75
    every: int = 1
    where: str = "anywhere"
    seed: int = 0

    def __post_init__(self) -> None:
        check_probability("fraction", self.fraction)
        check_float("until", self.until, "a share of the run in (0, 1]", lambda share: 0 < share <= 1)
        check_int("every", self.every)
        check_one_of("where", self.where, WHERE)
        check_int("seed", self.seed, least=0)

    def check_model(self, model: nn.Module) -> None:
        """Raise for a model that cannot be rewired, as `dendritree.fit` does before the first epoch."""
        self._layers(model)

    def __call__(self, run: Any) -> None:
        """Move synapses, as `dendritree.fit` calls it after each epoch."""
        self.after_epoch(run.model, [run.optimizer], run.history.epochs[-1].epoch, run.history.config.epochs)

    def after_epoch(
        self, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], epoch: int, epochs: int
    ) -> None:
        """Move synapses in your own training loop, at the end of each epoch.

        Args:
            model: the model that is trained.
            optimizers: the optimizers of its weights; their state for the moved synapses is cleared.
            epoch: the epoch that just ended, from 0.
            epochs: number of epochs of the whole run.
        """
        layers = self._layers(model)
        share = self.share(epoch, epochs)
        if share and epoch % self.every == 0 and epoch + 1 < epochs:
            for number, layer in enumerate(layers):
                random = np.random.default_rng([self.seed, epoch, number])
                moved = rewire(layer, share, where=self.where, random=random)
                for optimizer in optimizers:
                    _forget(layer.weight, moved, optimizer)

    def for_lightning(self) -> Any:
        """The same as a callback of Lightning: `Trainer(callbacks=[Rewiring(0.2).for_lightning()])`.

        It extends the class of the package in use, `lightning.pytorch` or `pytorch_lightning`.
        """
        base: Any = _package("lightning.pytorch", "pytorch_lightning").Callback
        after_epoch = self.after_epoch

        class LightningRewiring(base):  # type: ignore[misc]
            """Moves synapses while Lightning trains."""

            def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
                """Move synapses; the number of epochs is that of the Trainer."""
                epochs = check_int("max_epochs of the Trainer", trainer.max_epochs)
                after_epoch(pl_module, trainer.optimizers, trainer.current_epoch, epochs)

        return LightningRewiring()

    def for_transformers(self) -> Any:
        """The same as a callback of transformers: `Trainer(..., callbacks=[Rewiring(0.2).for_transformers()])`."""
        base: Any = _package("transformers").TrainerCallback
        after_epoch = self.after_epoch

        class TransformersRewiring(base):  # type: ignore[misc]
            """Moves synapses while the Trainer trains."""

            def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                """Move synapses; the number of epochs is that of the Trainer."""
                optimizer = kwargs["optimizer"]
                own = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
                after_epoch(kwargs["model"], [own], round(state.epoch) - 1, round(state.num_train_epochs))

        return TransformersRewiring()

    def _layers(self, model: nn.Module) -> list[ForestLayer]:
        """The layers whose synapses can move; raises for a model without any."""
        layers = [m for m in model.modules() if isinstance(m, ForestLayer) and _is_drawn(m)]
        if not layers:
            raise OptionError(f"a model to be rewired must have layers wired {MOVABLE}: got none")
        if self.where == "window":
            layers = [layer for layer in layers if layer.windows is not None]
            if not layers:
                raise OptionError("where='window' requires layers wired 'local' or 'tied': got none")
        for layer in layers:  # all of them before the first one changes
            _check_layer(layer, self.where)
        return layers

    def share(self, epoch: int, epochs: int) -> float:
        """The share of synapses that moves after an epoch.

        >>> [round(Rewiring(0.2, until=1.0).share(epoch, 4), 2) for epoch in range(4)]
        [0.2, 0.17, 0.1, 0.03]
        """
        progress = epoch / (self.until * epochs)
        return self.fraction * (1 + math.cos(math.pi * progress)) / 2 if progress < 1 else 0.0


def _package(*names: str) -> Any:
    """The first of several packages that is installed; one that is already imported takes precedence."""
    for name in sorted(names, key=lambda name: name not in sys.modules):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    package = names[0].partition(".")[0]
    raise MissingExtraError(f"could not import {package}, which its callback needs: pip install {package}")


def _is_drawn(layer: ForestLayer) -> bool:
    return layer.wiring.drawn


def rewire(
    layer: ForestLayer,
    fraction: float,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    where: str = "anywhere",
    random: np.random.Generator | None = None,
) -> Tensor:
    """Move a share of each neuron's synapses, the weakest ones, to inputs that their dendrites do not read yet.

    Args:
        layer: a layer wired `"random"`, `"local"`, `"tied"` or custom.
        fraction: share of the synapses of each neuron, rounded down.
        optimizer: its state for the moved synapses is cleared.
        where: `"anywhere"`, or `"window"`: inside `layer.windows`, for wirings `Local` and `Tied`.
        random: draws the new inputs; by default a generator seeded from torch's.

    Returns:
        Which entries of `layer.weight` belong to synapses that moved.

    Example:
        >>> from dendritree import DendriticLayer
        >>> layer = DendriticLayer(100, 5, branching=2, fan_in=8, wiring="random")
        >>> len(rewire(layer, 0.25))
        10
    """
    fraction = check_probability("fraction", fraction)
    check_one_of("where", where, WHERE)
    _check_layer(layer, where)
    random = generator(None) if random is None else random
    forest = layer.forest
    weakest = _weakest(forest, layer.edge_weight.detach().abs().to("cpu", torch.float64).numpy(), fraction)
    if not len(weakest):
        return torch.empty(0, dtype=torch.long, device=layer.weight.device)
    edges = forest.synapse_edges[weakest]
    source = forest.source.copy()
    source[edges] = _new_inputs(layer, weakest, layer.windows if where == "window" else None, random)
    layer.rewire(Forest(forest.in_features, _with_copies(layer, source), forest.offsets, forest.roots, forest.template))
    moved = index_of(forest.weight_of_edge[edges], layer.weight)
    _forget(layer.weight, moved, optimizer)
    return moved


def _check_layer(layer: Any, where: str) -> None:
    if not isinstance(layer, ForestLayer):
        raise OptionError(f"a layer to be rewired must be a dendritic layer or convolution: got {type(layer).__name__}")
    if not _is_drawn(layer):
        raise OptionError(f"a layer to be rewired must be wired {MOVABLE}: got {layer.wiring}")
    if where == "window" and layer.windows is None:
        raise OptionError(f"where='window' requires a wiring with windows, 'local' or 'tied': got {layer.wiring}")
    if where == "anywhere" and layer.forest.template is not None:
        raise OptionError(f"where must be 'window' for tied dendrites, whose synapses move together: got {where!r}")


@torch.no_grad()
def _forget(weight: nn.Parameter, edges: Tensor, optimizer: torch.optim.Optimizer | None) -> None:
    """Set these weights, their gradients and their optimizer state to 0."""
    states = [] if optimizer is None else list(optimizer.state.get(weight, {}).values())
    for value in (weight, weight.grad, *states):
        if isinstance(value, Tensor) and value.shape == weight.shape:
            value[edges] = 0


def _weakest(forest: Forest, strength: npt.NDArray[Any], fraction: float) -> npt.NDArray[np.int64]:
    """The indices of the weakest synapses of each neuron, except those that are copies of others."""
    own = np.flatnonzero(forest.is_template[dendrite_of_synapse(forest)])
    neuron = forest.neuron_of_synapse[own]
    order = np.lexsort((strength[forest.synapse_edges[own]], neuron))
    count = np.bincount(neuron, minlength=forest.neurons)
    rank = rank_in_group(neuron[order])
    return np.sort(own[order[rank < np.floor(fraction * count)[neuron[order]]]])


def _with_copies(layer: ForestLayer, source: IntArray) -> IntArray:
    """The rows that all edges read, given those of templates: a copy reads the same pixels of its own window."""
    forest, windows = layer.forest, layer.windows
    if forest.template is None:
        return source
    assert windows is not None
    image = layer.wiring.image(forest.in_features)
    assert image is not None
    shift = (windows - windows[forest.template])[:, :2] @ np.array([image[2], 1])  # of a node relative to its template
    edges = forest.synapse_edges
    node = forest.node_of_edge[edges]
    first = (forest.offsets[forest.template] - forest.offsets[:-1])[node] + edges
    moved = source.copy()
    moved[edges] = source[first] + shift[node]
    return moved


def _new_inputs(
    layer: ForestLayer, moving: npt.NDArray[np.int64], windows: IntArray | None, random: np.random.Generator
) -> IntArray:
    """An input for each moving synapse, drawn dendrite by dendrite.

    A dendrite takes inputs that it does not read yet; if there are too few, those that its moving synapses leave; then
    any.
    """
    forest = layer.forest
    index, dendrite = forest.synapse_inputs, dendrite_of_synapse(forest)  # both in the order of the dendrites
    first = np.searchsorted(dendrite, np.arange(forest.nodes + 1))
    stays = np.ones(forest.synapses, dtype=bool)
    stays[moving] = False
    pixels = np.arange(forest.in_features, dtype=np.int32)
    if windows is not None:
        pixels = pixels.reshape(layer.wiring.image(forest.in_features))  # (channels, height, width)
    chosen = index.copy()
    rank = np.zeros(forest.in_features, dtype=np.int8)  # of each input for the current dendrite, best first
    for movers in np.split(moving, np.flatnonzero(np.diff(dendrite[moving])) + 1):
        node = dendrite[movers[0]]
        its_own = slice(first[node], first[node + 1])
        read = index[its_own]
        if windows is None:
            enough = min(len(read) + len(movers), forest.in_features)  # to find an unread one for each
            shuffled = random.choice(forest.in_features, enough, replace=False)
        else:
            top, left, height, width = windows[node]
            shuffled = random.permutation(pixels[:, top : top + height, left : left + width].ravel())
        rank[read] = 1
        rank[read[stays[its_own]]] = 2
        best_first = shuffled[np.argsort(rank[shuffled], kind="stable")]
        chosen[movers] = best_first[np.arange(len(movers)) % len(best_first)]  # repeated if there are too few
        rank[read] = 0
    return chosen[moving]
