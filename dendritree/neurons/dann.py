"""`DANN`: somata with a few dendrites each, every dendrite with a few synapses in a receptive field.

Source: S. Chavlis and P. Poirazi, "Dendrites endow artificial neural networks with accurate, robust and
parameter-efficient learning", Nature Communications 16:943, 2025, and its authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError, check_int, check_one_of
from ..layers.activation import Activation
from ..layers.dendritic import DendriticLayer
from ..layers.neuron_layer import NeuronLayer
from ..tree import Forest, IntArray
from ..tree.levels import Branching
from ..wiring import Random, Wiring
from ..wiring.image_orders import check_image_shape, image_of
from ..wiring.interface import Integers, check_seed, dendrite_of_synapse, generator, ungrouped
from .families import register_neuron

FIELDS = ("random", "local", "global")
"""Inputs of a dendrite: dANN-R, dANN-LRF, dANN-GRF."""

SYNAPSES = 16
CHUNK = 2048  # fields drawn at once: 2048 x 784 random numbers are 13 MB


@register_neuron(
    "dann",
    label="dANN",
    title="dANN: somata with dendrites of 16 synapses",
    choices={"dendrites": (2, 4, 8, 16), "field": ("random",)},
    image_choices={"field": ("random", "local", "global")},
)
class DANN(NeuronLayer):
    r"""The dendrites and somata of a dendritic network with restricted input sampling.

    .. math:: z_{nj} = \mathrm{act}\Big(c_{nj} + \sum_{i \in F_{nj}} w_{nji} x_i\Big), \qquad
        y_n = \mathrm{act}\Big(c_n + \sum_{j=1}^{D} v_{nj} z_{nj}\Big)

    for somata n and their own dendrites j, which read the inputs of their receptive fields F. This is a
    `DendriticLayer` with `branching=[synapses, dendrites]`. `S` somata with `D` dendrites of 16 synapses have
    17 D S + (D + 1) S parameters.

    Args:
        in_features: number of inputs.
        out_features: number of somata, `S`.
        dendrites: dendrites per soma, `D`.
        synapses: synapses per dendrite; by default 16, or all inputs if they are fewer.
        field: what a dendrite reads: `"random"` inputs (dANN-R), `"local"` pixels around a center of its own
            (dANN-LRF), or `"global"` ones, around a center near that of its soma (dANN-GRF).
        image_shape: (channels, height, width), for `"local"` and `"global"`; a square image of one channel by default.
        bias: whether dendrites and somata have a bias.
        activation: activation of both, as in `DendriticLayer`; LeakyReLU with slope 0.1 by default, as in the source.
        seed: seed of the receptive fields; None draws it from torch's generator.
        backend, device, dtype: as in `DendriticLayer`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        trees: the `DendriticLayer`. All weights are initially N(0, 2 / children), all biases 0. Its state dict
            holds the receptive fields.

    Example:
        >>> layer = DANN(784, 64, dendrites=4, field="global")
        >>> layer(torch.randn(5, 784)).shape, sum(p.numel() for p in layer.parameters()) == 17 * 4 * 64 + 5 * 64
        (torch.Size([5, 64]), True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        dendrites: int = 2,
        synapses: int | None = None,
        field: str = "random",
        image_shape: tuple[int, ...] | None = None,
        bias: bool = True,
        activation: Activation = "leaky_relu",
        seed: int | None = None,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dtype, in_features=in_features, out_features=out_features)
        self.dendrites = check_int("dendrites", dendrites)
        self.field = check_one_of("field", field, FIELDS)
        self.image_shape, self.seed = check_image_shape(image_shape), seed
        check_seed(seed)
        self.synapses = min(SYNAPSES, self.in_features) if synapses is None else check_int("synapses", synapses)
        if self.synapses > self.in_features:
            raise OptionError(f"synapses must be at most in_features {self.in_features}: got {self.synapses}")
        levels: Branching = [self.synapses, self.dendrites]
        if min(self.synapses, self.dendrites) < 2:  # levels need two or more, nested children do not
            levels = [[self.synapses]] * self.dendrites
        self.trees = DendriticLayer(
            self.in_features,
            self.out_features,
            branching=levels,
            wiring=self._wiring(),
            bias=bias,
            activation=activation,
            backend=backend,
            device=device,
            dtype=dtype,
        )

    def _wiring(self) -> Wiring:
        if self.field == "random":
            return Random(seed=self.seed)
        _, height, width = image_of(self.image_shape, self.in_features, self.field)
        if self.field == "local":
            return ReceptiveFields("dendrite", self.image_shape, self.seed)
        if self.dendrites > height * width:
            raise OptionError(
                f"dendrites must be at most the {height * width} pixels for field 'global', a center for each: "
                f"got {self.dendrites}"
            )
        return ReceptiveFields("neuron", self.image_shape, self.seed)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Redraw the weights from N(0, 2 / children) and set the biases to 0. The receptive fields are kept."""
        # Differs from the source, which masks Keras' dense layers, whose uniform distribution ignores the mask.
        self.trees.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        y: Tensor = self.trees(x)
        return y

    def _options(self) -> dict[str, Any]:
        changed = self._changed(image_shape=self.image_shape, bias=self.trees.bias is not None, seed=self.seed)
        return {"dendrites": self.dendrites, "synapses": self.synapses, "field": self.field, **changed}


# ---------------------------------------------------------------------------------------------------- receptive fields


@dataclass(frozen=True)
class ReceptiveFields(Wiring):
    """Each dendrite reads the pixels around its center; centers lie anywhere, or around a center of the neuron.

    Args:
        per: what has its own center anywhere in the image: each `"dendrite"` (a local field), or each `"neuron"`, whose
            dendrites have their centers around it (a global field).
        image_shape: (channels, height, width); a square image of one channel by default.
        seed: seed of the draw; None draws it from torch's generator.

    >>> inputs = ReceptiveFields(seed=0).index(Forest.grow([9, 2]), 100).reshape(2, 9)
    >>> bool((np.ptp(inputs // 10, axis=1) <= 4).all() and (np.ptp(inputs % 10, axis=1) <= 4).all())
    True
    """

    name: ClassVar[str] = "receptive-fields"
    drawn: ClassVar[bool] = True
    any_fan_in: ClassVar[bool] = True
    per: str = "dendrite"
    image_shape: tuple[int, int, int] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_shape", check_image_shape(self.image_shape))
        check_seed(self.seed)

    def index(self, forest: Forest, in_features: int) -> IntArray:
        """Draw the centers, then the pixels around each."""
        image, random = image_of(self.image_shape, in_features, "field"), generator(self.seed)
        _, height, width = image
        dendrites, dendrite = np.unique(dendrite_of_synapse(forest), return_inverse=True)
        if self.per == "neuron":
            around = random.integers(height * width, size=forest.neurons)
            neuron = forest.neuron_of_node[dendrites]
            center: Integers = ungrouped(neuron, _nearest(around, np.bincount(neuron), (1, height, width), random))
        else:
            center = random.integers(height * width, size=len(dendrites))
        return ungrouped(dendrite, _nearest(center, np.bincount(dendrite), image, random))


def _nearest(centers: Integers, counts: Integers, image: tuple[int, int, int], random: np.random.Generator) -> Integers:
    """Draw `counts` inputs around each center (a pixel) without repetition, one center after another.

    Inputs at the center and its eight neighbors come first; the rest is drawn from as few of the rings around them as
    possible.
    """
    channels, height, width = image
    if counts.max() > channels * height * width:
        raise OptionError(f"a receptive field must have no more than the image's pixels: got {counts.max()} of {image}")
    y, x = np.divmod(np.tile(np.arange(height * width), channels), width)
    drawn = []
    for begin in range(0, len(centers), CHUNK):
        needed = counts[begin : begin + CHUNK, None]
        down, right = np.divmod(centers[begin : begin + CHUNK, None], width)
        distance = np.maximum(abs(y - down), abs(x - right))  # (centers, inputs): rings are squares
        far = np.sort(distance, axis=1)[np.arange(len(needed)), needed[:, 0] - 1]  # the last ring that is needed
        group = (distance > 1).astype(np.int64) + (distance > np.maximum(far, 1)[:, None])
        order = np.argsort(group + random.random(distance.shape), axis=1)
        drawn.append(order[np.arange(distance.shape[1]) < needed])
    return np.concatenate(drawn)
