"""CIFAR-10: 60,000 color images in ten classes, in the binary batches of its authors."""

from __future__ import annotations

import numpy as np
import torch

from ..errors import FormatError
from .idx import Bytes
from .split import Examples, Split, fixed_order

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
VALIDATION = 10_000
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def read_batch(content: bytes) -> tuple[Bytes, Bytes]:
    """Images (n, 3072), all red pixels row by row, then green, then blue; and labels (n,).

    >>> images, labels = read_batch(write_batch(np.zeros((2, 3072), np.uint8), np.array([6, 9], np.uint8)))
    >>> images.shape, labels.tolist()
    ((2, 3072), [6, 9])
    """
    if not content or len(content) % (1 + PIXELS):
        raise FormatError(f"a batch must have {1 + PIXELS} bytes per image: got {len(content)} bytes")
    table = np.frombuffer(content, np.uint8).reshape(-1, 1 + PIXELS)
    return table[:, 1:], table[:, 0]


def write_batch(images: Bytes, labels: Bytes) -> bytes:
    """The inverse of `read_batch`."""
    return np.concatenate([labels[:, None], images], axis=1).tobytes()


def split_cifar(*batches: bytes, validation: int = VALIDATION) -> Split:
    """Rows of pixels in [0, 1] of five training batches and, the last one, the test batch.

    Validation is the first `validation` training images in `fixed_order`; the rest, in that order, is trained on.
    """
    read = [read_batch(batch) for batch in batches]
    images, labels = (np.concatenate(arrays) for arrays in zip(*read[:-1], strict=True))
    order = fixed_order(len(labels))
    chosen, rest = order[:validation], order[validation:]
    return Split(_examples(images[rest], labels[rest]), _examples(images[chosen], labels[chosen]), _examples(*read[-1]))


def _examples(images: Bytes, labels: Bytes) -> Examples:
    return Examples(torch.from_numpy(images.astype(np.float32)).div_(255), torch.from_numpy(labels.astype(np.int64)))
