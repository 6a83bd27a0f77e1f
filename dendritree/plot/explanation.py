"""`plot_explanation`: the contributions to an output, over the image or as bars."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import OptionError, ShapeError, check_index
from ..explanation import Explanation, ModelExplanation
from ..wiring.image_orders import check_image_shape, image_of
from .fields import as_image, branches_of, input_names
from .palette import Theme
from .style import NORMAL, SMALL, Picture, caption, draw_image, draw_signed, image_bar, style_axes

MOST_BARS = 14
LEAST_BAR = 0.004
"""Bars shorter than this fraction of the longest are merged into the others."""


def plot_explanation(
    explanation: Explanation | ModelExplanation,
    output: int = 0,
    *,
    example: int = 0,
    image_shape: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    x: Tensor | None = None,
    theme: str = "light",
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Explain an output: contributions over the image, or the strongest ones as bars from baseline to output.

    Args:
        explanation: the result of `dendritree.explain`.
        output: a neuron of the layer, or an output of the model.
        example: index of the example in a batch.
        image_shape: (height, width) or (channels, height, width) of the inputs: contributions are shown on the image.
        names: names of the inputs, for bars; by default the columns of an estimator or table, else `x0`, `x1` ...
        x: the input that was explained; the image is then shown next to its contributions.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> import torch
        >>> from dendritree import DendriticLayer, explain
        >>> figure = plot_explanation(explain(DendriticLayer(16, 1, branching=4), torch.randn(16)), image_shape=(4, 4))
        >>> len(figure.axes)  # the image, its scale and the bars
        3
    """
    picture = Picture(theme, path)
    if not isinstance(explanation, Explanation | ModelExplanation):
        raise OptionError(f"explanation must be what dendritree.explain returns: got {type(explanation).__name__}")
    outputs, inputs = explanation.output.shape[-1], explanation.inputs.shape[explanation.output.dim() :].numel()
    check_index("output", output, outputs)
    flat = explanation.output.reshape(-1, outputs)
    check_index("example", example, len(flat))
    named = explanation if isinstance(explanation, ModelExplanation) else None
    labels = input_names((named.names or None) if names is None and named else names, inputs)
    values = explanation.inputs.reshape(-1, outputs, inputs)[example, output].numpy()
    heights: npt.NDArray[Any] = values
    shape = None if image_shape is None else image_of(check_image_shape(image_shape), inputs)
    if shape is not None:
        labels, heights = _parts(explanation, output, example) or (labels, values)
    bars = strongest(labels, heights, MOST_BARS)
    images = 0 if shape is None else 1 + (x is not None)
    figure = picture.figure(3.4 + (0, 2.7, 4.7)[images], max(2.5, 0.6 + 0.2 * (len(bars) + 2)))
    grid = figure.add_gridspec(1, images + 1, width_ratios=[*[1.0] * images, 1.25])
    if shape is not None:
        if x is not None:
            _draw_input(figure.add_subplot(grid[0, 0]), x, example, shape, picture.theme)
        axes = figure.add_subplot(grid[0, images - 1])
        drawn = draw_signed(axes, as_image(values, shape), picture.theme)
        caption(axes, "contributions", picture.theme)
        image_bar(axes, drawn, picture.theme)
    baseline = float(explanation.baseline.reshape(-1, outputs)[example, output])
    _draw_bars(figure.add_subplot(grid[0, images]), baseline, bars, float(flat[example, output]), picture.theme)
    title = named.outputs[output] if named and named.outputs else f"output {output}"
    figure.suptitle(f"{title}: baseline and contributions", fontsize=NORMAL, color=picture.theme.ink)
    return picture.finish(figure)


