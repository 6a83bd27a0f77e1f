"""The backward pass in path form.

The gradient of a node's sum z is a product along the path to its root: of weights, one number P for all samples, and of
the activations' derivatives and the output's gradient, which differ from sample to sample. Only the second product is
carried through the tree, as a tile H without any weights:

    H of a node = act' * H of its parent             (act' is 1 or the slope: the sign that was kept tells)
    H of a root = act' * gradient of the output

Per node the sum of H over the samples is enough, and per synapse the sum of H x. Then one pass over the tree, a few
numbers per edge, multiplies these sums with the products of weights:

    P of a root = 1                                  P of a node = P of its parent * weight between them
    gradient of a bias = P * sum of H                gradient of a synapse's weight = P * sum of H x
    gradient of a dendrite's weight = P of the parent * Q,    Q = sum of H of the parent * value = sum of H z

where H z is a sum again: bias * (sum of H), and for each child weight * (sum of H x) or weight * Q. Smooth activations
do not satisfy act(z) = act' z; for them Q is summed directly. Inputs get weight * P * H from each of their synapses.

Nothing is divided by a weight, so weights of 0 are exact. Results that are not finite may differ from those of a plain
loop (0 * infinity occurs in other places): then `failed` is set, and the caller computes the gradients another way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..header import PIECEWISE, TANH
from .memory import at, call_at, cast, fill, sizes_at
from .parts import loop, part
from .passes import (
    Tiles,
    chunk_of,
    make_inputs,
    place_of,
    read_gradients,
    trace_stride,
    trees_of,
    upper_end,
    write_gradients,
)
from .sharing import CHUNKS, FAILED, INPUTS, PATHS, TILES, WORKERS, count_up, done, share_of, take, wait
from .tiles import bit_stride, choose, dot, fma, folded, item, load, mul, number, store, stride, total, totals

GATHERED = 8
"""Number of shares into which the gradients of inputs are divided when threads add those of the groups."""

LARGEST = 3e38
"""Limit of the factors between H and the gradients of inputs: larger ones are infinite in float32, and 0 times them is
NaN."""


class Sums(NamedTuple):
    """The sums over a share of the tiles."""

    hx: Any
    """By edge: H x of synapses, and Q of dendrites with smooth activations."""
    h: Any
    """By node."""
    begin: Any
    """Whether this is the first tile: sums begin with it."""


@part
def backward(header, zero):
    """Gradients of weights, biases and, if they have an address, inputs; threads that enter together share the work.

    A job is a share of the tiles and a share of the chunks. Shares of tiles have their own sums for the weights,
    shares of chunks their own gradients of inputs. The number of shares depends only on the sizes, and so does the
    order of all sums, whatever the number of threads.

    All steps are in one function: Numba optimizes a part separately and again wherever it is used, and a part for the
    loops over tiles took a second more to compile.
    """
    call = call_at(header)
    sizes = sizes_at(call.sizes)
    real, size, width = number(zero), item(zero), stride(zero)
    trees, products = trees_of(call, sizes, real), at(call.products, real)
    values = call.work + count_up(header + WORKERS) * call.work_bytes
    outputs = values + sizes.slots * width
    four = outputs + sizes.widest * width
    inputs = four + 4 * width
    gradients = inputs + (0 if call.inputs else call.input_bytes) if call.gx else 0

    if call.gx:  # P of all nodes: gradients of inputs need them from the start
        c = take(header, PATHS)
        while c < sizes.chunks:
            first, last, _, _ = chunk_of(call, sizes, c)
            for p in range(last - 1, first - 1, -1):
                path_product(trees, place_of(trees, p), p, products, real)
            done(header, PATHS)
            c = take(header, PATHS)
        wait(header, PATHS, sizes.chunks)

    # Sums of H x and of H over shares of the tiles, for groups of chunks; the groups' gradients of inputs.
    jobs = call.groups * call.parts
    job = take(header, TILES)
    while job < jobs:
        group, share = job % call.groups, job // call.groups
        sum_hx, sum_h = at(call.gw + share * sizes.edges * size, real), at(call.gb + share * sizes.nodes * size, real)
        first_block, last_block = share_of(call.blocks, share, call.parts)
        first_chunk, last_chunk = share_of(sizes.chunks, group, call.groups)
        for block in range(first_block, last_block):
            if call.inputs:
                inputs = call.inputs + block * call.input_bytes
            else:
                make_inputs(call, sizes, block, inputs, zero)
            if call.gx:
                fill(at(gradients, real), real, call.input_bytes // size)
            for i in range(call.block_tiles):
                t = block * call.block_tiles + i
                sums = Sums(sum_hx, sum_h, block == first_block and i == 0)
                trace = call.trace + t * sizes.nodes * trace_stride(call.kind, zero)
                silent = call.silent + t * sizes.edges * bit_stride(zero)
                there = gradients + i * width if call.gx else 0
                for c in range(first_chunk, last_chunk):
                    first, last, neuron, count = chunk_of(call, sizes, c)
                    read_gradients(call, sizes, block, i, neuron, count, outputs, zero)
                    tiles = Tiles(inputs + i * width, values, outputs - neuron * width, four, trace)
                    if call.limit:
                        run_nodes_back(trees, tiles, first, last, silent, there, products, sums, zero)
                    else:
                        run_nodes_back(trees, tiles, first, last, None, there, products, sums, zero)
            if call.gx:
                write_gradients(call, sizes, block, group, gradients, zero)
        done(header, TILES)
        job = take(header, TILES)
    wait(header, TILES, jobs)

    c = take(header, CHUNKS)
    while c < sizes.chunks:
        if not finish(call, sizes, trees, c, products, zero):
            count_up(header + FAILED)
        c = take(header, CHUNKS)

    if call.gx and call.groups > 1:  # add the groups' shares, a run of numbers for each job
        total_gx, length = at(call.gx, real), call.gx_numbers
        job = take(header, INPUTS)
        while job < GATHERED:
            first_number, last_number = share_of(length, job, GATHERED)
            for group in range(1, call.groups):
                group_gx = at(call.gx + group * length * size, real)
                for i in range(first_number, last_number):
                    total_gx[i] += group_gx[i]
            job = take(header, INPUTS)


# ------------------------------------------------------------------------------------------------- sums over samples


@loop
def run_nodes_back(trees, tiles, first_place, last_place, silent, gradients, products, sums, zero):
    """Add one tile of samples to the sums of H x and of H of the nodes of a chunk, parents before children.

    `gradients` are those of the inputs, 0 if they are not needed.
    """
    none, p = folded(zero), last_place
    while p > first_place:
        p -= 1
        place = place_of(trees, p)
        if place.is_quarter and silent is None:
            p -= 3
            run_four_back(trees, tiles, p, gradients, products, sums, zero)
            continue
        first, stop, end = place.first, place.first + place.synapses, place.first + place.fan_in
        h = h_of(trees, tiles, p, sums, zero)
        if stop < end:
            store(tiles.values + place.slot * stride(zero), h)
        factor = products[p] * trees.scale if gradients else number(zero)
        # Four sums at a time take half the steps: those of H itself and of three synapses, then of four synapses.
        d0, d1, d2 = none, none, none
        if first < stop:
            d0 = through_synapse(first, trees, tiles, silent, gradients, factor, h, zero)
        if first + 1 < stop:
            d1 = through_synapse(first + 1, trees, tiles, silent, gradients, factor, h, zero)
        if first + 2 < stop:
            d2 = through_synapse(first + 2, trees, tiles, silent, gradients, factor, h, zero)
        four = totals(folded(h), d0, d1, d2)
        add_to(sums.h, place.node, four[0], sums.begin)
        if first < stop:  # not a loop over `four`: an index that Numba must check would pull in Python's exceptions
            add_to(sums.hx, first, four[1], sums.begin)
        if first + 1 < stop:
            add_to(sums.hx, first + 1, four[2], sums.begin)
        if first + 2 < stop:
            add_to(sums.hx, first + 2, four[3], sums.begin)
        e = first + 3
        while e + 4 <= stop:
            four = totals(
                through_synapse(e, trees, tiles, silent, gradients, factor, h, zero),
                through_synapse(e + 1, trees, tiles, silent, gradients, factor, h, zero),
                through_synapse(e + 2, trees, tiles, silent, gradients, factor, h, zero),
                through_synapse(e + 3, trees, tiles, silent, gradients, factor, h, zero),
            )
            add_to(sums.hx, e, four[0], sums.begin)
            add_to(sums.hx, e + 1, four[1], sums.begin)
            add_to(sums.hx, e + 2, four[2], sums.begin)
            add_to(sums.hx, e + 3, four[3], sums.begin)
            e += 4
        for rest in range(min(e, stop), end):  # the last synapses, and any that follow a dendrite
            if trees.rows[rest] >= 0:
                d0 = through_synapse(rest, trees, tiles, silent, gradients, factor, h, zero)
                add_to(sums.hx, rest, total(d0), sums.begin)


@part
def h_of(trees, tiles, p, sums, zero):
    """H of a node; with smooth activations, Q of the edge above it is also added to the sums."""
    place, trace = place_of(trees, p), tiles.trace + p * trace_stride(trees.kind, zero)
    above = load(upper_end(tiles, place.root, place.parent_slot, zero), zero)
    if trees.kind != PIECEWISE and place.root < 0:
        add_to(sums.hx, place.edge, total(dot(above, load(trace, zero))), sums.begin)
    return derivative_times(above, place.root >= 0 and trees.root_linear, trees.kind, trees.slope, trace, zero)


@part
def run_four_back(trees, tiles, p, gradients, products, sums, zero):
    """The same as `run_nodes_back`, for four nodes that read the same inputs: each tile is loaded once for all four."""
    a, b, c, d = place_of(trees, p), place_of(trees, p + 1), place_of(trees, p + 2), place_of(trees, p + 3)
    for k in range(4):  # not four calls, as in the forward pass
        store(tiles.four + k * stride(zero), h_of(trees, tiles, p + k, sums, zero))
    h0, h1 = load(tiles.four, zero), load(tiles.four + stride(zero), zero)
    h2, h3 = load(tiles.four + 2 * stride(zero), zero), load(tiles.four + 3 * stride(zero), zero)
    four = totals(folded(h0), folded(h1), folded(h2), folded(h3))
    add_to(sums.h, a.node, four[0], sums.begin)
    add_to(sums.h, b.node, four[1], sums.begin)
    add_to(sums.h, c.node, four[2], sums.begin)
    add_to(sums.h, d.node, four[3], sums.begin)
    weight = trees.weight
    for e in range(a.fan_in):
        row = trees.rows[a.first + e] * trees.row_bytes
        if gradients:
            there = load(gradients + row, zero)
            there = fma(products[p + 3] * weight[d.first + e], h3, there)
            there = fma(products[p + 2] * weight[c.first + e], h2, there)
            there = fma(products[p + 1] * weight[b.first + e], h1, there)
            store(gradients + row, fma(products[p] * weight[a.first + e], h0, there))
        x = load(tiles.inputs + row, zero)
        four = totals(dot(h0, x), dot(h1, x), dot(h2, x), dot(h3, x))
        add_to(sums.hx, a.first + e, four[0], sums.begin)
        add_to(sums.hx, b.first + e, four[1], sums.begin)
        add_to(sums.hx, c.first + e, four[2], sums.begin)
        add_to(sums.hx, d.first + e, four[3], sums.begin)


@part
def derivative_times(h, linear, kind, slope, trace, zero):
    """act' * h: act' is m for act(z) = m z, 1 - value^2 for tanh, value (1 - value) for the sigmoid."""
    if linear:
        return h
    if kind == PIECEWISE:
        return choose(trace, mul(slope, h), h)
    value, minus_one = load(trace, zero), cast(-1, number(zero))
    if kind == TANH:
        return fma(mul(minus_one, mul(value, value)), h, h)
    return mul(value, fma(mul(minus_one, value), h, h))


@part
def through_synapse(e, trees, tiles, silent, gradients, factor, h, zero):
    """H x of a synapse, summed over every PIECE-th sample; its input gets factor * weight * H.

    `silent` is None without dropout, which Numba sees at compile time: the load then goes straight into the product.
    """
    row = trees.rows[e] * trees.row_bytes
    if silent is None:
        # The load comes before the store: 4096 bytes apart, or a multiple, it would wait for it.
        hx = dot(h, load(tiles.inputs + row, zero))
        if gradients:
            store(gradients + row, fma(factor * trees.weight[e], h, load(gradients + row, zero)))
        return hx
    bits = silent + e * bit_stride(zero)
    if gradients:
        store(gradients + row, fma(factor * trees.weight[e], choose(bits, zero, h), load(gradients + row, zero)))
    return dot(h, choose(bits, zero, load(tiles.inputs + row, zero)))


@part
def add_to(sums, i, value, begin):
    """Add to a sum, or start it."""
    sums[i] = value if begin else sums[i] + value


# ------------------------------------------------------------------------------------------- from sums to gradients


@part
def path_product(trees, place, p, products, real):
    """P of a place, given P of its parent: 1 for a root, else P of the parent times the weight between them."""
    product = cast(1, real) if place.parent < 0 else products[place.parent] * trees.weight[place.edge]
    products[p] = product
    return product


@part
def finish(call, sizes, trees, chunk, products, zero):
    """Turn the sums of a chunk into gradients of its weights and biases, in place; return whether all were finite."""
    real, weight, scale = number(zero), trees.weight, trees.scale
    gw, gb, bias = at(call.gw, real), at(call.gb, real), at(call.bias, real)
    first_place, last_place, _, _ = chunk_of(call, sizes, chunk)
    q = at(call.products + sizes.nodes * item(zero), real)
    check, largest = real, real  # 0, until 0 times a number that is not finite makes it NaN
    for p in range(first_place, last_place):
        q[p] = real
    for p in range(first_place, last_place):  # children before parents, so that Q of the children is known
        place = place_of(trees, p)
        node, first, edge = place.node, place.first, place.edge
        dendrites, end = first + place.synapses, first + place.fan_in
        for share in range(1, call.parts):
            gb[node] += gb[share * sizes.nodes + node]
            for e in range(first, end):
                if trees.rows[e] >= 0 or call.kind != PIECEWISE:
                    gw[e] += gw[share * sizes.edges + e]
        total_q = q[p] + (bias[node] * gb[node] if call.bias else real)
        for e in range(first, dendrites):
            total_q += weight[e] * (gw[e] * scale)
        for e in range(dendrites, end):
            if trees.rows[e] >= 0:
                total_q += weight[e] * (gw[e] * scale)
        check += real * (total_q + gb[node])
        if edge >= 0:
            if call.kind == PIECEWISE:
                gw[edge] = total_q
            q[place.parent] += weight[edge] * gw[edge]
    for p in range(last_place - 1, first_place - 1, -1):  # parents before children, so that P of the parent is known
        place = place_of(trees, p)
        first, product = place.first, path_product(trees, place, p, products, real)
        dendrites, end = first + place.synapses, first + place.fan_in
        check += real * product
        if call.gx:  # compared, not multiplied by 0: a product of three may be evaluated in any order
            for e in range(first, end):
                factor = abs(product * scale * weight[e]) if trees.rows[e] >= 0 else real
                largest = factor if factor > largest else largest
        gb[place.node] *= product
        for e in range(first, dendrites):
            gw[e] *= product * scale
        for e in range(dendrites, end):
            gw[e] *= product * scale if trees.rows[e] >= 0 else product
    return check == check and largest <= cast(LARGEST, real)
