// The backward pass in path form.
//
// The gradient of a node's sum z is a product along the path to its root: of weights, one number P for all samples, and
// of the activations' derivatives and the output's gradient, which differ from sample to sample. Only the second product
// is carried through the tree, as a tile H without any weights:
//
//     H of a node = act' * H of its parent             (act' is 1 or the slope, by the sign that was kept)
//     H of a root = act' * gradient of the output
//
// Per node the sum of H over the samples is enough, and per synapse the sum of H x. Then one pass over the tree, a few
// numbers per edge, multiplies these sums by the products of weights:
//
//     P of a root = 1                                  P of a node = P of its parent * weight between them
//     gradient of a bias = P * sum of H                gradient of a synapse's weight = P * sum of H x
//     gradient of a dendrite's weight = P of the parent * Q,    Q = sum of H of the parent * value = sum of H z
//
// where H z is a sum again: bias * (sum of H), and for each child weight * (sum of H x) or weight * Q. Smooth activations
// do not satisfy act(z) = act' z; for them Q is summed directly. Inputs get weight * P * H from each of their synapses.
//
// Nothing is divided by a weight, so weights of 0 are exact. Results that are not finite may differ from those of a plain
// loop (0 * infinity occurs in other places): then `failed` is set, and the caller computes the gradients another way.
#pragma once
#include "forward.hpp"

