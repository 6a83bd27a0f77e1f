"""What a conversion changed, what it left alone and why: data first, a table for people second."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

__all__ = ["Change", "ConversionReport", "LeftAlone"]

WIDTH = 100
"""Columns of the printed table, at most."""


@dataclass(frozen=True)
class Change:
    """A perceptron layer, or the layers of an MLP, and what took their place."""

    modules: tuple[str, ...]
    """Their names, which are those of the new modules too; an empty one is the model itself."""
    before: str
    """The sizes, inputs first: `64-256-64`."""
    after: str
    """The sizes now, and the branching of the trees: `64-85-64 [8, 4]`."""
    parameters_before: int
    parameters_after: int
    multiply_adds_before: int
    """Multiply-adds for one input vector."""
    multiply_adds_after: int


@dataclass(frozen=True)
class LeftAlone:
    """A perceptron layer that was selected and not converted."""

    module: str
    reason: str


@dataclass(frozen=True)
class ConversionReport:
    """What `convert` did, or would do. `print(report)` shows it as a table; `rows()` is for a data frame."""

    changes: tuple[Change, ...]
    left_alone: tuple[LeftAlone, ...]
    """Selected, and not converted."""
    not_selected: int
    """Perceptron layers of the model that were not asked for."""
    parameters_before: int
    """Of the whole model."""
    parameters_after: int

    def rows(self) -> list[dict[str, Any]]:
        """The changes as plain values, one row each; the modules of an MLP joined by a plus."""
        return [asdict(change) | {"modules": " + ".join(change.modules)} for change in self.changes]

    def __str__(self) -> str:
        header = ("module", "before", "after [tree]", "parameters", "multiply-adds")
        groups = _grouped(self.changes, _shape_of_change)
        table = [header, *map(_cells, groups)]
        if len(groups) > 1:
            table.append(("converted, in all", "", "", *_totals(self.changes)))
        table.append(("the whole model", "", "", _before_after(self.parameters_before, self.parameters_after), ""))
        lines = _columns(table)
        if self.left_alone:
            lines += ["", "left alone:"]
            for group in _grouped(self.left_alone, lambda each: (_numberless(each.module), each.reason)):
                name = _elided(_short([each.module for each in group]), WIDTH - 3)
                lines += _wrapped(f"{name}: {group[0].reason}")
        if self.not_selected:
            lines += ["", f"{self.not_selected} other perceptron layer{'s' * (self.not_selected > 1)} not selected"]
        return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------- the table

Item = TypeVar("Item")


def _grouped(items: Iterable[Item], key: Any) -> list[list[Item]]:
    """Items that look the same but for numbers in their names, together: the layers of a transformer."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _numberless(name: str) -> str:
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", name)


def _shape_of_change(change: Change) -> Hashable:
    return tuple(map(_numberless, change.modules)), change.before, change.after


def _cells(group: Sequence[Change]) -> tuple[str, ...]:
    name = _short([_joined(change.modules) for change in group])
    return (name, group[0].before, group[0].after, *_totals(group))


def _totals(changes: Iterable[Change]) -> tuple[str, str]:
    changes = list(changes)
    return (
        _before_after(sum(c.parameters_before for c in changes), sum(c.parameters_after for c in changes)),
        _before_after(sum(c.multiply_adds_before for c in changes), sum(c.multiply_adds_after for c in changes)),
    )


def _joined(modules: Sequence[str]) -> str:
    """`h.0.mlp.(c_fc, c_proj)` for the two."""
    if len(modules) == 1:
        return modules[0] or "(the model)"
    parts = [name.split(".") for name in modules]
    shared = 0
    while all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    inside = ", ".join(".".join(part[shared:]) for part in parts)
    return ".".join([*parts[0][:shared], f"({inside})"])


def _short(names: Sequence[str]) -> str:
    """One name for several that differ in numbers: `12 x encoder.layer.*.output`."""
    if len(names) == 1:
        return names[0] or "(the model)"
    pieces = [re.split(r"(\d+)", name) for name in names]
    if len({len(piece) for piece in pieces}) > 1:
        return f"{len(names)} x {_numberless(names[0])}"
    common = "".join(each[0] if len(set(each)) == 1 else "*" for each in zip(*pieces, strict=True))
    return f"{len(names)} x {common}"


def _before_after(before: int, after: int) -> str:
    return f"{_number(before)} -> {_number(after)}"


def _number(number: int) -> str:
    """Exact below a million, then four digits.

    >>> _number(987654), _number(4722432)
    ('987,654', '4.722M')
    """
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.4g}{unit}"
    return f"{number:,}"


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = WIDTH - 2 * (len(widths) - 1) - sum(widths[1:])
    widths[0] = min(widths[0], max(room, 16))
    lines = []
    for first, *others in table:
        cells = [_elided(first, widths[0]).ljust(widths[0])] + [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(others, widths[1:], strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _elided(name: str, width: int) -> str:
    """A name in a narrow column: its end, which tells most, and how many it stands for.

    >>> _elided("12 x encoder.layer.*.output.dense", 24)
    '12 x ...r.*.output.dense'
    """
    if len(name) <= width:
        return name
    number = re.match(r"(\d+ x )?", name)[0]  # type: ignore[index]
    return f"{number}...{name[len(number) + 3 - width :]}"


def _wrapped(text: str) -> list[str]:
    """Text in lines of at most `WIDTH`, the first one indented a little and the others more."""
    lines, line = [], " "
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {word}"
    return [*lines, line]
