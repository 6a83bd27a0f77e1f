"""What a conversion changed, and what it left alone and why: as data, and as a printed table."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

TRAIN = (
    "The new weights are random: train the model, or distill the original into it. Train a narrower model of the same"
    " size beside it: where we measured, the two scored within a few points, either one ahead."
)
"""Evidence: docs/convert.md (What to expect) and docs/inside.md."""
WIDTH = 100
"""Maximum width of printed text, in characters."""


@dataclass(frozen=True)
class Change:
    """A perceptron layer, or the layers of an MLP, and what replaced them."""

    modules: tuple[str, ...]
    """Their names, which the new modules have too; an empty name is the model itself."""
    before: str
    """The sizes before, inputs first: `64-256-64`."""
    after: str
    """The sizes now, and the branching of the trees: `64-85-64 [8, 4]`."""
    parameters_before: int
    parameters_after: int
    multiply_adds_before: int
    """Multiply-adds for one input vector, or for one position of a convolution."""
    multiply_adds_after: int


@dataclass(frozen=True)
class LeftAlone:
    """A perceptron layer that was not converted."""

    module: str
    reason: str


class LayersLeftAlone(tuple[LeftAlone, ...]):
    """The layers that were not converted; printed, they are grouped by reason."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = []
        for reason in dict.fromkeys(each.reason for each in self):
            entries = [((each.module,), None, None) for each in self if each.reason == reason]
            names = textwrap.fill(", ".join(name for name, _ in _grouped(entries)), WIDTH - 2, break_on_hyphens=False)
            lines += [f"left alone ({reason}):", textwrap.indent(names, "  "), ""]
        return "\n".join(lines[:-1])


@dataclass(frozen=True)
class ConversionReport:
    """What `convert` did, or would do. `print(report)` shows it as a table; `rows()` is for a data frame."""

    changes: tuple[Change, ...]
    left_alone: LayersLeftAlone
    """All other perceptron layers of the model."""
    parameters_before: int
    """Parameters of the whole model."""
    parameters_after: int

    def rows(self) -> list[dict[str, Any]]:
        """The changes as plain values, one row each; the modules of an MLP joined by a plus."""
        return [asdict(change) | {"modules": " + ".join(change.modules)} for change in self.changes]

    def __str__(self) -> str:
        groups = _grouped([(change.modules, (change.before, change.after), change) for change in self.changes])
        table = [("module", "before", "after [tree]", "parameters", "multiply-adds")]
        table += [(name, each[0].before, each[0].after, *_totals(each)) for name, each in groups]
        if len(groups) > 1:
            table.append(("converted, in all", "", "", *_totals(self.changes)))
        whole = f"{self.parameters_before:,} -> {self.parameters_after:,}"
        lines = _columns([*table, ("the whole model", "", "", whole, "")])
        if self.left_alone:
            lines += ["", str(self.left_alone)]
        if self.changes:
            lines += ["", *textwrap.wrap(TRAIN, WIDTH)]
        return "\n".join(lines)


def _grouped(entries: Sequence[tuple[tuple[str, ...], Hashable, Any]]) -> list[tuple[str, list[Any]]]:
    """Group values by names and key, where names may differ in numbers, as those of a transformer's layers do.

    >>> _grouped([(("h.0.up", "h.0.down"), 8, "a"), (("h.1.up", "h.1.down"), 8, "b")])
    [('2 x h.*.(up, down)', ['a', 'b'])]
    """
    groups: dict[Hashable, list[tuple[str, Any]]] = defaultdict(list)
    for modules, key, value in entries:
        groups[re.sub(r"\b\d+\b", "*", " ".join(modules)), key].append((_joined(modules), value))
    result = []
    for members in groups.values():
        pieces = zip(*(re.split(r"(\d+)", name) for name, _ in members), strict=True)
        name = "".join(each[0] if len(set(each)) == 1 else "*" for each in pieces) or "(the model)"
        count = f"{len(members)} x " if len(members) > 1 else ""
        result.append((count + name, [value for _, value in members]))
    return result


def _joined(modules: Sequence[str]) -> str:
    """A short form of several names, such as `h.0.mlp.(c_fc, c_proj)`."""
    parts = [name.split(".") for name in modules]
    shared = 0
    while all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    inside = ", ".join(".".join(part[shared:]) for part in parts)
    return ".".join([*parts[0][:shared], f"({inside})" if len(parts) > 1 else inside])


def _totals(changes: Sequence[Change]) -> tuple[str, str]:
    """Parameters and multiply-adds of all changes, before and after."""
    rows = [(c.parameters_before, c.parameters_after, c.multiply_adds_before, c.multiply_adds_after) for c in changes]
    before, after, adds_before, adds_after = (sum(column) for column in zip(*rows, strict=True))
    return f"{before:,} -> {after:,}", f"{adds_before:,} -> {adds_after:,}"


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: text left-aligned, numbers right-aligned."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    template = "  ".join(f"{{:{'<' if place < 3 else '>'}{width}}}" for place, width in enumerate(widths))
    return [template.format(*row).rstrip() for row in table]
