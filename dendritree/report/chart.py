"""The data of a chart: lines in panels. `report.figures` and `plot_efficiency` draw it."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import check_one_of

FORMS = ("curves", "sweep", "points", "scaling", "shares", "levels", "values", "cloud", "agreement", "ranks")
"""Of charts; `Chart.form` says what they are."""


@dataclass(frozen=True)
class Line:
    """One model in a chart: its mean, and a band or bars around it."""

    label: str
    family: str
    """One of the palette's; with the size it determines the color, the same everywhere."""
    size: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    left: tuple[float, ...] = ()
    right: tuple[float, ...] = ()
    """Of `agreement`: ends of the bars along x."""
    faint: bool = False
    """Thin and pale, without an entry in the legend: training beside validation."""
    level: bool = False
    """Also a thin line across the chart: a model of one size that others are compared with."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    y_label: str
    lines: tuple[Line, ...]
    limits: tuple[float, float] | None = None
    """Ends of the y axis, the same in charts to be compared; None fits the lines."""
    scale: str = "linear"
    """`linear`, or `errors` for accuracies: halving the errors is the same step everywhere."""

    critical: float = 0.0
    """Of `ranks`: Nemenyi's critical difference."""

    def __post_init__(self) -> None:
        check_one_of("scale", self.scale, ("linear", "errors"))


@dataclass(frozen=True)
class Chart:
    """A small picture: one or more panels, one above the other, with one x axis."""

    name: str
    """The anchor in the page, unique in the report."""
    title: str
    alt: str
    """A description of the picture, for those who do not see it."""
    x_label: str
    panels: tuple[Panel, ...]
    form: str = "curves"
    """`curves` (line and band), `sweep` (marked line and bars), `points` (marks and bars), `scaling` (marked line and
    band over a logarithmic axis, its label at its end), `shares` (a bar for each line's x, with its label), `levels` (a
    mark and its interval instead), `values` (marked line and band over any numbers), `cloud` (a dot per point),
    `agreement` (a dot per point with bars both ways, on a square with its diagonal, where x equals y) or
    `ranks` (a line's x is its mean rank, low and high those of the first and the last that it is not told apart from).
    """
    group: str = ""
    """A title over adjacent charts that share it."""

    def __post_init__(self) -> None:
        check_one_of("form", self.form, FORMS)

    @property
    def square(self) -> bool:
        """Whether its panels are as high as wide."""
        return self.form == "agreement"
