"""Structural plasticity: while a model trains, its weakest synapses let go and attach to other inputs.

The number of parameters never changes. What a moved synapse had learned is forgotten: its weight starts at 0 and the
optimizer's memory of it is cleared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from .errors import OptionError, check_int, check_one_of, check_probability
from .layers import DendriticLayer
from .tree import Forest, IntArray
from .wiring import Local
from .wiring.base import dendrite_of_synapse
from .wiring.images import image_of

__all__ = ["Rewiring", "rewire"]

WHERE = ("anywhere", "window")


@dataclass(frozen=True)
class Rewiring:
    """A callback for `dendritree.fit`: after an epoch, move the weakest synapses of every neuron.

    The share that moves falls along a cosine from `fraction` to nothing. What moves depends on the seed, the epoch and
    the weights alone, so a run that was stopped and resumed moves the same.

    Args:
        fraction: share of a neuron's synapses that move after the first epoch.
        until: share of the run's epochs after which nothing moves any more.
        every: epochs between two moves.
        where: `"anywhere"`, or `"window"`: inputs of the dendrite's own window, for wiring `Local`.
        seed: of the new inputs.

    Example:
        >>> from dendritree import DendriticNetwork, FitConfig, fit
        >>> from dendritree.data import load
        >>> net = DendriticNetwork(64, [20], 10, fan_in=8, output="logits")
        >>> history = fit(net, load("digits"), FitConfig(epochs=2), callbacks=[Rewiring(0.2)])
    """

    fraction: float = 0.1
    until: float = 0.75
    every: int = 1
    where: str = "anywhere"
    seed: int = 0

    def __post_init__(self) -> None:
        check_probability("fraction", self.fraction)
        if not 0 < self.until <= 1:
            raise OptionError(f"until must be a share of the run in (0, 1]: got {self.until!r}")
        check_int("every", self.every)
        check_one_of("where", self.where, WHERE)
        check_int("seed", self.seed, least=0)

    def __call__(self, run: Any) -> None:
        """Move synapses, as `dendritree.fit` calls it after each epoch."""
        epoch, epochs = run.history.epochs[-1].epoch, run.history.config.epochs
        share = self.share(epoch, epochs)
        if share and epoch % self.every == 0:
            layers = [layer for layer in run.model.modules() if _can_move(layer)]
            if not layers:
                raise OptionError(
                    "a model that is rewired must have layers wired 'random', 'local' or custom: got none"
                )
            for number, layer in enumerate(layers):
                random = np.random.default_rng([self.seed, epoch, number])
                rewire(layer, share, run.optimizer, where=self.where, random=random)

    def share(self, epoch: int, epochs: int) -> float:
        """The share of synapses that moves after an epoch.

        >>> [round(Rewiring(0.2, until=1.0).share(epoch, 4), 2) for epoch in range(4)]
        [0.2, 0.17, 0.1, 0.03]
        """
        progress = epoch / (self.until * epochs)
        return self.fraction * (1 + math.cos(math.pi * progress)) / 2 if progress < 1 else 0.0


def _can_move(layer: nn.Module) -> bool:
    return isinstance(layer, DendriticLayer) and all(wiring.drawn for wiring in layer.wirings)


def rewire(
    layer: DendriticLayer,
    fraction: float,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    where: str = "anywhere",
    random: np.random.Generator | None = None,
) -> Tensor:
    """Move the weakest synapses of each neuron, that share of them, to inputs which their dendrites do not read yet.

    Args:
        layer: wired `"random"`, `"local"` or by hand.
        fraction: share of the synapses of each neuron, rounded down.
        optimizer: whose memory of the moved synapses is cleared.
        where: `"anywhere"`, or `"window"` for wiring `Local`.
        random: draws the new inputs.

    Returns:
        The edges of `layer.weight` that moved.

    Example:
        >>> layer = DendriticLayer(100, 5, branching=2, fan_in=8, wiring="random")
        >>> len(rewire(layer, 0.25))
        10
    """
    check_probability("fraction", fraction)
    check_one_of("where", where, WHERE)
    if not _can_move(layer):
        raise OptionError(f"a layer that is rewired must be wired 'random', 'local' or custom: got {layer.wiring}")
    random = np.random.default_rng(int(torch.randint(2**62, (1,)))) if random is None else random
    forest = layer.forest
    weakest = _weakest(forest, layer.weight.detach().abs().cpu().numpy(), fraction)
    if not len(weakest):
        return torch.empty(0, dtype=torch.long)
    windows = _windows(layer) if where == "window" else None
    index = forest.synapse_inputs.copy()
    index[weakest] = _new_inputs(forest, index, weakest, windows, random)
    source = forest.source.copy()
    source[forest.synapse_edges] = index
    layer.rewire(Forest(forest.in_features, source, forest.offsets, forest.roots))
    edges = torch.from_numpy(forest.synapse_edges[weakest].astype(np.int64)).to(layer.weight.device)
    with torch.no_grad():
        layer.weight[edges] = 0
        for value in (optimizer.state.get(layer.weight, {}) if optimizer else {}).values():
            if isinstance(value, Tensor) and value.shape == layer.weight.shape:
                value[edges] = 0
    return edges


def _weakest(forest: Forest, strength: npt.NDArray[Any], fraction: float) -> npt.NDArray[np.int64]:
    """The weakest synapses of each neuron, as numbers of synapses."""
    neuron = forest.neuron_of_synapse
    order = np.lexsort((strength[forest.synapse_edges], neuron))
    first = np.cumsum(forest.fan_in_of_neuron) - forest.fan_in_of_neuron
    rank = np.arange(forest.synapses) - first[neuron[order]]
    return np.sort(order[rank < np.floor(fraction * forest.fan_in_of_neuron)[neuron[order]]])


def _new_inputs(
    forest: Forest,
    index: IntArray,
    moving: npt.NDArray[np.int64],
    windows: npt.NDArray[np.bool_] | None,
    random: np.random.Generator,
) -> IntArray:
    """An input for each moving synapse that its dendrite does not read; any of the allowed ones if it reads all."""
    dendrite = dendrite_of_synapse(forest)
    order = np.argsort(dendrite, kind="stable")
    begins = np.searchsorted(dendrite[order], np.arange(forest.nodes + 1))
    found = np.empty(len(moving), dtype=np.int32)
    index = index.copy()
    for place, synapse in enumerate(moving):
        node = dendrite[synapse]
        read = index[order[begins[node] : begins[node + 1]]]
        if windows is None and 2 * len(read) < forest.in_features:  # chance finds a free one soon
            candidate = int(random.integers(forest.in_features))
            while candidate in read:
                candidate = int(random.integers(forest.in_features))
        else:
            allowed = np.arange(forest.in_features) if windows is None else np.flatnonzero(windows[node])
            free = np.setdiff1d(allowed, read)
            candidate = int(random.choice(free if len(free) else allowed))
        found[place] = index[synapse] = candidate
    return found


def _windows(layer: DendriticLayer) -> npt.NDArray[np.bool_]:
    """For each node, the inputs of its window: a square around what it reads now."""
    wiring, forest = layer.wiring, layer.forest
    if not isinstance(wiring, Local):
        raise OptionError(f"where 'window' is for wiring 'local': got {wiring}")
    _, height, width = image_of(wiring.image_shape, forest.in_features, wiring.name)
    y, x = np.divmod(np.arange(forest.in_features) % (height * width), width)
    unit = dendrite_of_synapse(forest) if wiring.per == "dendrite" else forest.neuron_of_synapse
    inside = np.ones((int(unit.max()) + 1, forest.in_features), dtype=bool)
    for along, length in ((y, height), (x, width)):
        low = np.full(len(inside), length)
        high = np.full(len(inside), -1)
        np.minimum.at(low, unit, along[forest.synapse_inputs])
        np.maximum.at(high, unit, along[forest.synapse_inputs])
        side = np.maximum(min(wiring.window, length), high - low + 1)
        start = np.clip((low + high + 1 - side) // 2, 0, length - side)
        inside &= (along >= start[:, None]) & (along < (start + side)[:, None])
    if wiring.per == "neuron":
        inside = inside[forest.neuron_of_node]
    return inside
