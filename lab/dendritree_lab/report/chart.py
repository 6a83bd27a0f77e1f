"""The data of a chart: lines in panels, which `chart_images` draws."""

from __future__ import annotations

from dataclasses import dataclass

from dendritree.errors import check_one_of

FORMS = ("curves", "sweep", "points", "scaling", "shares", "levels", "values", "cloud", "agreement")
"""The forms of charts, described in `Chart.form`."""


@dataclass(frozen=True)
class Line:
    """One model in a chart: its mean, and a band or bars around it."""

    label: str
    family: str
    """A family of the palette; together with the size it determines the color, the same in all charts."""
    size: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    left: tuple[float, ...] = ()
    right: tuple[float, ...] = ()
    """For `agreement`, the ends of the bars along x."""
    faint: bool = False
    """Whether it is thin and pale, without an entry in the legend: training next to validation."""
    level: bool = False
    """Whether to add a thin line across the chart: a model of one size that others are compared with."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    y_label: str
    lines: tuple[Line, ...]
    limits: tuple[float, float] | None = None
    """Limits of the y axis, the same in charts to be compared; None fits the lines."""
    scale: str = "linear"
    """`linear`, or `errors` for accuracies: halving the error is the same distance everywhere."""

    def __post_init__(self) -> None:
        check_one_of("scale", self.scale, ("linear", "errors"))


@dataclass(frozen=True)
class Chart:
    """A small figure: one or more panels, one above the other, with a common x axis."""

    name: str
    """The anchor in the page, unique in the report."""
    title: str
    alt: str
    """A text description of the figure, for screen readers."""
    x_label: str
    panels: tuple[Panel, ...]
    form: str = "curves"
    """`curves` (line and band), `sweep` (marked line and bars), `points` (marks and bars), `scaling` (marked line and
    band over a logarithmic axis, labeled at its end), `shares` (a bar for each line's x, with its label), `levels` (a
    mark and its interval instead), `values` (marked line and band over any numbers), `cloud` (a dot per point)
    or `agreement` (a dot per point with bars both ways, in a square with its diagonal, where x equals y).
    """
    group: str = ""
    """A title over adjacent charts that share it."""

    def __post_init__(self) -> None:
        check_one_of("form", self.form, FORMS)

    @property
    def square(self) -> bool:
        """Whether its panels are as high as wide."""
        return self.form == "agreement"
