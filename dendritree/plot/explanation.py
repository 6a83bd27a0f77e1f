"""`plot_explanation`: what made an output what it is, over the image or as bars."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import OptionError, ShapeError, check_int
from ..explanation import Explanation, ModelExplanation
from ..wiring.images import check_image_shape
from .fields import as_image
from .images import colour_bar, draw_image, draw_signed
from .style import NORMAL, SMALL, Theme, check_suffix, finish, new_figure, style_axes, theme_of

__all__ = ["plot_explanation", "strongest"]

MOST_BARS = 14
LEAST_BAR = 0.004
"""Of the longest: what is shorter goes with the others."""


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
    """What made an output what it is: contributions over the image, or the strongest as bars from baseline to output.

    Args:
        explanation: of `dendritree.explain`.
        output: a neuron of the layer, or an output of the model.
        example: of a batch.
        image_shape: (height, width) or (channels, height, width) of the inputs: contributions are shown on the image.
        names: of the inputs, for bars; `x0`, `x1` ... by default.
        x: the input that was explained; the image is then shown beside its contributions.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> import torch
        >>> from dendritree import DendriticLayer, explain
        >>> figure = plot_explanation(explain(DendriticLayer(16, 1, branching=4), torch.randn(16)), image_shape=(4, 4))
        >>> len(figure.axes)  # the image, its scale and the bars
        3
    """
    look = theme_of(theme)
    check_suffix(path)
    if not isinstance(explanation, Explanation | ModelExplanation):
        raise OptionError(f"explanation must be what dendritree.explain returns: got {type(explanation).__name__}")
    outputs, inputs = explanation.output.shape[-1], explanation.inputs.shape[-1]
    if check_int("output", output, least=0) >= outputs:
        raise OptionError(f"output must be one of 0 ... {outputs - 1}: got {output}")
    flat = explanation.output.reshape(-1, outputs)
    if check_int("example", example, least=0) >= len(flat):
        raise OptionError(f"example must be one of 0 ... {len(flat) - 1}: got {example}")
    if names is not None and len(names) != inputs:
        raise ShapeError(f"names must be one for each of {inputs} inputs: got {len(names)}")
    values = explanation.inputs.reshape(-1, outputs, inputs)[example, output].numpy()
    baseline = float(explanation.baseline.reshape(-1, outputs)[example, output])
    parts = _branch_parts(explanation, output, example) if image_shape is not None else None
    labels, heights = parts or ([f"x{i}" for i in range(inputs)] if names is None else list(names), values)
    bars = strongest(labels, heights, MOST_BARS)
    wide = 0 if image_shape is None else 2.7 + (2.0 if x is not None else 0)
    figure = new_figure(wide + 3.4, max(2.5, 0.6 + 0.2 * (len(bars) + 2)), look)
    count = 1 if image_shape is None else 2 + (x is not None)
    grid = figure.add_gridspec(1, count, width_ratios=[*[1.0] * (count - 1), 1.25])
    if image_shape is not None:
        _draw_on_image(figure, grid, values, _checked_image(image_shape, inputs), x, example, look)
    _draw_bars(figure.add_subplot(grid[0, count - 1]), baseline, bars, float(flat[example, output]), look)
    figure.suptitle(f"output {output}: baseline and contributions", fontsize=NORMAL, color=look.ink)
    return finish(figure, path)


def strongest(labels: Sequence[str], values: npt.NDArray[Any] | Sequence[float], most: int) -> list[tuple[str, float]]:
    """The largest values by size, with their labels, and what all the others add up to, those too small to see too.

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


