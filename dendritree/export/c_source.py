"""A network as a C99 file: per step a function that computes one value, and loops that store values read repeatedly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import Template
from typing import Any

import numpy as np

from .c_numbers import literal
from .c_steps import Functions, describe
from .steps import Act, Conv, Network, Pool, Step, Trees, is_linear

READS = {"int8_t": "(int8_t)pgm_read_byte", "uint8_t": "pgm_read_byte", "uint16_t": "pgm_read_word",
         "int32_t": "(int32_t)pgm_read_dword", "uint32_t": "pgm_read_dword", "float": "pgm_read_float"}  # fmt: skip
"""How constants are read from the flash of an AVR."""

LINE = """$kind line[$size];
    for (int o = 0; o < $channels; o++)
        for (int i = 0; i < $rows; i++) {
            int a = i ? $kept : 0; /* rows of the last time */
            for (int j = 0; j < a * $width; j++) line[j] = line[j + $moved];
            for (; a < $kernel; a++)
                for (int j = 0; j < $width; j++) line[a * $width + j] = f$before($x, o, i * $down + a, j);
            for (int j = 0; j < $columns; j++) { $store }
        }"""
PLAIN = """for (int o = 0; o < $channels; o++)
        for (int i = 0; i < $rows; i++)
            for (int j = 0; j < $columns; j++) { $store }"""
HEAD = """$comment
#include <stdint.h>
$libm#ifdef __AVR__ /* constants stay in flash */
#include <avr/pgmspace.h>
#define ROM PROGMEM
$flash
#else
#define ROM
$plain
#endif
$defines

$arrays
$buffers$functions

static void ${name}_sums(const $given *x, $sum *y)
{
    $body
}

