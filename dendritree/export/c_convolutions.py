"""C code of convolutions, of linear maps, and of dendrites with the somata that weigh their places."""

from __future__ import annotations

import math

import numpy as np

from .c_writer import Writer, address, indented, loop, stored
from .coded import Coded
from .steps import Conv, Step

UNROLLED = 32
"""Windows of up to this many inputs are written out: a loop over them would take twice the instructions."""


def write_sum(w: Writer, step: Conv, coded: Coded, number: int, planar: bool) -> None:
    """The function of one sum: filter `o` at row `i` and column `j` of the result."""
    assert coded.weight is not None
    assert coded.bias is not None
    (channels, height, width), (_, inner, rows, columns) = step.shape, step.weight.shape
    left, _, top, _ = step.padding
    padded, taps, name = any(step.padding), inner * rows * columns, f"w{number}"
    order = coded.weight if planar else coded.weight.transpose(0, 2, 3, 1)
    w.weights(name, order)
    w.array(f"b{number}", w.sum, coded.bias)
    if coded.rescale is not None:
        w.array(f"r{number}", "uint16_t", coded.rescale)
    bias = f"{w.sum_at(f'&b{number}[o]')}"
    lines = [f"{w.sum} s = {bias};", f"int w = o * {taps};"]
    at = [f"i * {step.stride[0]} - {top}" if top else f"i * {step.stride[0]}"]
    at += [f"j * {step.stride[1]} - {left}" if left else f"j * {step.stride[1]}"]
    single = math.prod(step.out[1:]) == 1 and not padded
    if single:
        lines += ["(void)i; (void)j;"]
    else:
        lines += [f"int p = {at[0]}, q = {at[1]};"]
    corner = "x" if single else f"x + (p * {width} + q)" + ("" if planar or channels == 1 else f" * {channels}")
    read = coded.read
    if step.groups > 1 or (any(coded.zero) and padded and taps > UNROLLED):
        lines += _checked(w, step, coded, number, planar)
    elif step.covers:
        lines += [f"return s + dot_{read}(x, {name}, w, 1, {taps}, 0, 0);"]
        _dot(w, read)
    else:
        if taps <= UNROLLED:
            places = np.arange(channels * height * width).reshape(
                (channels, height, width) if planar else (height, width, channels)
            )
            seen = places[:, :rows, :columns] if planar else places[:rows, :columns]
            terms = [f"s += {w.product(name, f'w + {k}', f'at[{v}]', read)};" for k, v in enumerate(seen.ravel())]
            terms = [
                f"const {read} *at = {corner};",
                *(" ".join(terms[k : k + 3]) for k in range(0, taps, 3)),
                "return s;",
            ]
            inside = f"p >= 0 && p <= {height - rows} && q >= 0 && q <= {width - columns}"
            lines += [f"if ({inside}) {{", *indented(terms), "}"] if padded else ["{", *indented(terms), "}"]
        if any(coded.zero) and padded:
            lines += _checked(w, step, coded, number, planar)
        elif padded or taps > UNROLLED:
            lines += _clipped(w, step, read, name, planar, padded)
    head = f"static {w.sum} sum{number}(const {read} *x, int o, int i, int j)"
    w.functions[f"sum{number}"] = "\n".join([head, "{", *indented(lines), "}"])


def _clipped(w: Writer, step: Conv, read: str, name: str, planar: bool, padded: bool) -> list[str]:
    """The part of a window that is within the image, row by row."""
    _dot(w, read)
    (channels, height, width), (_, _, rows, columns) = step.shape, step.weight.shape
    each = 1 if planar else channels
    top, bottom, left, right = "0", str(rows), "0", str(columns)
    lines = []
    if padded:
        lines += [f"int top = p < 0 ? -p : 0, bottom = p > {height - rows} ? {height} - p : {rows};"]
        lines += [f"int left = q < 0 ? -q : 0, right = q > {width - columns} ? {width} - q : {columns};"]
        top, bottom, left, right = "top", "bottom", "left", "right"
    where = f"((p + {top}) * {width} + q + {left}) * {each}"
    weight = f"w + ({top} * {columns} + {left}) * {each}"
    size = f"{bottom} - {top}, ({right} - {left}) * {each}, {width * each}, {columns * each}"
    if planar and channels > 1:
        call = f"s += dot_{read}(x + c * {height * width} + {where}, {name}, {weight} + c * {rows * columns}, {size});"
        return [*lines, "{", "    int c;", f"    for (c = 0; c < {channels}; c++) {call}", "}", "return s;"]
    return [*lines, f"return s + dot_{read}(x + {where}, {name}, {weight}, {size});"]


