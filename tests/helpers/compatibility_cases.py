"""What tests/compatibility writes and reads again: inputs that need no file, and a small training run."""

import torch

from dendritree import DendriticNetwork, FitConfig
from dendritree.data import Examples, Split
from dendritree.wiring import Random

CONFIG = FitConfig("cross-entropy", epochs=2, batch_size=4, lr=0.05, seed=3)


def rows(count, features):
    """The same numbers in [-1, 1] on any machine and in any version."""
    return torch.sin(torch.arange(1, count * features + 1, dtype=torch.float64) * 0.7).reshape(count, features)


def split():
    x = rows(12, 6).float()
    examples = Examples(x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long())
    return Split(examples, examples, examples)


def trained_model():
    torch.manual_seed(0)
    return DendriticNetwork(6, [3], 3, branching=[2, 2], wiring=Random(seed=1))
