"""Integers for the numbers of a network: weights of 8 or 4 bits, values of 8 bits, sums of 32 bits.

A sum of integers stands for a real number by a scale per filter or dendrite. It becomes the value that the next step
reads by a multiplier and a shift. Scales of values come from examples; bounds of the sums, which hold for every
input, make sure that no sum exceeds 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..errors import OptionError
from .c_writer import NODE
from .coded import Code, Coded
from .steps import Array, Conv, Network, Pool, Shape, Step, Trees

MOST_SUM = 2**30
"""Bound of a sum with its multiplier."""
MULTIPLIER_BITS = 11
INPUT = 2047
"""The largest standardized input in integers."""
LIMITS = {"uint8_t": 255, "int8_t": 127, "int16_t": NODE}


@dataclass(frozen=True, eq=False)
class Signal:
    """What a step reads: its C type, its bounds, and per channel its scale and the number that stands for 0."""

    ctype: str
    low: int
    high: int
    scale: Array
    zero: Array


def in_integers(network: Network, examples: Tensor, bits: int = 8) -> Code:
    """The numbers of a network as integers, with ranges from examples."""
    kinds = {step.act.kind for step in network.steps if isinstance(step, Conv | Trees)}
    kinds |= {step.root.kind for step in network.steps if isinstance(step, Trees)}
    if wrong := kinds & {"tanh", "sigmoid"}:
        raise OptionError(f"int8 needs ReLU, LeakyReLU or linear activations: got {sorted(wrong)[0]}; float has it")
    if isinstance(last := network.steps[-1], Pool):  # scores are sums
        channels = last.out[0]
        unit = Conv(last.out, np.ones((channels, 1, 1, 1)), np.zeros(channels), groups=channels)
        network = network.with_steps((*network.steps, unit))
    values = [each.numpy() for each in network.run(examples)]
    first = signal = _inputs(network, values[0])
    coded: list[Coded] = []
    score = 1.0
    for number, step in enumerate(network.steps):
        last_step = number + 1 == len(network.steps)
        if isinstance(step, Pool):
            if step.kind == "average" and any(step.padding) and signal.zero.any():
                raise OptionError("int8 needs average pooling of inputs without padding")
            coded.append(Coded(read=signal.ctype, write=signal.ctype))
            continue
        result = values[number + 1]
        wanted = None if last_step else _target(result, _sensitivity(network.steps[number + 1 :], step.out))
        if isinstance(step, Conv):
            done, signal, score = _convolution(step, signal, wanted, 2 ** (bits - 1) - 1)
        else:
            nodes = np.abs(step.nodes(step.inputs(network.run(examples)[number]))).max(axis=0)
            done, signal, score = _trees(step, signal, nodes, wanted, 2 ** (bits - 1) - 1)
        coded.append(done)
    return Code(tuple(coded), bits, tuple(first.scale.tolist()), tuple(first.zero.tolist()), score)


def _inputs(network: Network, x: NDArray[np.float64]) -> Signal:
    """Bytes, per channel of images from the smallest to the largest pixel; standardized inputs have 12 bits."""
    channels = network.shape[0]
    if network.mean is not None:
        return Signal("int16_t", -INPUT, INPUT, np.full(channels, network.clip / INPUT), np.zeros(channels))
    axes = (0, 2, 3) if network.shape[1:] != (1, 1) else (0, 1, 2, 3)
    low, high = (np.broadcast_to(each, channels) for each in (x.min(axis=axes), x.max(axis=axes)))
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    scale = np.where(high > low, high - low, 1.0) / 255
    return Signal("uint8_t", 0, 255, scale, -low / scale)


def _sensitivity(steps: tuple[Step, ...], shape: Shape) -> Array | None:
    """The largest weight that reads each channel of the next values; None if each channel has weights of its own."""
    step = next(step for step in steps if not isinstance(step, Pool))
    if isinstance(step, Conv):
        if step.groups > 1:
            return None
        largest: Array = np.abs(step.weight).max(axis=(0, 2, 3))
        return largest
    f, most = step.forest, np.zeros(int(np.prod(step.shape)))
    if f.template is not None:
        return np.ones(shape[0])
    np.maximum.at(most, f.synapse_inputs, np.abs(step.weight[f.synapse_edges]))
    return most.reshape(step.shape).max(axis=(1, 2)) if step.patches is None else np.ones(shape[0])


def _target(result: NDArray[np.float64], sensitivity: Array | None) -> tuple[str, Array]:
    """The C type of values, and their scale per channel.

    Values of a channel that matters little have fewer steps: its weights, which take over the scale, are then as large
    as those of the other channels, and lose less by rounding.
    """
    ctype = "int8_t" if result.min() < 0 else "uint8_t"
    most = np.abs(result).max(axis=(0, 2, 3))
    most = np.maximum(most, max(most.max(), 1e-9) * 1e-4)
    if sensitivity is None:
        return ctype, most / LIMITS[ctype]
    if np.ptp(sensitivity) == 0 and sensitivity.max() == 1:  # tied trees read any channel
        return ctype, np.full(len(most), most.max() / LIMITS[ctype])
    weight = np.maximum(sensitivity, sensitivity.max() * 1e-4 + 1e-30)
    step = (most * weight).max() / LIMITS[ctype]
    return ctype, np.maximum(most / LIMITS[ctype], np.minimum(step / weight, most.max() / LIMITS[ctype]))


def _rows(weight: Array, bias: Array, top: int, *, common: bool) -> tuple[Array, Array, Array]:
    """Integers for rows of weights, for biases, and their scales."""
    size = np.abs(weight).max(axis=1)
    size = np.full_like(size, size.max()) if common else size
    scale = np.where(size > 0, size, max(size.max(), 1e-9)) / top
    if common:  # biases are sums
        scale = np.maximum(scale, np.abs(bias).max() / 2**29)
    scale = np.maximum(scale, np.abs(bias) / 2**29)
    return np.rint(weight / scale[:, None]), np.rint(bias / scale), scale


def _rescaled(scale: Array, target: Array, bound: float) -> tuple[NDArray[np.int64], int, Array]:
    """Multipliers with shifts, the shift before them, and the scales that result."""
    pre = 0
    while bound / 2**pre * 2**MULTIPLIER_BITS > MOST_SUM:
        pre += 1
    target = np.maximum(target, scale * 2.0**pre)  # a value has no finer steps than its sum
    ratio = scale * 2.0**pre / target
    shift = np.clip(np.floor(MULTIPLIER_BITS - np.log2(ratio)) - 1, 1, 30)
    multiplier = np.clip(np.rint(ratio * 2**shift), 1, 2**MULTIPLIER_BITS - 1)
    packed = multiplier.astype(np.int64) + (shift.astype(np.int64) << MULTIPLIER_BITS)
    return packed, pre, scale * 2.0**pre * 2**shift / multiplier


def _convolution(step: Conv, signal: Signal, wanted: tuple[str, Array] | None, top: int) -> tuple[Coded, Signal, float]:
    filters, inner = step.weight.shape[:2]
    group = np.arange(filters) * step.groups // filters
    channel = group[:, None] * inner + np.arange(inner) if step.groups > 1 else np.tile(np.arange(inner), (filters, 1))
    per_number = step.shape[0] != len(signal.scale)  # a scaling of each number of a row
    scales, zeros = (np.tile(v, step.shape[0] // len(v)) if per_number else v for v in (signal.scale, signal.zero))
    real = step.weight * scales[channel][:, :, None, None]
    shift = (real * zeros[channel][:, :, None, None]).sum(axis=(1, 2, 3))
    weight, bias, scale = _rows(real.reshape(filters, -1), step.bias - shift, top, common=wanted is None)
    bound = np.abs(bias) + np.abs(weight).sum(axis=1) * max(-signal.low, signal.high)
    if bound.max() >= 2 * MOST_SUM:
        raise OptionError(f"int8 needs sums below 2**31: a filter of {weight.shape[1]:,} weights could exceed it")
    done = Coded(weight.reshape(step.weight.shape), bias, signal.ctype, "int32_t")
    done = replace(done, zero=tuple(np.rint(signal.zero).astype(int).tolist()))
    if wanted is None:
        return done, signal, float(scale[0])
    ctype, target = wanted
    target = target if len(target) == filters else np.tile(target, filters // len(target))
    packed, pre, reached = _rescaled(scale, target, float(bound.max()))
    low = 0 if ctype == "uint8_t" else -LIMITS[ctype]
    done = replace(done, write=ctype, rescale=packed, pre=pre)
    channels = step.out[0]
    reached = reached if len(reached) == channels else reached.reshape(-1, channels).max(axis=0)
    return done, Signal(ctype, low, LIMITS[ctype], reached, np.zeros(channels)), 1.0


def _trees(
    step: Trees, signal: Signal, largest: Array, wanted: tuple[str, Array] | None, top: int
) -> tuple[Coded, Signal, float]:
    """Dendrite by dendrite, children first; tied ones have the scales of all their inputs in common."""
    f = step.forest
    per_input = np.repeat(np.arange(step.shape[0]), int(np.prod(step.shape[1:])))
    if step.patches is not None:
        per_input = np.repeat(np.arange(step.shape[0]), step.patches.kernel[0] * step.patches.kernel[1])
    scale, zero = np.zeros(f.in_features + f.nodes), np.zeros(f.in_features + f.nodes)
    scale[: f.in_features], zero[: f.in_features] = (v[per_input][: f.in_features] for v in (signal.scale, signal.zero))
    if f.template is not None:
        np.maximum.at(most := np.zeros(f.biases), f.bias_of_node, largest)
        largest = most[f.bias_of_node]
        if np.ptp(signal.scale) or np.ptp(signal.zero):
            raise OptionError("int8 needs inputs of one range for tied trees: the channels have several")
    is_root = np.zeros(f.nodes, dtype=bool)
    is_root[f.roots] = True
    weight, bias, packed = np.zeros(f.weights), np.zeros(f.biases), np.full(f.biases, (1 << 11) + 1)
    largest = np.maximum(largest, max(largest.max(), 1e-9) * 1e-4)
    target = np.where(is_root, np.inf, largest / NODE)
    if wanted is not None:
        target[f.roots] = wanted[1]
    high = max(-signal.low, signal.high, NODE)
    pre = 0
    while float(f.fan_ins.max()) * top * high * 2 / 2**pre * 2**MULTIPLIER_BITS > MOST_SUM:
        pre += 1
    if float(f.fan_ins.max()) * top * high >= MOST_SUM:
        raise OptionError(f"int8 needs sums below 2**31: a dendrite of {f.fan_ins.max():,} synapses could exceed it")
    if f.template is not None:
        np.maximum.at(most := np.zeros(f.biases), f.bias_of_node, target)
        target = most[f.bias_of_node]
    roots, ends = np.zeros(f.nodes), wanted is None
    for n in range(f.nodes):
        edges = slice(f.offsets[n], f.offsets[n + 1])
        source, own, which = f.source[edges], f.weight_of_edge[edges], f.bias_of_node[n]
        real = step.weight[own] * scale[source]
        size = max(float(np.abs(real).max()), 1e-12) / top
        if ends and is_root[n]:
            roots[n] = size
            continue
        move = step.bias[which] - (real * zero[source]).sum()
        size = max(size, abs(move) / MOST_SUM * 2**1)
        weight[own], bias[which] = np.rint(real / size), np.rint(move / size)
        packed[which : which + 1], _, reached = _rescaled(np.array([size]) * 2.0**pre, target[n : n + 1], 0.0)
        scale[f.in_features + n] = reached[0]
    score = 1.0
    if ends:  # all scores have one scale
        score = float(roots.max())
        for n in f.roots:
            edges = slice(f.offsets[n], f.offsets[n + 1])
            source, own, which = f.source[edges], f.weight_of_edge[edges], f.bias_of_node[n]
            real = step.weight[own] * scale[source]
            weight[own] = np.rint(real / score)
            bias[which] = np.rint((step.bias[which] - (real * zero[source]).sum()) / score)
    done = Coded(weight, bias, signal.ctype, "int32_t", packed, pre, tuple(np.rint(signal.zero).astype(int).tolist()))
    if wanted is None:
        return done, signal, score
    ctype = wanted[0]
    low = 0 if ctype == "uint8_t" else -LIMITS[ctype]
    reached = scale[f.in_features + f.roots]
    return replace(done, write=ctype), Signal(ctype, low, LIMITS[ctype], reached, np.zeros(f.neurons)), 1.0
