"""What `fit` and `evaluate` reject or warn about before the first step."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from dendritree import FitConfig, MLNBinaryClassifier, MLNClassifier, fit
from dendritree.errors import OptionError, ShapeError
from dendritree.training.examples import Examples, Split

X, CLASSES = torch.randn(12, 16), torch.arange(12) % 3


class Ragged(Dataset):
    """Items of different lengths."""

    def __len__(self):
        return 4

    def __getitem__(self, place):
        return torch.ones(place), 0


def split_of(y, x=X):
    return Split(*[Examples(x, y)] * 3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "got int"),
        ((X, CLASSES[:-1]), "one y for each x"),
        (X, "got Tensor"),
        (split_of(nn.functional.one_hot(CLASSES)), "one class number"),
        (split_of(CLASSES.float()), "float32"),
        (split_of(CLASSES - 1), "got -1"),
        (split_of(CLASSES + 1), "output for each class"),
        ({"val": (X, CLASSES)}, "train"),
        (TensorDataset(X[:0], CLASSES[:0]), "items"),
        (Ragged(), "one shape"),
    ],
)
def test_data_that_does_not_fit_is_rejected_and_the_model_stays(data, message):
    model = nn.Linear(16, 3)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises((OptionError, ShapeError), match=message):
        fit(model, data, FitConfig(epochs=1))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("binary-logits", CLASSES),
        ("binary-probabilities", -CLASSES),
        ("squared-error", torch.where(CLASSES == 1, torch.inf, CLASSES.float())),
    ],
)
def test_targets_that_do_not_fit_the_loss_are_rejected(loss, y):
    with pytest.raises(OptionError, match=rf"^train\.y must be .* for {loss}"):
        fit(nn.Sequential(nn.Linear(16, 1), nn.Sigmoid()), split_of(y), FitConfig(loss, epochs=1))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_classes_may_be_any_whole_numbers(dtype):
    history = fit(nn.Linear(16, 3), split_of(CLASSES.to(dtype)), FitConfig(epochs=1))
    assert 0 <= history.best.val_acc <= 1


def test_probabilities_are_no_logits():
    yes = (CLASSES > 0).float()
    for given, wanted in (("probabilities", "logits"), ("logits", "probabilities")):
        net = MLNBinaryClassifier(16, branching=4, output=given)
        with pytest.raises(OptionError, match=f"output='{wanted}'"):
            fit(net, split_of(yes), FitConfig(f"binary-{wanted}", epochs=1))
        fit(net, split_of(yes), FitConfig(f"binary-{given}", epochs=1))
    fit(nn.Sequential(nn.Linear(16, 1), nn.Sigmoid()), split_of(yes), FitConfig("binary-probabilities", epochs=1))
    with pytest.warns(UserWarning, match="second softmax"):
        fit(MLNClassifier(16, 3, branching=4, output="probabilities"), split_of(CLASSES), FitConfig(epochs=1))


@pytest.mark.parametrize("name", ["x", "y", "weight"])
def test_examples_are_tensors(name):
    parts = {"x": X, "y": CLASSES, "weight": torch.ones(12)} | {name: CLASSES.numpy()}
    with pytest.raises(OptionError, match=f"^{name} of Examples"):
        Examples(**parts)
