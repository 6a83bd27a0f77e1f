"""Sections that any study's report has: the machine and the settings of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ...report.layout import Column, Group, Section
from .store import RunStore


def run_info(store: RunStore) -> dict[str, Any]:
    """When a run was begun, its machines and its settings, as `machine_section` takes them."""
    info: dict[str, Any] = {"begun": store.created}
    for number, machine in enumerate(store.environments, 1):
        info[f"machine {number}"] = asdict(machine) | {"ram": f"{machine.ram / 2**30:.1f} GiB" if machine.ram else None}
    return info | {"config": store.config}


def machine_section(info: Mapping[str, Any]) -> Section:
    """Machine, versions and settings, as the store keeps them; a nested mapping is a group of its own."""
    inner = {key: value for key, value in info.items() if isinstance(value, Mapping)}
    outer = {key: value for key, value in info.items() if key not in inner}
    parts = [("run", "", flat(outer)), *((key, key, flat(value, f"{key}.")) for key, value in inner.items())]
    groups = [
        Group(
            f"machine-{re.sub(r'[^a-z0-9]+', '-', name.lower())}",
            title,
            tuple((key, str(value)) for key, value in rows),
        )
        for name, title, rows in parts
    ]
    return Section(
        "machine",
        "Machine and versions",
        "On one machine and with these versions a trial's result depends on its seed alone.",
        (Column("key", "what"), Column("value", "value")),
        tuple(group for group in groups if group.rows),
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
