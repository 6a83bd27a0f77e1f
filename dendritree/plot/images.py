"""Pictures over the image grid: `plot_wiring` and `plot_weights`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import OptionError, import_extra
from .fields import (
    SOMA,
    as_image,
    branches_of,
    check_neuron,
    effective_weights,
    fields,
    image_of_inputs,
    layer_of,
    reads,
)
from .style import NORMAL, SMALL, Theme, check_suffix, finish, new_figure, one_sided, style_axes, theme_of, two_sided

__all__ = ["colour_bar", "draw_image", "draw_signed", "plot_weights", "plot_wiring"]

MOST_BRANCHES = 12
"""Of a neuron, that are shown one by one."""


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
        neuron: whose branches are shown, the first twelve of them; windows are outlined where the wiring has any.
        image_shape: (height, width) or (channels, height, width); by default as the wiring says, or square.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree import DendriticLayer, Local
        >>> layer = DendriticLayer(64, 4, branching=[4, 3], wiring=Local(window=3, seed=0))
        >>> [axes.get_title() for axes in plot_wiring(layer).axes[:3]]
        ['branch 0', 'branch 1', 'branch 2']
    """
    layer, look = layer_of(layer), theme_of(theme)
    check_suffix(path)
    shape, counts = image_of_inputs(layer, image_shape), reads(layer, neuron)
    images, nodes = as_image(counts, shape), branches_of(layer, neuron).nodes
    shown = min(len(images), MOST_BRANCHES)
    rows = 1 if shown <= 4 else 2 if shown <= 8 else 3
    columns = -(-shown // rows)
    figure = new_figure(
        1.25 * columns + 2.6 * min(rows, 2) / 1.6 + 0.6, 1.4 * rows + 0.35 + (0.5 if rows == 1 else 0), look
    )
    side = max(1.7, 1.15 * rows)
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[*[1] * columns, side])
    for place in range(shown):
        axes = figure.add_subplot(grid[place // columns, place % columns])
        draw_image(axes, np.minimum(images[place], 1), one_sided(look), (0, 1), look)
        axes.set_title(_branch_name(int(nodes[place]), place, nodes), fontsize=SMALL, color=look.pale, pad=3)
        window = None if layer.windows is None or nodes[place] == SOMA else layer.windows[nodes[place]]
        if window is not None and window.any():
            _outline(axes, window, look)
    axes = figure.add_subplot(grid[:, columns])
    coverage = as_image(layer.coverage().numpy(), shape)
    drawn = draw_image(axes, coverage, one_sided(look), (0, max(1, int(coverage.max()))), look)
    axes.set_title("synapses of all neurons", fontsize=SMALL, color=look.pale, pad=3)
    colour_bar(axes, drawn, look)
    unread = int((coverage == 0).sum())
    more = "" if shown == len(images) else f", {shown} of {len(images)} shown"
    figure.suptitle(
        f"neuron {neuron}: {int(counts.sum())} synapses in {len(images)} branches{more}; "
        f"{unread or 'no'} pixel{'' if unread == 1 else 's'} unread",
        fontsize=NORMAL,
        color=look.ink,
    )
    return finish(figure, path)


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
        neurons: one row each; by default the first ten.
        examples: inputs, shape (n, in_features), over which slopes are averaged; without, the product of the weights
            from pixel to root is shown, as if activations had slope 1.
        image_shape: (height, width) or (channels, height, width); by default as the wiring says, or square.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree import DendriticLayer
        >>> len(plot_weights(DendriticLayer(64, 2, branching=8, wiring="shared")).axes)  # two neurons, 1 + 6 each
        14
    """
    layer, look = layer_of(layer), theme_of(theme)
    check_suffix(path)
    shape = image_of_inputs(layer, image_shape)
    chosen = range(min(10, layer.out_features)) if neurons is None else [check_neuron(layer, n) for n in neurons]
    if not len(chosen):
        raise OptionError("neurons must name at least one: got none")
    weights = effective_weights(layer, examples)
    found = [as_image(fields(layer, neuron, weights=weights), shape) for neuron in chosen]  # (branches, height, width)
    columns = min(6, max(map(len, found)))
    if max(map(len, found)) == 1:
        columns = 0  # a neuron of one branch is that branch
    figure = new_figure(1.0 * (columns + 1) + 0.5, 1.0 * len(chosen) + 0.35, look)
    grid = figure.add_gridspec(len(chosen), columns + 1)
    for row, (neuron, branches) in enumerate(zip(chosen, found, strict=True)):
        whole = branches.sum(0)
        axes = figure.add_subplot(grid[row, 0])
        draw_signed(axes, whole, look)
        axes.set_ylabel(f"neuron {neuron}", fontsize=SMALL, color=look.ink)
        if row == 0:
            axes.set_title("whole", fontsize=SMALL, color=look.pale, pad=3)
        order = np.argsort(-np.abs(branches).sum((1, 2)), kind="stable")[:columns]
        for column, branch in enumerate(order):
            axes = figure.add_subplot(grid[row, 1 + column])
            draw_signed(axes, branches[branch], look)
            axes.set_title(f"branch {branch}", fontsize=SMALL - 1, color=look.pale, pad=2)
    return finish(figure, path)


def draw_image(axes: Any, image: npt.NDArray[Any], colours: Any, ends: tuple[float, float] | None, theme: Theme) -> Any:
    """Show values by pixel; `ends` are those of the scale."""
    low, high = ends or (float(image.min()), float(image.max()))
    drawn = axes.imshow(image, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    style_axes(axes, theme, frame=False)
    return drawn


def draw_signed(axes: Any, image: npt.NDArray[Any], theme: Theme) -> Any:
    """Show signed values by pixel, zero in the middle of the scale."""
    most = float(np.abs(image).max()) or 1.0
    return draw_image(axes, image, two_sided(theme, area=True), (-most, most), theme)


def colour_bar(axes: Any, drawn: Any, theme: Theme) -> None:
    """A scale beside an image."""
    bar = axes.figure.colorbar(drawn, ax=axes, shrink=0.8, aspect=22, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=theme.pale, labelsize=SMALL - 1, length=0)
    ticker = import_extra("matplotlib.ticker", extra="plot")
    whole = np.issubdtype(np.asarray(drawn.get_array()).dtype, np.integer)
    bar.locator = ticker.MaxNLocator(5, integer=whole)
    bar.update_ticks()


def _outline(axes: Any, window: npt.NDArray[Any], theme: Theme) -> None:
    patches = import_extra("matplotlib.patches", extra="plot")
    top, left, height, width = (int(part) for part in window)
    axes.add_patch(
        patches.Rectangle((left - 0.5, top - 0.5), width, height, fill=False, edgecolor=theme.ink, linewidth=0.8)
    )


def _branch_name(node: int, place: int, nodes: npt.NDArray[Any]) -> str:
    if node == SOMA:
        return "soma"
    return f"branch {place - int(nodes[0] == SOMA)}"
