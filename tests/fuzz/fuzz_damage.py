"""Random damage to files: to their bytes, their paths, their JSON, their tensors, their tables."""

import contextlib
import json
import math
import os
import shutil
import sqlite3
import struct

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

DEEP = 100_000
VALUES = [
    None, True, False, -1, 0, 1, 2, 3, 7, 10**9, 10**18, 10**40, -(10**18), 0.5, 1e308, math.nan, math.inf, -math.inf,
    "", "x", "x" * 100_000, "a\0b", "../..", "é", "\ud800", "float64", "int64", "auto", "mln", "tanh",
    "dendritic-network", "shared", "random", [], [[]], [0], [1, 2], [2, [2, [2]]], [None], {}, {"a": 1},
    {"wiring": "random", "seed": -1},
    {"wiring": "local", "window": 10**12}, {"torch.nn": "Linear"}, {"torch.nn": "Bilinear", "in1_features": 10**9},
    {"mapping": {}}, {"torch.nn": "Tanh", "forward": 1},
]  # fmt: skip
"""What a value of a JSON file may become."""


# ------------------------------------------------------------------------------------------------------------- bytes


def damage_bytes(content, choose):
    """Some bytes lost, changed, added or moved."""
    place = choose.randrange(len(content) + 1)
    length = min(choose.choice([1, 2, 8, 100, 5000]), len(content) - place)
    head, tail = content[:place], content[place + length :]
    kind = choose.choice(["cut", "lose", "flip", "flip", "zeros", "noise", "twice", "add", "empty"])
    if kind == "flip" and content:
        changed = bytearray(content)
        for _ in range(choose.choice([1, 1, 2, 30])):
            changed[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
        return bytes(changed)
    return {
        "cut": head,
        "lose": head + tail,
        "zeros": head + bytes(length) + tail,
        "noise": head + choose.randbytes(length) + tail,
        "twice": head + content[place:] + content[place:],
        "add": head + choose.randbytes(length) + content[place:],
    }.get(kind, b"")


def damage_file(path, choose):
    """Other bytes in a file."""
    path.write_bytes(damage_bytes(path.read_bytes(), choose))


def damage_path(path, choose):
    """No file, or something that is not one."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    kind = choose.choice(["none", "folder", "dangling", "loop", "device", "fifo"])
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind != "none":
        path.symlink_to({"dangling": "nowhere/at/all", "loop": path.name, "device": "/dev/null"}[kind])


# -------------------------------------------------------------------------------------------------------------- JSON


def places(value):
    """Every (container, key) in a JSON value."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def damage_json(text, choose):
    """JSON with values of other types, without a key, with a key of another name, nested very deep, or twice."""
    document = json.loads(text)
    for _ in range(choose.choice([1, 1, 2])):
        found = list(places(document))
        if not found:
            break
        container, key = choose.choice(found)
        kind = choose.choice(["other", "other", "other", "lose", "rename", "swap"])
        if kind == "other":
            container[key] = choose.choice(VALUES)
        elif kind == "swap":
            other, place = choose.choice(found)
            container[key], other[place] = other[place], container[key]
        else:
            value = container.pop(key)
            if kind == "rename" and isinstance(container, dict):
                container[f"{key}{choose.choice(['', 's', '.', ' '])}"] = value
    with contextlib.suppress(ValueError, RecursionError):  # a swap may put a value into itself
        text = json.dumps(document)
    if choose.random() < 0.05:
        text = choose.choice(["[" * DEEP + "]" * DEEP, '{"format":' * DEEP, text[:-1] + ', "version": 9' + text[-1:]])
    return text


def damage_json_file(path, choose):
    text = damage_json(path.read_text(encoding="utf-8"), choose)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")


# ----------------------------------------------------------------------------------------------------------- tensors


def damage_tensor(tensor, choose):
    """Another tensor: numbers out of range, another type or shape."""
    kind = choose.choice(["value", "value", "value", "type", "shape", "order", "empty"])
    if kind == "value" and tensor.numel():
        changed = tensor.clone()
        big = [-1, 0, 1, 2**31 - 1, 2**31, 2**62, -(2**63)] if not tensor.is_floating_point() else [0.0, -1.0, 1e38]
        values = big + ([math.nan, math.inf] if tensor.is_floating_point() else [])
        limits = None if tensor.is_floating_point() or tensor.dtype == torch.bool else torch.iinfo(tensor.dtype)
        value = choose.choice(values)
        if limits is not None:
            value = max(limits.min, min(limits.max, value))
        changed.view(-1)[choose.randrange(tensor.numel())] = value
        return changed
    if kind == "type":
        return tensor.to(
            choose.choice([torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool])
        )
    if kind == "shape":
        choices = [tensor[None], tensor.reshape(-1), tensor.reshape(-1)[:-1], torch.cat([tensor.reshape(-1)] * 2)]
        return choose.choice(choices).contiguous()
    if kind == "order":
        return tensor.flip(0).contiguous() if tensor.dim() else tensor[None]
    return tensor.new_empty(0)


def damage_state(state, choose):
    """A state dict of which a tensor is lost, renamed, swapped or damaged; a new dict."""
    state = dict(state)
    for _ in range(choose.choice([1, 1, 2])):
        if not state:
            break
        name, other = choose.choice(sorted(state)), choose.choice(sorted(state))
        kind = choose.choice(["damage", "damage", "damage", "lose", "rename", "swap"])
        if kind == "damage":
            state[name] = damage_tensor(state[name], choose)
        elif kind == "swap":
            state[name], state[other] = state[other].clone(), state[name].clone()
        else:
            value = state.pop(name)
            if kind == "rename":
                state[f"{name}x"] = value
    return state


def damage_safetensors(path, choose):
    """Other tensors in a file that is otherwise right, or another header before the same tensors."""
    content = path.read_bytes()
    if choose.random() < 0.7:
        with contextlib.suppress(SafetensorError, json.JSONDecodeError):
            (length,) = struct.unpack("<Q", content[:8])
            metadata = json.loads(content[8 : 8 + length]).get("__metadata__")
            save_file(damage_state(load_file(path), choose), path, metadata)
        return
    (length,) = struct.unpack("<Q", content[:8])
    header = damage_json(content[8 : 8 + length].decode(), choose).encode(errors="surrogatepass")
    said = choose.choice([len(header), len(header), len(header) + 1, 0, 2**63, 2**64 - 1])
    path.write_bytes(struct.pack("<Q", said) + header + content[8 + length :])


# ------------------------------------------------------------------------------------------------------------ tables

CELLS = [
    "NULL",
    "''",
    "'x'",
    "'{}'",
    "'[]'",
    "'null'",
    "'{\"a\": 1e999}'",
    "-1",
    "9223372036854775807",
    "1e999",
    "x'00ff'",
]


def damage_sqlite(path, choose):
    """A database that is whole and has other cells, rows, columns or tables."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        table = choose.choice(sorted(tables))
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column, cell = choose.choice(columns), choose.choice(CELLS)
        statements = [
            f'UPDATE "{table}" SET "{column}" = {cell}',
            f'UPDATE OR IGNORE "{table}" SET "{column}" = {cell} WHERE random() % 2',
            f'DELETE FROM "{table}"',
            f'DELETE FROM "{table}" WHERE random() % 2',
            f'DROP TABLE "{table}"',
            f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}2"',
            f'ALTER TABLE "{table}" ADD COLUMN extra',
            f"PRAGMA user_version = {choose.choice([0, 1, 3, 2**31 - 1])}",
        ]
        with contextlib.suppress(sqlite3.Error):  # the database may reject it
            connection.execute(choose.choice(statements[:2] * 4 + statements))


DAMAGES = {
    ".json": damage_json_file,
    ".safetensors": damage_safetensors,
    ".sqlite": damage_sqlite,
    ".db": damage_sqlite,
}
"""What only files of a format can suffer, by their ending."""


def damage(path, choose):
    """Damage a file in any way that its format allows."""
    special = DAMAGES.get(path.suffix)
    if special is not None and choose.random() < 0.6:
        special(path, choose)
    elif choose.random() < 0.15:
        damage_path(path, choose)
    else:
        damage_file(path, choose)
