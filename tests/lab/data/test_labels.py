"""What y means, and labels that cannot be learned."""

import numpy as np
import pytest

from dendritree.errors import OptionError, ShapeError
from dendritree_lab.data.labels import check_labels, read_labels


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        (np.array(["dog", "cat", "dog"]), [1, 0, 1], ("cat", "dog")),
        (np.array(["dog", "cat"], dtype=object), [1, 0], ("cat", "dog")),
        (np.array([True, False]), [1, 0], ("False", "True")),
        (np.array([7, 3, 7], np.uint8), [1, 0, 1], ("3", "7")),
        (np.array([1.0, 0.0, 1.0]), [1, 0, 1], ("0", "1")),
        (np.array([[2], [5]]), [0, 1], ("2", "5")),
    ],
)
def test_texts_truth_values_and_whole_numbers_are_classes(y, codes, classes):
    labels = read_labels(y)
    assert labels.y.dtype == np.int64
    assert (labels.y.tolist(), labels.classes) == (codes, classes)


@pytest.mark.parametrize("y", [np.array([0.5, 1.0]), np.arange(30.0)])
def test_other_floats_are_a_quantity(y):
    labels = read_labels(y)
    assert labels.y.dtype == np.float32
    assert (labels.y == y).all()
    assert labels.classes == ()


@pytest.mark.parametrize(
    ("y", "names", "error", "message"),
    [
        (np.eye(3), (), ShapeError, r"\(3, 3\)"),
        (np.array([1j]), (), OptionError, "complex128"),
        (np.array([0, "a"], dtype=object), (), OptionError, "object"),
        (np.array([1.5, np.nan, 2.5]), (), OptionError, "nan for example 1"),
        (np.array([0, 1, 2]), ("a", "b"), OptionError, "from 0 to 1: got 2"),
        (np.array([0, -1]), ("a", "b"), OptionError, "got -1"),
        (np.array(["a", "b"]), ("a", "b"), OptionError, "got a"),
    ],
)
def test_labels_that_mean_nothing_are_rejected(y, names, error, message):
    with pytest.raises(error, match=message):
        read_labels(y, names)


@pytest.mark.parametrize(
    ("y", "names", "message"),
    [
        (np.zeros(9, int), (), "two classes or more: all examples are '0'"),
        (np.full(30, 2.5), (), r"different values: it is 2\.5"),
        (np.arange(12) % 3, "abcd", "'d' has 0"),
        (np.array([0, 0, 0, 1, 1]), (), "at least 3 examples .* '1' has 2$"),
        (np.arange(20), (), "'2' has 1, ...; a quantity must be given as floats"),
    ],
)
def test_labels_that_cannot_be_learned_are_rejected(y, names, message):
    labels = read_labels(y, tuple(names))
    with pytest.raises(OptionError, match=message):
        check_labels(labels, least=3, trained=labels.y)
