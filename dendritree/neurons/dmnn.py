"""`DMNN`: dendrite morphological neurons, whose dendrites are boxes.

Source: Ritter, Iancu and Urcid (2003), "Morphological perceptrons with dendritic structure", 12th IEEE International
Conference on Fuzzy Systems. Boxes from data in the manner of Sossa and Guevara (2014), "Efficient training for dendrite
morphological neural networks", Neurocomputing 131: divide and conquer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import OptionError, ShapeError, check_int, check_number, check_one_of
from ..layers.neuron_layer import NeuronLayer, as_rows
from ..ops.neurons.box_depths import box_depths, soft_minimum
from ..randomness import generator_on
from .families import register_neuron

REDUCTIONS = ("max", "min")
"""How a neuron joins its dendrites."""
LLOYD_STEPS = 10  # of 2-means; most divisions converge in about five


@register_neuron(
    "dmnn",
    label="DMNN",
    title="DMNN: morphological neurons, boxes as dendrites",
    choices={"dendrites": (1, 1, 2, 4), "temperature": (None, 0.1, 0.3, 1.0), "scale": (1.0, 10.0)},
)
class DMNN(NeuronLayer):
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
        scale: factor of the output. It changes no decision, but a depth of 0.1 is a weak logit: 10 or 20 trains better.
        input_range: approximate range of the inputs; the initial boxes are drawn around its middle.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        low, high: corners of the boxes, shape `(out_features, dendrites, in_features)`, initially uniform within half
            of `input_range` around its ends: [-0.5, 0.5) and [0.5, 1.5) for (0, 1). `fit_boxes` finds better ones.
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

    @torch.no_grad()
    def fit_boxes(self, x: Tensor, y: Tensor) -> None:
        """Fit the boxes to data: for `max` around the points of a neuron's class, for `min` around all others.

        A box is divided as long as it holds points of another class and there are dendrites left; then it grows
        halfway to the nearest such point. Nothing is random.

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
            raise OptionError(f"y must hold integers from 0 to {classes - 1}: got {y.flatten()[:9].tolist()} ...")
        return labels

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


# --------------------------------------------------------------------------------------------------- boxes from data


def boxes_around(inside: Tensor, outside: Tensor, boxes: int) -> tuple[Tensor, Tensor]:
    """Lower and upper corners, shape (boxes, inputs), of boxes that hold the points `inside` and few of `outside`.

    The first box is drawn around all points. The box with the most foreign points is divided, its points by 2-means,
    until none holds any or there are as many as asked for. Each box without foreign points then grows on all sides by
    half its distance (in the largest coordinate) from the nearest one. Boxes that were not needed are single points,
    spread over `inside`. Nothing is random.

    >>> low, high = boxes_around(torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([[2.0]]), 2)
    >>> low.flatten().tolist(), high.flatten().tolist()
    ([-0.5, 3.0], [1.5, 5.0])
    """
    groups = [inside]
    foreign = [_foreign(inside, outside)]
    while len(groups) < boxes and max(foreign) > 0:
        worst = max(range(len(groups)), key=foreign.__getitem__)
        halves = _divide(groups[worst])
        if halves is None:
            foreign[worst] = 0  # all its points are equal, and equal to foreign ones
            continue
        groups[worst : worst + 1] = halves
        foreign[worst : worst + 1] = [_foreign(half, outside) for half in halves]
    low, high = (torch.stack(corners) for corners in zip(*map(_box, groups), strict=True))
    if len(outside):
        nearest = torch.stack([box_depths(outside, a[None], b[None]).max() for a, b in zip(low, high, strict=True)])
        growth = nearest.neg().clamp(min=0).div(2).unsqueeze(-1)
        low, high = low - growth, high + growth
    spare = inside[torch.linspace(0, len(inside) - 1, boxes - len(groups)).long()]
    return torch.cat([low, spare]), torch.cat([high, spare])


def _box(points: Tensor) -> tuple[Tensor, Tensor]:
    return points.amin(0), points.amax(0)


def _foreign(points: Tensor, outside: Tensor) -> int:
    """How many foreign points lie in the box around some points."""
    low, high = _box(points)
    return int((box_depths(outside, low[None], high[None]) >= 0).sum())


def _divide(points: Tensor) -> list[Tensor] | None:
    """Split points into two groups by 2-means, started at the middle of their widest side; None if all are equal."""
    low, high = _box(points)
    side = int((high - low).argmax())
    if not float(high[side] - low[side]) > 0:
        return None
    first = points[:, side] <= (low[side] + high[side]) / 2
    for _ in range(LLOYD_STEPS):
        a, b = points[first].mean(0), points[~first].mean(0)
        closer = (points - a).square().sum(-1) <= (points - b).square().sum(-1)
        if torch.equal(closer, first) or bool(closer.all()) or not bool(closer.any()):
            break
        first = closer
    return [points[first], points[~first]]