def _checked(w: Writer, step: Conv, coded: Coded, number: int, planar: bool) -> list[str]:
    """All inputs of a window one by one; beyond the edge stands the number of 0. For groups, and for bytes."""
    (_, height, width), (filters, inner, rows, columns) = step.shape, step.weight.shape
    per = filters // step.groups
    first = f"o / {per} * {inner} + " if step.groups > 1 and per > 1 else f"o * {inner} + " if step.groups > 1 else ""
    value = f"x[{address(step, planar, first + 'c', '(p + y)', 'q + z')}]"
    single = math.prod(step.out[1:]) == 1 and not any(step.padding)
    value = value.replace("(p + y)", "y").replace("q + z", "z") if single else value
    if any(step.padding):
        zero = str(coded.zero[0]) if coded.zero and len(set(coded.zero)) == 1 else "0"
        if len(set(coded.zero)) > 1:
            w.array(f"zero{number}", "int16_t", coded.zero)
            zero = f"AT_INT16(&zero{number}[{first}c])"
        value = f"(p + y >= 0 && p + y < {height} && q + z >= 0 && q + z < {width} ? {value} : {zero})"
    term = f"s += {w.product(f'w{number}', 'w++', value, coded.read)};"
    if w.bits == 4:
        term = term.replace("w++", "w") + " w++;"
    loops = [("c", inner), ("y", rows), ("z", columns)] if planar else [("y", rows), ("z", columns), ("c", inner)]
    lines = [term]
    for variable, count in reversed(loops):
        lines = loop(variable, count, lines)
    return ["{", *indented(["int c, y, z;", *lines, "(void)y; (void)z;"]), "}", "return s;"]


def _dot(w: Writer, read: str) -> None:
    ctype = "float" if w.bits is None else "uint8_t" if w.bits == 4 else "int8_t"
    head = f"static {w.sum} dot_{read}(const {read} *x, const {ctype} *m, int w, int rows, int run, int down, int next)"
    w.functions.setdefault(
        f"dot_{read}",
        f"""{head}
{{
    {w.sum} s = 0;
    int k;
    for (; rows > 0; rows--, x += down, w += next)
        for (k = 0; k < run; k++) s += {w.product("m", "w + k", "x[k]", read)};
    return s;
}}""",
    )


def write_conv(w: Writer, step: Conv, coded: Coded, number: int, x: str, y: str, planar: bool, last: bool) -> None:
    """All sums of a convolution."""
    write_sum(w, step, coded, number, planar)
    target = f"{y}[{stored(step.out, last, 'o', 'i', 'j')}]"
    channels, rows, columns = (math.prod(step.shape), 1, 1) if step.out != _plain_out(step) else step.out
    target = f"{y}[o]" if step.out != _plain_out(step) else target
    inner = [f"{w.sum} s = sum{number}({x}, o, i, j);", *w.finish(step.act, coded, number, "o", target, last)]
    w.body += loop("o", channels, loop("i", rows, ["", *loop("j", columns, ["{", *indented(inner), "}"])][1:]))


def _plain_out(step: Conv) -> tuple[int, int, int]:
    return Conv(step.shape, step.weight, step.bias, step.stride, step.padding, step.groups).out


def is_pair(first: Step, second: Step) -> bool:
    """Whether two convolutions are dendrites and the somata that weigh their places."""
    return (
        isinstance(first, Conv)
        and isinstance(second, Conv)
        and first.groups == 1
        and second.groups == len(second.weight) == second.shape[0] == len(first.weight)
        and not any(second.padding)
        and second.out == _plain_out(second)
        and second.weight[0].size > 1
    )


def reads_once(somata: Conv) -> bool:
    """Whether every dendrite is read by one soma."""
    return bool(somata.weight.shape[2] <= somata.stride[0] and somata.weight.shape[3] <= somata.stride[1])


