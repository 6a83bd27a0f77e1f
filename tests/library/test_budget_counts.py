"""Numbers of parameters in common notations."""

import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dendritree.errors import OptionError
from dendritree.models.sizing import parse_count

UNITS = {"": 1, "k": 1000, "K": 1000, "M": 1_000_000}


@given(st.integers(1, 10**12 - 1))
def test_a_whole_number_is_itself_as_text_or_not(number):
    assert parse_count("budget", number) == number
    assert parse_count("budget", str(number)) == number
    assert parse_count("budget", f" {number:,} ") == number


@given(st.integers(1, 10**7), st.integers(0, 6), st.sampled_from(list(UNITS)))
@example(41, 1, "M")
@example(161, 1, "k")
@example(1001, 3, "k")
def test_decimals_mean_what_they_say(digits, places, unit):
    """In decimal arithmetic: 4.1M is 4,100,000, though no float is 4.1."""
    text = f"{Decimal(digits).scaleb(-places):f}{unit}"
    value = Decimal(digits).scaleb(-places) * UNITS[unit]
    if value == int(value) and value >= 1:
        assert parse_count("budget", text) == value
    else:
        with pytest.raises(OptionError, match=f"budget must be .*: got {re.escape(repr(text))}"):
            parse_count("budget", text)


WHOLE = "budget must be an integer number of parameters, such as 9000, 9k or 1.5M: got "
LEAST = "budget must be an integer of at least 1: got "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9q", WHOLE + "'9q'"),
        ("", WHOLE + "''"),
        ("k", WHOLE + "'k'"),
        ("nine", WHOLE + "'nine'"),
        ("9 k", WHOLE + "'9 k'"),
        ("9kk", WHOLE + "'9kk'"),
        ("1e3", WHOLE + "'1e3'"),
        ("-9k", WHOLE + "'-9k'"),
        (".5k", WHOLE + "'.5k'"),
        ("9.k", WHOLE + "'9.k'"),
        ("0.5", WHOLE + "'0.5'"),
        ("1.0005k", WHOLE + "'1.0005k'"),
        ("nan", WHOLE + "'nan'"),
        ("inf", WHOLE + "'inf'"),
        ("\u0669k", WHOLE),
        (0, LEAST + "0"),
        (-1, LEAST + "-1"),
        (9000.0, LEAST + "9000.0"),
        (True, LEAST + "True"),
        (None, LEAST + "None"),
    ],
    ids=repr,
)
def test_what_is_no_number_of_parameters_is_refused_by_its_rule(text, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        parse_count("budget", text)


@pytest.mark.parametrize("text", ["0", "0k", "0.0M"])
def test_nothing_is_refused(text):
    with pytest.raises(OptionError, match="budget must be"):
        parse_count("budget", text)


def test_a_number_beyond_all_floats_is_no_crash():
    text = "9" * 400
    try:
        assert parse_count("budget", text) == int(text)
    except OptionError as error:
        assert str(error).startswith("budget must be")  # noqa: PT017  both are right


def test_a_comma_is_for_thousands_alone():
    """1,5k is one and a half thousand in half of Europe: better no answer than ten times the budget."""
    assert parse_count("budget", "1,500") == 1500
    with pytest.raises(OptionError, match=re.escape(WHOLE + "'1,5k'")):
        parse_count("budget", "1,5k")


def test_the_name_is_that_of_the_option():
    with pytest.raises(OptionError, match="size must be an integer of at least 1: got 0"):
        parse_count("size", 0)
