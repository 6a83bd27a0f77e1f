"""The critical-difference diagram of one half of the tables."""

from __future__ import annotations

import math

from ...report.chart import Chart, Line, Panel
from ..engine.ranks import Ranking
from ..engine.statistics import show_p
from .families import MLP
from .results import Half

LOOKS = {MLP: "scikit-mlp"}
"""Families whose chart style has another name: in the palette, `mlp` is the paper's control."""


def rank_chart(half: Half) -> Chart | None:
    """The mean ranks of a half as a chart; None if no table has all families."""
    ranking = half.ranking
    if ranking is None:
        return None
    order = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(ranking.names, ranking.ranks, strict=True))
    tables = f"{ranking.count} table{'' if ranking.count == 1 else 's'}"
    friedman = "too few for Friedman's test" if math.isnan(ranking.p) else f"Friedman's test {show_p(ranking.p)}"
    return Chart(
        f"ranks-{half.name}",
        f"{half.title[0].upper()}{half.title[1:]}: {tables}, {friedman}",
        f"Mean ranks on {half.title}: {order}; the critical difference is {ranking.critical:.2f}.",
        "mean rank",
        (Panel("", rank_lines(ranking), critical=ranking.critical),),
        "ranks",
    )


def rank_lines(ranking: Ranking) -> tuple[Line, ...]:
    """A line per family: its rank, and the ranks of the first and last family that do not differ significantly."""
    found = []
    for place, (name, rank) in enumerate(zip(ranking.names, ranking.ranks, strict=True)):
        near = [other for other in ranking.ranks if abs(other - rank) < ranking.critical]
        ends = (min(near, default=rank),), (max(near, default=rank),)
        found.append(Line(name, LOOKS.get(name, name), 0, (rank,), (float(place),), *ends))
    return tuple(found)
