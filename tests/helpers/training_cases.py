"""Small data and models that the training tests share."""

import copy
import functools

import torch
from sklearn.datasets import load_digits

from dendritree import MLNClassifier
from dendritree.training.examples import Examples, Split, cut


def make_examples(count, seed, dtype=torch.float64):
    """Sixteen random features and one of three classes, the same ones at every call."""
    random_numbers = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 16, generator=random_numbers, dtype=dtype)
    return Examples(x, torch.randint(3, (count,), generator=random_numbers))


def make_split(train=20, val=10):
    return Split(make_examples(train, 1), make_examples(val, 2), make_examples(5, 3))


@functools.cache
def digits():
    """scikit-learn's images of digits, scaled to [0, 1]; a fifth for validation and another for the test."""
    x, y = load_digits(return_X_y=True)
    examples = Examples(torch.from_numpy(x / 16).float(), torch.from_numpy(y))
    return Split(*(examples.select(torch.from_numpy(rows)) for rows in cut(y)))


def make_model(dropout=0.0):
    """A model in double precision, with the same weights at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MLNClassifier(16, 3, branching=4, dropout=dropout, output="logits", dtype=torch.float64)


def same_state(one, other):
    """Whether two state dicts are bitwise equal."""
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def figures(history):
    """All columns of a history but the clock."""
    columns = history.columns()
    columns.pop("seconds")
    return columns


class Recorder:
    """A callback that keeps the weights of every epoch."""

    def __init__(self):
        self.states = []

    def __call__(self, run):
        self.states.append(copy.deepcopy(run.model.state_dict()))
