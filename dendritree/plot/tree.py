"""Figures of trees: `plot_tree`, and the paper's mask figure, `plot_masks`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..errors import OptionError, check_index, check_probability, import_extra
from ..ops.reference import masked_levels
from ..tree import BoolArray
from .fields import Floats, input_names, layer_of, names_of, tree_layer_of
from .palette import Theme
from .style import NORMAL, SMALL, Picture, color_bar, style_axes, two_sided
from .tree_layout import TreeLayout, lay_out

MOST_LABELS = 40
MOST_MASKED = 64
"""Maximum number of synapses for which masks are drawn: with more, cells become too small to see."""
WIDEST, THINNEST = 5.0, 0.35  # points
DENDRITES = ("#0072B2", "#009E73", "#8A7A00", "#AA4499", "#56B4E9", "#D55E00", "#332288", "#117733")
"""Colors of the dendrites in a mask figure: Okabe and Ito's, and Paul Tol's."""


def plot_tree(
    layer: Any,
    neuron: int = 0,
    *,
    form: str = "auto",
    dropout: float | None = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """The tree of a neuron, with edge widths and colors by weight; dropped synapses are red.

    Args:
        layer: a `DendriticLayer` or a `DendriticConv2d`, or a model or estimator, whose first one is drawn. The inputs
            of a convolution are those of a patch.
        neuron: the neuron whose tree is drawn.
        form: `"layered"`, synapses on the left; `"radial"`, root in the middle; `"auto"`, by the number of synapses.
        dropout: share of synapses to drop, in one draw; by default that of a layer in training mode, otherwise 0.
        seed: seed of the draw.
        names: names of the inputs; by default the columns of an estimator or a table, else `x0`, `x1` ...
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None creates a figure.
        path: a file to write: .svg, .png or .pdf.

    Returns:
        The matplotlib Figure.

    Example:
        >>> from dendritree import DendriticLayer
        >>> figure = plot_tree(DendriticLayer(16, 1, branching=4))
        >>> len(figure.axes)  # the tree and its scale
        2
    """
    names = names_of(layer) if names is None else names
    layer, picture = tree_layer_of(layer), Picture(theme, path)
    tree = lay_out(layer.forest, neuron, form)
    shown = layer.edge_weight.detach().double().cpu().numpy()[tree.edges]
    p = (layer.dropout if layer.training else 0.0) if dropout is None else check_probability("dropout", dropout)
    labels = input_names(names, layer.forest.in_features)
    size = (5.2, 5.2) if tree.form == "radial" else (4.6, max(2.4, 0.6 + 0.17 * int(tree.is_synapse.sum())))
    ax = picture.axes(ax, *size)
    # Synapses drop independently, so drawing for one neuron alone is valid.
    dropped = tree.is_synapse & (np.random.default_rng(seed).random(len(tree.edges)) < p)
    draw_tree(ax, tree, shown, labels, picture.theme, dropped=dropped)
    bar = _add_scale(ax, np.abs(shown).max(initial=0.0), picture.theme)
    if dropped.any():
        style = {"color": picture.theme.dropped, "fontsize": SMALL, "va": "center", "xycoords": "axes fraction"}
        bar.ax.annotate("\N{BLACK CIRCLE} dropped", (1.06, 0.5), **style)
    return picture.finish(ax.figure)


def draw_tree(
    axes: Any,
    tree: TreeLayout,
    values: Floats,
    names: Sequence[str],
    theme: Theme,
    *,
    dropped: BoolArray | None = None,
    colors: npt.NDArray[Any] | None = None,
) -> None:
    """Draw a tree from its layout: edges by their values (or in given colors), dendrites as dots."""
    collections = import_extra("matplotlib.collections", extra="plot")
    dropped = np.zeros(len(tree.edges), dtype=bool) if dropped is None else dropped
    most = np.abs(values).max(initial=0.0) or 1.0
    room = _room(axes, tree)
    widths = THINNEST + np.abs(values) / most * (np.minimum(WIDEST, 0.85 * room) - THINNEST).clip(0)
    shades = two_sided(theme)(0.5 + 0.5 * values / most) if colors is None else colors
    order = np.argsort(np.abs(values), kind="stable")  # the strong ones on top
    for chosen, style in ((order[~dropped[order]], {}), (order[dropped[order]], {"linestyles": (0, (3, 1.5))})):
        axes.add_collection(
            collections.LineCollection(
                np.stack([tree.starts, tree.ends], axis=1)[chosen],
                linewidths=widths[chosen].clip(1.0 if style and len(tree.edges) <= 128 else 0),
                colors=theme.dropped if style else list(shades[chosen]),
                capstyle="butt" if style else "round",
                zorder=2 if style else 1,
                **style,
            )
        )
    _add_dots(axes, tree, room, dropped, theme)
    if tree.is_synapse.sum() <= MOST_LABELS:
        _add_names(axes, tree, names, dropped, theme)
    style_axes(axes, theme, frame=False)
    if tree.form == "radial":
        axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal")
    else:
        axes.set(xlim=(-0.06, 1.06), ylim=(0, 1))


def _room(axes: Any, tree: TreeLayout) -> Floats:
    """The width available to each edge where it begins, in points: the space between neighbors at its depth."""
    box, (width, height) = axes.get_position(), axes.figure.get_size_inches()
    width, height = 72 * width * box.width, 72 * height * box.height
    counts = np.bincount(tree.depths)[tree.depths]
    if tree.form == "radial":
        around = np.pi * min(width, height) / 1.12
        return np.asarray(around * tree.depths / tree.depth / counts)
    return np.asarray(height / counts)


def _add_dots(axes: Any, tree: TreeLayout, room: Floats, dropped: BoolArray, theme: Theme) -> None:
    """Draw dots as large as there is room, but none where they would touch, since rows of dots hide the edges."""
    sizes = np.minimum(5.0, 0.4 * room)  # points across
    for chosen, color in ((tree.is_synapse & ~dropped & (sizes > 1), theme.pale), (dropped, theme.dropped)):
        axes.scatter(*tree.starts[chosen].T, s=sizes[chosen].clip(0.8) ** 2, color=color, linewidths=0, zorder=3)
    inner = ~tree.is_synapse & (sizes > 1.5)
    style = {"color": theme.paper, "edgecolors": theme.ink, "linewidths": 0.9}
    axes.scatter(*tree.starts[inner].T, s=(1.2 * sizes[inner]) ** 2, zorder=4, **style)
    axes.scatter(*tree.places[:1].T, s=49, color=theme.ink, linewidths=0, zorder=5)  # the root


def _add_names(axes: Any, tree: TreeLayout, names: Sequence[str], dropped: BoolArray, theme: Theme) -> None:
    for edge in np.flatnonzero(tree.is_synapse):
        x, y = tree.starts[edge]
        shift, side = (-6, 0), "right"
        if tree.form == "radial":
            shift, side = tuple(7 * np.array([x, y]) / max(float(np.hypot(x, y)), 1e-9)), "center"
        color = theme.dropped if dropped[edge] else theme.pale
        style = {"textcoords": "offset points", "fontsize": SMALL, "ha": side, "va": "center", "color": color}
        axes.annotate(names[tree.reads[edge]], (x, y), shift, annotation_clip=False, **style)


def _add_scale(axes: Any, most: float, theme: Theme) -> Any:
    """Add a small color bar with numbers at its ends."""
    mappable = import_extra("matplotlib.cm", extra="plot").ScalarMappable
    most = most or 1.0
    scale = mappable(import_extra("matplotlib.colors", extra="plot").Normalize(-most, most), two_sided(theme))
    bar = color_bar(axes, scale, theme, size=SMALL, orientation="horizontal", shrink=0.4, aspect=28)
    bar.set_ticks([-most, 0, most], labels=[f"{-most:.2g}".replace("-", "\N{MINUS SIGN}"), "0", f"{most:.2g}"])
    bar.set_label("weight", color=theme.ink, fontsize=SMALL)
    return bar


# -------------------------------------------------------------------------------------------------------------- masks


def plot_masks(
    layer: Any, *, neuron: int | None = None, theme: str = "light", path: str | os.PathLike[str] | None = None
) -> Any:
    """The paper's mask figure: trees on the left, the mask of each level on the right, one color per dendrite.

    Colored lines and cells are weights that exist; dashed gray lines and empty cells those that the masks remove.

    Args:
        layer: a `DendriticLayer` of at most 64 synapses, or a model, whose first one is drawn.
        neuron: the neuron whose tree is drawn; None draws up to four. The masks are always those of the whole layer.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree import DendriticLayer
        >>> figure = plot_masks(DendriticLayer(4, 1, branching=2))
        >>> [axes.get_title() for axes in figure.axes]
        ['', 'level 1: 2 x 4', 'level 2: 1 x 2']
    """
    layer, picture = layer_of(layer), Picture(theme, path)
    forest, names = layer.forest, input_names(None, layer.in_features)
    if forest.synapses > MOST_MASKED:
        raise OptionError(f"masks are drawn for at most {MOST_MASKED} synapses: got {forest.synapses}")
    neurons = range(forest.neurons)[:4] if neuron is None else [check_index("neuron", neuron, forest.neurons)]
    masks = [level.mask.numpy() for level in masked_levels(torch.ones(forest.edges), None, forest)]
    colors = np.array([picture.theme.adapt(DENDRITES[n % len(DENDRITES)]) for n in range(forest.nodes)], dtype=object)
    figure = picture.figure(2.6 + 2.4 * len(masks), max(2.2, 0.13 * forest.synapses + 0.4))
    widths = [1.3, *(max(0.5, mask.shape[1] / masks[0].shape[1]) for mask in masks)]
    grid = figure.add_gridspec(len(neurons), 1 + len(masks), width_ratios=widths)
    for row, each in enumerate(neurons):
        axes, tree = figure.add_subplot(grid[row, 0]), lay_out(forest, each, "layered")
        _add_masked(axes, tree, picture.theme)
        shades = colors[forest.node_of_edge[tree.edges]]
        draw_tree(axes, tree, np.full(len(tree.edges), 0.45), names, picture.theme, colors=shades)
    for number, (level, mask) in enumerate(zip(forest.levels, masks, strict=True), start=1):
        axes = figure.add_subplot(grid[:, number])
        _draw_mask(axes, mask, colors[level], picture.theme)
        title = f"level {number}: {mask.shape[0]} x {mask.shape[1]}"
        axes.set_title(title, fontsize=NORMAL, color=picture.theme.ink)
    return picture.finish(figure)


def _add_masked(axes: Any, tree: TreeLayout, theme: Theme) -> None:
    """Dashed lines from every start to the dendrites of the next depth that do not read it."""
    collections = import_extra("matplotlib.collections", extra="plot")
    lines = []
    for depth in range(1, tree.depth + 1):
        at = np.flatnonzero(tree.depths == depth)
        ends = np.unique(tree.ends[at], axis=0)
        if len(at) * len(ends) > 256:
            continue  # more of them would be a gray area
        lines += [(tree.starts[e], end) for e in at for end in ends if not np.array_equal(end, tree.ends[e])]
    style = {"linewidths": 0.7, "colors": theme.pale, "linestyles": (0, (4, 3)), "alpha": 0.55}
    axes.add_collection(collections.LineCollection(lines, **style))


def _draw_mask(axes: Any, mask: npt.NDArray[Any], colors: npt.NDArray[Any], theme: Theme) -> None:
    patches = import_extra("matplotlib.patches", extra="plot")
    rows, columns = mask.shape
    for row, column in np.ndindex(rows, columns):
        kept = bool(mask[row, column])
        style = {"facecolor": colors[row] if kept else "none", "edgecolor": theme.pale, "linewidth": 0.5}
        axes.add_patch(patches.Rectangle((column, row), 1, 1, **style))
        if rows * columns <= 64:
            text = {"ha": "center", "va": "center", "fontsize": SMALL, "color": theme.paper if kept else theme.pale}
            axes.text(column + 0.5, row + 0.5, int(kept), **text)
    style_axes(axes, theme, frame=False)
    axes.set(xlim=(-0.05, columns + 0.05), ylim=(rows + 0.05, -0.05), aspect="equal")
