"""A C99 file of a network's steps and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .c_convolutions import is_pair, reads_once, write_conv, write_pair
from .c_trees import write_pool, write_trees
from .c_writer import Writer, indented, literal
from .coded import Code
from .steps import Act, Conv, Network, Pool, Step, Trees

HEAD = """#include <stdint.h>
#ifdef __AVR__ /* constants stay in flash */
#include <avr/pgmspace.h>
#define ROM PROGMEM
#define AT_INT8(p) ((int8_t)pgm_read_byte(p))
#define AT_UINT8(p) pgm_read_byte(p)
#define AT_INT16(p) ((int16_t)pgm_read_word(p))
#define AT_UINT16(p) pgm_read_word(p)
#define AT_INT32(p) ((int32_t)pgm_read_dword(p))
#define AT_UINT32(p) pgm_read_dword(p)
#define AT_FLOAT(p) pgm_read_float(p)
#else
#define ROM
#define AT_INT8(p) (*(p))
#define AT_UINT8(p) (*(p))
#define AT_INT16(p) (*(p))
#define AT_UINT16(p) (*(p))
#define AT_INT32(p) (*(p))
#define AT_UINT32(p) (*(p))
#define AT_FLOAT(p) (*(p))
#endif"""
NIBBLE = "#define NIBBLE(m, k) ((int8_t)((AT_UINT8(&(m)[(k) >> 1]) >> ((k) & 1) * 4 & 15) ^ 8) - 8)"


def c_source(network: Network, code: Code, name: str, notes: Sequence[str]) -> str:
    """The file. `notes` are lines of the comment at its head."""
    w = Writer(code.bits)
    inputs, outputs = math.prod(network.shape), math.prod(network.steps[-1].out)
    upper, sums = name.upper(), w.sum
    given = "float" if network.mean is not None or code.bits is None else code.steps[0].read
    x, planar = "x", math.prod(network.shape[1:]) > 1 and network.shape[0] > 1
    planar = planar or network.shape[1:] == (1, 1) or network.shape[0] == 1
    buffers: list[tuple[str, str, int]] = []
    if network.mean is not None and network.deviation is not None:
        x = "scaled_inputs"
        buffers.append((x, code.steps[0].read, inputs))
        w.array("mean", "float", network.mean)
        w.array("factor", "float", 1 / network.deviation)
        clip, to_int = literal(network.clip), literal(1 / code.input_scale[0])
        put = "v" if code.bits is None else f"({code.steps[0].read})(v * {to_int} + (v < 0 ? -0.5f : 0.5f))"
        w.body += [f"for (i = 0; i < {inputs}; i++) {{"]
        w.body += ["    float v = (x[i] - AT_FLOAT(&mean[i])) * AT_FLOAT(&factor[i]);"]
        w.body += [f"    v = v > {clip} ? {clip} : v < -{clip} ? -{clip} : v;", f"    {x}[i] = {put};", "}"]
    spaces = {0: 0, 1: 0}  # two buffers take turns
    turn, number = 0, 0
    while number < len(network.steps):
        step, coded = network.steps[number], code.steps[number]
        pair = number + 1 < len(network.steps) and is_pair(step, network.steps[number + 1])
        done = number + (2 if pair else 1)
        last = done == len(network.steps)
        readout = None
        if pair and done + 1 == len(network.steps) and _sums_up(network.steps[done - 1], final := network.steps[done]):
            assert isinstance(final, Conv)
            readout, last = (final, code.steps[done]), True
        result = network.steps[done - 1]
        kind = code.steps[done - 1].write
        y = "y" if last else f"({kind} *)buffer{turn}" if kind != "float" else f"buffer{turn}"
        written = y if last or kind == "float" else f"out{number}"
        parts = [describe(step), *([describe(result)] if pair else []), *(["linear map"] if readout else [])]
        w.body.append(f"/* {number}: {', then '.join(parts)} -> {shown(readout[0].out if readout else result.out)} */")
        mark = len(w.body)
        if isinstance(step, Conv) and pair:
            second = network.steps[number + 1]
            assert isinstance(second, Conv)
            write_pair(w, (step, second), (coded, code.steps[number + 1]), number, x, written, planar, last, readout)
            done += readout is not None
        elif isinstance(step, Conv):
            write_conv(w, step, coded, number, x, written, planar, last)
        elif isinstance(step, Pool):
            write_pool(w, step, coded, x, written, planar, last)
        else:
            write_trees(w, step, coded, number, x, written, planar, last)
        if not last:
            if written != y:
                w.body[mark:] = ["{", *indented([f"{kind} *{written} = {y};", *w.body[mark:]]), "}"]
            spaces[turn] = max(spaces[turn], math.prod(result.out))
            x, turn, planar = (
                (f"((const {kind} *)buffer{turn})" if kind != "float" else f"buffer{turn}"),
                1 - turn,
                False,
            )
        number = done
    element = "float" if code.bits is None else "uint8_t"
    buffers += [(f"buffer{turn}", element, size) for turn, size in spaces.items() if size]
    libm = w.libm or (network.output != "none" and code.bits is None)
    comment = [
        f"{name}: {notes[0]}",
        *notes[1:],
        "Not reentrant: its buffers are static. No heap, no other files" + (", libm." if libm else "."),
    ]
    lines = ["/* " + "\n * ".join(comment) + " */", HEAD, *([NIBBLE] if code.bits == 4 else [])]
    lines += ["#include <math.h>"] if libm else []
    lines += [f"#define {upper}_INPUTS {inputs}", f"#define {upper}_OUTPUTS {outputs}"]
    if code.bits is not None:
        lines += [f"#define {upper}_SCALE {literal(code.score_scale)} /* of integer sums to scores */"]
    lines += ["", *w.arrays, ""]
    lines += [f"static {ctype} {buffer}[{size}];" for buffer, ctype, size in buffers]
    lines += ["", *(text + "\n" for text in w.functions.values())]
    used = [v for v in "oij" if any(f"{v} = 0;" in line for line in w.body)]
    lines += [
        f"static void {name}_sums(const {given} *x, {sums} *y)",
        "{",
        f"    int {', '.join(used)};",
        *indented(w.body),
        "}",
        "",
    ]
    lines += _interface(network, code, name, given, sums, outputs)
    return "\n".join(lines) + "\n"


