"""Arrays as users have them, what their labels mean, and their files."""

import numpy as np
import pytest
import torch
from own_data import blobs

from dendritree.errors import DendritreeError, FormatError, OptionError, ShapeError
from dendritree_lab.data import load_dataset
from dendritree_lab.data.arrays import read_inputs, read_labels, split_arrays

SHAPES = {
    (8, 8): (1, 8, 8),
    (8, 8, 1): (1, 8, 8),
    (1, 8, 8): (1, 8, 8),
    (8, 6, 3): (3, 8, 6),
    (3, 8, 6): (3, 8, 6),
    (4, 8, 6): (4, 8, 6),
    (4, 5, 3): (3, 4, 5),
    (12,): None,
}


@pytest.mark.parametrize(("shape", "image_shape"), SHAPES.items())
def test_images_of_any_layout_become_rows_that_know_their_shape(shape, image_shape):
    x = np.random.default_rng(0).random((5, *shape))
    rows, result = read_inputs(x)
    assert result == image_shape
    assert rows.dtype == np.float32
    last = len(shape) == 3 and shape[-1] in (1, 3)
    assert np.allclose(rows, (np.moveaxis(x, -1, 1) if last else x).reshape(5, -1))


@pytest.mark.parametrize(("dtype", "full"), [(np.uint8, 255), (np.uint16, 65535), (np.float64, 1), (np.int32, 1)])
def test_pixels_in_bytes_become_0_to_1_and_columns_stay_as_they_are(dtype, full):
    images = np.arange(32).reshape(2, 4, 4).astype(dtype)
    assert read_inputs(images)[0].max() == np.float32(31) / np.float32(full)
    assert read_inputs(images.reshape(2, 16))[0].max() == 31
    assert read_inputs(images.reshape(2, 16), (1, 4, 4))[0].max() == np.float32(31) / np.float32(full)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.array([["a"], ["b"]]), OptionError, "<U1"),
        (np.zeros(5), ShapeError, r"\(5,\)"),
        (np.zeros((0, 3)), ShapeError, r"\(0, 3\)"),
        (np.zeros((2, 5, 5, 5)), ShapeError, r"\(5, 5, 5\)"),
        (np.array([[1.0], [np.nan], [np.inf]]), OptionError, r"example 1 .* \(2 of 3 examples do\)"),
        (np.array([[1e300], [0.0]]), OptionError, "beyond float32"),
    ],
)
def test_inputs_that_are_not_numbers_in_one_shape_are_rejected(x, error, message):
    with pytest.raises(error, match=message):
        read_inputs(x)


# ------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        (np.array(["dog", "cat", "dog"]), [1, 0, 1], ("cat", "dog")),
        (np.array(["dog", "cat"], dtype=object), [1, 0], ("cat", "dog")),
        (np.array([True, False]), [1, 0], ("False", "True")),
        (np.array([7, 3, 7], np.uint8), [1, 0, 1], ("3", "7")),
        (np.array([1.0, 0.0, 1.0]), [1, 0, 1], ("0", "1")),
        (np.array([[2], [5]]), [0, 1], ("2", "5")),
        (np.array([0.5, 1.0]), [0.5, 1.0], ()),
        (np.arange(30.0), list(range(30)), ()),
    ],
)
def test_strings_booleans_and_integers_are_classes_and_other_floats_a_quantity(y, codes, classes):
    labels = read_labels(y)
    assert labels.y.dtype == (np.int64 if classes else np.float32)
    assert (labels.y.tolist(), labels.classes) == (codes, classes)


@pytest.mark.parametrize(
    ("y", "names", "message"),
    [
        (np.eye(3), "", r"\(3, 3\)"),
        (np.array([1j]), "", "complex128"),
        (np.array([0, "a"], dtype=object), "", "object"),
        (np.array([1.5, np.nan, 2.5]), "", "nan for example 1"),
        (np.array([0, 1, 2]), "ab", "from 0 to 1: got 2"),
        (np.array([0, -1]), "ab", "got -1"),
        (np.array(["a", "b"]), "ab", "got a"),
        (np.zeros(9, int), "", "two classes or more: all examples are '0'"),
        (np.full(30, 2.5), "", r"different values: it is 2\.5"),
        (np.arange(12) % 3, "abcd", "'d' has 0"),
        (np.array([0, 0, 0, 1, 1]), "", "at least 3 examples .* '1' has 2$"),
        (np.arange(20), "", "'2' has 1, ...; a quantity must be given as floats"),
    ],
)
def test_labels_that_mean_nothing_or_cannot_be_learned_are_rejected(y, names, message):
    with pytest.raises(DendritreeError, match=message):
        split_arrays({"train": (np.zeros((len(y), 2)), y)}, names=names)


# -------------------------------------------------------------------------------------------------------------- files


