"""`DANN`: somata with a few dendrites each, every dendrite with a few synapses in a receptive field.

Source: S. Chavlis and P. Poirazi, "Dendrites endow artificial neural networks with accurate, robust and
parameter-efficient learning", Nature Communications 16:943, 2025, and its authors' code.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_one_of
from ..levels import Branching
from ..wiring import Partition, Random, Wiring
from ..wiring.base import check_seed
from ..wiring.images import check_image_shape, image_of
from .activation import Activation
from .dendritic import DendriticLayer
from .fields import ReceptiveFields

__all__ = ["DANN", "FIELDS"]

FIELDS = ("random", "local", "global", "all")
"""What a dendrite reads: dANN-R, dANN-LRF, dANN-GRF, pdANN."""

SYNAPSES = 16


class DANN(nn.Module):
    r"""The dendrites and somata of a dendritic network with restricted input sampling.

    .. math:: z_{nj} = \mathrm{act}\Big(c_{nj} + \sum_{i \in F_{nj}} w_{nji} x_i\Big), \qquad
        y_n = \mathrm{act}\Big(c_n + \sum_{j=1}^{D} v_{nj} z_{nj}\Big)

    for somata n and their own dendrites j, which read the inputs of their receptive fields F. A `DendriticLayer` with
    `branching=[synapses, dendrites]`; for field `"all"`, a dense layer and one with `branching=dendrites`. `S` somata
    with `D` dendrites of 16 synapses have 17 D S + (D + 1) S parameters.

    Args:
        in_features: number of inputs.
        out_features: number of somata, `S`.
        dendrites: of each soma, `D`.
        synapses: of each dendrite; by default 16, or all inputs if they are fewer. For field `"all"` every dendrite
            reads all inputs.
        field: what a dendrite reads: `"random"` inputs (dANN-R), the pixels around a centre of its own, `"local"`
            (dANN-LRF), those around a centre near that of its soma, `"global"` (dANN-GRF), or `"all"` (pdANN).
        image_shape: (channels, height, width), for `"local"` and `"global"`; a square image of one channel by default.
        bias: whether dendrites and somata have a bias.
        activation: of both, as in `DendriticLayer`; LeakyReLU with slope 0.1 as in the source.
        seed: of the fields; None draws it from torch's generator.
        backend, device, dtype: as in `DendriticLayer`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        synapses: for field `"all"` the dense layer of all dendrites, else None.
        trees: the rest, a `DendriticLayer`. All weights are at first N(0, 2 / children), all biases 0. Its state dict
            carries the receptive fields.

    Example:
        >>> layer = DANN(784, 64, dendrites=4, field="global")
        >>> layer(torch.randn(5, 784)).shape, sum(p.numel() for p in layer.parameters()) == 17 * 4 * 64 + 5 * 64
        (torch.Size([5, 64]), True)
    """

    synapses: nn.Linear | None

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
        super().__init__()
        self.in_features = check_int("in_features", in_features)
        self.out_features = check_int("out_features", out_features)
        self.dendrites = check_int("dendrites", dendrites)
        self.field = check_one_of("field", field, FIELDS)
        self.image_shape, self.seed = check_image_shape(image_shape), seed
        check_seed(seed)
        self.synapses_per_dendrite = self._count_synapses(synapses)
        levels: Branching = [self.synapses_per_dendrite, self.dendrites]
        if min(self.synapses_per_dendrite, self.dendrites) < 2:  # levels are of two or more; nested children need not
            levels = [[self.synapses_per_dendrite]] * self.dendrites
        inputs = self.in_features
        if field == "all":
            inputs, levels = self.out_features * self.dendrites, max(2, self.dendrites)
        self.trees = DendriticLayer(
            inputs,
            self.out_features,
            branching=levels,
            wiring=self._wiring(),
            ragged=True,
            bias=bias,
            activation=activation,
            backend=backend,
            device=device,
            dtype=dtype,
        )
        self.synapses = None
        if field == "all":
            self.synapses = nn.Linear(self.in_features, inputs, bias=bias, device=device, dtype=dtype)
            self._reset_synapses()

    def _wiring(self) -> Wiring:
        if self.field == "all":
            return Partition()
        if self.field == "random":
            return Random(seed=self.seed)
        _, height, width = image_of(self.image_shape, self.in_features, self.field)
        if self.field == "local":
            return ReceptiveFields("dendrite", self.image_shape, self.seed)
        if self.dendrites > height * width:
            raise OptionError(
                f"dendrites must be at most the {height * width} pixels for field 'global', a centre for each: "
                f"got {self.dendrites}"
            )
        return ReceptiveFields("neuron", self.image_shape, self.seed)

    def _count_synapses(self, synapses: int | None) -> int:
        if self.field == "all":
            if synapses is not None and check_int("synapses", synapses) != self.in_features:
                raise OptionError(
                    f"synapses must be in_features {self.in_features}, or left out, for field 'all': got {synapses}"
                )
            return self.in_features
        count = min(SYNAPSES, self.in_features) if synapses is None else check_int("synapses", synapses)
        if count > self.in_features:
            raise OptionError(f"synapses must be at most in_features {self.in_features}: got {count}")
        return count

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the weights anew from N(0, 2 / children) and set the biases to 0. The fields stay."""
        # Differs from the source, which masks Keras' dense layers, whose uniform law knows nothing of the mask.
        self.trees.reset_parameters()
        self._reset_synapses()

    @torch.no_grad()
    def _reset_synapses(self) -> None:
        if self.synapses is not None:
            self.synapses.weight.normal_(std=(2 / self.in_features) ** 0.5)
            if self.synapses.bias is not None:
                self.synapses.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        if self.synapses is not None:
            x = self.trees.activation(self.synapses(x))
        y: Tensor = self.trees(x)
        return y

    def extra_repr(self) -> str:
        """The constructor's call, as `nn.Module.__repr__` shows it."""
        options = [f"{self.in_features}, {self.out_features}, dendrites={self.dendrites}"]
        if self.field != "all":
            options.append(f"synapses={self.synapses_per_dendrite}")
        options.append(f"field={self.field!r}")
        if self.image_shape is not None:
            options.append(f"image_shape={self.image_shape}")
        if self.trees.bias is None:
            options.append("bias=False")
        if self.seed is not None:
            options.append(f"seed={self.seed}")
        return ", ".join(options)
