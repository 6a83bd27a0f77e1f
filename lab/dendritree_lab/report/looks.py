"""How models are drawn: a color, dashes and a marker per model, the same in every chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .chart import Chart


@dataclass(frozen=True)
class Look:
    """How a model is drawn."""

    color: str
    dash: tuple[float, ...]
    """Lengths of dashes and gaps, in line widths; empty for a solid line."""
    mark: str
    """Matplotlib's letter for the marker."""

    @property
    def stroke(self) -> dict[str, Any]:
        """Color and dashes, as line options of matplotlib."""
        return {"color": self.color, "dashes": self.dash or (None, None)}


Looks: TypeAlias = Mapping[tuple[str, int], Look]
"""The look of each model, by family and size."""


@dataclass(frozen=True)
class FamilyLook:
    """The looks of a family of models, one per size."""

    colors: tuple[str, ...]
    marks: str
    dash: tuple[float, ...] = ()
    sizes: tuple[int, ...] = (0,)
    """All sizes in the paper and in our extra rows, so that a partial run has the same colors as a complete one."""


DASHED, DOTTED, SHORT_DASHED = (4, 1.6), (1.2, 1.2), (2.4, 1.0)

# Dendritic models have cool colors and solid lines, MLPs warm colors and dashes, perceptrons are gray and dotted: with
# the markers, charts can be read without distinguishing hues. The colors are from the color-blind safe sets of Okabe
# and Ito and of Paul Tol. Five warm ones are enough: sizes cycle through them, and no task of the paper has two MLPs of
# the same color.
FAMILIES = {
    "dendritic": FamilyLook(("#56B4E9", "#009E73", "#0072B2", "#332288"), "osDh", sizes=(2, 4, 16, 32)),
    "mlp": FamilyLook(
        ("#E69F00", "#D55E00", "#CC79A7", "#882255", "#8A7A00"), "^v<>P", DASHED, (2, 3, 11, 14, 16, 29, 30)
    ),
    "perceptrons": FamilyLook(("#555555",), "X", DOTTED),
    # The families of a comparison, dark enough for text
    "tree": FamilyLook(("#00775A",), "o"),
    "sparse": FamilyLook(("#0072B2",), "s"),
    "dense": FamilyLook(("#C24E00",), "^", DASHED),
    "linear": FamilyLook(("#555555",), "X", DOTTED),
    "tied": FamilyLook(("#2E6F00",), "p"),
    "tied-linear": FamilyLook(("#5C8A3A",), "d", DASHED),
    "deep": FamilyLook(("#006D2C",), "o"),
    "deep-linear": FamilyLook(("#5C8A3A",), "d", DASHED),
    "cnn": FamilyLook(("#8C2D04",), "*", DASHED),
    "separable": FamilyLook(("#B8860B",), "H", DASHED),
    "blueprint": FamilyLook(("#7A4E9E",), ">", DASHED),
    "ktree": FamilyLook(("#332288",), "D", SHORT_DASHED),
    "denn": FamilyLook(("#882255",), "v", SHORT_DASHED),
    "dnm": FamilyLook(("#8A7A00",), "P", SHORT_DASHED),
    "dmnn": FamilyLook(("#A8438C",), "<", SHORT_DASHED),
    "dann": FamilyLook(("#117799",), "h", SHORT_DASHED),
    # scikit-learn's gradient boosting
    "boosting": FamilyLook(("#6B4FA0",), "8", SHORT_DASHED),
}
"""The looks of known families, in the order of legends."""
OTHERS = tuple(
    FamilyLook((color,), mark, SHORT_DASHED)
    for color, mark in (("#4B0F6B", "d"), ("#0B5345", "p"), ("#7B3F00", "*"), ("#1F3A93", ">"))
)
"""Looks for unknown families, such as neurons of other packages: assigned in turn, by name."""


def looks(charts: Iterable[Chart]) -> dict[tuple[str, int], Look]:
    """The look of every model of the charts, by family and size.

    >>> list(looks([]))[:3]
    [('dendritic', 2), ('dendritic', 4), ('dendritic', 16)]
    """
    drawn = {(line.family, line.size) for chart in charts for panel in chart.panels for line in panel.lines}
    result: dict[tuple[str, int], Look] = {}
    unknown = sorted({family for family, _ in drawn} - FAMILIES.keys())
    taken = {family: OTHERS[place % len(OTHERS)] for place, family in enumerate(unknown)}
    for family, of in {**FAMILIES, **taken}.items():
        others = sorted({size for name, size in drawn if name == family} - set(of.sizes))
        for place, size in enumerate([*of.sizes, *others]):
            color, mark = of.colors[place % len(of.colors)], of.marks[place % len(of.marks)]
            result[family, size] = Look(color, of.dash, mark)
    return result
