"""What tests of the search share: small made-up data, and a record of what was tried."""

import torch

from dendritree.training.examples import Examples
from dendritree_lab.data.split import DataSplit


def made_up(classes=3, inputs=6, seed=0, test_seed=1):
    """Examples whose class is the largest of the first inputs, or whose quantity is their sum; the test part apart."""

    def part(count, of):
        random = torch.Generator().manual_seed(of)
        x = torch.randn(count, inputs, generator=random)
        return Examples(x, x[:, :classes].argmax(1) if classes else x[:, :3].sum(1))

    return DataSplit(part(120, seed), part(60, seed + 100), part(60, test_seed + 200))


def tried(result):
    """Everything about the trials but the time they took."""
    return [(dict(t.chosen), t.whole, t.score, t.parameters, t.epochs) for t in result.trials]
