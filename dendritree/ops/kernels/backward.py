"""The backward pass in path form.

The gradient of a node's sum is a product along the path to its root: of weights, one number for all samples, and of
the activations' derivatives and the output's gradient, which differ from sample to sample. Only the second product is
carried through the tree, as a tile H without any weights:

    H of a child = act' * H of its parent            (act' is 1 or the slope: the sign that was kept tells)

Per node the sum of H over the samples is enough, and per synapse the sum of H x. Then one pass over the tree, a few
numbers per edge, multiplies these sums with the products of weights P:

    gradient of a bias = P * sum of H                gradient of a synapse's weight = P * sum of H x
    gradient of a dendrite's weight = P of the parent * Q,    Q = sum of H of the parent * value = sum of H z

where H z is a sum again: bias * (sum of H), and for each child weight * (sum of H x) or weight * Q. Smooth activations
do not satisfy act(z) = act' z; for them Q is summed directly.

Nothing is divided by a weight, so weights of 0 are exact. What is not finite may differ from a plain loop (0 * infinity
comes at other places): then `failed` is set, and the caller computes the gradients in another way.
"""

from __future__ import annotations

from ..header import COLUMNS, EDGE, FAN_IN, FIRST, NODE, PARENT, PARENT_SLOT, ROOT, SLOT, SYNAPSES
from .blocks import from_tiles, to_tiles
from .core import FAILED, INT32, WORKERS, at, call_at, cast, count_up, done, part, sizes_at, take, wait
from .forward import TANH, trace_stride
from .tiles import choose, dot, fma, folded, lanes, load, mul, number, store, stride, total, totals

GATHERED = 8
"""Shares of the inputs' gradients that threads take to add those of the groups."""


@part
def add_to(sums, i, value, begin):
    """Add to a sum, or begin it with the first tile."""
    sums[i] = value if begin else sums[i] + value


@part
def derivative_times(h, linear, kind, slope, trace, zero):
    """act' * h."""
    if linear:
        return h
    if kind == 0:
        return choose(trace, mul(slope, h), h)
    value = load(trace, zero)
    if kind == TANH:
        return fma(mul(cast(-1, number(zero)), mul(value, value)), h, h)
    return mul(value, fma(mul(cast(-1, number(zero)), value), h, h))


