"""IDX files: read what a hand-written writer wrote, and the other way around."""

import numpy as np
import pytest
from data_cases import idx
from hypothesis import given
from hypothesis.extra import numpy as arrays

from dendritree.errors import FormatError
from dendritree_lab.data.formats import read_idx, write_idx

BYTES = arrays.arrays(np.uint8, arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))


@given(array=BYTES)
def test_reading_and_writing_agree_with_a_writer_by_hand(array):
    assert write_idx(array) == idx(array)
    again = read_idx(idx(array))
    assert again.shape == array.shape
    assert again.dtype == np.uint8
    assert (again == array).all()


def test_a_transposed_array_is_written_in_its_own_order():
    array = np.arange(6, dtype=np.uint8).reshape(2, 3).T
    assert (read_idx(write_idx(array)) == array).all()


def test_what_is_read_can_be_changed():
    array = read_idx(idx(np.zeros(3, dtype=np.uint8)))
    array[0] = 7
    assert array.tolist() == [7, 0, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must begin with 00 00 08: got ''"),
        (b"\x00\x00", "must begin with 00 00 08: got '00 00'"),
        (b"\x1f\x8b\x08\x00", "must begin with 00 00 08: got '1f 8b 08'"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", "must begin with 00 00 08: got '00 00 0d'"),
        (b"\x00\x00\x08\x02\x00\x00\x00\x01", "of 2 dimensions must have 12 bytes or more: got 8"),
        (idx(np.zeros((2, 3), dtype=np.uint8))[:-1], r"of shape \(2, 3\) must have 18 bytes: got 17"),
        (idx(np.zeros((2, 3), dtype=np.uint8)) + b"x", r"of shape \(2, 3\) must have 18 bytes: got 19"),
        (b"\x00\x00\x08\x03" + b"\xff" * 12, "must have 79228162458924105385300197391 bytes: got 16"),
    ],
)
def test_anything_else_is_rejected(content, message):
    with pytest.raises(FormatError, match=f"^an IDX file .*{message}$"):
        read_idx(content)
