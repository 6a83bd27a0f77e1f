"""Flips, shifts, smooth labels and the cosine schedule."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dendritree import FitConfig, create_model, fit
from dendritree.errors import OptionError
from dendritree.training.augmentation import Augmentation
from dendritree.training.examples import Examples, Split

IMAGE = (2, 5, 6)


def generator():
    return torch.Generator().manual_seed(0)


def test_flips_mirror_about_half_of_the_images():
    x = torch.randn(200, *IMAGE)
    changed = Augmentation(IMAGE, flips=True, shifts=0)(x, generator())
    flipped = (changed == x.flip(-1)).flatten(1).all(1)
    same = (changed == x).flatten(1).all(1)
    assert bool((flipped ^ same).all())
    assert 70 < int(flipped.sum()) < 130


def test_shifts_move_images_and_let_zeros_in():
    x = torch.rand(300, *IMAGE) + 1
    changed = Augmentation(IMAGE, flips=False, shifts=1)(x.flatten(1), generator()).reshape(x.shape)
    padded = F.pad(x, (1, 1, 1, 1))
    moved = torch.stack([padded[:, :, i : i + 5, j : j + 6] for i in range(3) for j in range(3)])
    which = (moved == changed).flatten(2).all(2)  # (moves, images)
    assert bool((which.sum(0) == 1).all())
    assert bool((which.sum(1) > 10).all())


@pytest.mark.parametrize("options", [{"flips": True}, {"shifts": 2}])
def test_rows_are_images_if_the_model_or_the_data_say_so(options):
    x, y = torch.randn(40, 64), torch.arange(40) % 3
    config = FitConfig(epochs=1, **options)
    histories = [
        fit(create_model("dendritic", out_features=3, image_shape=(1, 8, 8), budget=600), (x, y), config),
        fit(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), (x.reshape(-1, 1, 8, 8), y), config),
    ]
    assert all(len(history.epochs) == 1 for history in histories)
    with pytest.raises(OptionError, match="image_shape"):
        fit(nn.Linear(64, 3), (x, y), config)


def test_an_augmented_run_depends_on_its_seed_alone():
    x, y = torch.randn(60, 1, 8, 8), torch.arange(60) % 3
    config = FitConfig(epochs=2, flips=True, shifts=1, label_smoothing=0.1, schedule="cosine", batch_size=16)
    weights = []
    for _ in range(2):
        torch.manual_seed(1)
        net = create_model("cnn", out_features=3, image_shape=(1, 8, 8), budget=600)
        fit(net, (x, y), config)
        weights.append(net.readout.weight)
    assert torch.equal(*weights)


@pytest.mark.parametrize("shape", [(7, 4), (7, 3, 4)])
def test_smooth_labels_are_those_of_torch(shape):
    out, y = torch.randn(shape, requires_grad=True), torch.randint(4, shape[:-1])
    torch.manual_seed(0)

    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Parameter(out.detach().clone())

        def forward(self, x):
            return self.out[x.flatten().long()]

    net = Fixed()
    parts = Examples(torch.arange(7.0)[:, None], y)
    config = FitConfig(epochs=1, batch_size=None, optimizer="sgd", lr=1.0, label_smoothing=0.2, restore_best=False)
    fit(net, Split(parts, parts, parts), config)
    F.cross_entropy(out.flatten(0, -2), y.flatten(), label_smoothing=0.2).backward()
    torch.testing.assert_close(net.out.detach(), out.detach() - out.grad)


def test_a_cosine_falls_from_the_learning_rate_to_zero():
    rates = []
    net = nn.Linear(4, 3)
    fit(
        net,
        (torch.randn(50, 4), torch.arange(50) % 3),
        FitConfig(epochs=5, lr=0.1, schedule="cosine", batch_size=None),
        callbacks=[lambda run: rates.append(run.optimizer.param_groups[0]["lr"])],
    )
    assert rates[0] < 0.1
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flips": 1}, "flips"),
        ({"shifts": -1}, "shifts"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": 0.1, "loss": "squared-error"}, "cross-entropy"),
    ],
)
def test_what_does_not_fit_is_rejected(options, message):
    with pytest.raises(OptionError, match=message):
        FitConfig(**options)