@part
def through_synapse(e, rows, weight, factor, h, inputs, gradients, silent, zero):
    """H x of a synapse, summed over every PIECE-th sample; what its input gets is added to the gradients of inputs.

    `silent` is None without dropout, which Numba sees when it compiles: a load goes straight into the product then.
    """
    row = rows[e] * stride(zero)
    if silent is None:
        if gradients:
            store(gradients + row, fma(factor * weight[e], h, load(gradients + row, zero)))
        return dot(h, load(inputs + row, zero))
    bits = silent + e * (lanes(zero) // 8)
    if gradients:
        store(gradients + row, fma(factor * weight[e], choose(bits, zero, h), load(gradients + row, zero)))
    return dot(h, choose(bits, zero, load(inputs + row, zero)))


@part
def run_nodes_back(
    call,
    places,
    rows,
    first_place,
    last_place,
    first_neuron,
    inputs,
    values,
    outputs,
    gradients,
    trace,
    silent,
    products,
    sum_x,
    sum_h,
    begin,
    zero,
):
    """Sums of H x and of H over one tile of samples, for the nodes of a chunk, parents before children."""
    real = number(zero)
    weight, slope, scale = at(call.weight, real), cast(call.slope, real), cast(call.scale, real)
    kind, root_linear, none = call.kind, call.root_linear != 0, folded(zero)
    step = trace_stride(kind, zero)
    for p in range(last_place - 1, first_place - 1, -1):
        place = COLUMNS * p
        first, synapses, root = places[place + FIRST], places[place + SYNAPSES], places[place + ROOT]
        node, end = places[place + NODE], first + places[place + FAN_IN]
        above = load(
            outputs + (root - first_neuron) * stride(zero)
            if root >= 0
            else values + places[place + PARENT_SLOT] * stride(zero),
            zero,
        )
        h = derivative_times(above, root >= 0 and root_linear, kind, slope, trace + p * step, zero)
        if kind and root < 0:
            add_to(sum_x, places[place + EDGE], total(dot(above, load(trace + p * step, zero))), begin)
        if first + synapses < end:
            store(values + places[place + SLOT] * stride(zero), h)
        factor = products[p] * scale if gradients else real
        # Four sums at a time: that of H itself and of three synapses, then of four.
        e, stop = first, first + synapses
        d0, d1, d2 = none, none, none
        if e < stop:
            d0 = through_synapse(e, rows, weight, factor, h, inputs, gradients, silent, zero)
        if e + 1 < stop:
            d1 = through_synapse(e + 1, rows, weight, factor, h, inputs, gradients, silent, zero)
        if e + 2 < stop:
            d2 = through_synapse(e + 2, rows, weight, factor, h, inputs, gradients, silent, zero)
        s, s0, s1, s2 = totals(folded(h), d0, d1, d2)
        add_to(sum_h, node, s, begin)
        if e < stop:
            add_to(sum_x, e, s0, begin)
        if e + 1 < stop:
            add_to(sum_x, e + 1, s1, begin)
        if e + 2 < stop:
            add_to(sum_x, e + 2, s2, begin)
        e += 3
        while e + 4 <= stop:
            s, s0, s1, s2 = totals(
                through_synapse(e, rows, weight, factor, h, inputs, gradients, silent, zero),
                through_synapse(e + 1, rows, weight, factor, h, inputs, gradients, silent, zero),
                through_synapse(e + 2, rows, weight, factor, h, inputs, gradients, silent, zero),
                through_synapse(e + 3, rows, weight, factor, h, inputs, gradients, silent, zero),
            )
            add_to(sum_x, e, s, begin)
            add_to(sum_x, e + 1, s0, begin)
            add_to(sum_x, e + 2, s1, begin)
            add_to(sum_x, e + 3, s2, begin)
            e += 4
        e = min(e, stop)
        while e < end:  # the last synapses, and any that come after a dendrite
            if rows[e] >= 0:
                d0 = through_synapse(e, rows, weight, factor, h, inputs, gradients, silent, zero)
                add_to(sum_x, e, total(d0), begin)
            e += 1


@part
def path_product(places, p, weight, products, real):
    """P of a place, once that of its parent is there: 1 for a root, else P of the parent times the weight between."""
    parent = places[COLUMNS * p + PARENT]
    product = cast(1, real) if parent < 0 else products[parent] * weight[places[COLUMNS * p + EDGE]]
    products[p] = product
    return product


@part
def finish(call, sizes, places, rows, first_place, last_place, products, q, real):
    """Turn the sums of a chunk into gradients of its weights and biases; whether all numbers were finite."""
    weight, bias = at(call.weight, real), at(call.bias, real)
    gw, gb = at(call.gw, real), at(call.gb, real)
    scale = cast(call.scale, real)
    check = real
    for p in range(first_place, last_place):
        q[p] = real
    for p in range(first_place, last_place):  # children before parents, so that Q of the children is there
        place = COLUMNS * p
        node, first, edge = places[place + NODE], places[place + FIRST], places[place + EDGE]
        dendrites, end = first + places[place + SYNAPSES], first + places[place + FAN_IN]
        for share in range(1, call.parts):
            gb[node] += gb[share * sizes.nodes + node]
            for e in range(first, end):
                if rows[e] >= 0 or call.kind:
                    gw[e] += gw[share * sizes.edges + e]
        total_q = q[p] + (bias[node] * gb[node] if call.bias else real)
        for e in range(first, dendrites):
            total_q += weight[e] * (gw[e] * scale)
        for e in range(dendrites, end):
            if rows[e] >= 0:
                total_q += weight[e] * (gw[e] * scale)
        check += real * (total_q + gb[node])
        if edge >= 0:
            if call.kind == 0:
                gw[edge] = total_q
            q[places[place + PARENT]] += weight[edge] * gw[edge]
    for p in range(last_place - 1, first_place - 1, -1):
        place = COLUMNS * p
        first, product = places[place + FIRST], path_product(places, p, weight, products, real)
        check += real * product
        dendrites, end = first + places[place + SYNAPSES], first + places[place + FAN_IN]
        gb[places[place + NODE]] *= product
        for e in range(first, dendrites):
            gw[e] *= product * scale
        for e in range(dendrites, end):
            gw[e] *= product * scale if rows[e] >= 0 else product
    return check == check


@part
def backward(header, zero):
    """Gradients of weights, biases and, if there is a place for them, inputs; threads that enter together share the
    work.

    A job is a share of the tiles and a share of the chunks. Shares of tiles have their own sums for the weights,
    shares of chunks their own gradients of inputs. How many there are depends on the sizes alone, and so does the
    order of all sums, whatever the number of threads.
    """
    call = call_at(header)
    sizes = sizes_at(call.sizes)
    real, width, samples = number(zero), stride(zero), lanes(zero)
    item = width // samples
    tiles = -(-call.batch // samples)
    places, rows = at(call.tables + sizes.places_at, INT32), at(call.tables + sizes.rows_at, INT32)
    chunks = at(call.tables + sizes.chunks_at, INT32)
    weight, products = at(call.weight, real), at(call.products, real)
    step = trace_stride(call.kind, zero)
    values = call.work + count_up(header + WORKERS) * call.work_bytes
    outputs = values + sizes.slots * width
    inputs = outputs + sizes.widest * width
    gradients = inputs + (0 if call.inputs else sizes.features * width) if call.gx else 0

    if call.gx:
        c = take(header, 0)
        while c < sizes.chunks:
            for p in range(chunks[2 * c + 2] - 1, chunks[2 * c] - 1, -1):
                path_product(places, p, weight, products, real)
            done(header, 0)
            c = take(header, 0)
        wait(header, 0, sizes.chunks)

    jobs = call.groups * call.parts
    job = take(header, 1)
    while job < jobs:
        group, share = job % call.groups, job // call.groups
        sum_x, sum_h = at(call.gw + share * sizes.edges * item, real), at(call.gb + share * sizes.nodes * item, real)
        first_tile = share * tiles // call.parts
        for t in range(first_tile, (share + 1) * tiles // call.parts):
            n = min(samples, call.batch - t * samples)
            if call.inputs:
                inputs = call.inputs + t * sizes.features * width
            else:
                x = call.x + t * samples * call.x_sample
                to_tiles(x, call.x_sample, call.x_feature, n, sizes.features, inputs, zero)
            if call.gx:
                for f in range(sizes.features):
                    store(gradients + f * width, zero)
            for c in range(group * sizes.chunks // call.groups, (group + 1) * sizes.chunks // call.groups):
                neuron, count = chunks[2 * c + 1], chunks[2 * c + 3] - chunks[2 * c + 1]
                gy = call.y + t * samples * call.y_sample + neuron * call.y_feature
                to_tiles(gy, call.y_sample, call.y_feature, n, count, outputs, zero)
                trace = call.trace + t * sizes.nodes * step
                first_place, last_place, begin = chunks[2 * c], chunks[2 * c + 2], t == first_tile
                if call.limit:
                    silent = call.silent + t * sizes.edges * (samples // 8)
                    run_nodes_back(
                        call, places, rows, first_place, last_place, neuron, inputs, values, outputs, gradients, trace,
                        silent, products, sum_x, sum_h, begin, zero,
                    )  # fmt: skip
                else:
                    run_nodes_back(
                        call, places, rows, first_place, last_place, neuron, inputs, values, outputs, gradients, trace,
                        None, products, sum_x, sum_h, begin, zero,
                    )  # fmt: skip
            if call.gx:
                where = call.gx + (group * call.batch + t * samples) * sizes.features * item
                from_tiles(gradients, sizes.features, where, sizes.features * item, n, zero)
        done(header, 1)
        job = take(header, 1)
    wait(header, 1, jobs)

    c = take(header, 2)
    sums = at(call.products + sizes.nodes * item, real)
    while c < sizes.chunks:
        if not finish(call, sizes, places, rows, chunks[2 * c], chunks[2 * c + 2], products, sums, real):
            count_up(header + FAILED)
        c = take(header, 2)
    if call.gx and call.groups > 1:  # add the groups' shares, a run of numbers for each job
        size, target = call.batch * sizes.features, at(call.gx, real)
        job = take(header, 3)
        while job < GATHERED:
            for group in range(1, call.groups):
                share_gx = at(call.gx + group * size * item, real)
                for i in range(job * size // GATHERED, (job + 1) * size // GATHERED):
                    target[i] += share_gx[i]
            job = take(header, 3)
