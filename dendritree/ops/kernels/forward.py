"""The forward pass: weighted sums of rows, node by node."""

from __future__ import annotations

import numpy as np

from ..program import COLUMNS, FAN_IN, FIRST, KIND, LEAVES, MIXED, NODE, ROOT, SYNAPSES
from .core import BLOCK, Identity, activate, at, fill, jit, part
from .masks import LOWER, UPPER, keeps, pair_bits, sample_keys, synapse_key


@part
def start1(out, c, w0, r0, n, one, activation):
    """out = act(c + w0 r0)."""
    for j in range(n):
        out[j] = activate(c + w0 * r0[j], one, activation)


@part
def start2(out, c, w0, w1, r0, r1, n, one, activation):
    """out = act(c + w0 r0 + w1 r1)."""
    for j in range(n):
        out[j] = activate(c + w0 * r0[j] + w1 * r1[j], one, activation)


@part
def start3(out, c, w0, w1, w2, r0, r1, r2, n, one, activation):
    """out = act(c + w0 r0 + w1 r1 + w2 r2)."""
    for j in range(n):
        out[j] = activate(c + w0 * r0[j] + w1 * r1[j] + w2 * r2[j], one, activation)


@part
def start4(out, c, w0, w1, w2, w3, r0, r1, r2, r3, n, one, activation):
    """out = act(c + w0 r0 + w1 r1 + w2 r2 + w3 r3)."""
    for j in range(n):
        out[j] = activate(c + w0 * r0[j] + w1 * r1[j] + w2 * r2[j] + w3 * r3[j], one, activation)


@part
def add4(out, w0, w1, w2, w3, r0, r1, r2, r3, n, one, activation):
    """out = act(out + w0 r0 + w1 r1 + w2 r2 + w3 r3)."""
    for j in range(n):
        out[j] = activate(out[j] + w0 * r0[j] + w1 * r1[j] + w2 * r2[j] + w3 * r3[j], one, activation)


@part
def weighted_sum(out, c, base, stride, row, w, k, n, one, activation):
    """out = act(c + sum of w[i] * row[i]), four rows a pass, the activation in the last one."""
    linear = Identity(one)
    i = k % 4
    if k == 0:
        for j in range(n):
            out[j] = activate(c, one, activation)
        return
    if i == 0:
        i = 4
        r0, r1 = at(base + row[0] * stride, one), at(base + row[1] * stride, one)
        r2, r3 = at(base + row[2] * stride, one), at(base + row[3] * stride, one)
        if k == 4:
            start4(out, c, w[0], w[1], w[2], w[3], r0, r1, r2, r3, n, one, activation)
        else:
            start4(out, c, w[0], w[1], w[2], w[3], r0, r1, r2, r3, n, one, linear)
    elif i == 1:
        r0 = at(base + row[0] * stride, one)
        if k == 1:
            start1(out, c, w[0], r0, n, one, activation)
        else:
            start1(out, c, w[0], r0, n, one, linear)
    elif i == 2:
        r0, r1 = at(base + row[0] * stride, one), at(base + row[1] * stride, one)
        if k == 2:
            start2(out, c, w[0], w[1], r0, r1, n, one, activation)
        else:
            start2(out, c, w[0], w[1], r0, r1, n, one, linear)
    else:
        r0, r1 = at(base + row[0] * stride, one), at(base + row[1] * stride, one)
        r2 = at(base + row[2] * stride, one)
        if k == 3:
            start3(out, c, w[0], w[1], w[2], r0, r1, r2, n, one, activation)
        else:
            start3(out, c, w[0], w[1], w[2], r0, r1, r2, n, one, linear)
    while i < k:
        r0, r1 = at(base + row[i] * stride, one), at(base + row[i + 1] * stride, one)
        r2, r3 = at(base + row[i + 2] * stride, one), at(base + row[i + 3] * stride, one)
        if i + 4 == k:
            add4(out, w[i], w[i + 1], w[i + 2], w[i + 3], r0, r1, r2, r3, n, one, activation)
        else:
            add4(out, w[i], w[i + 1], w[i + 2], w[i + 3], r0, r1, r2, r3, n, one, linear)
        i += 4


@part
def finish(out, c, n, one, activation):
    """out = act(out + c)."""
    for j in range(n):
        out[j] = activate(out[j] + c, one, activation)


@part
def leaf_sum(out, c, acts, stride, row, w, k, n, one, table, bias, activation):
    """out = c + sum of w[i] * leaf[i], where a matmul left the leaves' sums: each is finished as it is read.

    In one loop, because rows of one neuron lie far apart, in the same few cache lines' places.
    """
    biases = at(bias, one)
    fill(out, c, n)
    for i in range(k):
        leaf, weight = at(acts + row[i] * stride, one), w[i]
        leaf_bias = biases[table[COLUMNS * row[i] + NODE]] if bias else one - one
        for j in range(n):
            v = activate(leaf[j] + leaf_bias, one, activation)
            leaf[j] = v
            out[j] += weight * v


@part
def mixed_sum(out, c, x, acts, stride, row, w, k, n, one):
    """out = c + sum of w[i] * row[i] where some children are synapses and some dendrites (negative rows)."""
    fill(out, c, n)
    for i in range(k):
        source = at(x + row[i] * stride if row[i] >= 0 else acts + (-1 - row[i]) * stride, one)
        weight = w[i]
        for j in range(n):
            out[j] += weight * source[j]


