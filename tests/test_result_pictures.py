"""The pictures of the results: they show what the CSV files hold, also when cells are added."""

import csv
import runpy
from pathlib import Path

import pytest
from PIL import Image

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("family", "task", "budget", "parameters", "score", "interval_low", "interval_high", "configurations")


@pytest.fixture(scope="module")
def pictures():
    return runpy.run_path(str(DOCS / "result_pictures.py"))


@pytest.fixture
def folder(tmp_path):
    """A function that adds a file of cells, and returns the folder of all."""

    def add(name, *rows):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "cells.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
        return tmp_path

    return add


def test_errors_are_those_of_the_files(pictures):
    lines = {line.label: line for line in pictures["error_lines"]()["mnist"]}
    assert list(lines) == ["MLP", "CNN", "dendritic"]
    with (DOCS / "comparison" / "deep" / "mnist" / "cells.csv").open(encoding="utf-8") as file:
        row = next(row for row in csv.DictReader(file) if row["family"] == "deep")
    at = lines["dendritic"].x.index(float(row["parameters"]))
    assert lines["dendritic"].y[at] == pytest.approx(100 - 100 * float(row["score"]))
    for line in lines.values():
        assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))


def test_added_cells_join_their_line_and_the_longest_search_counts(pictures, folder):
    folder("a", ("deep", "mnist", 9000, 8900, 0.99, 0.98, 0.995, 8), ("other", "mnist", 9000, 9000, 0.5, 0.5, 0.5, 8))
    of = folder(
        "b", ("deep", "mnist", 2000, 1900, 0.9, 0.8, 0.95, 8), ("deep", "mnist", 9000, 8950, 0.97, 0.97, 0.97, 4)
    )
    (line,) = pictures["error_lines"](of)["mnist"]
    assert line.x == (1900, 8900)
    assert line.y == pytest.approx((10, 1))
    assert (line.low, line.high) == (pytest.approx((5, 0.5)), pytest.approx((20, 2)))


def test_bars_are_relative_to_the_control(pictures):
    layers, networks = pictures["speed_bars"]().values()
    assert [bar.label for bar in layers] == ["ten trees, b = 2", "ten trees, b = 4", "ten trees, b = 32"]
    assert all(0.3 < bar.ratio < 3 for bar in (*layers, *networks))
    assert len(networks) == 4


def test_every_picture_is_drawn_for_desk_and_phone(pictures, tmp_path):
    pictures["draw_all"](tmp_path)
    widths = {}
    for path in tmp_path.iterdir():
        with Image.open(path) as picture:
            widths[path.name] = picture.width
    assert widths == {"images.png": 1380, "images-phone.png": 680, "speed.png": 1380, "speed-phone.png": 680}