def _sums_up(somata: Step, final: Step) -> bool:
    """Whether a linear read-out can be summed up while its inputs are computed."""
    linear = isinstance(final, Conv) and final.covers and final.act == Act()
    return linear and isinstance(somata, Conv) and reads_once(somata)


def shown(shape: tuple[int, int, int]) -> str:
    """A shape in a comment.

    >>> shown((10, 1, 1)), shown((3, 8, 8))
    ('10', '3x8x8')
    """
    return str(shape[0]) if shape[1:] == (1, 1) else "x".join(map(str, shape))


def describe(step: Conv | Pool | Trees) -> str:
    """A step in a comment."""
    if isinstance(step, Trees):
        return step.forest.describe()
    if isinstance(step, Pool):
        return f"{step.kind} pooling"
    if step.covers:
        return "linear map"
    rows, columns = step.weight.shape[2:]
    depthwise = "depthwise " if step.groups > 1 else ""
    return "scaling" if step.is_elementwise else f"{depthwise}convolution {rows}x{columns}"


def _interface(network: Network, code: Code, name: str, given: str, sums: str, outputs: int) -> list[str]:
    """The functions that are called from outside, and a main for tests."""
    upper, integers = name.upper(), code.bits is not None
    lines = [f"void {name}_predict(const {given} *x, float *scores)", "{"]
    if integers:
        lines += ["    int32_t y[%d];" % outputs, "    int k;", f"    {name}_sums(x, y);"]  # noqa: UP031
        lines += [f"    for (k = 0; k < {outputs}; k++) scores[k] = (float)y[k] * {upper}_SCALE;"]
    else:
        lines += [f"    {name}_sums(x, scores);"]
    if network.output == "sigmoid" and not integers:
        lines += ["    scores[0] = 1.0f / (1.0f + expf(-scores[0]));"]
    elif network.output == "softmax" and not integers:
        lines += ["    float most = scores[0], total = 0;", "    int k;"]
        lines += [f"    for (k = 1; k < {outputs}; k++) if (scores[k] > most) most = scores[k];"]
        lines += [f"    for (k = 0; k < {outputs}; k++) total += scores[k] = expf(scores[k] - most);"]
        lines += [f"    for (k = 0; k < {outputs}; k++) scores[k] /= total;"]
    lines += ["}", ""]
    if network.classifies:
        lines += [f"int {name}_classify(const {given} *x)", "{", f"    {sums} y[{outputs}];"]
        if outputs == 1:
            lines += [f"    {name}_sums(x, y);", "    return y[0] > 0;", "}", ""]
        else:
            lines += ["    int k, best = 0;", f"    {name}_sums(x, y);"]
            lines += [f"    for (k = 1; k < {outputs}; k++) if (y[k] > y[best]) best = k;", "    return best;", "}", ""]
    lines += [f"#ifdef {upper}_MAIN /* inputs from stdin, scores to stdout, both as they stand in memory */"]
    lines += ["#include <stdio.h>", "int main(void)", "{", f"    static {given} x[{upper}_INPUTS];"]
    lines += [f"    static float scores[{upper}_OUTPUTS];"]
    lines += [f"    while (fread(x, sizeof x[0], {upper}_INPUTS, stdin) == {upper}_INPUTS) {{"]
    lines += [
        f"        {name}_predict(x, scores);",
        f"        fwrite(scores, sizeof scores[0], {upper}_OUTPUTS, stdout);",
    ]
    return [*lines, "    }", "    return 0;", "}", "#endif"]
