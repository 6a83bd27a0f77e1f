"""One look for one model, in every chart: a colour, a dash and a mark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .chart import Chart

__all__ = ["FAMILIES", "Look", "looks"]

# Dendritic models are cool colours and full lines, MLPs warm and dashed, perceptrons grey and dotted: with the marks,
# charts can be read without telling hues apart. The colours are from Okabe and Ito's and Paul Tol's safe sets. Five
# warm ones are enough: sizes take them in turn, and no task of the paper then has two MLPs of one colour.
COLOURS = {
    "dendritic": ("#56B4E9", "#009E73", "#0072B2", "#332288"),
    "mlp": ("#E69F00", "#D55E00", "#CC79A7", "#882255", "#8A7A00"),
    "perceptrons": ("#555555",),
    # The families of a comparison, dark enough for their own names
    "tree": ("#00775A",),
    "sparse": ("#0072B2",),
    "dense": ("#C24E00",),
    "linear": ("#555555",),
    "ktree": ("#332288",),
    "denn": ("#882255",),
    "dnm": ("#8A7A00",),
    "dmnn": ("#A8438C",),
    "dann": ("#117799",),
}
DASHES: dict[str, tuple[float, ...]] = {
    "dendritic": (),
    "mlp": (4, 1.6),
    "perceptrons": (1.2, 1.2),
    "tree": (),
    "sparse": (),
    "dense": (4, 1.6),
    "linear": (1.2, 1.2),
    **dict.fromkeys(("ktree", "denn", "dnm", "dmnn", "dann"), (2.4, 1.0)),
}
MARKS = {
    "dendritic": ("o", "s", "D", "h"),
    "mlp": ("^", "v", "<", ">", "P"),
    "perceptrons": ("X",),
    "tree": ("o",),
    "sparse": ("s",),
    "dense": ("^",),
    "linear": ("X",),
    "ktree": ("D",),
    "denn": ("v",),
    "dnm": ("P",),
    "dmnn": ("<",),
    "dann": ("h",),
}
# Every size of the paper and of our extra rows: a partial run then has the colours of a whole one.
KNOWN_SIZES = {
    "dendritic": (2, 4, 16, 32),
    "mlp": (2, 3, 11, 14, 16, 29, 30),
    "perceptrons": (0,),
    "tree": (0,),
    "sparse": (0,),
    "dense": (0,),
    "linear": (0,),
    **dict.fromkeys(("ktree", "denn", "dnm", "dmnn", "dann"), (0,)),
}


FAMILIES = tuple(KNOWN_SIZES)
"""In the order of legends."""


@dataclass(frozen=True)
class Look:
    """How a model is drawn."""

    colour: str
    dash: tuple[float, ...]
    """Lengths of ink and gap in line widths; empty for a full line."""
    mark: str
    """Matplotlib's letter for the mark."""


def looks(charts: Iterable[Chart]) -> dict[tuple[str, int], Look]:
    """The look of every model of the charts, by family and size.

    >>> list(looks([]))[:3]
    [('dendritic', 2), ('dendritic', 4), ('dendritic', 16)]
    """
    drawn = {(line.family, line.size) for chart in charts for panel in chart.panels for line in panel.lines}
    found: dict[tuple[str, int], Look] = {}
    for family, known in KNOWN_SIZES.items():
        others = sorted({size for of, size in drawn if of == family} - set(known))
        for place, size in enumerate([*known, *others]):
            colours, marks = COLOURS[family], MARKS[family]
            found[family, size] = Look(colours[place % len(colours)], DASHES[family], marks[place % len(marks)])
    return found
