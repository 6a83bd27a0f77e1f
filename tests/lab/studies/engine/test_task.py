"""What models are compared on: names, losses and scores, epochs, and the examples as every model gets them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree_lab.data import load_dataset
from dendritree_lab.studies.engine.task import (
    CLIP,
    FEWEST_EPOCHS,
    MOST_EPOCHS,
    Task,
    batch_size_for,
    epochs_for,
)
from dendritree_lab.studies.fair.comparison_plan import BUDGETS

# ------------------------------------------------------------------------------------------------------------- names


@given(st.sampled_from(list(BUDGETS)), st.none() | st.integers(1, 10**9))
def test_a_task_is_read_back_from_its_name(dataset, examples):
    name = dataset if examples is None else f"{dataset}:{examples}"
    task = Task.parse(name)
    assert (task.name, task.dataset, task.examples) == (name, dataset, examples)


# ------------------------------------------------------------------------------------------------ outputs and scores

TEN, HUNDRED, YES_OR_NO, NUMBER = (
    (10, "cross-entropy", "accuracy"),
    (100, "cross-entropy", "accuracy"),
    (1, "binary-logits", "accuracy"),
    (1, "squared-error", "rmse"),
)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("mnist", (1, 28, 28), TEN),
        ("fashion-mnist", (1, 28, 28), TEN),
        ("mnist-pairs", (1, 28, 56), HUNDRED),
        ("fashion-pairs", (1, 28, 56), HUNDRED),
        ("digits", (1, 8, 8), TEN),
        ("adult", None, YES_OR_NO),
        ("california-housing", None, NUMBER),
    ],
)
@pytest.mark.parametrize("examples", [None, 128])
def test_outputs_loss_and_metric_are_those_of_the_data(name, shape, expected, examples):
    task = Task.parse(name if examples is None else f"{name}:{examples}")
    assert (task.out_features, task.loss, task.metric) == expected
    assert task.image_shape == shape


def test_the_score_is_the_accuracy_or_the_root_of_the_mean_squared_error():
    assert Task.parse("adult").score(0.25, 0.875) == 0.875
    assert Task.parse("california-housing").score(0.49, math.nan) == pytest.approx(0.7)
    assert math.isnan(Task.parse("adult").score(math.nan, 0.1))  # a model that diverged is right by chance alone


def test_of_scores_more_is_better_of_errors_less_and_nan_is_worst():
    assert (
        Task.parse("adult").goodness(0.9) > Task.parse("adult").goodness(0.8) > Task.parse("adult").goodness(math.nan)
    )
    houses = Task.parse("california-housing")
    assert houses.goodness(0.5) > houses.goodness(0.7) > houses.goodness(math.inf) >= houses.goodness(math.nan)


@given(st.integers(1, 100_000), st.integers(1, 50_000))
def test_epochs_make_about_the_steps_asked_for(examples, steps):
    epochs = epochs_for(examples, steps)
    per_epoch = len(range(0, examples, batch_size_for(examples)))
    assert FEWEST_EPOCHS <= epochs <= MOST_EPOCHS
    if epochs > FEWEST_EPOCHS:
        assert (epochs - 1) * per_epoch < steps  # one less would be too few
    if epochs < MOST_EPOCHS:
        assert epochs * per_epoch >= steps


# ---------------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("examples", [None, 500])
def test_columns_of_a_table_are_scaled_by_the_training_examples_alone(examples, real_data):
    real_data("california-housing")
    task = Task.parse("california-housing" if examples is None else f"california-housing:{examples}")
    split, plain = task.load(), load_dataset("california-housing")
    if examples is not None:  # which ones: as the data's own function says, tested with it
        chosen = np.sort(np.random.default_rng(0).permutation(len(plain.train))[:examples])
    else:
        chosen = np.arange(len(plain.train))
    train = plain.train.x.numpy()[chosen].astype(np.float64)
    mean, sd = train.mean(0), train.std(0, ddof=1)
    assert len(split.train) == len(train)
    np.testing.assert_array_equal(split.train.y.numpy(), plain.train.y.numpy()[chosen])
    for part, before in ((split.train, train), (split.val, plain.val.x.numpy()), (split.test, plain.test.x.numpy())):
        np.testing.assert_allclose(part.x.numpy(), np.clip((before - mean) / sd, -CLIP, CLIP), rtol=2e-3, atol=2e-3)
    assert split.test.x.abs().max() == CLIP  # of which there are some
    assert torch.equal(split.test.y, plain.test.y)
