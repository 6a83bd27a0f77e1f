"""The binary formats of image data sets: IDX, used by MNIST, and the batches of CIFAR-10."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import FormatError

Bytes = NDArray[np.uint8]
CIFAR_PIXELS = 3 * 32 * 32


def read_idx(content: bytes) -> Bytes:
    """The array in an IDX file of unsigned bytes, as a copy that can be written to.

    The file consists of two zero bytes, 8 for unsigned bytes, the number of dimensions, the sizes, and the elements.

    >>> read_idx(write_idx(np.array([[1, 2, 3]], dtype=np.uint8)))
    array([[1, 2, 3]], dtype=uint8)
    """
    if len(content) < 4 or content[:3] != b"\0\0\10":
        raise FormatError(f"an IDX file of unsigned bytes must begin with 00 00 08: got {content[:3].hex(' ')!r}")
    try:
        shape = struct.unpack_from(f">{content[3]}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape).copy()
    except (struct.error, ValueError) as error:
        raise FormatError(f"an IDX file must have the size that its header states: {error}") from None


def write_idx(array: Bytes) -> bytes:
    """The IDX file of an array of unsigned bytes.

    >>> write_idx(np.array([7, 9], dtype=np.uint8)).hex(" ")
    '00 00 08 01 00 00 00 02 07 09'
    """
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def read_batch(content: bytes) -> tuple[Bytes, Bytes]:
    """Images (n, 3072), all red pixels row by row, then green, then blue; and labels (n,).

    >>> images, labels = read_batch(write_batch(np.zeros((2, 3072), np.uint8), np.array([6, 9], np.uint8)))
    >>> images.shape, labels.tolist()
    ((2, 3072), [6, 9])
    """
    if not content or len(content) % (1 + CIFAR_PIXELS):
        raise FormatError(f"a batch must have {1 + CIFAR_PIXELS} bytes per image: got {len(content)} bytes")
    table = np.frombuffer(content, np.uint8).reshape(-1, 1 + CIFAR_PIXELS)
    return table[:, 1:], table[:, 0]


def write_batch(images: Bytes, labels: Bytes) -> bytes:
    """The inverse of `read_batch`."""
    return np.concatenate([labels[:, None], images], axis=1).tobytes()
