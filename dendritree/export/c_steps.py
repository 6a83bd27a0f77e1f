"""The steps of a network as C functions, each of which computes one value."""

from __future__ import annotations

from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .c_numbers import Ints, affine, by_parts, formula, literal
from .integers import NODE
from .steps import Act, Conv, Network, Pool, Step, Trees, is_linear, is_scaling

UNROLLED = 64
"""Windows of up to this many inputs per channel are unrolled: loops over them would take twice the instructions."""
SLOPE = 1024
"""Slopes of activations in integers are multiples of 1 / SLOPE."""
INT_MAX = 32767
"""The largest value that every C int can hold."""

CONV = """
static $out f$k(const $given *x, int o, int i, int j)
{
    int p = $p, q = $q, w = o * $taps;
    $sum s = $bias;
    (void)i;
    $add
    $finish
}"""
INSIDE = "s += inside_${rows}x${columns}_$given(x + ${base}p * $width + q, w$k, w, $inner, $width, $skip);"
BORDER = """${inside}$start ${first}border_$given(
        x + ${base}0, w$k, w, $inner, $rows, $columns, p, q, $height, $width$zero);"""
CALLS = """for (int a = p; a < p + $rows; a++)
        for (int b = q; b < q + $columns; b++, w++) s += $weight * f$before(x, o, a, b);"""
WINDOW_INSIDE = """
static $sum inside_${rows}x${columns}_$given(
    const $given *x, const $weights *m, int w, int channels, int width, int skip)
{
    $sum s = 0;
    $start
    for (; channels > 0; channels--, x += skip) {
        $terms
    }
    return s;
}"""
WINDOW_AT_BORDER = """
static $sum ${first}border_$given(
    const $given *x, const $weights *m, int w, int channels, int rows, int columns, int p, int q, int height, int width
    $parameter)
{
    int top = p < 0 ? 0 : p, bottom = p + rows > height ? height : p + rows;
    int left = q < 0 ? 0 : q, right = q + columns > width ? width : q + columns;
    $sum s = 0;
    for (int c = 0; c < channels; c++, x += height * width, w += rows * columns)
        for (int a = top; a < bottom; a++)
            for (int b = left; b < right; b++) s += $weight * $value;
    return s;
}"""
POOL = """
static $out f$k(const $given *x, int o, int i, int j)
{
    int top = $top, bottom = $bottom, left = $left, right = $right;
    (void)o, (void)i;
    $sum s = $start;
    for (int a = top < 0 ? 0 : top; a < bottom && a < $height; a++)
        for (int b = left < 0 ? 0 : left; b < right && b < $width; b++) {
            $sum v = $value;
            $add
        }
    return ($out)$result;
}"""
DENDRITE = """
static $sum t$k(const $given *x, $int n);

static $node n$k(const $given *x, $int n)
{
    $int o = $row;
    $sum s = t$k(x, n);
    (void)o;
    $inner
}
"""
TREES = """$dendrite
static $sum t$k(const $given *x, $int n)
{
    $int o = $row, e = $first, end = $end, w = $weights;
    $sum s = $bias;
    (void)n;
    for (; e < end; e++, w++) {
        $int at = $source;
        s += $weight * $value;
    }
    return s;
}

static $out f$k(const $given *x, int o, int i, int j)
{
    $int n = $root;
    $sum s = t$k(x + $corner, n);
    o = (int)($row);
    (void)o, (void)i, (void)j;
    $finish
}"""
SCALED = """
static int32_t scaled(int32_t s, uint16_t by, int most)
{
    s = ((s * (int32_t)(by & 2047) >> ((by >> 11) - 1)) + 1) >> 1;
    return s > most ? most : s;
}"""


