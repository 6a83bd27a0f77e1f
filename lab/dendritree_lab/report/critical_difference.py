"""`critical_difference`: mean ranks of models over many data sets, and which of them do not differ significantly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OptionError
from ..studies.engine.ranks import Ranking, rank_models
from ..studies.tables import read_half
from ..studies.tables.charts import LOOKS
from .palette import FAMILIES
from .rank_diagram import RankDiagram, draw_ranks
from .style import NORMAL, Picture

LINE = 0.21
"""Height of a line of text, in inches."""


def critical_difference(
    scores: Ranking | Mapping[str, Sequence[float]] | str | os.PathLike[str],
    half: str = "all",
    *,
    theme: str = "light",
    ax: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """The critical-difference diagram of Demšar (2006): mean ranks, and which models do not differ significantly.

    Rank 1 is the best. A bar joins models whose mean ranks differ by less than Nemenyi's critical difference at 5%.

    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006), 1-30.

    Args:
        scores: the scores of each model by its name, one per data set, where higher is better; the result of
            `rank_models`; or the folder of a `dendritree compare tables` run.
        half: which tables of a run: `choose`, `held-out` or `all`.
        theme: `"light"` or `"dark"`.
        ax: matplotlib axes to draw into; None creates a figure.
        path: a file to write: .svg, .png or .pdf.

    Example:
        >>> figure = critical_difference({"trees": [0.9, 0.8, 0.7], "MLP": [0.8, 0.7, 0.6], "linear": [0.7, 0.6, 0.5]})
        >>> [text.get_text() for text in figure.axes[0].texts][-3:]
        ['trees  1.00', 'MLP  2.00', '3.00  linear']
    """
    picture = Picture(theme, path)
    if isinstance(scores, str | os.PathLike):
        found = read_half(scores, half).ranking
        if found is None:
            raise OptionError(f"a run must have tables with at least two families to rank: {scores} has none")
    else:
        found = scores if isinstance(scores, Ranking) else rank_models(scores)
    bars = tuple((found.ranks[first], found.ranks[last]) for first, last in found.groups)
    diagram = RankDiagram(found.names, found.ranks, bars, found.critical)
    ax = picture.axes(ax, 5.2, LINE * diagram.lines + 0.1)
    looks = (FAMILIES.get(LOOKS.get(name, name)) for name in found.names)
    colors = [picture.theme.ink if look is None else picture.theme.adapt(look.colors[0]) for look in looks]
    draw_ranks(ax, diagram, colors, picture.theme, size=NORMAL)
    return picture.finish(ax.figure)