def test_an_npz_file_is_cut_by_its_seed_and_every_part_has_every_class(tmp_path):
    x, y = blobs(60, classes=4)
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    split, again, other = (load_dataset(tmp_path / "mine.npz", seed=seed) for seed in (0, 0, 1))
    assert [len(part) for part in split.parts] == [36, 12, 12]
    assert all(part.y.unique().tolist() == [0, 1, 2, 3] for part in split.parts)
    assert (split.name, split.image_shape, split.classes) == ("mine.npz", (1, 8, 8), ("0", "1", "2", "3"))
    assert split.notes == ("36 training, 12 validation and 12 test examples, split at random with seed 0",)
    assert all(torch.equal(a.x, b.x) for a, b in zip(split.parts, again.parts, strict=True))
    assert not torch.equal(split.test.x, other.test.x)
    rows = torch.cat([part.x for part in split.parts])
    assert len(rows.unique(dim=0)) == 60


def test_given_parts_and_names_are_kept(tmp_path):
    x, y = blobs(40)
    test_x, test_y = blobs(10, seed=1)
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, x_test=test_x, y_test=test_y, class_names=["left", "right"])
    split = load_dataset(tmp_path / "d.npz")
    assert [len(part) for part in split.parts] == [32, 8, 10]
    assert torch.equal(split.test.x, torch.from_numpy(test_x.reshape(10, 64).astype(np.float32) / np.float32(255)))
    assert split.test.y.tolist() == test_y.tolist()
    assert split.classes == ("left", "right")
    assert split.notes[0].endswith("the test examples are as given, the others were split at random with seed 0")


def test_npy_files_side_by_side(tmp_path):
    x, y = blobs(40)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "notes.npy", np.zeros(3))
    by_file, by_folder = load_dataset(tmp_path / "x.npy"), load_dataset(str(tmp_path))
    assert [len(part) for part in by_file.parts] == [24, 8, 8]
    assert torch.equal(by_file.train.x, by_folder.train.x)
    np.save(tmp_path / "x_test.npy", x[:6])
    with pytest.raises(FormatError, match=r"x\.npy lacks y of test; it has x, x_test, y$"):
        load_dataset(tmp_path / "x.npy")
    np.save(tmp_path / "y_test.npy", y[:6])
    assert len(load_dataset(tmp_path / "x.npy").test) == 6


def test_rows_of_a_file_are_an_image_if_it_or_the_user_says_so(tmp_path):
    x, y = blobs(40)
    np.savez(tmp_path / "rows.npz", x=x.reshape(40, 64), y=y)
    np.savez(tmp_path / "said.npz", x=x.reshape(40, 64), y=y, image_shape=(1, 4, 16))
    assert load_dataset(tmp_path / "rows.npz").image_shape is None
    assert load_dataset(tmp_path / "rows.npz", image=(1, 8, 8)).image_shape == (1, 8, 8)
    assert load_dataset(tmp_path / "said.npz").image_shape == (1, 4, 16)
    with pytest.raises(ShapeError, match=r"as many pixels as an example: got \(1, 9, 9\)"):
        load_dataset(tmp_path / "rows.npz", image=(1, 9, 9))


NAMES, THREE = ("x", "y", "x_test", "y_test"), np.arange(9) % 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3), "y": np.zeros(3)}, r"named x and y, .*: bad\.npz lacks x of train; it has a, y$"),
        ({"pixels": np.zeros(3)}, "lacks x and y; it has pixels"),
        ({"x": np.zeros((4, 2)), "y": np.zeros(3)}, r"one y per x: got x \(4, 2\), y \(3,\)"),
        (dict(zip(NAMES, (np.zeros((9, 4, 4)), THREE, np.zeros((3, 5, 5)), THREE[:3]), strict=True)), "one shape"),
        (dict(zip(NAMES, (np.eye(9, 4), THREE // 2, np.zeros((3, 4)), THREE[:3]), strict=True)), "'2' has 0"),
        ({"x": np.zeros((4, 2)), "y": np.zeros(4), "image_shape": (2,)}, "image_shape must be channels, height and w"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path, arrays, message):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        load_dataset(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)


def test_objects_and_cut_files_are_rejected_without_being_run(tmp_path):
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.zeros(3), np.zeros(4)]
    np.savez(tmp_path / "objects.npz", x=ragged, y=np.arange(2))
    with pytest.raises(FormatError, match=r"objects\.npz must be a file of numpy\.savez"):
        load_dataset(tmp_path / "objects.npz")
    np.savez(tmp_path / "whole.npz", x=np.zeros((50, 9)), y=np.arange(50))
    content = (tmp_path / "whole.npz").read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 30):
        (tmp_path / "cut.npz").write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"cut\.npz must be a file of numpy\.savez"):
            load_dataset(tmp_path / "cut.npz")
