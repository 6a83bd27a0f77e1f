"""Seeds that depend on what they are for, and on nothing else."""

from __future__ import annotations

import hashlib


def seed_of(*parts: object) -> int:
    """A seed below 2^63 that depends on all parts and on nothing else.

    >>> seed_of("weights", "mln", 32, 0) == seed_of("weights", "mln", 32, 0) != seed_of("weights", "mln", 32, 1)
    True
    """
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
