"""The binary formats of image data sets: IDX, used by MNIST, and the batches of CIFAR-10."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from dendritree.errors import FormatError

Bytes = NDArray[np.uint8]
UNSIGNED_BYTE = 8  # IDX's code for the only element type that these data sets use
CIFAR_PIXELS = 3 * 32 * 32


def read_idx(content: bytes) -> Bytes:
    """The array in an IDX file of unsigned bytes, as a copy that can be written to.

    The file consists of a magic number with the type and number of dimensions, the sizes, and the bytes.

    >>> read_idx(write_idx(np.array([[1, 2, 3]], dtype=np.uint8)))
    array([[1, 2, 3]], dtype=uint8)
    """
    if len(content) < 4 or content[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise FormatError(f"an IDX file of unsigned bytes must begin with 00 00 08: got {content[:3].hex(' ')!r}")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise FormatError(f"an IDX file of {dimensions} dimensions must have {start} bytes or more: got {len(content)}")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    size = start + int(np.prod(shape, dtype=object))
    if len(content) != size:
        raise FormatError(f"an IDX file of shape {shape} must have {size} bytes: got {len(content)}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()


def write_idx(array: Bytes) -> bytes:
    """The IDX file of an array of unsigned bytes.

    >>> write_idx(np.array([7, 9], dtype=np.uint8)).hex(" ")
    '00 00 08 01 00 00 00 02 07 09'
    """
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, UNSIGNED_BYTE, array.ndim, *array.shape) + array.tobytes()


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
