"""Pictures over the image grid: `plot_wiring`, `plot_weights` and `plot_explanation`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..errors import OptionError, ShapeError, check_int, import_extra
from ..explain import Explanation, ModelExplanation
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

__all__ = ["plot_explanation", "plot_weights", "plot_wiring"]

MOST_BRANCHES = 12
"""Of a neuron, that are shown one by one."""
MOST_BARS = 14


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
        _draw_image(axes, np.minimum(images[place], 1), one_sided(look), (0, 1), look)
        axes.set_title(_branch_name(int(nodes[place]), place, nodes), fontsize=SMALL, color=look.pale, pad=3)
        window = None if layer.windows is None or nodes[place] == SOMA else layer.windows[nodes[place]]
        if window is not None and window.any():
            _outline(axes, window, look)
    axes = figure.add_subplot(grid[:, columns])
    coverage = as_image(layer.coverage().numpy(), shape)
    drawn = _draw_image(axes, coverage, one_sided(look), (0, max(1, int(coverage.max()))), look)
    axes.set_title("synapses of all neurons", fontsize=SMALL, color=look.pale, pad=3)
    _colour_bar(axes, drawn, look)
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
        _draw_signed(axes, whole, look)
        axes.set_ylabel(f"neuron {neuron}", fontsize=SMALL, color=look.ink)
        if row == 0:
            axes.set_title("whole", fontsize=SMALL, color=look.pale, pad=3)
        order = np.argsort(-np.abs(branches).sum((1, 2)), kind="stable")[:columns]
        for column, branch in enumerate(order):
            axes = figure.add_subplot(grid[row, 1 + column])
            _draw_signed(axes, branches[branch], look)
            axes.set_title(f"branch {branch}", fontsize=SMALL - 1, color=look.pale, pad=2)
    return finish(figure, path)


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
    """The largest values by size, with their labels, and what all the others add up to.

    >>> strongest(["a", "b", "c"], [1.0, -3.0, 0.5], 2)
    [('b', -3.0), ('2 others', 1.5)]
    """
    order = np.argsort(-np.abs(np.asarray(values, dtype=np.float64)), kind="stable")
    if len(order) <= most:
        return [(labels[i], float(values[i])) for i in order]
    rest = float(sum(float(values[i]) for i in order[most - 1 :]))
    return [*((labels[i], float(values[i])) for i in order[: most - 1]), (f"{len(order) - most + 1} others", rest)]


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
    from ..wiring.images import check_image_shape

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
        _draw_image(axes, image, "gray" if theme.name == "dark" else "gray_r", None, theme)
        axes.set_title("input", fontsize=SMALL, color=theme.pale, pad=3)
    axes = figure.add_subplot(grid[0, int(x is not None)])
    drawn = _draw_signed(axes, as_image(values, shape), theme)
    axes.set_title("contributions", fontsize=SMALL, color=theme.pale, pad=3)
    _colour_bar(axes, drawn, theme)


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
    for row, value in ((0, baseline), *((r, v) for r, (_, v) in enumerate(bars, start=1)), (len(bars) + 1, output)):
        is_total = row in (0, len(bars) + 1)
        end = value if is_total else baseline + sum(v for _, v in bars[:row])
        axes.annotate(
            f"{value:{'' if is_total else '+'}.3g}".replace("-", "\N{MINUS SIGN}"),
            (end, row),
            (4 if value >= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if value >= 0 else "right",
            va="center",
            fontsize=SMALL - 1,
            color=theme.pale,
        )


def _draw_image(
    axes: Any, image: npt.NDArray[Any], colours: Any, ends: tuple[float, float] | None, theme: Theme
) -> Any:
    low, high = ends or (float(image.min()), float(image.max()))
    drawn = axes.imshow(image, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    style_axes(axes, theme, frame=False)
    return drawn


def _draw_signed(axes: Any, image: npt.NDArray[Any], theme: Theme) -> Any:
    most = float(np.abs(image).max()) or 1.0
    return _draw_image(axes, image, two_sided(theme), (-most, most), theme)


def _colour_bar(axes: Any, drawn: Any, theme: Theme) -> None:
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
