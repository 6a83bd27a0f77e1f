"""What `make test` leaves to `make test-all`: every combination that must be covered is."""

import itertools

import pytest
from effort import covering

SIZES = {"forest": 7, "dropout": 2, "dtype": 3, "batch": 2}
ROWS = [dict(zip(SIZES, values, strict=True)) for values in itertools.product(*map(range, SIZES.values()))]


@pytest.mark.parametrize(("strength", "most"), [(1, 7), (2, 24), (3, 50), (4, 84)])
def test_every_combination_of_so_many_values_is_in_one_of_few_rows(strength, most):
    kept = covering(ROWS, strength)
    for names in itertools.combinations(SIZES, strength):
        found = {tuple(ROWS[place][name] for name in names) for place in kept}
        assert found == set(itertools.product(*(range(SIZES[name]) for name in names)))
    assert len(kept) <= most


def test_combinations_that_no_row_has_are_not_asked_for():
    assert covering([{"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 0, "b": 1}], 1) == {0, 1}
    assert covering([{"a": 0}, {"a": 1}], 2) == {0, 1}
    assert covering([], 2) == set()
