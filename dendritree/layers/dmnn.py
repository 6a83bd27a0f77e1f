"""`DMNN`: dendrite morphological neurons, whose dendrites are boxes.

Source: Ritter, Iancu and Urcid (2003), "Morphological perceptrons with dendritic structure", 12th IEEE International
Conference on Fuzzy Systems. Boxes from data in the manner of Sossa and Guevara (2014), "Efficient training for dendrite
morphological neural networks", Neurocomputing 131: divide and conquer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError, check_int, check_one_of
from ..ops.neurons.boxes import box_depths, soft_minimum
from .contract import as_rows, check_dtype, check_number
from .dmnn_boxes import boxes_around

__all__ = ["DMNN", "REDUCTIONS"]

REDUCTIONS = ("max", "min")
"""How a neuron joins its dendrites."""


class DMNN(nn.Module):
    r"""A layer of morphological neurons: the signed depth of the input in the deepest of some boxes.

    In the source, dendrite k answers

    .. math:: \tau_k = p_k \min_i \min_{l \in \{0, 1\}} (-1)^{1 - l} (x_i + w_{ik}^l)

    with an excitatory (l = 1) and an inhibitory (l = 0) weight for each input. With low = -w^1 and high = -w^0, the
    parameters here, this is p_k times the depth of x in a box: the distance to its nearest face, positive inside,
    negative outside. A neuron is the maximum (or minimum) over its dendrites. There is no multiplication in it.

    Args:
        in_features: number of inputs.
        out_features: number of neurons.
        dendrites: dendrites (boxes) of a neuron.
        reduce: `"max"`: a neuron is positive inside any of its boxes; `"min"`: with signs of -1, outside all of them.
        temperature: None for the hard minimum and maximum of the source, whose gradient reaches one face of one box;
            a number t for smooth ones, t log(sum exp(. / t)), whose gradient reaches all faces within a few t.
        signs: p_k, 1 or -1, for all dendrites or one for each dendrite of a neuron; 1 for `"max"` and -1 for `"min"`
            if None.
        scale: factor of the output. It decides nothing, but a depth of 0.1 is a weak logit: 10 or 20 helps training.
        input_range: where the inputs lie, about; the first boxes are drawn around the middle of it.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        low, high: corners of the boxes, shape `(out_features, dendrites, in_features)`, at first uniform within
            half of `input_range` around its ends: [-0.5, 0.5) and [0.5, 1.5) for (0, 1). `fit_boxes` draws better ones.
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
        super().__init__()
        self.in_features = check_int("in_features", in_features)
        self.out_features = check_int("out_features", out_features)
        self.dendrites = check_int("dendrites", dendrites)
        self.reduce = check_one_of("reduce", reduce, REDUCTIONS)
        self.temperature = None if temperature is None else check_number("temperature", temperature)
        self.scale = check_number("scale", scale)
        self.input_range = _check_input_range(input_range)
        check_dtype(dtype)
        p = _check_signs(signs, self.dendrites, 1 if self.reduce == "max" else -1)
        shape = (self.out_features, self.dendrites, self.in_features)
        self.low = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.high = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.register_buffer("sign", torch.tensor(p, device=device, dtype=self.low.dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw boxes around the middle of the inputs' range; the signs stay."""
        low, high = self.input_range
        half = (high - low) / 2
        self.low.uniform_(low - half, low + half)
        self.high.uniform_(high - half, high + half)

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

    @torch.no_grad()
    def fit_boxes(self, x: Tensor, y: Tensor) -> None:
        """Draw the boxes around data: `max` around the points of a neuron's class, `min` around all others.

        A box is divided as long as it holds points of another class and there are dendrites left; then it grows until
        halfway to the nearest one. Nothing is random.

        Args:
            x: inputs, shape (..., in_features).
            y: the class of each, shape (...) or (..., 1): 0 or 1 for one neuron, 0 to out_features - 1 for more.

        >>> layer = DMNN(2, 1, dendrites=2)
        >>> x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> layer.fit_boxes(x, torch.tensor([0, 1, 1, 0]))  # XOR, without any training
        >>> layer(x).flatten().tolist()
        [-0.5, 0.5, 0.5, -0.5]
        """
        wanted = 1 if self.reduce == "max" else -1
        if not (self.sign == wanted).all():
            raise OptionError(f"fit_boxes needs signs of {wanted} for reduce={self.reduce!r}: got {self.sign.tolist()}")
        rows = as_rows(x, self.in_features, self.low.dtype)
        if not rows.isfinite().all():
            raise OptionError("x must be finite: got NaN or infinity")
        labels = self._check_labels(y, len(rows)).to(rows.device)
        masks = [labels == neuron for neuron in ([1] if self.out_features == 1 else range(self.out_features))]
        if self.reduce == "min":
            masks = [~mask for mask in masks]
        for neuron, mask in enumerate(masks):
            if not mask.any():
                raise OptionError(f"y must hold points to draw the boxes of neuron {neuron} around: got none")
        for neuron, mask in enumerate(masks):
            low, high = boxes_around(rows[mask], rows[~mask], self.dendrites)
            self.low[neuron], self.high[neuron] = low, high

    def _check_labels(self, y: Tensor, samples: int) -> Tensor:
        """Classes as integers, one for each sample."""
        if y.numel() != samples or y.dim() == 0:
            raise ShapeError(f"y must have one class for each of {samples} samples: got shape {tuple(y.shape)}")
        labels, classes = y.flatten().long(), max(2, self.out_features)
        if not (labels == y.flatten()).all() or not ((labels >= 0) & (labels < classes)).all():
            raise OptionError(f"y must hold whole numbers from 0 to {classes - 1}: got {y.flatten()[:9].tolist()} ...")
        return labels

    @property
    def multiply_adds(self) -> int:
        """For one sample: the two differences of each input and box. Comparisons and signs are not counted.

        Smooth minima add up as many exponentials once more.
        """
        return (2 if self.temperature is None else 4) * self.low.numel()

    def extra_repr(self) -> str:
        """The constructor's call, as `nn.Module.__repr__` shows it."""
        text = f"{self.in_features}, {self.out_features}, dendrites={self.dendrites}, reduce={self.reduce!r}"
        if self.temperature is not None:
            text += f", temperature={self.temperature}"
        if not self.sign.is_meta and not (self.sign == (1 if self.reduce == "max" else -1)).all():
            text += f", signs={[int(p) for p in self.sign.tolist()]}"
        text += "" if self.scale == 1.0 else f", scale={self.scale}"
        return text + ("" if self.input_range == (0.0, 1.0) else f", input_range={self.input_range}")


def _check_input_range(ends: Sequence[float]) -> tuple[float, float]:
    """The two ends."""
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
