"""The parts of a C file: constants, functions, statements. Maps have their channels last in memory, inputs first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .coded import Coded
from .steps import Act, Step

SLOPE = 1024
"""Slopes of activations in integers are multiples of 1 / SLOPE."""
SIZES = {"float": 4, "int32_t": 4, "uint32_t": 4, "int16_t": 2, "uint16_t": 2, "int8_t": 1, "uint8_t": 1}


def smallest(most: int) -> str:
    """The smallest unsigned type that holds a number.

    >>> smallest(300)
    'uint16_t'
    """
    return "uint8_t" if most < 2**8 else "uint16_t" if most < 2**16 else "uint32_t"


@dataclass
class Writer:
    """Constants, functions and statements of a file."""

    bits: int | None
    arrays: list[str] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)
    rom: int = 0
    libm: bool = False

    @property
    def sum(self) -> str:
        """C type of sums."""
        return "float" if self.bits is None else "int32_t"

    def sum_at(self, where: str) -> str:
        """A bias, which has the type of sums."""
        return f"AT_{self.sum.removesuffix('_t').upper()}({where})"

    def array(self, name: str, ctype: str, values: ArrayLike) -> None:
        """Add a table of constants."""
        numbers = np.asarray(values).ravel()
        text = [literal(v) if ctype == "float" else str(int(v)) for v in numbers]
        lines = ",\n    ".join(", ".join(text[i : i + 16]) for i in range(0, len(text), 16))
        self.arrays.append(f"static const {ctype} {name}[{len(text)}] ROM = {{\n    {lines}}};")
        self.rom += SIZES[ctype] * len(text)

    def weights(self, name: str, values: ArrayLike) -> None:
        """Add weights: two in a byte if they have four bits."""
        numbers = np.asarray(values).ravel()
        if self.bits == 4:
            numbers = np.append(numbers, np.zeros(len(numbers) % 2)).astype(int) & 15
            self.array(name, "uint8_t", numbers[::2] | numbers[1::2] << 4)
        else:
            self.array(name, "float" if self.bits is None else "int8_t", numbers)

    def weight(self, name: str, at: str) -> str:
        """A weight by its number."""
        if self.bits == 4:
            return f"NIBBLE({name}, {at})"
        return f"AT_{'FLOAT' if self.bits is None else 'INT8'}(&{name}[{at}])"

    def product(self, name: str, at: str, value: str, read: str) -> str:
        """A weight times a value; 16 bits are enough for two numbers of 8 bits."""
        return f"{'(int32_t)' if read == 'int16_t' else ''}{self.weight(name, at)} * {value}"

    def finish(self, act: Act, coded: Coded, number: int, index: str, target: str, last: bool) -> list[str]:
        """From the sum `s` to a stored result."""
        lines = []
        if self.bits is None:
            self.libm |= act.kind in ("tanh", "sigmoid")
            lines += {
                "none": [],
                "relu": ["if (s < 0) s = 0;"],
                "leaky": [f"if (s < 0) s *= {literal(act.slope)};"],
                "tanh": ["s = tanhf(s);"],
                "sigmoid": ["s = 1.0f / (1.0f + expf(-s));"],
            }[act.kind]
            return [*lines, f"{target} = s;"]
        slope = round(act.slope * SLOPE)
        if last:
            lines += ["if (s < 0) s = 0;"] if act.kind == "relu" else []
            if act.kind == "leaky":
                lines += [f"if (s < 0) s = s / {SLOPE} * {slope} + s % {SLOPE} * {slope} / {SLOPE};"]
            return [*lines, f"{target} = s;"]
        by = f"AT_UINT16(&r{number}[{index}])"
        scaled = f"scaled(s >> {coded.pre}, {by})" if coded.pre else f"scaled(s, {by})"
        self.functions.setdefault("scaled", SCALED)
        if act.kind == "relu":
            most = 255 if coded.write == "uint8_t" else NODE
            lines += [f"s = s < 0 ? 0 : {scaled};", f"if (s > {most}) s = {most};"]
        else:
            most = 127 if coded.write == "int8_t" else NODE
            lines += [f"s = {scaled};"]
            lines += [f"if (s < 0) s = (s < -32000 ? -32000 : s) * {slope} / {SLOPE};"] if act.kind == "leaky" else []
            lines += [f"if (s > {most}) s = {most};", f"if (s < -{most}) s = -{most};"]
        return [*lines, f"{target} = ({coded.write})s;"]


NODE = 4095
"""The largest value of a dendrite in integers."""
SCALED = """static int32_t scaled(int32_t s, uint16_t by)
{
    return (s * (int32_t)(by & 2047) + ((int32_t)1 << ((by >> 11) - 1))) >> (by >> 11);
}"""


def literal(value: float) -> str:
    """A float constant in C.

    >>> literal(1), literal(0.1)
    ('1.0f', '0.100000001f')
    """
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def indented(lines: list[str], levels: int = 1) -> list[str]:
    """Lines of a block."""
    return ["    " * levels + line for line in lines]


def loop(variable: str, count: int, lines: list[str]) -> list[str]:
    """A counting loop; none for a single turn."""
    if count == 1:
        return [f"{variable} = 0;", *lines]
    return [f"for ({variable} = 0; {variable} < {count}; {variable}++) {{", *indented(lines), "}"]


def address(step: Step, planar: bool, c: str, y: str, x: str) -> str:
    """Where an input of a step is in memory."""
    channels, height, width = step.shape
    if planar:
        return f"(({c}) * {height} + {y}) * {width} + {x}" if height * width > 1 else c
    return f"(({y}) * {width} + {x}) * {channels} + {c}" if height * width > 1 else c


def stored(out: tuple[int, int, int], last: bool, c: str, y: str, x: str) -> str:
    """Where a result of a step is in memory."""
    channels, height, width = out
    if height * width == 1:
        return c
    if last:  # scores are in the order of PyTorch
        return f"({c} * {height} + {y}) * {width} + {x}"
    return f"({y} * {width} + {x}) * {channels} + {c}" if channels > 1 else f"{y} * {width} + {x}"
