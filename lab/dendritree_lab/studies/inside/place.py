"""The place of a part in a network."""

from __future__ import annotations

from dataclasses import dataclass

GROUPS = 4
"""Blocks of block-diagonal matrices, and groups of convolutions, if the size of the original is a multiple of it."""


@dataclass(frozen=True)
class Place:
    """The place of a part: the sizes of the original, and the order of what it reads."""

    where: str
    """`"rows"` for a feed-forward block, `"images"` for convolutions."""
    size: int
    """Features of the rows, or channels of the images."""
    hidden: int
    """Hidden size of the original."""
    sequence: bool = False
    """Whether the rows are a sequence, in which a row may see only those before it."""
    grid: tuple[int, int] | None = None
    """(height, width) if the rows are the places of an image."""
    plane: tuple[int, int] | None = None
    """(height, width) if each row is itself an image."""
