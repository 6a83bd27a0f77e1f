"""Text as examples: the characters before each character, and that character as the target."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from dendritree.training.examples import Examples

from .split import DataSplit

CONTEXT = 32
TENTH = 10
SHAKESPEARE_CHARACTERS = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""All characters that occur in it; a character's number is its index here."""


def split_text(content: bytes, characters: str = SHAKESPEARE_CHARACTERS, context: int = CONTEXT) -> DataSplit:
    """The numbers of `context` consecutive characters in x, and that of the next one in y; one example per character.

    The last tenth of the text is for the test, the tenth before it for validation. Rows are views of one array, so a
    million of them take no additional memory.

    >>> split = split_text(b"abcabcabcabcabcabcab", "abc", context=2)
    >>> split.train.x[:2].tolist(), split.train.y[:2].tolist(), [len(part) for part in split.parts]
    ([[0, 1], [1, 2]], [2, 0], [14, 0, 0])
    """
    table = np.full(256, -1, np.int64)
    table[np.frombuffer(characters.encode("ascii"), np.uint8)] = np.arange(len(characters))
    numbers = torch.from_numpy(table[np.frombuffer(content, np.uint8)])
    tenth = len(numbers) // TENTH
    ends = [0, len(numbers) - 2 * tenth, len(numbers) - tenth, len(numbers)]
    return DataSplit(*(_examples(numbers[start:end], context) for start, end in itertools.pairwise(ends)))


def _examples(numbers: torch.Tensor, context: int) -> Examples:
    if len(numbers) <= context:
        return Examples(numbers[:0].reshape(0, context), numbers[:0])
    return Examples(numbers.unfold(0, context, 1)[:-1], numbers[context:])
