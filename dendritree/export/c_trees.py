"""C code of trees and of pooling."""

from __future__ import annotations

import math

import numpy as np

from .c_writer import Writer, address, indented, loop, smallest, stored
from .coded import Coded
from .steps import Pool, Trees
from .tree_tables import Table, TreeTables, tables_of


def write_pool(w: Writer, step: Pool, coded: Coded, x: str, y: str, planar: bool, last: bool) -> None:
    """Windows within the image."""
    (channels, height, width), (_, rows, columns) = step.shape, step.out
    sums = "float" if w.bits is None else "int32_t"
    if step.parts is not None:
        ends = [f"{v} * {n} / {m}, {e} = (({v} + 1) * {n} + {m - 1}) / {m}" for v, n, m, e in (
            ("i", height, rows, "bottom"), ("j", width, columns, "right"))]  # fmt: skip
        lines = [f"int top = {ends[0]};", f"int left = {ends[1]};"]
    else:
        (k, m), (s, t), (p, q) = step.kernel, step.stride, step.padding
        lines = [f"int top = i * {s} - {p}, bottom = top + {k};", f"int left = j * {t} - {q}, right = left + {m};"]
        lines += ["if (top < 0) top = 0;", f"if (bottom > {height}) bottom = {height};"] if p else []
        lines += ["if (left < 0) left = 0;", f"if (right > {width}) right = {width};"] if q else []
    all_count = step.parts is None and step.count_padding
    lines += [
        f"int n = {step.kernel[0] * step.kernel[1]};" if all_count else "int n = (bottom - top) * (right - left);"
    ]
    lines = lines if step.kind == "average" else lines[:-1]
    value, target = f"{x}[{address(step, planar, 'o', 'a', 'b')}]", f"{y}[{stored(step.out, last, 'o', 'i', 'j')}]"
    start = (
        f"{sums} s = 0;" if step.kind == "average" else f"{sums} s = {x}[{address(step, planar, 'o', 'top', 'left')}];"
    )
    term = f"s += {value};" if step.kind == "average" else f"if ({value} > s) s = {value};"
    lines += ["int a, b;", start, "for (a = top; a < bottom; a++)", f"    for (b = left; b < right; b++) {{ {term} }}"]
    if step.kind == "average":
        lines += ["s /= (float)n;" if w.bits is None else "s = (s + (s < 0 ? -n / 2 : n / 2)) / n;"]
    lines += [f"{target} = ({coded.write})s;"]
    w.body += loop("o", channels, loop("i", rows, loop("j", columns, ["{", *indented(lines), "}"])))


