"""Sections of every study's report: the machine and the settings of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from ...report.layout import Column, Section
from .store import RunStore


def run_info(store: RunStore) -> dict[str, Any]:
    """When a run was started, its machines and its settings: the input of `machine_section`."""
    info: dict[str, Any] = {"started": store.created}
    for number, machine in enumerate(store.environments, 1):
        info[f"machine {number}"] = asdict(machine) | {"ram": f"{machine.ram / 2**30:.1f} GiB" if machine.ram else None}
    return info | {"config": store.config}


def machine_section(info: Mapping[str, Any]) -> Section:
    """Machine, versions and settings from the store; each nested mapping becomes a group."""
    inner = {key: value for key, value in info.items() if isinstance(value, Mapping)}
    outer = {key: value for key, value in info.items() if key not in inner}
    rows = [("run", "", "", *pair) for pair in flat(outer)]
    rows += [(key, key, f"{key}.", *pair) for key, value in inner.items() for pair in flat(value)]
    return Section.of(
        "machine",
        "Machine and versions",
        "On the same machine and with these versions, a trial's result depends only on its seed.",
        (
            Column("key", value=lambda row: row[2] + row[3]),
            Column("what", "setting", value=itemgetter(3)),
            Column("value", "value", value=lambda row: str(row[4])),
        ),
        rows,
        by=itemgetter(0, 1),
        empty="Nothing is known about the run.",
        brief=False,
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings as dotted keys.

    >>> list(flat({"torch": "2.6.0", "machine": {"cores": 2}}))
    [('torch', '2.6.0'), ('machine.cores', 2)]
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value
