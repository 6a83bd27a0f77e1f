"""Images: formats and splits of files that we make, pairs against pictures put together by hand, transforms, digits."""

import hashlib

import numpy as np
import pytest
import sklearn.datasets
import torch
from data_cases import idx, make_arrays, make_contents
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dendritree.errors import FormatError, OptionError, ShapeError
from dendritree.training.examples import Examples
from dendritree_lab.data import DataSplit, ImageArrays, load_dataset, normalize, read_images, upsample
from dendritree_lab.data.formats import read_batch, read_idx, write_batch, write_idx
from dendritree_lab.data.images import PAIR_SEEDS, draw_pairs, pair_images, split_cifar, split_four_nine, split_mnist

FILES = make_contents(train=200, test=50).values()
IMAGES = ImageArrays(*make_arrays(train=200, test=50))


# ----------------------------------------------------------------------------------------------------------- formats


@given(array=arrays.arrays(np.uint8, arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)))
def test_idx_files_agree_with_a_writer_by_hand(array):
    assert write_idx(array) == idx(array)
    again = read_idx(idx(array))
    assert (again.shape, again.dtype, again.flags.writeable) == (array.shape, np.uint8, True)
    assert (again == array).all()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x1f\x8b\x08\x00",
        b"\x00\x00\x08\x02\x00\x00\x00\x01",
        idx(np.zeros((2, 3), dtype=np.uint8))[:-1],
        idx(np.zeros((2, 3), dtype=np.uint8)) + b"x",
        b"\x00\x00\x08\x03" + b"\xff" * 12,
    ],
)
def test_anything_that_is_not_an_idx_file_is_rejected(content):
    with pytest.raises(FormatError, match="an IDX file"):
        read_idx(content)


def test_a_batch_is_read_and_written_to_the_same_bytes_and_the_last_one_is_the_test_part():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (3, 6, 3072), dtype=np.uint8)
    labels = generator.integers(0, 10, (3, 6), dtype=np.uint8)
    batches = [
        b"".join(bytes([label]) + image.tobytes() for image, label in zip(*each, strict=True))
        for each in zip(images, labels, strict=True)
    ]
    assert write_batch(*read_batch(batches[0])) == batches[0]
    with pytest.raises(FormatError, match="3073 bytes per image"):
        read_batch(batches[0][:-1])
    split = split_cifar(*batches, validation=4)
    assert torch.equal(split.test.x, torch.from_numpy(images[2]).float().div(255))
    order = np.random.default_rng(0).permutation(12)
    assert torch.cat([split.val.y, split.train.y]).tolist() == labels[:2].reshape(-1)[order].tolist()
    assert len(split.val) == 4


# ------------------------------------------------------------------------------------------------------------ splits


def test_a_split_has_every_training_image_once_and_the_test_images_in_order():
    split = split_mnist(*FILES, validation=40)
    assert [len(part) for part in split.parts] == [160, 40, 50]
    order = np.random.default_rng(0).permutation(200)
    pixels = torch.cat([split.val.x, split.train.x]).mul(255).round().numpy().astype(np.uint8)
    assert np.array_equal(pixels, IMAGES.train_images[order].reshape(200, 784))
    assert torch.cat([split.val.y, split.train.y]).tolist() == IMAGES.train_labels[order].tolist()
    assert torch.equal(split.test.x, torch.tensor(IMAGES.test_images.reshape(50, 784) / np.float32(255)))
    assert split.test.y.tolist() == IMAGES.test_labels.tolist()
    assert {(part.x.dtype, part.y.dtype) for part in split.parts} == {(torch.float32, torch.int64)}


def test_fours_are_0_and_nines_are_1_in_the_same_parts_and_order():
    whole, pair = split_mnist(*FILES, validation=40), split_four_nine(*FILES, validation=40)
    for of, part in zip(whole.parts, pair.parts, strict=True):
        expected = [(x, int(y == 9)) for x, y in zip(of.x, of.y, strict=True) if y in (4, 9)]
        assert part.y.tolist() == [y for _, y in expected]
        assert torch.equal(part.x, torch.stack([x for x, _ in expected]))


