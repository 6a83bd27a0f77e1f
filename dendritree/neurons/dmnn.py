"""`DMNN`: dendrite morphological neurons, whose dendrites are boxes.

Source: Ritter, Iancu and Urcid (2003), "Morphological perceptrons with dendritic structure", 12th IEEE International
Conference on Fuzzy Systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_number, check_one_of
from ..layers.neuron_layer import NeuronLayer, as_rows
from ..ops.neurons.box_depths import box_depths, soft_minimum
from ..randomness import generator_on
from .families import register_neuron

REDUCTIONS = ("max", "min")
"""How a neuron joins its dendrites."""


@register_neuron(
    "dmnn",
    label="DMNN",
    title="DMNN: morphological neurons, boxes as dendrites",
    choices={"dendrites": (1, 1, 2, 4), "temperature": (None, 0.1, 0.3, 1.0), "scale": (1.0, 10.0)},
)
class DMNN(NeuronLayer):
    r"""A layer of morphological neurons: the signed depth of the input in the deepest of some boxes.

    In the source, dendrite k computes

    .. math:: \tau_k = p_k \min_i \min_{l \in \{0, 1\}} (-1)^{1 - l} (x_i + w_{ik}^l)

    with an excitatory (l = 1) and an inhibitory (l = 0) weight for each input. With low = -w^1 and high = -w^0, the
    parameters here, this is p_k times the depth of x in a box: the distance to its nearest face, positive inside,
    negative outside. A neuron is the maximum (or minimum) over its dendrites. It multiplies nothing.

    Args:
        in_features: number of inputs.
        out_features: number of neurons.
        dendrites: dendrites (boxes) per neuron.
        reduce: `"max"`: a neuron is positive inside any of its boxes; `"min"`: with signs of -1, outside all of them.
        temperature: None for the hard minimum and maximum of the source, whose gradient reaches one face of one box;
            a number t for smooth ones, t log(sum exp(. / t)), whose gradient reaches all faces within a few t.
        signs: p_k, 1 or -1, for all dendrites or one for each dendrite of a neuron; 1 for `"max"` and -1 for `"min"`
            if None.
        scale: factor of the output. It changes no decision, but a depth of 0.1 is a weak logit: 10 or 20 trains better.
        input_range: approximate range of the inputs; the initial boxes are drawn around its middle.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        low, high: corners of the boxes, shape `(out_features, dendrites, in_features)`, initially uniform within half
            of `input_range` around its ends: [-0.5, 0.5) and [0.5, 1.5) for (0, 1).
        sign: p_k, a buffer of shape `(dendrites,)`.

    Example:
        >>> layer = DMNN(2, 1, dendrites=3)
        >>> layer(torch.rand(5, 2)).shape
        torch.Size([5, 1])
        >>> sum(p.numel() for p in layer.parameters())
        12
    """

    low: nn.Parameter
    high: nn.Parameter
    sign: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        dendrites: int,
        reduce: str = "max",
        temperature: float | None = None,
        signs: int | Sequence[int] | None = None,
        scale: float = 1.0,
        input_range: Sequence[float] = (0.0, 1.0),
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dtype, in_features=in_features, out_features=out_features)
        self.dendrites = check_int("dendrites", dendrites)
        self.reduce = check_one_of("reduce", reduce, REDUCTIONS)
        self.temperature = None if temperature is None else check_number("temperature", temperature)
        self.scale = check_number("scale", scale)
        self.input_range = _check_input_range(input_range)
        p = _check_signs(signs, self.dendrites, 1 if self.reduce == "max" else -1)
        shape = (self.out_features, self.dendrites, self.in_features)
        self._add_parameters(device, dtype, low=shape, high=shape)
        self.register_buffer("sign", torch.tensor(p, device=device, dtype=self.low.dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw boxes around the middle of the inputs' range; the signs are kept."""
        low, high = self.input_range
        half = (high - low) / 2
        generator = generator_on(self.low.device)
        self.low.uniform_(low - half, low + half, generator=generator)
        self.high.uniform_(high - half, high + half, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        rows = as_rows(x, self.in_features, self.low.dtype)
        depth = box_depths(rows, self.low.flatten(0, 1), self.high.flatten(0, 1), self.temperature)
        response = self.sign * depth.reshape(rows.shape[0], self.out_features, self.dendrites)
        if self.temperature is None:
            y = response.max(-1).values if self.reduce == "max" else response.min(-1).values
        else:
            p = -1 if self.reduce == "max" else 1
            y = p * soft_minimum(p * response, self.temperature)[0]
        return self.scale * y.reshape(*x.shape[:-1], self.out_features)

    @property
    def multiply_adds(self) -> int:
        """For one sample: the two differences of each input and box. Comparisons and signs are not counted.

        Smooth minima also sum as many exponentials.
        """
        return (2 if self.temperature is None else 4) * self.low.numel()

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"dendrites": self.dendrites, "reduce": self.reduce}
        options |= self._changed(temperature=self.temperature)
        if not self.sign.is_meta and not (self.sign == (1 if self.reduce == "max" else -1)).all():
            options["signs"] = [int(p) for p in self.sign.tolist()]
        return options | self._changed(scale=self.scale, input_range=self.input_range)


def _check_input_range(ends: Sequence[float]) -> tuple[float, float]:
    """The two ends as finite numbers, the first below the second."""
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        raise OptionError(f"input_range must be two numbers, low and high: got {ends!r}")
    low, high = (check_number("input_range", end, positive=False) for end in ends)
    if low >= high:
        raise OptionError(f"input_range must be two numbers, the first below the second: got {ends!r}")
    return low, high


def _check_signs(signs: int | Sequence[int] | None, dendrites: int, default: int) -> list[int]:
    """p_k of each dendrite."""
    if signs is None or isinstance(signs, int):
        signs = [default if signs is None else signs] * dendrites
    if not isinstance(signs, Sequence) or len(signs) != dendrites or any(p not in (1, -1) for p in signs):
        raise OptionError(f"signs must be 1 or -1, one for all or one for each of {dendrites} dendrites: got {signs!r}")
    return [int(p) for p in signs]
