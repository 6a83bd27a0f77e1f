"""Figures of training and of pruning: `plot_history` and `plot_pruning`."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OptionError, import_extra
from ..pruning import PruningPoint
from ..training import History
from .palette import Theme
from .style import SMALL, Picture, show_size, style_axes

COLORS = ("#0072B2", "#C24E00", "#00775A", "#882255", "#8A7A00", "#332288", "#555555")
"""Colors of runs without a family, dark enough for text."""


def plot_history(
    history: History | Mapping[str, History], *, theme: str = "light", path: str | os.PathLike[str] | None = None
) -> Any:
    """Loss and accuracy by epoch: validation as a solid line, training thin and dashed, the best epoch marked.

    Args:
        history: the history that `dendritree.fit` returns, or several by name.
        theme: `"light"` or `"dark"`.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> from dendritree.training import Epoch, FitConfig
        >>> epochs = [Epoch(0, 1.0, 0.9, 0.5, 0.6, 0.1), Epoch(1, 0.8, 0.7, 0.6, 0.7, 0.1)]
        >>> len(plot_history(History(FitConfig(), epochs)).axes)
        2
    """
    picture = Picture(theme, path)
    runs = history if isinstance(history, Mapping) else {"": history}
    if not runs or not all(isinstance(run, History) and run.epochs for run in runs.values()):
        got = f"a {type(history).__name__}"
        raise OptionError(f"history must be a History with an epoch or more, or a mapping of such: got {got}")
    columns = {name: run.columns() for name, run in runs.items()}
    has_accuracy = any(not math.isnan(value) for each in columns.values() for value in each["val_acc"])
    kinds = {"loss": "loss", "acc": "accuracy"} if has_accuracy else {"loss": "loss"}
    figure = picture.figure(3.4 * len(kinds), 2.6)
    ticker = import_extra("matplotlib.ticker", extra="plot")
    thin: dict[str, Any] = {"linewidth": 0.9, "dashes": (3, 1.5)}
    for place, (kind, label) in enumerate(kinds.items(), start=1):
        axes = figure.add_subplot(1, len(kinds), place)
        for color, (name, run) in _colored(runs, picture.theme):
            epoch, best = columns[name]["epoch"], run.best
            axes.plot(epoch, columns[name][f"train_{kind}"], color=color, alpha=0.6, **thin)
            axes.plot(epoch, columns[name][f"val_{kind}"], color=color, linewidth=1.6, label=name or "validation")
            axes.plot([best.epoch], [getattr(best, f"val_{kind}")], "o", color=color, markersize=4.5)
        style_axes(axes, picture.theme)
        axes.set(xlabel="epoch", ylabel=label)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    axes = figure.axes[0]
    axes.plot([], [], color=picture.theme.pale, label="training", **thin)
    axes.plot([], [], "o", color=picture.theme.pale, markersize=4.5, label="best epoch")
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=picture.theme.ink)
    return picture.finish(figure)


def _colored(runs: Mapping[str, Any], theme: Theme) -> list[tuple[str, tuple[str, Any]]]:
    """Runs by name, each with its own color."""
    return [(theme.adapt(color), run) for color, run in zip(itertools.cycle(COLORS), runs.items(), strict=False)]


def plot_pruning(
    curve: Sequence[PruningPoint] | Mapping[str, Sequence[PruningPoint]],
    *,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Accuracy against size, as measured by `pruning_curve`; loss if there is no accuracy.

    Args:
        curve: the result of `dendritree.pruning.pruning_curve`, or several by name.
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None creates a figure.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> points = [PruningPoint(900, 640, 0.2, 0.95), PruningPoint(450, 300, 0.3, 0.91)]
        >>> plot_pruning(points).axes[0].get_xlabel()
        'parameters'
    """
    picture = Picture(theme, path)
    curves = curve if isinstance(curve, Mapping) else {"": curve}
    if not curves or not all(curves.values()):
        raise OptionError("curve must have at least one point: got none")
    ax = picture.axes(ax, 4.2, 2.8)
    is_loss = any(math.isnan(point.accuracy) for points in curves.values() for point in points)
    for color, (name, points) in _colored(curves, picture.theme):
        sizes, heights = zip(*((p.parameters, p.loss if is_loss else p.accuracy) for p in points), strict=True)
        ax.plot(sizes, heights, "o-", color=color, linewidth=1.5, markersize=4, label=name)
    style_axes(ax, picture.theme)
    ax.set(xlabel="parameters", ylabel="loss" if is_loss else "accuracy")
    ticker = import_extra("matplotlib.ticker", extra="plot")
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: show_size(value)))
    ax.set_xlim(left=0)
    if "" not in curves:
        ax.legend(frameon=False, fontsize=SMALL, labelcolor=picture.theme.ink)
    return picture.finish(ax.figure)