def _branch_parts(
    explanation: Explanation | ModelExplanation, output: int, example: int
) -> tuple[list[str], npt.NDArray[Any]] | None:
    """Contributions of the parts of an output: the branches of a neuron, or the neurons of a model's first layer."""
    if isinstance(explanation, ModelExplanation) and not explanation.layers:
        return None
    if isinstance(explanation, ModelExplanation):
        first = explanation.layers[0]
        dendrites = explanation.dendrites(output).reshape(-1, first.forest.nodes)[example].numpy()
        synapses = explanation.synapses(output).reshape(-1, first.forest.synapses)[example].numpy()
        if len(first.forest.roots) != explanation.output.shape[-1] or len(explanation.layers) > 1:
            return [f"neuron {n}" for n in range(first.forest.neurons)], dendrites[first.forest.roots]
    else:
        first = explanation
        dendrites = first.dendrites.reshape(-1, first.forest.nodes)[example].numpy()
        synapses = first.synapses.reshape(-1, first.forest.synapses)[example].numpy()
    forest, root = first.forest, first.forest.roots[output]
    rows = forest.source[forest.offsets[root] : forest.offsets[root + 1]]
    nodes = rows[rows >= forest.in_features] - forest.in_features
    labels, parts = [f"branch {place}" for place in range(len(nodes))], list(dendrites[nodes])
    at_soma = forest.node_of_edge[forest.synapse_edges] == root
    if at_soma.any():
        labels, parts = ["soma", *labels], [synapses[at_soma].sum(), *parts]
    return labels, np.array(parts)


def _checked_image(image_shape: Sequence[int], inputs: int) -> tuple[int, int, int]:
    shape = check_image_shape(image_shape)
    if shape is None or int(np.prod(shape)) != inputs:
        raise ShapeError(f"image_shape must hold all {inputs} inputs: got {tuple(image_shape)}")
    return shape


def _draw_on_image(
    figure: Any,
    grid: Any,
    values: npt.NDArray[Any],
    shape: tuple[int, int, int],
    x: Tensor | None,
    example: int,
    theme: Theme,
) -> None:
    if x is not None:
        if x.shape[-1] != len(values):
            raise ShapeError(f"x must have {len(values)} inputs: got shape {tuple(x.shape)}")
        axes = figure.add_subplot(grid[0, 0])
        image = as_image(x.reshape(-1, len(values))[example].double().cpu().numpy(), shape)
        draw_image(axes, image, "gray" if theme.name == "dark" else "gray_r", None, theme)
        axes.set_title("input", fontsize=SMALL, color=theme.pale, pad=3)
    axes = figure.add_subplot(grid[0, int(x is not None)])
    drawn = draw_signed(axes, as_image(values, shape), theme)
    axes.set_title("contributions", fontsize=SMALL, color=theme.pale, pad=3)
    colour_bar(axes, drawn, theme)


def _draw_bars(axes: Any, baseline: float, bars: Sequence[tuple[str, float]], output: float, theme: Theme) -> None:
    """A waterfall: from the baseline, one bar after the other, to the output."""
    labels = ["baseline", *(label for label, _ in bars), "output"]
    place = baseline
    axes.barh(0, baseline, color=theme.pale, height=0.7)
    for row, (_, value) in enumerate(bars, start=1):
        axes.barh(row, value, left=place, color=theme.positive if value > 0 else theme.negative, height=0.7)
        axes.plot([place, place], [row - 1, row], color=theme.pale, linewidth=0.6)
        place += value
    axes.barh(len(bars) + 1, output, color=theme.ink, height=0.7)
    style_axes(axes, theme)
    axes.grid(False, axis="y")
    axes.axvline(0, color=theme.pale, linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels)
    axes.margins(x=0.16)
    axes.invert_yaxis()
    smallest = LEAST_BAR * max(abs(baseline), abs(output), *(abs(value) for _, value in bars))
    for row, value in ((0, baseline), *((r, v) for r, (_, v) in enumerate(bars, start=1)), (len(bars) + 1, output)):
        is_total = row in (0, len(bars) + 1)
        end = value if is_total else baseline + sum(v for _, v in bars[:row])
        axes.annotate(
            _number(value, smallest, signed=not is_total),
            (end, row),
            (4 if value >= -smallest else -4, 0),
            textcoords="offset points",
            ha="left" if value >= -smallest else "right",
            va="center",
            fontsize=SMALL - 1,
            color=theme.pale,
        )


def _number(value: float, smallest: float, *, signed: bool) -> str:
    if signed and abs(value) < smallest:  # a part that nobody sees, such as 1e-39
        return "\N{ALMOST EQUAL TO} 0"
    return f"{value:{'+' if signed else ''}.3g}".replace("-", "\N{MINUS SIGN}")