@part
def dropped_sum(out, c, x, acts, stride, row, w, edge, k, n, one, keys, low, high, limit, scale):
    """out = c + sum of w[i] * row[i] over the synapses the mask keeps, scaled up, and over all dendrites."""
    zero = one - one
    fill(out, c, n)
    i = 0
    while i < k:
        if row[i] < 0:  # a dendrite: never dropped
            source, w0 = at(acts + (-1 - row[i]) * stride, one), w[i]
            for j in range(n):
                out[j] += w0 * source[j]
            i += 1
        elif i % 2 == 0 and i + 3 < k and row[i + 1] >= 0 and row[i + 2] >= 0 and row[i + 3] >= 0:
            r0, r1 = at(x + row[i] * stride, one), at(x + row[i + 1] * stride, one)
            r2, r3 = at(x + row[i + 2] * stride, one), at(x + row[i + 3] * stride, one)
            w0, w1, w2, w3 = w[i] * scale, w[i + 1] * scale, w[i + 2] * scale, w[i + 3] * scale
            key, key2 = synapse_key(low, high, edge + i), synapse_key(low, high, edge + i + 2)
            for j in range(n):
                bits, bits2 = pair_bits(key, keys[j]), pair_bits(key2, keys[j])
                v0, v1, v2, v3 = w0 * r0[j], w1 * r1[j], w2 * r2[j], w3 * r3[j]
                v0 = v0 if keeps(bits, UPPER, limit) else zero
                v1 = v1 if keeps(bits, LOWER, limit) else zero
                v2 = v2 if keeps(bits2, UPPER, limit) else zero
                v3 = v3 if keeps(bits2, LOWER, limit) else zero
                out[j] += (v0 + v1) + (v2 + v3)
            i += 4
        elif i % 2 == 0 and i + 1 < k and row[i + 1] >= 0:
            r0, r1 = at(x + row[i] * stride, one), at(x + row[i + 1] * stride, one)
            w0, w1, key = w[i] * scale, w[i + 1] * scale, synapse_key(low, high, edge + i)
            for j in range(n):
                bits = pair_bits(key, keys[j])
                v0, v1 = w0 * r0[j], w1 * r1[j]
                v0 = v0 if keeps(bits, UPPER, limit) else zero
                v1 = v1 if keeps(bits, LOWER, limit) else zero
                out[j] += v0 + v1
            i += 2
        else:
            r0, w0, key = at(x + row[i] * stride, one), w[i] * scale, synapse_key(low, high, edge + i - i % 2)
            half = LOWER if i % 2 else UPPER
            for j in range(n):
                v0 = w0 * r0[j]
                out[j] += v0 if keeps(pair_bits(key, keys[j]), half, limit) else zero
            i += 1


@jit
def forward(
    x,
    weight,
    bias,
    acts,
    y,
    nodes,
    rows,
    seed,
    batch,
    place,
    last_place,
    sample,
    last_sample,
    limit,
    scale,
    one,
    item,
    root_activation,
    activation,
):
    """Run samples through trees: activations of nodes `place ... last_place - 1`, outputs of their roots.

    `x`, `acts`, `y` hold one row of `batch` numbers per input, place and neuron; `limit` is 0 without dropout.
    """
    table, linear = at(nodes, np.int32(0)), Identity(one)
    stride, zero = batch * item, one - one
    limit = np.uint32(limit)
    low, high = np.uint32(0), np.uint32(0)
    buffer = np.empty(BLOCK if limit else 1, np.uint32)
    keys = at(buffer.ctypes.data, np.uint32(0))
    if limit:
        low, high = at(seed, np.uint32(0))[0], at(seed, np.uint32(0))[1]
    for begin in range(sample, last_sample, BLOCK):
        n = min(BLOCK, last_sample - begin)
        shift = begin * item
        if limit:
            sample_keys(low, high, begin, n, keys)
        for p in range(place, last_place):
            node, first, k = table[COLUMNS * p + NODE], table[COLUMNS * p + FIRST], table[COLUMNS * p + FAN_IN]
            kind, root = table[COLUMNS * p + KIND], table[COLUMNS * p + ROOT]
            out = at(acts + p * stride + shift, one)
            w, source = at(weight + first * item, one), at(rows + first * 4, np.int32(0))
            c = at(bias, one)[node] if bias else zero
            dropped = limit > 0 and (kind == SYNAPSES or kind == MIXED)
            if dropped:
                dropped_sum(
                    out, c, x + shift, acts + shift, stride, source, w, first, k, n, one, keys, low, high, limit, scale
                )
            elif kind == LEAVES:
                leaf_sum(out, c, acts + shift, stride, source, w, k, n, one, table, bias, activation)
            elif kind == MIXED:
                mixed_sum(out, c, x + shift, acts + shift, stride, source, w, k, n, one)
            elif root < 0 or root_activation:
                weighted_sum(
                    out, c, (x if kind == SYNAPSES else acts) + shift, stride, source, w, k, n, one, activation
                )
            else:
                weighted_sum(out, c, (x if kind == SYNAPSES else acts) + shift, stride, source, w, k, n, one, linear)
            if (dropped or kind == MIXED or kind == LEAVES) and (root < 0 or root_activation):
                finish(out, zero, n, one, activation)
            if root >= 0:
                result = at(y + root * stride + shift, one)
                for j in range(n):
                    result[j] = out[j]
    buffer[0] = np.uint32(0)  # Numba frees an array after its last use, and `keys` is no use: hold it until here
