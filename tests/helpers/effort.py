"""How much a test does: `make test` runs a part that finds most mistakes, `make test-all` all of it.

Sizes and counts are `thorough(few, many)`. Of a test with three parameters or more `make test` runs the cases in which
any two values meet; `pytest.mark.covering(1)` runs every value once, for parameters that are independent.
"""

import itertools

from hypothesis import settings


def thorough(few, many):
    """`many` in `make test-all`, which loads hypothesis's profile `long`; `few` otherwise."""
    return many if settings.get_current_profile_name().startswith("long") else few


def covering(rows, strength):
    """The places of few rows in which any `strength` values that occur together in a row still do: a covering array.

    Mistakes that depend on parameters mostly depend on one or two of them. Takes the row with the most new combinations
    until none is left, which is not the smallest array there is, but nearly, and the same one in every worker.

    Args:
        rows: dicts with the same keys: the values of the parameters.
        strength: 1 for every value, 2 for every pair of them.
    """
    combinations = [set(itertools.combinations(row.items(), min(strength, len(row)))) for row in rows]
    missing, kept = set().union(*combinations), set()
    while missing:
        kept.add(place := max(range(len(rows)), key=lambda place: len(combinations[place] & missing)))
        missing -= combinations[place]
    return kept
