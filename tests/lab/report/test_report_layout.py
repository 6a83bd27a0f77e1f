"""How values are shown: one rule per form, and no value that cannot be shown."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dendritree_lab.report.layout import FORMS, Column, show, show_seconds

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
NONE = "\N{EN DASH}"


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("text", "MLP h=11", "MLP h=11"),
        ("count", 11_395, "11,395"),
        ("number", 0.25, "0.250"),
        ("difference", 0.0312, "+0.031"),
        ("difference", -0.0312, f"{MINUS}0.031"),
        ("difference", -0.0, "0.000"),
        ("p", 0.0312, "0.031"),
        ("p", 0.00099, "< 0.001"),
        ("ratio", 951.3, f"951{TIMES}"),
        ("ratio", 1.25, f"1.2{TIMES}"),
        ("spread", (0.5, 0.125), "0.500 ± 0.125"),
        ("spread", (0.5, math.nan), f"0.500 ± {NONE}"),
        ("spread", (math.nan, math.nan), NONE),
        ("interval", (-0.5, 0.5), f"{MINUS}0.500 to 0.500"),
        ("interval", (math.nan, math.nan), NONE),
        ("evidence", "Of 2 comparisons 1 won: the first; not the second.", "Of 2 comparisons 1 won"),
        *((form, None, NONE) for form in FORMS),
        *((form, math.nan, NONE) for form in ("number", "difference", "p", "ratio", "seconds")),
    ],
)
def test_a_value_is_shown_in_its_form(form, value, text):
    assert show(value, Column("name", "label", form)) == text


@given(st.floats(0, 1e7))
def test_a_time_is_close_to_what_it_shows(seconds):
    units = {"ms": 0.001, "s": 1, "min": 60, "h": 3600}
    words = show_seconds(seconds).split()
    shown = sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))
    smallest = {"ms": 0.0005, "s": 0.5, "min": 30}[words[-1]]
    assert math.isclose(shown, seconds, rel_tol=0.06, abs_tol=smallest)
    assert all(float(number) < 60 for number, unit in zip(words[2::2], words[3::2], strict=True))
