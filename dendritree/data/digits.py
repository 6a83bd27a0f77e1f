"""Scikit-learn's bundled handwritten digits: 1,797 images of 8x8 pixels, ten classes, no download."""

from __future__ import annotations

import torch

from ..errors import import_extra
from .split import Examples, Split, fixed_order

__all__ = ["load_digits"]


def load_digits() -> Split:
    """1,197 images to train on, 300 to choose by, 300 to test; pixels scaled to [0, 1].

    The images are shuffled once by a fixed seed: in the file, neighbours come from the same writer.

    >>> split = load_digits()
    >>> len(split.train), len(split.val), len(split.test)
    (1197, 300, 300)
    """
    digits = import_extra("sklearn.datasets", extra="data").load_digits()
    order = fixed_order(len(digits.target))
    x = torch.as_tensor(digits.data[order] / 16.0, dtype=torch.float32)
    y = torch.as_tensor(digits.target[order], dtype=torch.long)
    return Split(*(Examples(x[part], y[part]) for part in (slice(600, None), slice(0, 300), slice(300, 600))))