void ${name}_predict(const $given *x, float *scores)
{
    $predict
}
$classify
#ifdef ${upper}_MAIN /* raw binary, no text: $given inputs from stdin, float scores to stdout */
#include <stdio.h>
int main(void)
{
    static $given x[${upper}_INPUTS];
    static float scores[${upper}_OUTPUTS];
    while (fread(x, sizeof x[0], ${upper}_INPUTS, stdin) == ${upper}_INPUTS) {
        ${name}_predict(x, scores);
        fwrite(scores, sizeof scores[0], ${upper}_OUTPUTS, stdout);
    }
    return 0;
}
#endif
"""
CLASSIFY = """
int ${name}_classify(const $given *x)
{
    $sum y[$outputs];
    int best = 0;
    ${name}_sums(x, y);
    for (int k = 1; k < $outputs; k++) if (y[k] > y[best]) best = k;
    return $answer;
}
"""
NIBBLE = "#define NIBBLE(m, k) ((int8_t)((AT_uint8_t(&(m)[(k) >> 1]) >> ((k) & 1) * 4 & 15) ^ 8) - 8)"
PREPARE = """for (int o = 0; o < $inputs; o++) {
        float v = (x[o] - $mean) * $factor;
        v = v > $clip ? $clip : v < -$clip ? -$clip : v;
        given[o] = $put;
    }"""
INTEGERS = """int32_t y[$outputs];
    ${name}_sums(x, y);
    for (int k = 0; k < $outputs; k++) scores[k] = (float)y[k] * ${upper}_SCALE;"""
SOFTMAX = """
    float most = scores[0], total = 0;
    for (int k = 1; k < $outputs; k++) if (scores[k] > most) most = scores[k];
    for (int k = 0; k < $outputs; k++) total += scores[k] = expf(scores[k] - most);
    for (int k = 0; k < $outputs; k++) scores[k] /= total;"""


def c_source(network: Network, name: str, notes: Sequence[str]) -> str:
    """The C source; `notes` are lines of the comment at its head."""
    file, steps, kind = Functions(network), network.steps, network.ctype
    inputs, outputs, integers = math.prod(network.shape), math.prod(steps[-1].out), network.bits is not None
    x, body, sizes, turn = "x", [], [0, 0], 0  # two buffers take turns
    if network.mean is not None and network.deviation is not None:
        x, per = "given", 1.0 if network.scale is None else 1 / network.scale[0]
        rounded = f"({kind})(v * {literal(per)} + (v < 0 ? -0.5f : 0.5f))" if integers else "v"
        values = {"inputs": inputs, "clip": literal(network.clip), "put": rounded}
        values["mean"] = file.table("mean", network.mean, "o", "float")
        values["factor"] = file.table("factor", 1 / network.deviation, "o", "float")
        body.append(Template(PREPARE).substitute(values))
    for k, step in enumerate(steps):
        how, after = reading(steps, k), reading(steps, k + 1) if k + 1 < len(steps) else "scores"
        if how == "sum":
            break
        file.add(step, k, steps[k - 1].ctype if how == "line" else kind, how)
        if after in ("call", "line"):
            continue
        (_, rows, columns), result = step.out, f"f{k}({'line' if how == 'line' else x}, o, i, j)"
        at = "o" if rows * columns == 1 else f"(o * {rows} + i) * {columns} + j"
        pointer = f"({step.ctype} *)buffer{turn}" if step.ctype == "int8_t" else f"buffer{turn}"
        store = f"{'y' if after == 'scores' else f'({pointer})' if '*' in pointer else pointer}[{at}] = {result};"
        if after == "sum":
            start, store = _summed_up(file, steps[k + 1], k + 1, step, result, at)  # type: ignore[arg-type]
            body.append(start)
        body.append(_loops(steps, k, how, x, store))
        if after == "map":
            sizes[turn] = max(sizes[turn], math.prod(step.out))
            x, kind, turn = pointer, step.ctype, 1 - turn
    values = {"name": name, "upper": name.upper(), "outputs": outputs, "sum": file.sum}
    values["given"] = "float" if network.mean is not None else network.ctype
    predict = Template(INTEGERS).substitute(values) if integers else f"{name}_sums(x, scores);"
    if not integers and network.output == "softmax":
        predict += Template(SOFTMAX).substitute(values)
    if not integers and network.output == "sigmoid":
        predict += "\n    scores[0] = 1.0f / (1.0f + expf(-scores[0]));"
    answer = "best" if outputs > 1 else "y[best] > 0"
    functions, element = "\n".join([*file.shared.values(), *file.functions]), "uint8_t" if integers else "float"
    libm = "expf(" in predict + functions or "tanhf(" in functions
    comment = [f"{name}: {notes[0]}", *notes[1:], "Not reentrant: its buffers are static. No heap, no other files."]
    buffers = [f"static {network.ctype} given[{inputs}];"] if x == "given" or network.mean is not None else []
    buffers += [f"static {element} buffer{turn}[{size}];" for turn, size in enumerate(sizes) if size]
    defines = [f"#define {name.upper()}_INPUTS {inputs}", f"#define {name.upper()}_OUTPUTS {outputs}"]
    defines += (
        [f"#define {name.upper()}_SCALE {literal(network.score_scale)} /* of sums to scores */"] if integers else []
    )
    return Template(HEAD).substitute(
        values, comment="/* " + "\n * ".join(comment) + " */", libm="#include <math.h>\n" if libm else "",
        flash="\n".join(f"#define AT_{ctype}(p) ({read}(p))" for ctype, read in READS.items()),
        plain="\n".join(f"#define AT_{ctype}(p) (*(p))" for ctype in READS),
        defines="\n".join([*defines, *([NIBBLE] if network.bits == 4 else [])]), arrays="\n".join(file.arrays),
        buffers="\n".join([*buffers, ""]), functions=functions, body="\n    ".join(body), predict=predict,
        classify=Template(CLASSIFY).substitute(values, answer=answer) if network.classifies else "",
    )  # fmt: skip


def reading(steps: Sequence[Step], k: int) -> str:
    """How a step reads the one before it: as a stored "map", as rows stored in a "line", or by a "call" per value; a
    last linear map adds up the values as they come, as a "sum"."""
    step, before = steps[k], steps[k - 1] if k else None
    if before is None:
        return "map"
    if k == len(steps) - 1 and is_linear(step) and isinstance(step, Conv) and step.act == Act():
        return "sum"
    if isinstance(step, Trees) or before.out != step.shape or any(step.padding) or getattr(step, "parts", None):
        return "map"
    if isinstance(step, Conv) and not step.groups == len(step.weight) == step.shape[0]:
        return "map"
    if _apart(step):
        return "call"
    # A line is filled by calls that read a map: there are no lines of lines, nor calls that read a line.
    called = k + 1 < len(steps) and _apart(steps[k + 1]) and reading(steps[k:], 1) == "call"
    return "map" if called or reading(steps, k - 1) == "line" else "line"


def _apart(step: Step) -> bool:
    """Whether the windows of a step do not overlap, so that it reads every value once."""
    if isinstance(step, Trees):
        return False
    window = step.weight.shape[2:] if isinstance(step, Conv) else step.kernel
    return bool(window[0] <= step.stride[0] and window[1] <= step.stride[1])


def _loops(steps: Sequence[Step], k: int, how: str, x: str, store: str) -> str:
    """Code that stores all values of a step."""
    step = steps[k]
    values: dict[str, Any] = dict(zip(("channels", "rows", "columns"), step.out, strict=True)) | {
        "store": store,
        "x": x,
    }
    if how != "line":
        return Template(PLAIN).substitute(values)
    assert isinstance(step, Conv | Pool)
    before, kernel = steps[k - 1], step.weight.shape[2] if isinstance(step, Conv) else step.kernel[0]
    down, width = step.stride[0], step.shape[2]
    sizes = {"kernel": kernel, "down": down, "width": width, "size": kernel * width, "moved": down * width}
    values |= sizes | {"kept": max(kernel - down, 0), "kind": before.ctype, "before": k - 1}
    return "{\n    " + Template(LINE).substitute(values) + "\n    }"


def _summed_up(file: Functions, step: Conv, k: int, before: Step, value: str, at: str) -> tuple[str, str]:
    """Code that begins the sums of a last linear map, and code that adds one of its inputs to them."""
    weight = step.weight[:, :, 0, 0].T
    weight = np.pad(weight, ((0, math.prod(before.out) - len(weight)), (0, 0)))
    read, scores = file.weight(f"w{k}", weight, before.ctype), weight.shape[1]
    start = f"for (int k = 0; k < {scores}; k++) y[k] = {file.numbers(step, k, 'k')}; /* {k}: {describe(step)} */"
    add = f"y[k] += {read.substitute(at=f'({at}) * {scores} + k')} * v;"
    return start, f"{before.ctype} v = {value}; for (int k = 0; k < {scores}; k++) {add}"
