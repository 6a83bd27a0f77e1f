"""The backward pass: gradients of weights and biases node by node, then of inputs, each gathered from its readers."""

from __future__ import annotations

import numpy as np

from ..program import COLUMNS, DENDRITES, FAN_IN, FIRST, KIND, LEAVES, MIXED, NODE, ROOT, SYNAPSES
from .core import BLOCK, Identity, at, backpropagate, fill, jit, part
from .forward import add4, start1
from .masks import LOWER, UPPER, keeps, pair_bits, sample_keys, synapse_key


@part
def store(total, i, value, first):
    """Add to a total, or begin it with the first block of samples."""
    total[i] = value if first else total[i] + value


@part
def synapse_dots(g, x, stride, row, gw, k, n, one, first):
    """gw[i] = g . row[i], four rows a pass."""
    zero = one - one
    i = 0
    while i + 4 <= k:
        r0, r1 = at(x + row[i] * stride, one), at(x + row[i + 1] * stride, one)
        r2, r3 = at(x + row[i + 2] * stride, one), at(x + row[i + 3] * stride, one)
        d0, d1, d2, d3 = zero, zero, zero, zero
        for j in range(n):
            v = g[j]
            d0 += v * r0[j]
            d1 += v * r1[j]
            d2 += v * r2[j]
            d3 += v * r3[j]
        store(gw, i, d0, first)
        store(gw, i + 1, d1, first)
        store(gw, i + 2, d2, first)
        store(gw, i + 3, d3, first)
        i += 4
    if i + 2 <= k:
        r0, r1 = at(x + row[i] * stride, one), at(x + row[i + 1] * stride, one)
        d0, d1 = zero, zero
        for j in range(n):
            d0 += g[j] * r0[j]
            d1 += g[j] * r1[j]
        store(gw, i, d0, first)
        store(gw, i + 1, d1, first)
        i += 2
    if i < k:
        r0, d0 = at(x + row[i] * stride, one), zero
        for j in range(n):
            d0 += g[j] * r0[j]
        store(gw, i, d0, first)


@part
def dropped_dot(g, r0, key, half, n, one, keys, limit):
    """g . r0 over the samples whose mask keeps the synapse."""
    zero = one - one
    d0 = zero
    for j in range(n):
        v0 = g[j] * r0[j]
        d0 += v0 if keeps(pair_bits(key, keys[j]), half, limit) else zero
    return d0


@part
def dropped_dots(g, r0, r1, key, n, one, keys, limit):
    """Two neighbouring synapses at once: they share their random bits."""
    zero = one - one
    d0, d1 = zero, zero
    for j in range(n):
        bits, v0, v1 = pair_bits(key, keys[j]), g[j] * r0[j], g[j] * r1[j]
        d0 += v0 if keeps(bits, UPPER, limit) else zero
        d1 += v1 if keeps(bits, LOWER, limit) else zero
    return d0, d1


@part
def to_child(g, value, child, weight, n, one, activation):
    """Gradient of the weight of a dendrite's child; the child's own gradient; the gradient of its bias."""
    dot, total = one - one, one - one
    for j in range(n):
        v, u = value[j], g[j]
        dot += u * v
        t = backpropagate(weight * u, v, one, activation)
        child[j] = t
        total += t
    return dot, total


@part
def to_children(g, value0, value1, child0, child1, weight0, weight1, n, one, activation):
    """`to_child` for two children in one loop."""
    zero = one - one
    dot0, dot1, total0, total1 = zero, zero, zero, zero
    for j in range(n):
        v0, v1, u = value0[j], value1[j], g[j]
        dot0 += u * v0
        dot1 += u * v1
        t0 = backpropagate(weight0 * u, v0, one, activation)
        t1 = backpropagate(weight1 * u, v1, one, activation)
        child0[j] = t0
        child1[j] = t1
        total0 += t0
        total1 += t1
    return dot0, dot1, total0, total1


@part
def from_root(g, gy, value, n, one, activation):
    """The gradient of a root's sum, and of its bias."""
    total = one - one
    for j in range(n):
        t = backpropagate(gy[j], value[j], one, activation)
        g[j] = t
        total += t
    return total


