"""Weights of examples, runs without validation, early stopping, and continuing with an optimizer."""

import copy
import math

import pytest
import torch
from torch import nn

from dendritree import FitConfig, fit
from dendritree.errors import OptionError, ShapeError
from dendritree.training import EarlyStopping, Epoch, History, Run, evaluate, make_optimizer
from dendritree.training.examples import Examples, Split


def regression(rows=12, weight=None):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, 3, generator=generator)
    return Examples(x, x @ torch.tensor([[1.0], [-2.0], [0.5]]), weight)


def none_of(examples):
    return Examples(examples.x[:0], examples.y[:0])


def alone(examples):
    """A split with nothing to choose by."""
    return Split(examples, none_of(examples), none_of(examples))


def linear():
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    return model


PLAIN = FitConfig(loss="squared-error", epochs=3, batch_size=None, optimizer="sgd", lr=0.1, restore_best=False)


def test_a_step_follows_the_gradient_of_the_weighted_loss():
    weight = torch.tensor([1.0, 3.0, 0.5])
    examples = regression(3, weight)
    model, expected = linear(), linear()
    fit(model, alone(examples), FitConfig(**{**vars(PLAIN), "epochs": 1}))
    out = expected(examples.x)
    loss = sum(w * (o - y) ** 2 for w, o, y in zip(weight, out[:, 0], examples.y[:, 0], strict=True)) / weight.sum()
    loss.backward()
    for parameter, trained in zip(expected.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(parameter - 0.1 * parameter.grad, trained)


def test_a_whole_weight_is_that_many_rows():
    examples = regression(6)
    times = torch.tensor([1, 2, 3, 1, 1, 4])
    repeated = Examples(examples.x.repeat_interleave(times, 0), examples.y.repeat_interleave(times, 0))
    weighted = Examples(examples.x, examples.y, times.float())
    first, second = linear(), linear()
    histories = [fit(model, alone(part), PLAIN) for model, part in ((first, weighted), (second, repeated))]
    torch.testing.assert_close(first.weight, second.weight)
    assert histories[0].epochs[-1].train_loss == pytest.approx(histories[1].epochs[-1].train_loss)
    assert evaluate(first, weighted, "squared-error")[0] == pytest.approx(evaluate(first, repeated, "squared-error")[0])


def test_accuracy_counts_by_weight():
    model = nn.Identity()
    model.weight = nn.Parameter(torch.zeros(1))  # a model must have parameters
    out = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    examples = Examples(out, torch.tensor([0, 1, 1]), torch.tensor([1.0, 2.0, 5.0]))
    assert evaluate(model, examples)[1] == pytest.approx(6 / 8)


def test_weights_of_another_length_are_rejected():
    with pytest.raises(ShapeError, match="one weight"):
        alone(regression(12, torch.ones(5)))


def test_without_validation_the_last_weights_stay():
    examples = regression()
    model = linear()
    history = fit(model, alone(examples), PLAIN)
    assert [math.isnan(epoch.val_loss) for epoch in history.epochs] == [True] * 3
    assert evaluate(model, examples, "squared-error")[0] < history.epochs[-1].train_loss
    with pytest.raises(OptionError, match="training and validation"):
        fit(linear(), alone(examples), FitConfig(loss="squared-error"))


def test_an_optimizer_that_goes_on_gives_what_one_run_gives():
    examples = regression()
    config = FitConfig(loss="squared-error", epochs=1, batch_size=None, lr=0.05, restore_best=False)
    whole, parts = linear(), linear()
    fit(whole, alone(examples), FitConfig(**{**vars(config), "epochs": 4}))
    optimizer = make_optimizer(parts, config)
    for _ in range(4):
        fit(parts, alone(examples), config, optimizer=optimizer)
    torch.testing.assert_close(whole.weight, parts.weight, rtol=0, atol=0)
    forgetful = linear()
    for _ in range(4):
        fit(forgetful, alone(examples), config)
    assert not torch.equal(forgetful.weight, whole.weight)


@pytest.mark.parametrize(
    ("losses", "patience", "stops"),
    [
        ([3, 2, 1], 1, False),
        ([1, 2], 1, True),
        ([1, 2], 2, False),
        ([1, 2, 3], 2, True),
        ([2, 3, 1, 4], 2, False),
        ([1, 1, 1], 2, True),  # as good is not better
        ([math.nan, math.nan], 1, True),
    ],
)
def test_early_stopping_waits_so_many_epochs_for_a_lower_loss(losses, patience, stops):
    history = History(FitConfig(), [Epoch(place, 0.0, loss, 0.0, 0.0, 0.0) for place, loss in enumerate(losses)])
    run = Run(nn.Linear(1, 1), None, history)
    EarlyStopping(patience)(run)
    assert run.stop is stops


def test_early_stopping_leaves_the_best_weights():
    train, val = regression(8), regression(8)
    val = Examples(val.x, -val.y)  # what is learned is wrong there: the first epoch is the best
    model = linear()
    config = FitConfig(loss="squared-error", epochs=50, batch_size=None, lr=0.05)
    states = []
    history = fit(
        model,
        Split(train, val, val),
        config,
        callbacks=[lambda run: states.append(copy.deepcopy(run.model.state_dict())), EarlyStopping(3)],
    )
    assert len(history.epochs) == 4
    torch.testing.assert_close(model.weight, states[0]["weight"])