def write_trees(w: Writer, step: Trees, coded: Coded, number: int, x: str, y: str, planar: bool, last: bool) -> None:
    """Trees one after the other, dendrites before those that read them."""
    f, patches = step.forest, step.patches
    channels, height, width = step.shape
    place = None if planar or patches is not None else np.arange(math.prod(step.shape)).reshape(height, width, channels)
    where = None if place is None else place.transpose(2, 0, 1).ravel()
    assert coded.weight is not None
    assert coded.bias is not None
    t: TreeTables = tables_of(f, where)
    w.weights(f"w{number}", coded.weight[t.weights])
    w.array(f"b{number}", w.sum, coded.bias[t.biases])
    if coded.rescale is not None:
        w.array(f"r{number}", "uint16_t", coded.rescale[t.biases])

    def index(table: Table, what: str, at: str) -> str:
        return _lookup(w, table, f"{what}{number}", at)

    bias = index(t.bias, "tie", "m")
    node = "float" if w.bits is None else "int16_t"
    source, read = ("patch" if patches is not None else x), coded.read
    wide = "int16_t" if w.bits else read
    leaf = f"{source}[{index(t.source, 'source', 'l' if t.by_neuron else 'e')}]"
    if t.by_neuron and t.base is not None:
        leaf = f"{source}[{index(t.base, 'base', 'o')} + {leaf.removeprefix(source + '[')}"
    if t.regular:
        value = f"(n < {t.leaves} ? {leaf} : v[c])"
        term = [f"s += {w.product(f'w{number}', 'w', value, wide)};", "w++;"]
        term += [f"if (n < {t.leaves}) {{ e++; l++; }} else c++;"]
    else:
        name = leaf[len(source) + 1 : -1]
        value = f"(a < {f.in_features} ? {source}[a] : v[a - {f.in_features}])"
        term = [f"int a = {name};", f"s += {w.product(f'w{number}', 'w', value, wide)};", "w++;", "e++;", "l++;"]
    fan, count = index(t.fan, "fan", "n" if t.by_neuron else "m"), index(t.count, "count", "o")
    start = "w = " + (index(t.start, "start", "g") if t.start is not None else "all")
    target = f"{y}[{stored(step.out, last, 'o', 'i', 'j')}]"
    finish = [*w.finish(step.act, _inner(coded), number, "g", "v[n]", False)]
    root = [*w.finish(step.root, coded, number, "g", target, last)]
    inner = [f"int g = {bias}, k, {start}, fan = {fan};", f"{w.sum} s = {w.sum_at(f'&b{number}[g]')};"]
    inner += ["for (k = 0; k < fan; k++) {", *indented(term), "}", "all += fan;", "m++;"]
    inner += ["if (n < count - 1) {", *indented(finish), "} else {", *indented(root), "}"]
    trees = [
        "int n, c = 0, l = 0;",
        f"int count = {count};",
        "for (n = 0; n < count; n++) {",
        *indented(inner),
        "}",
        "(void)c; (void)l; (void)v;",
    ]
    lines = [
        f"{node} v[{max(t.most - 1, 1)}] = {{0}};",
        "int m = 0, e = 0, all = 0;",
        *loop("o", f.neurons, ["{", *indented(trees), "}"]),
    ]
    lines += ["(void)e; (void)m; (void)all;"]
    if patches is not None:
        (rows, columns), (down, right), (left, _, top, _) = patches.kernel, patches.stride, patches.padding
        value, zero = f"{x}[{address(step, planar, 'd', 'p', 'q')}]", "0"
        if any(coded.zero):
            w.array(f"zero{number}", "int16_t", np.resize(coded.zero, channels))
            zero = f"AT_INT16(&zero{number}[d])"
        inside = f"p >= 0 && p < {height} && q >= 0 && q < {width}"
        copy = [f"int p = i * {down} + a - {top}, q = j * {right} + b - {left};"]
        copy += [f"patch[(d * {rows} + a) * {columns} + b] = ({read})({inside} ? {value} : {zero});"]
        gather = [
            "int a, b, d;",
            *loop("d", channels, loop("a", rows, loop("b", columns, ["{", *indented(copy), "}"]))),
        ]
        lines = [f"{read} patch[{f.in_features}];", *gather, "{", *indented(lines), "}"]
        lines = loop("i", step.out[1], loop("j", step.out[2], ["{", *indented(lines), "}"]))
    w.body += ["{", *indented(lines), "}"]


def _inner(coded: Coded) -> Coded:
    return Coded(
        coded.weight, coded.bias, coded.read, "float" if coded.rescale is None else "int16_t", coded.rescale, coded.pre
    )


def _lookup(w: Writer, table: Table, name: str, at: str) -> str:
    """A number that is computed where a formula has it, and else read."""
    if table.values is None:
        scaled = at if table.step == 1 else f"{at} * {table.step}"
        return str(table.first) if not table.step else scaled if not table.first else f"{table.first} + {scaled}"
    ctype = smallest(int(table.values.max()))
    if not any(line.startswith(f"static const {ctype} {name}[") for line in w.arrays):
        w.array(name, ctype, table.values)
    return f"AT_{ctype.removesuffix('_t').upper()}(&{name}[{at}])"