def strongest(labels: Sequence[str], values: npt.NDArray[Any] | Sequence[float], most: int) -> list[tuple[str, float]]:
    """The values of largest magnitude, with their labels, and the sum of all others.

    >>> strongest(["a", "b", "c"], [1.0, -3.0, 0.5], 2)
    [('b', -3.0), ('2 others', 1.5)]
    """
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    order = np.argsort(-sizes, kind="stable")
    shown = int((sizes >= LEAST_BAR * sizes.max(initial=0.0)).sum())
    shown = shown if shown == len(order) <= most else min(shown, most - 1)
    bars = [(labels[i], float(values[i])) for i in order[:shown]]
    rest = order[shown:]
    if not len(rest):
        return bars
    count = f"{len(rest)} others" if len(rest) > 1 else labels[rest[0]]
    return [*bars, (count, float(sum(float(values[i]) for i in rest)))]


def _parts(
    explanation: Explanation | ModelExplanation, output: int, example: int
) -> tuple[list[str], npt.NDArray[Any]] | None:
    """Contributions of the parts of an output: the branches of a neuron, or the neurons of a model's first layer."""
    by_neuron = False
    if isinstance(explanation, Explanation):
        forest, synapses = explanation.forest, explanation.synapses
    elif explanation.layers:
        forest, synapses = explanation.layers[0].forest, explanation.synapses(output)
        by_neuron = forest.neurons != explanation.output.shape[-1] or len(explanation.layers) > 1
    else:
        return None
    values = synapses.reshape(-1, forest.synapses)[example].numpy()
    if by_neuron:
        neurons = np.bincount(forest.neuron_of_synapse, weights=values, minlength=forest.neurons)
        return [f"neuron {number}" for number in range(forest.neurons)], neurons
    branches = branches_of(forest, output)
    return branches.names, np.bincount(branches.of_synapse, weights=values[branches.synapses])


def _draw_input(axes: Any, x: Tensor, example: int, shape: tuple[int, int, int], theme: Theme) -> None:
    inputs = int(np.prod(shape))
    if x.dim() == 0 or x.numel() % inputs or inputs not in (x.shape[-1], x.shape[1:].numel()):
        raise ShapeError(f"x must have {inputs} inputs: got shape {tuple(x.shape)}")
    image = as_image(x.reshape(-1, inputs)[example].double().cpu().numpy(), shape)
    draw_image(axes, image, theme, colors="gray" if theme.name == "dark" else "gray_r")
    caption(axes, "input", theme)


def _draw_bars(axes: Any, baseline: float, bars: Sequence[tuple[str, float]], output: float, theme: Theme) -> None:
    """A waterfall chart: from the baseline, one bar after another, to the output."""
    axes.barh(0, baseline, color=theme.pale, height=0.7)
    ends = [baseline]
    for row, (_, value) in enumerate(bars, start=1):
        axes.barh(row, value, left=ends[-1], color=theme.positive if value > 0 else theme.negative, height=0.7)
        axes.plot([ends[-1], ends[-1]], [row - 1, row], color=theme.pale, linewidth=0.6)
        ends.append(ends[-1] + value)
    axes.barh(len(bars) + 1, output, color=theme.ink, height=0.7)
    style_axes(axes, theme)
    axes.grid(False, axis="y")
    axes.axvline(0, color=theme.pale, linewidth=0.8)
    rows = [("baseline", baseline), *bars, ("output", output)]
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.margins(x=0.16)
    axes.invert_yaxis()
    smallest = LEAST_BAR * max(abs(value) for _, value in rows)
    style = {"textcoords": "offset points", "va": "center", "fontsize": SMALL - 1, "color": theme.pale}
    starts = [0.0, *ends[:-1], 0.0]
    for row, ((_, value), start, end) in enumerate(zip(rows, starts, [*ends, output], strict=True)):
        # Right of the bar whatever its sign: the names are on the left.
        axes.annotate(_number(value, smallest, signed=0 < row <= len(bars)), (max(start, end), row), (4, 0), **style)


def _number(value: float, smallest: float, *, signed: bool) -> str:
    if signed and abs(value) < smallest:  # too small to see, such as 1e-39
        return "\N{ALMOST EQUAL TO} 0"
    return f"{value:{'+' if signed else ''}.3g}".replace("-", "\N{MINUS SIGN}")