@jit
def backward(
    x,
    weight,
    acts,
    gy,
    grads,
    gw,
    gb,
    nodes,
    rows,
    homes,
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
    """Gradients of the weights and biases of nodes `place ... last_place - 1`; their own in `grads`, at their homes."""
    table, home = at(nodes, np.int32(0)), at(homes, np.int32(0))
    stride, zero, linear = batch * item, one - one, Identity(one)
    limit = np.uint32(limit)
    low, high = np.uint32(0), np.uint32(0)
    buffer = np.empty(BLOCK if limit else 1, np.uint32)
    keys = at(buffer.ctypes.data, np.uint32(0))
    biases = at(gb, one)
    if limit:
        low, high = at(seed, np.uint32(0))[0], at(seed, np.uint32(0))[1]
    for begin in range(sample, last_sample, BLOCK):
        n, start = min(BLOCK, last_sample - begin), begin == sample
        shift = begin * item
        if limit:
            sample_keys(low, high, begin, n, keys)
        for p in range(last_place - 1, place - 1, -1):
            node, first, k = table[COLUMNS * p + NODE], table[COLUMNS * p + FIRST], table[COLUMNS * p + FAN_IN]
            kind, root = table[COLUMNS * p + KIND], table[COLUMNS * p + ROOT]
            g = at(grads + home[p] * stride + shift, one)
            w, total = at(weight + first * item, one), at(gw + first * item, one)
            source = at(rows + first * 4, np.int32(0))
            if root >= 0:
                given, value = at(gy + root * stride + shift, one), at(acts + p * stride + shift, one)
                if root_activation:
                    b = from_root(g, given, value, n, one, activation)
                else:
                    b = from_root(g, given, value, n, one, linear)
                if gb:
                    store(biases, node, b, start)
            if kind == SYNAPSES and limit == 0:
                synapse_dots(g, x + shift, stride, source, total, k, n, one, start)
                continue
            i = 0
            if kind != MIXED and kind != SYNAPSES:
                while i + 2 <= k:
                    c, c1 = source[i], source[i + 1]
                    value = at(acts + c * stride + shift, one)
                    value1 = at(acts + c1 * stride + shift, one)
                    child = at(grads + home[c] * stride + shift, one)
                    child1 = at(grads + home[c1] * stride + shift, one)
                    d, e, b, b1 = to_children(g, value, value1, child, child1, w[i], w[i + 1], n, one, activation)
                    store(total, i, d, start)
                    store(total, i + 1, e, start)
                    if gb:
                        store(biases, table[COLUMNS * c + NODE], b, start)
                        store(biases, table[COLUMNS * c1 + NODE], b1, start)
                    i += 2
            while i < k:
                if kind == DENDRITES or kind == LEAVES or source[i] < 0:
                    c = source[i] if source[i] >= 0 else -1 - source[i]
                    value = at(acts + c * stride + shift, one)
                    child = at(grads + home[c] * stride + shift, one)
                    d, b = to_child(g, value, child, w[i], n, one, activation)
                    store(total, i, d, start)
                    if gb:
                        store(biases, table[COLUMNS * c + NODE], b, start)
                    i += 1
                elif limit == 0:
                    r0, d = at(x + source[i] * stride + shift, one), zero
                    for j in range(n):
                        d += g[j] * r0[j]
                    store(total, i, d, start)
                    i += 1
                elif i % 2 == 0 and i + 1 < k and source[i + 1] >= 0:
                    r0, r1 = at(x + source[i] * stride + shift, one), at(x + source[i + 1] * stride + shift, one)
                    d, e = dropped_dots(g, r0, r1, synapse_key(low, high, first + i), n, one, keys, limit)
                    store(total, i, d * scale, start)
                    store(total, i + 1, e * scale, start)
                    i += 2
                else:
                    r0, key = at(x + source[i] * stride + shift, one), synapse_key(low, high, first + i - i % 2)
                    d = dropped_dot(g, r0, key, LOWER if i % 2 else UPPER, n, one, keys, limit)
                    store(total, i, d * scale, start)
                    i += 1
    buffer[0] = np.uint32(0)  # Numba frees an array after its last use, and `keys` is no use: hold it until here


@jit
def input_gradient(
    weight,
    grads,
    gx,
    nodes,
    homes,
    readers,
    reader_edges,
    reader_places,
    seed,
    batch,
    feature,
    last_feature,
    limit,
    scale,
    one,
    item,
):
    """Gradients of inputs `feature ... last_feature - 1`: each gathers from the synapses that read it."""
    table, home, w = at(nodes, np.int32(0)), at(homes, np.int32(0)), at(weight, one)
    begin, edge, place = at(readers, np.int32(0)), at(reader_edges, np.int32(0)), at(reader_places, np.int32(0))
    stride, zero, linear = batch * item, one - one, Identity(one)
    limit = np.uint32(limit)
    low, high = np.uint32(0), np.uint32(0)
    buffer = np.empty(BLOCK if limit else 1, np.uint32)
    keys = at(buffer.ctypes.data, np.uint32(0))
    if limit:
        low, high = at(seed, np.uint32(0))[0], at(seed, np.uint32(0))[1]
    for sample in range(0, batch, BLOCK):
        n = min(BLOCK, batch - sample)
        shift = sample * item
        if limit:
            sample_keys(low, high, sample, n, keys)
        for f in range(feature, last_feature):
            out = at(gx + f * stride + shift, one)
            i, end = begin[f], begin[f + 1]
            if limit == 0:
                m = (end - i) % 4
                if m == 1:
                    start1(out, zero, w[edge[i]], at(grads + home[place[i]] * stride + shift, one), n, one, linear)
                else:
                    fill(out, zero, n)
                    for r in range(i, i + m):
                        g, weight0 = at(grads + home[place[r]] * stride + shift, one), w[edge[r]]
                        for j in range(n):
                            out[j] += weight0 * g[j]
                for r in range(i + m, end, 4):
                    g0 = at(grads + home[place[r]] * stride + shift, one)
                    g1 = at(grads + home[place[r + 1]] * stride + shift, one)
                    g2 = at(grads + home[place[r + 2]] * stride + shift, one)
                    g3 = at(grads + home[place[r + 3]] * stride + shift, one)
                    add4(
                        out, w[edge[r]], w[edge[r + 1]], w[edge[r + 2]], w[edge[r + 3]], g0, g1, g2, g3, n, one, linear
                    )
                continue
            fill(out, zero, n)
            for r in range(i, end):
                g, weight0 = at(grads + home[place[r]] * stride + shift, one), w[edge[r]] * scale
                odd = (edge[r] - table[COLUMNS * place[r] + FIRST]) % 2
                key, half = synapse_key(low, high, edge[r] - odd), LOWER if odd else UPPER
                for j in range(n):
                    v = weight0 * g[j]
                    out[j] += v if keeps(pair_bits(key, keys[j]), half, limit) else zero
    buffer[0] = np.uint32(0)  # Numba frees an array after its last use, and `keys` is no use: hold it until here
