"""The images of a trial: decided by data set and trial number alone, and computed here a second time."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dendritree_lab.data import read_images
from dendritree_lab.studies.paper.paper_trials import draw_trials, full_split
from dendritree_lab.studies.paper.reproduction import RunPlan
from dendritree_lab.studies.paper.spec import PAPER

ONCE = dataclasses.replace(PAPER, draw="once")
FIELDS = ("train_x", "train_y", "val_x", "val_y")


@pytest.fixture(scope="module")
def mnist(real_data):
    real_data("mnist")
    return read_images("mnist")


def same(one, other):
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def trial_of(draw, place):
    return [getattr(draw, name)[place] for name in FIELDS]


def enlarged(image):
    """28x28 bytes as 1024 normalized numbers: pixel (i, j) of 32x32 is pixel (7i/8, 7j/8) of 28x28, rounded down."""
    nearest = np.arange(32) * 28 // 32
    pixels = (image.astype(np.float64) / 255 - 0.1307) / 0.3081
    return pixels[nearest][:, nearest].ravel()


def find(mnist, columns, digits):
    """The numbers of the training images that columns of features are made of."""
    known = {mnist.train_images[i].tobytes(): i for i in np.flatnonzero(np.isin(mnist.train_labels, digits))}
    corner = [i * 32 // 28 + (i * 32 % 28 > 0) for i in range(28)]  # the first copy of each pixel
    pixels = columns.T.double().numpy().reshape(-1, 32, 32)[:, corner][:, :, corner]
    images = np.rint((pixels * 0.3081 + 0.1307) * 255).astype(np.uint8)
    return [known[image.tobytes()] for image in images]


# -------------------------------------------------------------------------------------------------------------- shape


@pytest.mark.parametrize(("dataset", "digits"), [("mnist", range(10)), ("mnist-4-9", (4, 9))])
def test_images_are_training_images_with_their_labels_normalised_and_enlarged_none_twice(dataset, digits, mnist):
    draw = draw_trials(dataset, PAPER, range(2))
    for place in range(2):
        train_x, train_y, val_x, val_y = trial_of(draw, place)
        numbers = find(mnist, torch.cat([train_x, val_x], 1), list(digits))
        assert len(set(numbers)) == 228  # so training and validation share none
        labels = mnist.train_labels[numbers]
        expected = (labels == 9) if dataset == "mnist-4-9" else labels  # 4 -> 0, 9 -> 1
        assert torch.cat([train_y, val_y]).tolist() == expected.astype(int).tolist()
        for image in (0, 77, 127):
            np.testing.assert_allclose(train_x[:, image], enlarged(mnist.train_images[numbers[image]]), atol=1e-5)


# -------------------------------------------------------------------------------------------------------- what decides


@given(first=st.integers(0, 30), count=st.integers(1, 5), place=st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("mnist")
def test_a_trial_s_images_depend_on_its_number_alone_in_any_stack_and_any_order(first, count, place):
    offset = place.draw(st.integers(0, count - 1))
    together = draw_trials("mnist-4-9", PAPER, range(first, first + count))
    draw_trials("mnist-4-9", PAPER, range(40, 42))  # another one in between
    alone = draw_trials("mnist-4-9", PAPER, range(first + offset, first + offset + 1))
    assert all(torch.equal(a, b) for a, b in zip(trial_of(together, offset), trial_of(alone, 0), strict=True))


def test_draws_are_paired_across_the_models_and_tables_of_a_task_and_cnn_meets_what_multiclass_meets():
    """What the draw is called with is the same for all of them: data set, protocol and trial number."""
    arguments = {}
    for job in RunPlan.make().jobs([]):
        arguments.setdefault(job.row.task, set()).add((job.dataset, job.protocol))
    assert {task: len(each) for task, each in arguments.items()} == {"binary": 1, "multiclass": 1, "cnn": 1}
    assert arguments["multiclass"] == arguments["cnn"]


# --------------------------------------------------------------------------------------------------------- other draws


@pytest.mark.usefixtures("mnist")
def test_once_gives_the_same_images_to_all_trials():
    draw = draw_trials("mnist-4-9", ONCE, range(7, 10))
    other = draw_trials("mnist-4-9", ONCE, range(3))
    assert same(draw, other)
    assert all(torch.equal(x, draw.train_x[0]) for x in draw.train_x)
    assert all(torch.equal(y, draw.val_y[0]) for y in draw.val_y)


def test_the_full_split_is_the_data_set_s_own_normalised_and_enlarged(mnist):
    split = full_split("mnist-4-9")
    fours_nines = np.isin(mnist.test_labels, [4, 9])
    assert split.test.y.tolist() == (mnist.test_labels[fours_nines] == 9).astype(int).tolist()
    first = mnist.test_images[fours_nines][0]
    np.testing.assert_allclose(split.test.x[0], enlarged(first), atol=1e-5)
    assert len(split.train.y) + len(split.val.y) == np.isin(mnist.train_labels, [4, 9]).sum()
    assert split.train.x.shape[1] == split.val.x.shape[1] == 1024
