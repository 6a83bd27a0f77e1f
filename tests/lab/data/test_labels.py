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
        (
            np.eye(3),
            (),
            ShapeError,
            r"one label for each example: got shape \(3, 3\); for one-hot rows, use y\.argmax\(1\)",
        ),
        (np.zeros((3, 2)) + 7, (), ShapeError, r"one label for each example: got shape \(3, 2\)$"),
        (np.array([1j]), (), OptionError, "numbers or strings: got complex128"),
        (np.array([0, "a"], dtype=object), (), OptionError, "numbers or strings: got object"),
        (np.array([1.5, np.nan, 2.5]), (), OptionError, r"y must be finite: got nan for example 1$"),
        (np.array([0, 1, 2]), ("a", "b"), OptionError, r"2 named classes from 0 to 1: got 2$"),
        (np.array([0, -1]), ("a", "b"), OptionError, r"from 0 to 1: got -1$"),
        (np.array(["a", "b"]), ("a", "b"), OptionError, r"from 0 to 1: got a$"),
    ],
)
def test_labels_that_mean_nothing_are_rejected(y, names, error, message):
    with pytest.raises(error, match=message):
        read_labels(y, names)


@pytest.mark.parametrize(
    ("y", "names", "message"),
    [
        (np.zeros(9, int), (), "two classes or more: all examples are '0'"),
        (np.full(30, 2.5), (), r"y must have different values: it is 2\.5 in every example"),
        (np.arange(12) % 3, "abcd", "at least 3 examples to train, validate and test with: 'd' has 0"),
        (np.array([0, 0, 0, 1, 1]), (), r"at least 3 examples .*: '1' has 2$"),
        (np.array([0, 1]), "abcd", r"more examples than classes: got 2 for 4 classes"),
        (
            np.arange(20),
            (),
            r"'0' has 1, '1' has 1, '2' has 1 and 17 more classes too few; a quantity must be .* floats$",
        ),
    ],
)
def test_labels_that_cannot_be_learned_are_rejected(y, names, message):
    with pytest.raises(OptionError, match=message):
        check_labels(read_labels(y, tuple(names)), least=3)
