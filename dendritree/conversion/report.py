"""What a conversion changed, and what it left alone and why: as data, and as a printed table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

TRAIN = "The new weights are random: train the model, or distill the original into it."
OF_MLPS = (
    "Where we measured, trees then scored within about a point of a narrower MLP of the same size, ahead or behind:"
    " train one beside them."
)
OF_CONVOLUTIONS = (
    "Where we measured dendritic filters, behind the first layer of a small CNN, they scored one to three points above"
    " narrower convolutions of the same size, and up to seven below a 1 x 1 convolution followed by a depthwise one:"
    " train these beside them."
)
"""Evidence: docs/convert.md (What to expect) and docs/inside.md."""
WIDTH = 100
"""Maximum width of the printed table, in characters."""
Item = TypeVar("Item")


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
    """Multiply-adds for one input vector."""
    multiply_adds_after: int
    is_convolution: bool = False


@dataclass(frozen=True)
class LeftAlone:
    """A perceptron layer that was selected and not converted."""

    module: str
    reason: str


@dataclass(frozen=True)
class TakenApart:
    """Two perceptron layers that were converted one by one, although they look like the layers of one MLP."""

    modules: tuple[str, ...]
    reason: str
    blocks: tuple[str, ...]
    """What `convert(blocks=[...])` takes to convert them as one, if that would help."""


@dataclass(frozen=True)
class ConversionReport:
    """What `convert` did, or would do. `print(report)` shows it as a table; `rows()` is for a data frame."""

    changes: tuple[Change, ...]
    left_alone: tuple[LeftAlone, ...]
    """Layers that were selected but not converted."""
    not_selected: int
    """Perceptron layers of the model that were not selected."""
    parameters_before: int
    """Parameters of the whole model."""
    parameters_after: int
    taken_apart: tuple[TakenApart, ...] = ()
    """Layers that were converted one by one although they look like an MLP."""

    def rows(self) -> list[dict[str, Any]]:
        """The changes as plain values, one row each; the modules of an MLP joined by a plus."""
        return [asdict(change) | {"modules": " + ".join(change.modules)} for change in self.changes]

    def __str__(self) -> str:
        groups = _grouped(self.changes, lambda c: (*map(_numberless, c.modules), c.before, c.after))
        table = [("module", "before", "after [tree]", "parameters", "multiply-adds")]
        for group in groups:
            name = _short([_joined(change.modules) for change in group])
            table.append((name, group[0].before, group[0].after, *_totals(group)))
        if len(groups) > 1:
            table.append(("converted, in all", "", "", *_totals(self.changes)))
        whole = f"{_number(self.parameters_before)} -> {_number(self.parameters_after)}"
        lines = _columns([*table, ("the whole model", "", "", whole, "")])
        if self.left_alone:
            lines += ["", "left alone:"]
        for skipped in _grouped(self.left_alone, lambda each: (_numberless(each.module), each.reason)):
            text = f"{_elided(_short([each.module for each in skipped]), WIDTH - 3)}: {skipped[0].reason}"
            lines += _paragraph.wrap(text)
        if self.taken_apart:
            lines += ["", "taken one by one:"]
        for pairs in _grouped(self.taken_apart, lambda each: (*map(_numberless, each.modules), each.reason)):
            names = _elided(_short([_joined(each.modules) for each in pairs]), WIDTH - 3)
            listed = ", ".join(f'"{name}"' for name in pairs[0].blocks)
            help_ = f"; if they are an MLP, blocks=[({listed})] takes them as one" if listed else ""
            lines += _paragraph.wrap(f"{names}: {pairs[0].reason}{help_}")
        if self.not_selected:
            lines += ["", f"{self.not_selected} other perceptron layer{'s' * (self.not_selected > 1)} not selected"]
        if self.changes:
            kinds = {change.is_convolution for change in self.changes}
            expect = [TRAIN, *[OF_MLPS] * (False in kinds), *[OF_CONVOLUTIONS] * (True in kinds)]
            lines += ["", *textwrap.wrap(" ".join(expect), WIDTH, break_on_hyphens=False)]
        return "\n".join(lines)


_paragraph = textwrap.TextWrapper(
    WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)


def _grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Group items by key: layers of a transformer differ only in the numbers in their names."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _numberless(name: str) -> str:
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", name)


def _totals(changes: Sequence[Change]) -> tuple[str, str]:
    """Parameters and multiply-adds of all changes, before and after."""
    rows = [(c.parameters_before, c.parameters_after, c.multiply_adds_before, c.multiply_adds_after) for c in changes]
    numbers = [_number(sum(column)) for column in zip(*rows, strict=True)]
    return " -> ".join(numbers[:2]), " -> ".join(numbers[2:])


def _joined(modules: Sequence[str]) -> str:
    """A short form of several names, such as `h.0.mlp.(c_fc, c_proj)`."""
    if len(modules) == 1:
        return modules[0]
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


def _number(number: int) -> str:
    """Format a number: exact below a million, then four digits.

    >>> _number(987654), _number(4722432)
    ('987,654', '4.722M')
    """
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.4g}{unit}"
    return f"{number:,}"


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: text left-aligned, numbers right-aligned, names shortened to the available width."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = WIDTH - 2 * (len(widths) - 1) - sum(widths[1:])
    widths[0] = min(widths[0], max(room, 16))
    template = "  ".join(f"{{:{'<' if place < 3 else '>'}{width}}}" for place, width in enumerate(widths))
    return [template.format(_elided(name, widths[0]), *others).rstrip() for name, *others in table]


def _elided(name: str, width: int) -> str:
    """A name shortened for a narrow column: its end, which is most specific, and how many modules it stands for.

    >>> _elided("12 x encoder.layer.*.output.dense", 24)
    '12 x ...r.*.output.dense'
    """
    if len(name) <= width:
        return name
    number = re.match(r"(\d+ x )?", name)[0]  # type: ignore[index]
    return f"{number}...{name[len(number) + 3 - width :]}"
