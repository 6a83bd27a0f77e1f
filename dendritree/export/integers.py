"""Quantize a network to integers: weights of 8 or 4 bits, values of 8 bits, sums of 32 bits.

Each filter or dendrite has a scale, by which its largest weight is the largest integer. A multiplier and a shift turn
its sum into the value that the next step reads. Scales of values come from examples; bounds of the sums, which hold for
every input, ensure that no sum exceeds 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..errors import OptionError
from .steps import Array, Conv, Network, Pool, Shape, Step, Trees, scaling

MOST_SUM = 2**30
"""Bound of a sum with its multiplier."""
MULTIPLIER_BITS = 11
INPUT, NODE = 2047, 4095
"""The largest standardized input, and the largest value of a dendrite."""
LIMITS = {"uint8_t": 255, "int8_t": 127, "int16_t": INPUT}


@dataclass(frozen=True, eq=False)
class Signal:
    """What a step reads: its C type and shape, and the scale and zero point of each channel."""

    ctype: str
    shape: Shape
    scale: Array
    zero: Array

    def of_channels(self, step: Conv | Trees) -> tuple[Array, Array]:
        """Scale and zero point of each channel of a step, which may read maps as rows of numbers."""
        size = int(np.prod(self.shape[1:])) if step.shape[1:] == (1, 1) else 1
        scale, zero = (np.repeat(v, size)[: step.shape[0]] for v in (self.scale, self.zero))
        return scale, zero


def in_integers(network: Network, examples: Tensor, bits: int = 8) -> Network:
    """The network in integers, with ranges from examples."""
    acts = [act for s in network.steps if not isinstance(s, Pool) for act in (s.act, getattr(s, "root", s.act))]
    if wrong := {act.kind for act in acts} & {"tanh", "sigmoid"}:
        raise OptionError(f"int8 needs ReLU, LeakyReLU or linear activations: got {sorted(wrong)[0]}; use int8=False")
    if isinstance(last := network.steps[-1], Pool):  # scores are sums
        network = replace(network, steps=(*network.steps, scaling(last.out)))
    values, top = network.run(examples), 2 ** (bits - 1) - 1
    first = signal = _inputs(network, values[0].numpy())
    steps: list[Step] = []
    score = 1.0
    for number, step in enumerate(network.steps):
        if isinstance(step, Pool):
            if step.kind == "average" and any(step.padding) and signal.zero.any():
                raise OptionError("int8 needs average pooling of inputs without padding")
            steps.append(replace(step, ctype=signal.ctype))
            signal = replace(signal, shape=step.out)
            continue
        reader = next((s for s in network.steps[number + 1 :] if not isinstance(s, Pool)), None)
        wanted = None if reader is None else _target(values[number + 1].numpy(), reader)
        done, scale = (
            _convolution(step, signal, wanted, top)
            if isinstance(step, Conv)
            else _trees(step, signal, wanted, top, np.abs(step.nodes(values[number])).max(axis=0))
        )
        steps.append(done)
        if wanted is None:
            score = float(scale[0])
        else:
            signal = Signal(wanted[0], step.out, scale, np.zeros(len(scale)))
    ranges = replace(network, ctype=first.ctype, scale=first.scale, zero=first.zero)
    return replace(ranges, steps=tuple(steps), bits=bits, score_scale=score)


def _inputs(network: Network, x: NDArray[np.float64]) -> Signal:
    """The inputs: bytes that span the pixels of each channel, or 12 bits for standardized inputs."""
    channels = network.shape[0]
    if network.mean is not None:
        return Signal("int16_t", network.shape, np.full(channels, network.clip / INPUT), np.zeros(channels))
    axes = (0, 2, 3) if network.shape[1:] != (1, 1) else (0, 1, 2, 3)
    low, high = (np.broadcast_to(each, channels) for each in (x.min(axis=axes), x.max(axis=axes)))
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    scale = np.where(high > low, high - low, 1.0) / 255
    return Signal("uint8_t", network.shape, scale, -low / scale)


def _target(result: NDArray[np.float64], reader: Conv | Trees) -> tuple[str, Array]:
    """The C type of values and their scale: per channel if the reader has its own weights for each, else one."""
    ctype = "int8_t" if result.min() < 0 else "uint8_t"
    most = np.abs(result).max(axis=(0, 2, 3))
    own = isinstance(reader, Conv) and reader.groups == reader.shape[0] == len(most)
    most = np.maximum(most, max(most.max(), 1e-9) * 1e-4) if own else np.full(len(most), max(most.max(), 1e-9))
    return ctype, most / LIMITS[ctype]


def _shift(bound: float) -> int:
    """How far sums are shifted, so that a multiplier does not make them exceed 32 bits."""
    if bound >= 2 * MOST_SUM:
        raise OptionError("int8 needs sums below 2**31: those of a filter or dendrite could exceed it")
    return max(0, int(np.ceil(np.log2(max(bound, 1.0)))) + MULTIPLIER_BITS - 30)


def _rescaled(scale: Array, target: Array) -> tuple[NDArray[np.int64], Array]:
    """Packed multipliers and shifts, and the resulting scales."""
    ratio = scale / np.maximum(target, scale)  # a value has no finer steps than its sum
    shift = np.clip(np.floor(MULTIPLIER_BITS - np.log2(ratio)) - 1, 1, 30)
    multiplier = np.clip(np.rint(ratio * 2**shift), 1, 2**MULTIPLIER_BITS - 1)
    packed = multiplier.astype(np.int64) + (shift.astype(np.int64) << MULTIPLIER_BITS)
    return packed, scale * 2**shift / multiplier


def _row_scales(largest: Array, bias: Array, top: int, most: Array | float) -> Array:
    """The scale of each row of weights: the largest becomes `top`, and no bias is above `most`."""
    scale = np.where(largest > 0, largest, max(largest.max(), 1e-12)) / top
    return np.maximum(scale, np.abs(bias) / most)


def _convolution(step: Conv, signal: Signal, wanted: tuple[str, Array] | None, top: int) -> tuple[Conv, Array]:
    filters, inner = step.weight.shape[:2]
    channel = (np.arange(filters) * step.groups // filters * inner)[:, None] + np.arange(inner)
    scales, zeros = signal.of_channels(step)
    real = step.weight * scales[channel][:, :, None, None]
    move = step.bias - (real * zeros[channel][:, :, None, None]).sum(axis=(1, 2, 3))
    scale = _row_scales(np.abs(real).max(axis=(1, 2, 3)), move, top, MOST_SUM / 2)
    if wanted is None:  # all scores have one scale
        scale = np.full_like(scale, scale.max())
    weight, bias = np.rint(real / scale[:, None, None, None]), np.rint(move / scale)
    pre = _shift(float((np.abs(bias) + np.abs(weight).sum(axis=(1, 2, 3)) * LIMITS[signal.ctype]).max()))
    done = replace(step, weight=weight, bias=bias, ctype="int32_t")
    if wanted is None:
        return done, scale
    packed, reached = _rescaled(scale * 2**pre, wanted[1])
    return replace(done, ctype=wanted[0], rescale=packed, pre=pre), reached


def _trees(
    step: Trees, signal: Signal, wanted: tuple[str, Array] | None, top: int, largest: Array
) -> tuple[Trees, Array]:
    """Level by level, children first; tied dendrites share the scales of all their inputs."""
    f, own, of_node = step.forest, step.forest.weight_of_edge, step.forest.bias_of_node
    if f.template is not None and (np.ptp(signal.scale) or np.ptp(signal.zero)):
        raise OptionError("int8 needs inputs of one range for tied trees: the channels have several")
    area = int(np.prod(step.shape[1:] if step.patches is None else step.patches.kernel))
    scale, zero = (np.append(np.repeat(v, area)[: f.in_features], np.zeros(f.nodes)) for v in signal.of_channels(step))
    target = np.maximum(largest, max(largest.max(), 1e-9) * 1e-4) / NODE
    if wanted is not None:
        target[f.roots] = wanted[1]
    np.maximum.at(common := np.zeros(f.biases), of_node, target)
    sums = f.fan_ins * top * float(max(LIMITS[signal.ctype], NODE))  # bounds
    pre, ends = _shift(2 * float(sums.max())), np.zeros(f.nodes, dtype=bool)
    ends[f.roots] = wanted is None
    real, move, size = np.zeros(f.edges), np.zeros(f.nodes), np.zeros(f.nodes)
    packed = np.zeros(f.biases, dtype=np.int64)
    for level, edges, begin in f.ascend():
        real[edges] = step.weight[own[edges]] * scale[f.source[edges]]
        move[level] = step.bias[of_node[level]] - np.add.reduceat((real * zero[f.source])[edges], begin)
        most = np.where(ends[level], MOST_SUM / 2, sums[level])
        size[level] = _row_scales(np.maximum.reduceat(np.abs(real[edges]), begin), move[level], top, most)
        packed[of_node[level]], reached = _rescaled(size[level] * 2.0**pre, common[of_node[level]])
        scale[f.in_features + level.start : f.in_features + level.stop] = reached
    size[ends] = size[ends].max(initial=0.0)  # all scores have one scale
    weight, bias = np.zeros(f.weights), np.zeros(f.biases)
    weight[own], bias[of_node] = np.rint(real / np.repeat(size, f.fan_ins)), np.rint(move / size)
    done = replace(step, weight=weight, bias=bias, ctype="int32_t", rescale=packed, pre=pre)
    if wanted is None:
        return done, size[ends]
    return replace(done, ctype=wanted[0]), scale[f.in_features + f.roots]