namespace DENDRITREE_ISA {

constexpr int64_t GATHERED = 8;    // shares of the gradients of inputs, when threads add those of the groups
constexpr double LARGEST = 3e38;  // of the factors between H and the gradients of inputs: larger ones are infinite in float32

// The sums over a share of the tiles: of H x by edge, and of H by node. They begin with the first tile.
template <class T> struct Sums {
    T *hx, *h;
    bool begin;
    INLINE void add(T *sums, int64_t i, T value) const { sums[i] = begin ? value : sums[i] + value; }
};

// act' of a vector, from its value (tanh, sigmoid) or from z.
template <Kind KIND, class T, int W> INLINE typename VectorOf<T, W>::type derivative(typename VectorOf<T, W>::type kept) {
    if constexpr (KIND == TANH) return T(1) - kept * kept;
    if constexpr (KIND == SIGMOID) return kept - kept * kept;
    if constexpr (KIND == SILU) {
        const auto s = sigmoid<T, W>(kept);
        return s + kept * (s - s * s);
    }
    auto slope = exp<T, W>(T(-0.5) * kept * kept) * T(0.3989422804014327);  // the normal density
    if constexpr (KIND == GELU)
        for (int j = 0; j < W; j++) slope[j] = normal_cdf<T>(kept[j]) + kept[j] * slope[j];
    return slope;
}

// H of a node with a smooth activation; Q of the edge above it is also added to the sums.
template <class T, int N> APART void smooth_h(const Trees<T, N> trees, int64_t p, const Sums<T> sums, T *h) {
    using Full = Tile<T, N>;
    const Place &place = trees.places[p];
    const bool linear = trees.is_linear(place);
    auto above = Full::load(trees.upper_end(place.root, place.parent_slot)), kept = Full::load(trees.kept(p)), value = kept;
    with_kind(trees.kind, [&](auto constant) {
        constexpr Kind kind = constant.value;
        if (kind != TANH && kind != SIGMOID && !linear)
            for (int i = 0; i < value.COUNT; i++) value.v[i] = smooth<kind, T, Full::WIDTH>(kept.v[i]);
        if (place.root < 0) sums.add(sums.hx, place.edge, total(dot(above, value)));
        if (!linear)
            for (int i = 0; i < above.COUNT; i++) above.v[i] *= derivative<kind, T, Full::WIDTH>(kept.v[i]);
    });
    above.store(h);
}

template <class T, int N> INLINE Tile<T, N> h_of(const Trees<T, N> &trees, int64_t p, const Sums<T> &sums) {
    const Place &place = trees.places[p];
    if (trees.kind != PIECEWISE) {
        alignas(64) T h[N];
        smooth_h(trees, p, sums, h);
        return Tile<T, N>::load(h);
    }
    const auto above = Tile<T, N>::load(trees.upper_end(place.root, place.parent_slot));
    return trees.is_linear(place) ? above : choose(trees.signs(p), trees.slope * above, above);
}

// H x of a synapse, summed over every PIECE-th sample; its input gets factor * weight * H.
template <bool DROP, class T, int N>
INLINE Tile<T, PIECE> through_synapse(const Trees<T, N> &trees, int64_t e, const Tile<T, N> &h, T factor, T *gradients) {
    using Full = Tile<T, N>;
    const int64_t row = trees.rows[e] * trees.row_numbers;
    auto x = Full::load(trees.inputs + row);
    const uint16_t *silent = trees.silent + e * (N / PIECE);
    if constexpr (DROP) x = choose(silent, Full::spread(0), x);
    auto hx = dot(h, x);  // loaded before the store below: 4096 bytes apart, or a multiple, it would wait for it
    if (gradients) {
        auto there = Full::load(gradients + row);
        if constexpr (DROP) add_product(there, factor * trees.weight[e], choose(silent, Full::spread(0), h));
        else add_product(there, factor * trees.weight[e], h);
        there.store(gradients + row);
    }
    return hx;
}

// The same as in `run_nodes_back` for four nodes that read the same inputs: each tile is loaded once for all four.
template <class T, int N>
APART void run_four_back(const Trees<T, N> trees, int64_t p, T *gradients, const T *products, const Sums<T> sums) {
    using Full = Tile<T, N>;
    const Place *four = trees.places + p;
    alignas(64) T held[4][N];
    for (int k = 0; k < 4; k++) h_of(trees, p + k, sums).store(held[k]);
    const auto h = [&](int k) INLINE_LAMBDA { return Full::load(held[k]); };
    auto all = totals(folded(h(0)), folded(h(1)), folded(h(2)), folded(h(3)));
    for (int k = 0; k < 4; k++) sums.add(sums.h, four[k].node, all.sum[k]);
    T *hx[4];
    T factor[4];
    const T *weight[4];
    for (int k = 0; k < 4; k++) {
        hx[k] = sums.hx + four[k].first;
        weight[k] = trees.weight + four[k].first;
        factor[k] = gradients ? products[p + k] : T(0);
    }
    const int32_t *rows = trees.rows + four[0].first;
    for (int64_t e = 0; e < four[0].fan_in; e++) {
        const int64_t row = rows[e] * trees.row_numbers;
        const auto x = Full::load(trees.inputs + row);
        all = totals(dot(h(0), x), dot(h(1), x), dot(h(2), x), dot(h(3), x));
        for (int k = 0; k < 4; k++) sums.add(hx[k], e, all.sum[k]);
        if (gradients) {
            auto there = Full::load(gradients + row);
            UNROLLED for (int k = 3; k >= 0; k--) add_product(there, factor[k] * weight[k][e], h(k));
            there.store(gradients + row);
        }
    }
}

// Add one tile of samples to the sums of the nodes of a chunk, parents before children. `gradients` are those of the
// inputs, null if they are not needed.
template <bool DROP, class T, int N>
void run_nodes_back(const Trees<T, N> trees, Range places, T *gradients, const T *products, const Sums<T> sums) {
    for (int64_t p = places.end - 1; p >= places.begin; p--) {
        const Place &place = trees.places[p];
        if (!DROP && place.is_quarter) {
            p -= 3;
            run_four_back(trees, p, gradients, products, sums);
            continue;
        }
        const int64_t first = place.first, stop = first + place.synapses, end = first + place.fan_in;
        const auto h = h_of(trees, p, sums);
        if (stop < end) h.store(trees.values + place.slot * N);
        const T factor = gradients ? products[p] * trees.scale : T(0);
        auto through = [&](int64_t e) INLINE_LAMBDA { return through_synapse<DROP>(trees, e, h, factor, gradients); };
        if (first == stop) {
            sums.add(sums.h, place.node, total(folded(h)));
        } else {  // four sums at a time take half the steps: those of H itself and of three synapses, then of four
            const auto none = Tile<T, PIECE>::spread(0), d0 = through(first);
            const auto d1 = first + 1 < stop ? through(first + 1) : none;
            const auto d2 = first + 2 < stop ? through(first + 2) : none;
            const auto four = totals(folded(h), d0, d1, d2);
            sums.add(sums.h, place.node, four.sum[0]);
            for (int k = 0; k < 3 && first + k < stop; k++) sums.add(sums.hx, first + k, four.sum[k + 1]);
        }
        int64_t e = first + 3;
        for (; e + 4 <= stop; e += 4) {
            const auto four = totals(through(e), through(e + 1), through(e + 2), through(e + 3));
            for (int k = 0; k < 4; k++) sums.add(sums.hx, e + k, four.sum[k]);
        }
        for (int64_t rest = std::min(e, stop); rest < end; rest++)  // the last synapses, and any that follow a dendrite
            if (trees.rows[rest] >= 0) sums.add(sums.hx, rest, total(through(rest)));
    }
}

// P of a place, given P of its parent.
template <class T, int N> INLINE T path_product(const Trees<T, N> &trees, int64_t p, T *products) {
    const Place &place = trees.places[p];
    return products[p] = place.parent < 0 ? T(1) : products[place.parent] * trees.weight[place.edge];
}

// Turn the sums of a chunk into gradients of its weights and biases, in place; return whether all were finite. Of a node's
// edges `synapses` come first; only an unbalanced tree has others after a dendrite.
template <class T, int N> bool finish_chunk(const Call &call, const Trees<T, N> trees, Range places, T *products) {
    T *__restrict gw = (T *)call.gw, *__restrict gb = (T *)call.gb, *__restrict q = products + call.nodes;
    const int64_t parts = call.parts, nodes = call.nodes, edges = call.edges;
    const int32_t *rows = trees.rows;
    const T *weight = trees.weight, scale = trees.scale;
    const bool is_piecewise = trees.kind == PIECEWISE, need_gx = call.gx;
    T check = 0, largest = 0;  // check: 0, until 0 times a number that is not finite makes it NaN
    std::fill(q + places.begin, q + places.end, T(0));
    for (int64_t p = places.begin; p < places.end; p++) {  // children before parents, so that Q of the children is known
        const Place &place = trees.places[p];
        const int64_t node = place.node, edge = place.edge, parent = place.parent;
        const int64_t first = place.first, stop = first + place.synapses, end = first + place.fan_in;
        for (int64_t share = 1; share < parts; share++) {
            gb[node] += gb[share * nodes + node];
            const T *other = gw + share * edges;  // a dendrite's entry holds Q, which only smooth activations sum
            for (int64_t e = first; e < (is_piecewise ? stop : end); e++) gw[e] += other[e];
            for (int64_t e = is_piecewise ? stop : end; e < end; e++)
                if (rows[e] >= 0) gw[e] += other[e];
        }
        T sum = q[p] + (trees.bias ? trees.bias[node] * gb[node] : T(0));
        int64_t e = first;
        if (place.synapses >= PIECE)
            SUMMED(+, sum) for (e = first; e < stop; e++) sum += weight[e] * (gw[e] * scale);
        for (; e < end; e++) {
            SCALAR;
            if (e < stop || rows[e] >= 0) sum += weight[e] * (gw[e] * scale);
        }
        check += T(0) * (sum + gb[node]);
        if (edge >= 0) {
            if (is_piecewise) gw[edge] = sum;
            q[parent] += weight[edge] * gw[edge];
        }
    }
    for (int64_t p = places.end - 1; p >= places.begin; p--) {  // parents before children, so that P of the parent is known
        const Place &place = trees.places[p];
        const T product = path_product(trees, p, products), factor = product * scale;
        const int64_t first = place.first, stop = first + place.synapses, end = first + place.fan_in;
        check += T(0) * product;
        gb[place.node] *= product;
        int64_t e = first;
        if (place.synapses >= PIECE)
            SUMMED(max, largest) for (e = first; e < stop; e++) {
                largest = std::max(largest, std::abs(factor * weight[e]));
                gw[e] *= factor;
            }
        for (; e < end; e++) {
            SCALAR;
            const bool is_synapse = e < stop || rows[e] >= 0;
            if (is_synapse && need_gx) largest = std::max(largest, std::abs(factor * weight[e]));
            gw[e] *= is_synapse ? factor : product;
        }
    }
    return check == check && (!need_gx || largest <= T(LARGEST));
}

// Gradients of weights, biases and, if they have an address, inputs; threads that enter together share the work. A job is
// a share of the blocks and a share of the chunks. The number of shares depends only on the sizes, and so does the order
// of all sums, whatever the number of threads.
template <class T, int N> void backward(void *struct_of_call) {
    Call &call = *(Call *)struct_of_call;
    Trees<T, N> trees(call);
    T *products = (T *)call.products;
    Worker worker{call};
    T *memory = (T *)((char *)call.work + worker.number * call.work_bytes);
    trees.values = memory;
    T *outputs = memory + call.slots * N, *own_inputs = outputs + call.widest * N;
    T *gradients = call.gx ? own_inputs + (call.inputs ? 0 : call.input_numbers) : nullptr;
    auto places_of = [&](int64_t c) -> Range { return {call.chunk_table[c].place, call.chunk_table[c + 1].place}; };

    if (call.gx) {  // P of all nodes: gradients of inputs need them from the start
        for (; worker.take(PATHS, call.chunks); worker.finish(PATHS)) {
            const Range places = places_of(worker.job);
            for (int64_t p = places.end - 1; p >= places.begin; p--) path_product(trees, p, products);
        }
        worker.wait(PATHS, call.chunks);
    }

    const int64_t jobs = call.groups * call.parts;
    int64_t block_at_hand = -1;
    for (; worker.take(TILES, jobs); worker.finish(TILES)) {
        const int64_t group = worker.job % call.groups, share = worker.job / call.groups;
        const Range blocks = share_of(call.blocks, share, call.parts), chunks = share_of(call.chunks, group, call.groups);
        Sums<T> sums{(T *)call.gw + share * call.edges, (T *)call.gb + share * call.nodes, true};
        for (int64_t block = blocks.begin; block < blocks.end; block++) {
            const T *inputs = (T *)call.inputs + block * call.input_numbers;
            if (!call.inputs) {
                if (block != block_at_hand) make_inputs<T, N>(call, block, own_inputs);
                inputs = own_inputs;
                block_at_hand = block;
            }
            if (gradients) std::fill_n(gradients, call.input_numbers, T(0));
            for (int64_t i = 0; i < call.block_tiles; i++, sums.begin = false) {
                const int64_t t = block * call.block_tiles + i;
                trees.inputs = inputs + i * N;
                trees.trace = (char *)call.trace + t * call.nodes * int64_t(trees.trace_bytes());
                trees.silent = (uint16_t *)call.silent + t * call.edges * (N / PIECE);
                T *there = gradients ? gradients + i * N : nullptr;
                for (int64_t c = chunks.begin; c < chunks.end; c++) {
                    const Chunk &here = call.chunk_table[c];
                    outputs_of<true, T, N>(call, block, i, here.neuron, call.chunk_table[c + 1].neuron - here.neuron, outputs);
                    trees.outputs = outputs - here.neuron * N;
                    if (call.limit) run_nodes_back<true>(trees, places_of(c), there, products, sums);
                    else run_nodes_back<false>(trees, places_of(c), there, products, sums);
                }
            }
            if (gradients) write_gradients<T, N>(call, block, group, gradients);
        }
    }
    worker.wait(TILES, jobs);

    while (worker.take(CHUNKS, call.chunks))
        if (!finish_chunk(call, trees, places_of(worker.job), products)) count_up(call.failed);

    if (call.gx && call.groups > 1) {  // add the groups' shares, a run of numbers for each job
        T *sum = (T *)call.gx;
        while (worker.take(INPUTS, GATHERED)) {
            const Range numbers = share_of(call.gx_numbers, worker.job, GATHERED);
            for (int64_t group = 1; group < call.groups; group++) {
                const T *other = sum + group * call.gx_numbers;
                for (int64_t i = numbers.begin; i < numbers.end; i++) sum[i] += other[i];
            }
        }
    }
}

}  // namespace DENDRITREE_ISA
