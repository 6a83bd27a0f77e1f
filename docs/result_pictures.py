"""The pictures of the results, drawn from the CSV files in the repository: `python docs/result_pictures.py [FOLDER]`.

Run it again when results are added. Every picture has two layouts: panels side by side, and one above the other for a
phone (`NAME-phone.png`).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dendritree.plot.palette import LIGHT
from dendritree.plot.style import show_size
from dendritree_lab.report.chart import Line
from dendritree_lab.report.chart_images import DOTS_PER_INCH, POINTS, SETTINGS
from dendritree_lab.report.looks import looks
from dendritree_lab.report.score_axes import apart

DOCS = Path(__file__).parent
MEASUREMENTS = DOCS.parent / "benchmarks" / "results"
DESK, PHONE = 690, 340  # pixels: the widths of a page's column
TASKS = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
FAMILIES = {"dense": ("MLP", "dense"), "CNN": ("CNN", "cnn"), "deep": ("dendritic", "deep")}
"""By their names in the column `family`: label and look."""
IMAGES = {"mnist": "gray", "cifar10": "color"}
LOOKS = looks([])
ROUND_ERRORS = (1, 10, 100, 2, 20, 5, 50, 0.5, 3, 30, 15, 7, 70, 0.7, 8, 40, 0.2)
ROUND_SIZES = (1_000, 10_000, 100_000)
"""Ticks, the most familiar first."""
INTERVAL = ("interval_high", "interval_low")  # of the score: its upper end is the lower end of the error


@dataclass(frozen=True)
class Bar:
    """The time of a training step relative to that of the control."""

    label: str
    ratio: float


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def error_lines(folder: Path = DOCS / "comparison") -> dict[str, list[Line]]:
    """The test errors of every image data set in percent, by number of parameters, one line per family.

    A cell that was measured more than once counts with its longest search.
    """
    found: dict[tuple[str, str, int], tuple[int, dict[str, str]]] = {}
    for path in sorted(folder.rglob("cells.csv")):
        for row in rows_of(path):
            if row["task"] in TASKS and row["family"] in FAMILIES:
                cell = row["task"], row["family"], int(row["budget"])
                searched = int(row.get("configurations") or row["choices"])
                if cell not in found or searched > found[cell][0]:
                    found[cell] = searched, row
    lines: dict[str, list[Line]] = {}
    for task in TASKS:
        for family, (label, look) in FAMILIES.items():
            points = sorted(
                (float(row["parameters"]), *(100 * (1 - float(row[key])) for key in ("score", *INTERVAL)))
                for (of, name, _), (_, row) in found.items()
                if (of, name) == (task, family)
            )
            if points:
                lines.setdefault(task, []).append(Line(label, look, 0, *map(tuple, zip(*points, strict=True))))
    return lines


def speed_bars(folder: Path = MEASUREMENTS) -> dict[str, list[Bar]]:
    """Training steps relative to the control of the same size, by what they are compared with."""
    steps: dict[str, dict[str, float]] = {}
    for row in rows_of(folder / "layer_speed_short.csv"):
        if row["pass"] == "step" and row["layer"].startswith("10 neurons"):
            steps.setdefault(row["layer"].split(", ")[1], {})[row["implementation"]] = float(row["q25_ms"])
    layers = [
        Bar(f"ten trees, {branching.replace('=', ' = ')}", of["fused"] / of["MLP"]) for branching, of in steps.items()
    ]
    networks = [
        Bar(f"{IMAGES[row['data']]} images, {show_size(int(row['budget']))}", float(row["against_plain"]))
        for row in rows_of(folder / "deep_networks.csv")
        if row["stage"] == "dendritic"
    ]
    return {"One layer, MLP = 1": layers, "Deep networks, CNN = 1": networks}


def draw_errors(panels: Mapping[str, list[Line]], path: Path, *, phone: bool = False) -> None:
    """Draw the lines with logarithmic axes, the same axis of sizes in all panels, and names at their ends."""
    sizes = [x for lines in panels.values() for line in lines for x in line.x]
    limits = min(sizes) / 1.3, max(sizes) * 1.15

    def panel(axes: Any, task: str) -> None:
        for line in panels[task]:
            look = LOOKS[line.family, line.size]
            axes.plot(line.x, line.y, linewidth=1.6, marker=look.mark, markersize=6, markeredgewidth=0, **look.stroke)
            axes.vlines(line.x, line.low, line.high, colors=look.color, linewidth=1.4)
        axes.set_title(TASKS[task], loc="left", fontsize=11.5 * POINTS, fontweight="bold", pad=6 * POINTS)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(limits)
        _mark(axes, "x", ROUND_SIZES, 34, show_size)
        _mark(axes, "y", ROUND_ERRORS, 26, lambda value: f"{value:g}%")
        _name_lines(axes, panels[task])

    heading = "Test error by number of parameters; lower is better"
    _draw(panels, panel, path, heading, phone=phone, height=168, left=38, right=54)


def draw_speed(panels: Mapping[str, list[Bar]], path: Path, *, phone: bool = False) -> None:
    """Draw a bar per network, from zero, with a line where the control is."""
    end = 1.2 * max(1.0, *(bar.ratio for bars in panels.values() for bar in bars))
    most = max(map(len, panels.values()))

    def panel(axes: Any, title: str) -> None:
        bars = panels[title]
        rows = range(len(bars) - 1, -1, -1)
        color = LOOKS["tree" if "MLP" in title else "deep", 0].color
        axes.barh(rows, [bar.ratio for bar in bars], height=0.6 * len(bars) / most, color=color)
        axes.axvline(1, color=LIGHT.ink, linewidth=1.2)
        for row, bar in zip(rows, bars, strict=True):
            place = (max(bar.ratio, 1.0), row)
            style = {"textcoords": "offset points", "va": "center", "color": LIGHT.ink, "fontsize": 10.5 * POINTS}
            axes.annotate(f"{bar.ratio:.2f}", place, (4 * POINTS, 0), **style)
        axes.set_title(title, loc="left", fontsize=11.5 * POINTS, fontweight="bold", pad=6 * POINTS)
        axes.set_yticks(list(rows), [bar.label for bar in bars])
        axes.set_xlim(0, end)
        axes.set_ylim(-0.5, len(bars) - 0.5)
        axes.set_xticks([0, 1])
        axes.grid(visible=False)

    heading = "Time of a training step; shorter is faster"
    _draw(panels, panel, path, heading, phone=phone, height=104, left=122, right=8)


def _draw(
    panels: Mapping[str, Any],
    draw_panel: Callable[[Any, str], None],
    path: Path,
    heading: str,
    *,
    phone: bool,
    height: int,
    left: int,
    right: int,
) -> None:
    """Place the panels, all sizes in pixels, draw each, and write a PNG file on white with twice as many pixels."""
    import matplotlib
    from matplotlib.figure import Figure

    top, title, ticks = 26, 24, 22  # the heading; above and below each panel
    width = PHONE if phone else DESK
    columns = 1 if phone else len(panels)
    whole = top + len(panels) // columns * (title + height + ticks) + 4
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(width / DOTS_PER_INCH, whole / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
        figure.text(6 / width, 1 - 17 / whole, heading, fontsize=11.5 * POINTS, color=LIGHT.ink)
        for place, name in enumerate(panels):
            row, column = divmod(place, columns)
            x = column * width / columns + left
            y = whole - top - row * (title + height + ticks) - title - height
            room = width / columns - left - right
            axes = figure.add_axes((x / width, y / whole, room / width, height / whole))
            axes.tick_params(labelsize=10.5 * POINTS)
            draw_panel(axes, name)
        options: dict[str, Any] = {"facecolor": "white", "metadata": {"Software": None}}
        figure.savefig(path, dpi=2 * DOTS_PER_INCH, **options)


def _mark(axes: Any, which: str, values: tuple[float, ...], room: float, show: Callable[[float], str]) -> None:
    """Put ticks at the most familiar values within the limits of an axis, as many as have this room in pixels."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis, side = getattr(axes, f"{which}axis"), "xy".index(which)
    low, high = axis.get_view_interval()
    ticks: dict[float, float] = {}
    for value in values:
        place = axes.transData.transform((value, value))[side]
        if low <= value <= high and all(abs(place - other) >= room for other in ticks.values()):
            ticks[value] = place
    axis.set_major_locator(FixedLocator(sorted(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: show(value))


def _name_lines(axes: Any, lines: list[Line]) -> None:
    """Write the name of each line where it ends, moved so that names do not overlap."""
    ends = [tuple(map(float, axes.transData.transform((line.x[-1], line.y[-1])))) for line in lines]
    for line, (_, before), after in zip(lines, ends, apart(ends), strict=True):
        shift = 7 * POINTS, (after - before) * POINTS
        style = {"fontsize": 11 * POINTS, "fontweight": "bold", "va": "center", "annotation_clip": False}
        color = LOOKS[line.family, line.size].color
        axes.annotate(line.label, (line.x[-1], line.y[-1]), shift, textcoords="offset points", color=color, **style)


def draw_all(folder: Path) -> None:
    """Draw both pictures in both layouts."""
    for ending, phone in (("", False), ("-phone", True)):
        draw_errors(error_lines(), folder / f"images{ending}.png", phone=phone)
        draw_speed(speed_bars(), folder / f"speed{ending}.png", phone=phone)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=DOCS / "pictures", type=Path)
    draw_all(parser.parse_args().folder)