class Functions:
    """The constants and functions of a file so far."""

    def __init__(self, network: Network) -> None:
        self.network, self.bits = network, network.bits
        self.sum = "float" if self.bits is None else "int32_t"
        self.weights = {None: "float", 4: "uint8_t", 8: "int8_t"}[self.bits]
        self.arrays: list[str] = []
        self.functions: list[str] = []
        self.shared: dict[str, str] = {}
        """Functions that several steps share."""

    def table(self, name: str, values: ArrayLike, at: str, ctype: str = "") -> str:
        """Add a table of constants; return C code that reads one of them."""
        numbers = np.asarray(values).ravel()
        size = "uint8_t" if numbers.max(initial=0) < 2**8 else "uint16_t" if numbers.max() < 2**16 else "uint32_t"
        ctype = ctype or size
        text = [literal(v) if ctype == "float" else str(int(v)) for v in numbers]
        lines = ",\n    ".join(", ".join(text[i : i + 16]) for i in range(0, len(text), 16))
        self.arrays.append(f"static const {ctype} {name}[{len(text)}] ROM = {{\n    {lines}}};")
        return f"AT_{ctype}(&{name}[{at}])"

    def weight(self, name: str, values: ArrayLike, given: str) -> Template:
        """Add weights, 4-bit ones packed two per byte; return C code that reads the one at `$at`, as in `read`."""
        numbers = np.asarray(values).ravel()
        if self.bits == 4:
            numbers = np.append(numbers, np.zeros(len(numbers) % 2)).astype(int) & 15
            numbers = numbers[::2] | numbers[1::2] << 4
        self.table(name, numbers, "", self.weights)
        return self.read(name, given)

    def read(self, name: str, given: str) -> Template:
        """C code for the weight at `$at`, to multiply with type `given`; 16 bits hold products of two 8-bit numbers."""
        text = f"NIBBLE({name}, $at)" if self.bits == 4 else f"AT_{self.weights}(&{name}[$at])"
        return Template("(int32_t)" + text if given == "int16_t" else text)

    def numbers(self, step: Conv | Trees, k: int, at: str) -> str:
        """Add biases and the multipliers of sums; return C code that reads the bias at an index."""
        if step.rescale is not None:
            self.shared["scaled"] = SCALED
            self.table(f"r{k}", step.rescale, "", "uint16_t")
        return self.table(f"b{k}", step.bias, at, self.sum)

    def finish(self, act: Act, step: Conv | Trees, k: int, ctype: str) -> str:
        """C code that turns the sum `s` of row `o` into the returned value."""
        slope = round(act.slope * SLOPE)
        if self.bits is None:
            lines = {"none": [], "relu": ["if (s < 0) s = 0;"], "tanh": ["s = tanhf(s);"],
                     "leaky": [f"if (s < 0) s *= {literal(act.slope)};"],
                     "sigmoid": ["s = 1.0f / (1.0f + expf(-s));"]}[act.kind]  # fmt: skip
        elif ctype == "int32_t":
            leaky = f"if (s < 0) s = s / {SLOPE} * {slope} + s % {SLOPE} * {slope} / {SLOPE};"
            lines = {"none": [], "relu": ["if (s < 0) s = 0;"], "leaky": [leaky]}[act.kind]
        else:
            most = {"uint8_t": 255, "int8_t": 127, "int16_t": NODE}[ctype]
            least = 0 if ctype == "uint8_t" else -most
            lines = ["if (s <= 0) return 0;"] if act.kind == "relu" else []
            lines += [f"s = scaled({f's >> {step.pre}' if step.pre else 's'}, AT_uint16_t(&r{k}[o]), {most});"]
            lines += [f"if (s < 0) s = (s < -32000 ? -32000 : s) * {slope} / {SLOPE};"] if act.kind == "leaky" else []
            lines += [f"if (s < {least}) s = {least};"] if act.kind != "relu" else []
        return "\n    ".join([*lines, "return s;" if ctype == self.sum else f"return ({ctype})s;"])

    def add(self, step: Step, k: int, given: str, how: str) -> None:
        """Add the function of a step, which reads values of type `given`."""
        write: Any = {Conv: self.conv, Pool: self.pool, Trees: self.trees}[type(step)]
        self.functions.append(f"\n/* {k}: {describe(step)} */{write(step, k, given, how)}")

    def conv(self, step: Conv, k: int, given: str, how: str) -> str:
        """The function of a convolution; `how` it reads its inputs."""
        (_, height, width), (filters, inner, rows, columns) = step.shape, step.weight.shape
        height, (left, _, top, _) = rows if how == "line" else height, step.padding
        group = f"o / {filters // step.groups}" if filters > step.groups else "o"
        apart, padded = step.groups > 1 and how != "line", any(step.padding) or rows * columns > UNROLLED
        values = {
            "k": k, "before": k - 1, "out": step.ctype, "given": given, "sum": self.sum, "weights": self.weights,
            "p": affine("i", 0 if how == "line" else step.stride[0], -top), "q": affine("j", step.stride[1], -left),
            "bias": self.numbers(step, k, "o"), "finish": self.finish(step.act, step, k, step.ctype),
            "weight": self.weight(f"w{k}", step.weight, given).substitute(at="w"), "taps": inner * rows * columns,
            "base": f"{group} * {inner * height * width} + " if apart else "", "height": height, "width": width,
            "rows": rows, "columns": columns, "inner": inner, "skip": (height - rows + 1) * width,
        }  # fmt: skip
        if how == "call":
            return Template(CONV).substitute(values, add=Template(CALLS).substitute(values))
        if rows * columns <= UNROLLED:
            self._inside(values, rows, columns)
        inside = Template(INSIDE).substitute(values)
        if not padded:
            return Template(CONV).substitute(values, add=inside)
        within = f"p >= 0 && p <= {height - rows} && q >= 0 && q <= {width - columns}"
        values["inside"] = f"if ({within}) {inside}\n    else " if rows * columns <= UNROLLED else ""
        zero = np.zeros(step.shape[0], dtype=int)
        if k == 0 and self.network.zero is not None:
            zero = np.rint(self.network.zero).astype(int)
        number = self.table("zeros", zero, "zero + c") if np.ptp(zero) else "zero" if zero.any() else ""
        first = group if not apart else f"{group} * {inner}"
        edge = {"start": "s +=", "first": "", "zero": "", "parameter": "", "value": "x[a * width + b]"}
        if number:  # the padding is not 0
            rows_read = (np.arange(filters) * step.groups // filters * inner)[:, None] + np.arange(inner)
            bias = step.bias + (step.weight * zero[rows_read][:, :, None, None]).sum(axis=(1, 2, 3))
            edge = {"start": f"s = {self.table('edge', bias, 'o', self.sum)} +", "first": "first_",
                    "zero": f", {(first if apart else 0) if np.ptp(zero) else zero[0]}", "parameter": ", int zero",
                    "value": f"(x[a * width + b] - {number})"}  # fmt: skip
        weight = self.read("m", given).substitute(at="w + (a - p) * columns + b - q")
        self.shared[f"border {edge['first']}{given}"] = Template(WINDOW_AT_BORDER).substitute(
            values | edge, weight=weight
        )
        return Template(CONV).substitute(values, add=Template(BORDER).substitute(values | edge))

    def _inside(self, values: dict[str, Any], rows: int, columns: int) -> None:
        """Add the function for windows inside the inputs."""
        read, ahead = self.read("m", values["given"]), "w" if self.bits == 4 else "m"
        numbers = [read.substitute(at=f"w + {n}" if self.bits == 4 else n) for n in range(rows * columns)]
        lines = [
            " ".join(f"s += {number} * x[{b}];" for b, number in enumerate(numbers[n : n + columns]))
            for n in range(0, rows * columns, columns)
        ]
        terms = "\n        x += width;\n        ".join(lines) + f"\n        {ahead} += {rows * columns};"
        start = "(void)width;" if self.bits == 4 else "(void)width;\n    m += w;"
        text = Template(WINDOW_INSIDE).substitute(values, terms=terms, start=start)
        self.shared[f"{rows} {columns} {values['given']}"] = text

    def pool(self, step: Pool, k: int, given: str, how: str) -> str:
        """The function of pooling."""
        (_, height, width), (_, rows, columns) = step.shape, step.out
        (down, right), (edge, side) = step.stride, step.padding
        ends = [affine("i", 0 if how == "line" else down, -edge), f"top + {step.kernel[0]}",
                affine("j", right, -side), f"left + {step.kernel[1]}"]  # fmt: skip
        if step.parts is not None:
            ends = [text.format(v=v, n=n, m=m) for v, n, m in (("i", height, rows), ("j", width, columns))
                    for text in ("{v} * {n} / {m}", "(({v} + 1) * {n} + {m} - 1) / {m}")]  # fmt: skip
        height = step.kernel[0] if how == "line" else height
        here = "a * {w} + b" if how == "line" else "(o * {h} + a) * {w} + b"
        value = f"f{k - 1}(x, o, a, b)" if how == "call" else f"x[{here.format(h=height, w=width)}]"
        least, half = ("-1e38f", "s / n") if self.bits is None else ("-32768", "(s + (s < 0 ? -n / 2 : n / 2)) / n")
        count = " n++;" if step.parts is not None or not step.count_padding else ""
        start = f"0; {self.sum} n = {0 if count else step.kernel[0] * step.kernel[1]}"
        biggest, average = (least, "if (v > s) s = v;", "s"), (start, f"s += v;{count}", f"({half})")
        start, add, result = biggest if step.kind == "max" else average
        return Template(POOL).substitute(
            dict(zip(("top", "bottom", "left", "right"), ends, strict=True)), k=k, out=step.ctype, given=given,
            sum=self.sum, start=start, height=height, width=width, value=value, add=add, result=result,
        )  # fmt: skip

    def trees(self, step: Trees, k: int, given: str, how: str) -> str:
        """The functions of trees, which compute their wiring where it is regular."""
        assert how == "map"
        f, (channels, height, width) = step.forest, step.shape
        inputs, source = channels * height * width, f.source.astype(np.int64)
        is_leaf, corner = source < f.in_features, "0"
        if step.patches is not None:
            (rows, columns), (down, right) = step.patches.kernel, step.patches.stride
            c, a, b = np.unravel_index(source[is_leaf], (channels, rows, columns))
            source[is_leaf] = (c * height + a) * width + b
            corner = f"{affine('i', down * width)} + {affine('j', right)}"
        source[~is_leaf] += inputs - f.in_features
        levels = [level.stop for level, _, _ in f.ascend()][:-1]
        known: dict[str, str] = {}

        def number(name: str, values: Ints, at: str, ends: list[int]) -> str:
            text = by_parts(values, at, ends)
            return text if text is not None else self.table(f"{name}{k}", values, at)

        starts = f.weight_of_edge[f.offsets[:-1]]
        known["first"] = number("first", f.offsets[:-1], "n", levels)
        known["end"] = f"e + {number('fan', f.fan_ins, 'n', levels)}"
        known["row"] = number("row", f.bias_of_node, "n", levels)
        known["weights"] = "e" if np.array_equal(starts, f.offsets[:-1]) else number("start", starts, "n", levels)
        node = "float" if self.bits is None else "int16_t"
        read = self.weight(f"w{k}", step.weight, node).substitute(at="w")
        known |= {"k": str(k), "int": "long" if f.edges > INT_MAX else "int", "sum": self.sum, "given": given}
        known |= {"node": node, "inner": self.finish(step.act, step, k, node), "value": "x[at]", "dendrite": ""}
        if not is_leaf.all():  # dendrites read dendrites
            known["value"] = f"(at < {inputs} ? x[at] : n{k}(x, at - {inputs}))"
            known["dendrite"] = Template(DENDRITE).substitute(known)
        return Template(TREES).substitute(
            known, out=step.ctype, weight=read, corner=corner, source=self.sources(source, is_leaf, step, k),
            root=number("root", f.roots, "o", []), bias=self.numbers(step, k, "o"),
            finish=self.finish(step.root, step, k, step.ctype),
        )  # fmt: skip

    def sources(self, source: Ints, is_leaf: NDArray[np.bool_], step: Trees, k: int) -> str:
        """The input that edge `e` reads: a formula, for tied trees a place per weight and a distance, or a table."""
        f, synapses = step.forest, int(is_leaf.sum())
        text = by_parts(source, "e", [synapses])  # of regular trees
        if text is not None:
            return text
        inner = formula(source[synapses:], f"(e - {synapses})") if is_leaf[:synapses].all() else None
        if inner is None:
            return self.table(f"source{k}", source, "e")
        own, nodes = f.weight_of_edge[:synapses], np.repeat(np.arange(f.nodes), f.fan_ins)[:synapses]
        place = np.zeros(int(own.max()) + 1, dtype=np.int64)
        place[own[::-1]] = source[:synapses][::-1]  # of the first node that has the weight
        away = source[f.offsets[: nodes[-1] + 1]] - place[own[f.offsets[: nodes[-1] + 1]]]
        distance = formula(away, "n") if (place[own] + away[nodes] == source[:synapses]).all() else None
        table = self.table(f"source{k}", source[:synapses], "e") if distance is None else (
            f"{self.table(f'source{k}', place, 'w')} + {distance}")  # fmt: skip
        return f"(e < {synapses} ? {table} : {inner})"


def describe(step: Step) -> str:
    """A step in words, for a comment."""
    if isinstance(step, Trees):
        what = step.forest.describe()
    elif isinstance(step, Pool):
        what = f"{step.kind} pooling"
    elif is_linear(step):
        what = "linear map"
    else:
        depthwise = "depthwise " if step.groups > 1 else ""
        what = "scaling" if is_scaling(step) else f"{depthwise}convolution {'x'.join(map(str, step.weight.shape[2:]))}"
    return f"{what}, {'x'.join(map(str, step.shape))} -> {'x'.join(map(str, step.out))}"