def test_every_digit_of_scikit_learn_is_in_one_part_with_its_label():
    split, file = load_dataset("digits"), sklearn.datasets.load_digits()
    assert [len(part) for part in split.parts] == [1197, 300, 300]
    position = {row.tobytes(): number for number, row in enumerate(file.data)}
    assert len(position) == 1797  # no image is in the file twice, so pixels name it
    numbers = [[position[row.tobytes()] for row in part.x.double().numpy() * 16] for part in split.parts]
    assert sorted(number for part in numbers for number in part) == list(range(1797))
    for part, own in zip(split.parts, numbers, strict=True):
        assert file.target[own].tolist() == part.y.tolist()
        # Neighbors in the file come from the same writer, so a part must not be a stretch of it.
        assert np.bincount(np.array(own) * 3 // 1797).min() > 0.2 * len(own)


# ------------------------------------------------------------------------------------------------------------- pairs


@given(count=st.integers(0, 40).filter(lambda count: count != 1), seed=st.integers(0, 2**32))
def test_each_image_is_once_on_either_side_and_never_next_to_itself(count, seed):
    left, right = draw_pairs(count, seed)
    assert sorted(left) == sorted(right) == list(range(count))
    assert not (left == right).any()
    generator = np.random.default_rng(seed)
    plain_left, plain_right = generator.permutation(count), generator.permutation(count)
    assert left.tolist() == plain_left.tolist()
    assert (right != plain_right).sum() <= max(2, (plain_left == plain_right).sum())  # only clashes move


@pytest.mark.parametrize(
    ("part", "count", "first", "digest"),
    [
        (0, 50_000, [(41261, 1966), (19539, 38055), (19954, 8772)], "7b54415b05c47b64969fd9888a649525"),
        (1, 10_000, [(2418, 814), (2892, 6079), (9424, 9665)], "faaa2cf628ee23f7c43ab665e485e1ac"),
        (2, 10_000, [(3194, 3646), (8925, 2772), (96, 2851)], "cb2454b9813d76d45589963013d0fa50"),
    ],
)
def test_the_pairs_are_those_that_results_were_published_with(part, count, first, digest):
    """NumPy may change what its generator gives: then the data sets change, and this must be seen."""
    left, right = draw_pairs(count, PAIR_SEEDS[part])
    assert list(zip(left[:3].tolist(), right[:3].tolist(), strict=True)) == first
    assert hashlib.md5(left.astype("<i8").tobytes() + right.astype("<i8").tobytes()).hexdigest() == digest


@given(side=st.integers(1, 6), counts=st.lists(st.integers(0, 12).filter(lambda n: n != 1), min_size=3, max_size=3))
def test_a_pair_is_its_two_images_side_by_side_and_its_class_both_digits(side, counts):
    generator = torch.Generator().manual_seed(0)
    singles = [Examples(torch.rand(n, side**2, generator=generator), torch.arange(n) * 7 % 10) for n in counts]
    for single, pair, seed in zip(singles, pair_images(DataSplit(*singles)).parts, PAIR_SEEDS, strict=True):
        assert pair.x.shape == (len(single), 2 * side * side)
        images, labels = single.x.numpy().reshape(-1, side, side), single.y.tolist()
        for x, y, left, right in zip(pair.x.numpy(), pair.y.tolist(), *draw_pairs(len(single), seed), strict=True):
            assert np.array_equal(x.reshape(side, 2 * side), np.hstack([images[left], images[right]]))
            assert f"{y:02}" == f"{labels[left]}{labels[right]}"


# ------------------------------------------------------------------------------------------------------------ pixels


@given(value=st.floats(0, 1))
def test_normalizing_takes_the_papers_mean_and_deviation(value):
    x = torch.tensor([value], dtype=torch.float64)
    assert normalize(x).item() == pytest.approx((value - 0.1307) / 0.3081, rel=1e-12, abs=1e-12)
    with pytest.raises(OptionError, match="floating-point"):
        normalize(x.long())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
@given(side=st.sampled_from([7, 28, 32, 56, 64]), leading=st.lists(st.integers(0, 3), max_size=3))
def test_upsampling_copies_the_nearest_pixel(dtype, side, leading):
    """Row i of `side` shows row floor(i * 28 / side)."""
    x = torch.arange(int(np.prod([*leading, 784]))).remainder(251).to(dtype).reshape(*leading, 28, 28)
    larger = upsample(x, side)
    source = [i * 28 // side for i in range(side)]
    assert torch.equal(larger, x[..., source, :][..., source])
    assert torch.equal(upsample(x.reshape(*leading, 784), side), larger.reshape(*leading, side * side))


@pytest.mark.parametrize("shape", [(), (28, 27), (5, 1024)])
def test_other_shapes_sides_and_data_sets_are_rejected(shape):
    with pytest.raises(ShapeError, match="28, 28"):
        upsample(torch.zeros(shape))
    with pytest.raises(OptionError, match="side"):
        upsample(torch.zeros(28, 28), 0)
    with pytest.raises(OptionError, match="one of 'mnist', 'fashion-mnist'"):
        read_images("digits")
