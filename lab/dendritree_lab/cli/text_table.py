"""Print rows of text and numbers in columns."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns: text left-aligned, numbers right-aligned with thousands separators."""
    cells = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    numeric = [any(isinstance(row[i], int) for row in rows) for i in range(len(header))]
    widths = [max(len(line[i]) for line in [header, *cells]) for i in range(len(header))]
    for line in [header, *cells]:
        padded = (f"{c:>{w}}" if n else f"{c:<{w}}" for c, w, n in zip(line, widths, numeric, strict=True))
        print("  ".join(padded).rstrip())
