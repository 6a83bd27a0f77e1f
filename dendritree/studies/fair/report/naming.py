"""What gains are called in the report; tasks and families are called as in pictures."""

from __future__ import annotations

from ....report.layout import Column, show
from ....report.scaling import show_size
from ...engine.statistics import SIGNIFICANT
from .. import Gain
from ..naming import FAMILY_NAMES, METRICS, anchor, title

__all__ = ["FAMILY_NAMES", "GAIN_NAMES", "METRICS", "anchor", "show_gain", "title", "verdict"]

GAIN_NAMES = {
    "tree": "tree gain: trees over sparse",
    "wiring": "wiring gain: sparse over dense",
    "both": "both: trees over dense",
}
DIFFERENCE = Column("gain", "gain", "difference", digits=2)


def verdict(gain: Gain) -> str | None:
    """Whether a gain is sure, and of which sign; None where seeds are too few to tell."""
    if not gain.p >= 0:  # NaN
        return None
    if gain.p >= SIGNIFICANT:
        return "undecided"
    return "ahead" if gain.test.difference > 0 else "behind"


def show_gain(gain: Gain) -> str:
    """A gain with its sign, its unit and its place."""
    return f"{show(gain.in_units[0], DIFFERENCE)} {gain.unit} ({gain.task.name}, {show_size(gain.budget)})"
