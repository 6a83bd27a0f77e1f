"""Figures over the image grid: `plot_wiring` and `plot_weights`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ..errors import OptionError, check_index, import_extra
from ..layers import DendriticLayer
from .fields import (
    SOMA,
    as_image,
    branches_of,
    by_branch,
    effective_weights,
    image_of_inputs,
    layer_of,
)
from .style import NORMAL, SMALL, Picture, caption, draw_image, draw_signed, image_bar, one_sided

MOST_BRANCHES = 12
"""Maximum number of branches of a neuron that are shown one by one."""


def plot_wiring(
    layer: Any,
    neuron: int = 0,
    *,
    image_shape: Sequence[int] | None = None,
    theme: str = "light",
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Which pixels each branch of a neuron reads, and how often each pixel is read by all neurons: the coverage.

    Args:
        layer: a `DendriticLayer`, or a model, whose first one is drawn.
        neuron: the neuron whose first twelve branches are shown; windows are outlined if the wiring has any.
        image_shape: (height, width) or (channels, height, width); by default from the wiring, or square.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree.wiring import Local
        >>> layer = DendriticLayer(64, 4, branching=[4, 3], wiring=Local(window=3, seed=0))
        >>> [axes.get_title() for axes in plot_wiring(layer).axes[:3]]
        ['branch 0', 'branch 1', 'branch 2']
    """
    layer, picture = layer_of(layer), Picture(theme, path)
    shape, counts = image_of_inputs(layer, image_shape), by_branch(layer, neuron)
    images, branches = as_image(counts, shape), branches_of(layer.forest, neuron)
    shown = min(len(images), MOST_BRANCHES)
    rows = 1 if shown <= 4 else 2 if shown <= 8 else 3
    columns = -(-shown // rows)
    figure = picture.figure(
        1.25 * columns + 2.6 * min(rows, 2) / 1.6 + 0.6, 1.4 * rows + 0.35 + (0.5 if rows == 1 else 0)
    )
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[*[1] * columns, max(1.7, 1.15 * rows)])
    colors = one_sided(picture.theme)
    for place in range(shown):
        axes = figure.add_subplot(grid[place // columns, place % columns])
        draw_image(axes, np.minimum(images[place], 1), picture.theme, colors=colors, ends=(0, 1))
        caption(axes, branches.names[place], picture.theme)
        node = branches.nodes[place]
        if layer.windows is not None and node != SOMA and layer.windows[node].any():
            _outline(axes, layer.windows[node].tolist(), picture.theme.ink)
    more = "" if shown == len(images) else f", {shown} of {len(images)} shown"
    title = f"neuron {neuron}: {int(counts.sum())} synapses in {len(images)} branches{more}"
    _coverage(figure.add_subplot(grid[:, columns]), layer, shape, picture, title)
    return picture.finish(figure)


def _coverage(axes: Any, layer: DendriticLayer, shape: tuple[int, int, int], picture: Picture, title: str) -> None:
    """How often each pixel is read by all neurons; the title ends with the number of unread pixels."""
    coverage = as_image(layer.coverage().numpy(), shape)
    ends = (0, max(1, int(coverage.max())))
    drawn = draw_image(axes, coverage, picture.theme, colors=one_sided(picture.theme), ends=ends)
    caption(axes, "synapses of all neurons", picture.theme)
    image_bar(axes, drawn, picture.theme)
    unread = int((coverage == 0).sum())
    title += f"; {unread or 'no'} pixel{'' if unread == 1 else 's'} unread"
    axes.figure.suptitle(title, fontsize=NORMAL, color=picture.theme.ink)


def _outline(axes: Any, window: Sequence[int], color: str) -> None:
    patches = import_extra("matplotlib.patches", extra="plot")
    top, left, height, width = window
    corner = (left - 0.5, top - 0.5)
    axes.add_patch(patches.Rectangle(corner, width, height, fill=False, edgecolor=color, linewidth=0.8))


def plot_weights(
    layer: Any,
    neurons: Sequence[int] | None = None,
    *,
    examples: Tensor | None = None,
    image_shape: Sequence[int] | None = None,
    theme: str = "light",
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """The effective receptive field of neurons, and of their strongest branches: which pixels raise the output.

    Args:
        layer: a `DendriticLayer`, or a model, whose first one is drawn.
        neurons: the neurons to show, one row each; by default the first ten.
        examples: inputs, shape (n, in_features), over which slopes are averaged; without them, the product of the
            weights from pixel to root is shown, as if activations had slope 1.
        image_shape: (height, width) or (channels, height, width); by default from the wiring, or square.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> len(plot_weights(DendriticLayer(64, 2, branching=8, wiring="shared")).axes)  # two neurons, 1 + 6 each
        14
    """
    layer, picture = layer_of(layer), Picture(theme, path)
    shape, count = image_of_inputs(layer, image_shape), layer.out_features
    chosen = range(min(10, count)) if neurons is None else [check_index("neuron", n, count) for n in neurons]
    if not len(chosen):
        raise OptionError("neurons must name at least one: got none")
    weights = effective_weights(layer, examples)
    fields = [as_image(by_branch(layer, neuron, weights), shape) for neuron in chosen]  # (branches, height, width)
    most = max(map(len, fields))
    columns = min(6, most) if most > 1 else 0  # a neuron with one branch equals that branch
    figure = picture.figure(1.0 * (columns + 1) + 0.5, 1.0 * len(chosen) + 0.35)
    grid = figure.add_gridspec(len(chosen), columns + 1)
    for row, (neuron, branches) in enumerate(zip(chosen, fields, strict=True)):
        axes = figure.add_subplot(grid[row, 0])
        draw_signed(axes, branches.sum(0), picture.theme)
        axes.set_ylabel(f"neuron {neuron}", fontsize=SMALL, color=picture.theme.ink)
        if row == 0:
            caption(axes, "whole", picture.theme)
        order = np.argsort(-np.abs(branches).sum((1, 2)), kind="stable")[:columns]
        for column, branch in enumerate(order):
            axes = figure.add_subplot(grid[row, 1 + column])
            draw_signed(axes, branches[branch], picture.theme)
            caption(axes, f"branch {branch}", picture.theme, size=SMALL - 1, pad=2)
    return picture.finish(figure)