def write_pair(
    w: Writer,
    steps: tuple[Conv, Conv],
    coded: tuple[Coded, Coded],
    number: int,
    x: str,
    y: str,
    planar: bool,
    last: bool,
    readout: tuple[Conv, Coded] | None = None,
) -> None:
    """Dendrites and somata, neuron by neuron: at most as many rows of dendrites as a soma reads are in memory.

    A linear read-out at the end is summed up on the way, so that the neurons need no memory.
    """
    first, second = steps
    write_sum(w, first, coded[0], number, planar)
    assert coded[1].weight is not None
    assert coded[1].bias is not None
    w.weights(f"w{number + 1}", coded[1].weight)
    w.array(f"b{number + 1}", w.sum, coded[1].bias)
    if coded[1].rescale is not None:
        w.array(f"r{number + 1}", "uint16_t", coded[1].rescale)
    (_, _, rows, columns), (down, right), width = second.weight.shape, second.stride, first.out[2]
    taps, read = rows * columns, coded[1].read
    bias = f"{w.sum} t = {w.sum_at(f'&b{number + 1}[o]')};"

    def dendrite(i: str, j: str, target: str) -> list[str]:
        start = f"{w.sum} s = sum{number}({x}, o, {i}, {j});"
        return [start, *w.finish(first.act, coded[0], number, "o", target, False)]

    target = f"{y}[{stored(second.out, last, 'o', 'i', 'j')}]"
    soma = [f"{w.sum} s = t;", *w.finish(second.act, coded[1], number + 1, "o", target, last)]
    if reads_once(second):
        if readout is not None and readout[1].weight is not None and readout[1].bias is not None:
            scores = len(readout[1].weight)
            w.weights(f"w{number + 2}", readout[1].weight.transpose(2, 3, 1, 0))
            w.array(f"b{number + 2}", w.sum, readout[1].bias)
            w.body += loop("o", scores, [f"y[o] = {w.sum_at(f'&b{number + 2}[o]')};"])
            at = f"({stored(second.out, False, 'o', 'i', 'j')}) * {scores} + k"
            add = f"y[k] += {w.product(f'w{number + 2}', at, 'v', readout[1].read)};"
            finish = w.finish(second.act, coded[1], number + 1, "o", "v", False)
            soma = [f"{readout[1].read} v;", "int k;", f"{w.sum} s = t;", *finish, *loop("k", scores, [add])]
        weight = w.product(f"w{number + 1}", f"o * {taps} + a * {columns} + b", "v", read)
        place = [f"{read} v;", *dendrite(f"i * {down} + a", f"j * {right} + b", "v"), f"t += {weight};"]
        copies = ["int a, b;", bias, *loop("a", rows, loop("b", columns, ["{", *indented(place), "}"]))]
        inner = loop(
            "i", second.out[1], loop("j", second.out[2], ["{", *indented([*copies, "{", *indented(soma), "}"]), "}"])
        )
        w.body += loop("o", second.out[0], inner)
        return
    terms = [
        f"t += {w.product(f'w{number + 1}', f'o * {taps} + a * {columns} + {b}', f'v[{b}]', read)};"
        for b in range(columns)
    ]
    row = [f"const {read} *v = line + (i + 1 + a) % {rows} * {width} + j * {right};", *terms]
    store = target.replace("i", "((i - ROWS) / DOWN)").replace("ROWS", str(rows - 1)).replace("DOWN", str(down)) if (
        second.out[1] * second.out[2] > 1
    ) else target  # fmt: skip
    soma = [f"{w.sum} s = t;", *w.finish(second.act, coded[1], number + 1, "o", store, last)]
    sums = ["int a;", bias, *loop("a", rows, ["{", *indented(row), "}"]), "{", *indented(soma), "}"]
    ready = f"if (i >= {rows - 1} && i <= {rows - 1 + (second.out[1] - 1) * down} && (i - {rows - 1}) % {down} == 0)"
    lines = loop("j", width, ["{", *indented(dendrite("i", "j", f"line[i % {rows} * {width} + j]")), "}"])
    lines += [ready, "{", *indented(loop("j", second.out[2], ["{", *indented(sums), "}"])), "}"]
    body = loop("o", second.out[0], loop("i", first.out[1], lines))
    w.body += ["{", *indented([f"{read} line[{rows * width}];", *body]), "}"]
