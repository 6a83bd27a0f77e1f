"""What `fit` and `evaluate` reject or warn about before the first step."""

import copy

import pytest
import torch
from torch import nn

from dendritree import FitConfig, MLNBinaryClassifier, MLNClassifier, fit
from dendritree.errors import OptionError, ShapeError
from dendritree.training import evaluate
from dendritree.training.examples import Examples, Split

X, CLASSES = torch.randn(12, 16), torch.arange(12) % 3


def split_of(y, x=X):
    return Split(*[Examples(x, y)] * 3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, r"^examples must be a pair \(x, y\), a Dataset or a DataLoader: got int$"),
        ((X, CLASSES[:-1]), r"^there must be one y for each x: got x \(\d+, \d+\), y \(\d+,\)$"),
        (X, r"got Tensor$"),
        (
            split_of(nn.functional.one_hot(CLASSES)),
            r"^y must be one class number .* got torch.int64 of shape \(12, 3\) for outputs of shape \(12, 3\)$",
        ),
        (split_of(CLASSES.float()), r"got torch\.float32 of shape \(12,\)$"),
        (split_of(CLASSES - 1), r"^train\.y must be class numbers from 0 for cross-entropy: got -1$"),
        (split_of(CLASSES + 1), r"^the model must have an output for each class: it has 3, and there is class 3$"),
    ],
)
def test_data_that_does_not_fit_is_rejected_and_the_model_stays(data, message):
    model = nn.Linear(16, 3)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises((OptionError, ShapeError), match=message):
        fit(model, data, FitConfig(epochs=1))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("y", [CLASSES, -CLASSES])
@pytest.mark.parametrize("loss", ["binary-logits", "binary-probabilities"])
def test_yes_or_no_has_no_third_answer(loss, y):
    with pytest.raises(OptionError, match=rf"^train\.y must be 0 or 1 for {loss}: got {y.min()} to {y.max()}$"):
        fit(nn.Sequential(nn.Linear(16, 1), nn.Sigmoid()), split_of(y), FitConfig(loss, epochs=1))


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_targets_that_are_not_finite_are_rejected(value):
    y = torch.where(CLASSES == 1, value, CLASSES.float())
    with pytest.raises(OptionError, match=rf"^train\.y must be finite for squared-error: got {value}$"):
        fit(nn.Linear(16, 1), split_of(y), FitConfig("squared-error", epochs=1))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_classes_may_be_any_whole_numbers(dtype):
    history = fit(nn.Linear(16, 3), split_of(CLASSES.to(dtype)), FitConfig(epochs=1))
    assert 0 <= history.best.val_acc <= 1


def test_probabilities_are_no_logits():
    yes = (CLASSES > 0).float()
    for given, wanted in (("probabilities", "logits"), ("logits", "probabilities")):
        net, config = MLNBinaryClassifier(16, branching=4, output=given), FitConfig(f"binary-{wanted}", epochs=1)
        rule = f"binary-{wanted} takes {wanted}, and MLNBinaryClassifier gives {given}"
        with pytest.raises(OptionError, match=f"^{rule}: build it with output='{wanted}', or .* 'binary-{given}'$"):
            fit(net, split_of(yes), config)
        fit(net, split_of(yes), FitConfig(f"binary-{given}", epochs=1))
    fit(nn.Sequential(nn.Linear(16, 1), nn.Sigmoid()), split_of(yes), FitConfig("binary-probabilities", epochs=1))
    with pytest.warns(UserWarning, match=r"^cross-entropy takes logits, and MLNClassifier gives probabilities"):
        fit(MLNClassifier(16, 3, branching=4, output="probabilities"), split_of(CLASSES), FitConfig(epochs=1))


def test_evaluate_says_the_same_of_targets():
    with pytest.raises(OptionError, match=r"^y must be one class number for each example, or"):
        evaluate(nn.Linear(16, 3), Examples(X, nn.functional.one_hot(CLASSES)))
    with pytest.raises(OptionError, match=r"^the model must have an output for each class: it has 2"):
        evaluate(nn.Linear(16, 2), Examples(X, CLASSES))


@pytest.mark.parametrize("name", ["x", "y", "weight"])
def test_examples_are_tensors(name):
    parts = {"x": X, "y": CLASSES, "weight": torch.ones(12)} | {name: CLASSES.numpy()}
    with pytest.raises(OptionError, match=rf"^{name} of Examples must be a tensor: got ndarray$"):
        Examples(**parts)
