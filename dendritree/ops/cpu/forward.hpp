// The forward pass: a node is the activation of a weighted sum of tiles.
//
//     z = bias + sum over its edges of weight * row        value = act(z)
//
// A row is an input or the value of a dendrite. One bit per node and sample is kept for the backward pass, the sign of z:
// LeakyReLU, ReLU and the identity are act(z) = m z, and the sign determines m, 1 or the slope. tanh and sigmoid keep
// their values, GELU and SiLU keep z.
#pragma once
#include "layout.hpp"

namespace DENDRITREE_ISA {

// The trees of a call, and the tiles of one run of samples. Passed by value, so that the compiler holds its fields in
// registers: a store to a tile could change what a reference refers to.
template <class T, int N> struct Trees {
    const Place *places;
    const int32_t *rows;
    const int64_t row_numbers, kind;
    const bool root_linear;
    const T *weight, *bias;
    const T slope, scale;
    const T *inputs = nullptr;
    T *values = nullptr;   // by slot: the values of nodes; in the backward pass, their H
    T *outputs = nullptr;  // by neuron: the outputs, or their gradients
    char *trace = nullptr;
    uint16_t *silent = nullptr;

    explicit Trees(const Call &call)
        : places(call.places), rows(call.rows), row_numbers(call.row_numbers), kind(call.kind),
          root_linear(call.root_linear), weight((const T *)call.weight), bias((const T *)call.bias),
          slope(T(call.slope)), scale(T(call.scale)) {}

    INLINE const T *row(int64_t edge) const {
        int64_t row = rows[edge];
        return row >= 0 ? inputs + row * row_numbers : values + (-1 - row) * N;
    }
    // Where a node's value is for whatever reads it: among the outputs for a root, else in a slot.
    INLINE T *upper_end(int64_t root, int64_t slot) const { return root >= 0 ? outputs + root * N : values + slot * N; }
    INLINE uint16_t *signs(int64_t place) const { return (uint16_t *)trace + place * (N / PIECE); }
    INLINE T *kept(int64_t place) const { return (T *)trace + place * N; }
    INLINE bool is_linear(const Place &place) const { return place.root >= 0 && root_linear; }
    INLINE size_t trace_bytes() const { return kind == PIECEWISE ? N / 8 : N * sizeof(T); }
};

// erf has no short series: GELU calls the C library, number by number.
template <class T> INLINE T normal_cdf(T z) { return T(0.5) * std::erfc(z * T(-0.7071067811865476)); }

// A smooth activation of a vector.
template <Kind KIND, class T, int W> INLINE typename VectorOf<T, W>::type smooth(typename VectorOf<T, W>::type z) {
    if constexpr (KIND == TANH) return tanh<T, W>(z);
    if constexpr (KIND == SIGMOID) return sigmoid<T, W>(z);
    if constexpr (KIND == SILU) return z * sigmoid<T, W>(z);
    if constexpr (KIND == GELU)
        for (int j = 0; j < W; j++) z[j] *= normal_cdf<T>(z[j]);
    return z;
}

// Call a function with a smooth kind as a constant.
template <class Function> INLINE void with_kind(int64_t kind, Function function) {
    if (kind == TANH) function(std::integral_constant<Kind, TANH>());
    else if (kind == SIGMOID) function(std::integral_constant<Kind, SIGMOID>());
    else if (kind == SILU) function(std::integral_constant<Kind, SILU>());
    else function(std::integral_constant<Kind, GELU>());
}

// Replace `count` sums by values of a smooth activation, and keep what the backward pass needs.
template <class T> APART void activate(T *numbers, int64_t count, int64_t kind, T *kept) {
    constexpr int width = Tile<T, PIECE>::WIDTH;
    with_kind(kind, [&](auto constant) {
        for (int64_t i = 0; i < count; i += width) {
            typename Tile<T, PIECE>::Vector z, value;
            std::memcpy(&z, numbers + i, sizeof z);
            value = smooth<constant.value, T, width>(z);
            std::memcpy(numbers + i, &value, sizeof z);
            std::memcpy(kept + i, constant.value == TANH || constant.value == SIGMOID ? &value : &z, sizeof z);
        }
    });
}

// Write value = act(z) where the parent reads it, and what the backward pass needs. M numbers from `at` on: a whole tile,
// or a part of it.
template <class T, int N, int M> INLINE void pass_on(const Trees<T, N> &trees, int64_t p, int at, const Tile<T, M> &z) {
    const Place &place = trees.places[p];
    T *target = trees.upper_end(place.root, place.slot) + at;
    const bool linear = trees.is_linear(place);
    if (trees.kind == PIECEWISE) {
        uint16_t *signs = trees.signs(p) + at / PIECE;
        mark_not_positive(signs, z);
        if (linear) z.store(target);
        else choose(signs, trees.slope == 0 ? Tile<T, M>::spread(0) : trees.slope * z, z).store(target);  // never 0 * inf
        return;
    }
    z.store(target);
    if (linear) z.store(trees.kept(p) + at);
    else activate(target, M, trees.kind, trees.kept(p) + at);
}

template <class T, int N> INLINE Tile<T, N> weighted_sum(const Trees<T, N> &trees, const Place &place, T bias) {
    auto z = Tile<T, N>::spread(bias);
    for (int64_t e = place.first; e < place.first + place.fan_in; e++)
        add_product(z, trees.weight[e], Tile<T, N>::load(trees.row(e)));
    return z;
}

// The same with synapses that are silent for some samples and scaled up for the others.
template <class T, int N>
INLINE Tile<T, N> dropped_sum(const Trees<T, N> &trees, const Place &place, T bias, const Mask &mask) {
    auto z = Tile<T, N>::spread(bias);
    const int32_t *rows = trees.rows;
    PairBits<N> pair(0, mask.keys);
    for (int64_t e = place.first; e < place.first + place.fan_in; e++) {
        auto value = Tile<T, N>::load(trees.row(e));
        if (rows[e] < 0) {  // a dendrite is never silent
            add_product(z, trees.weight[e], value);
            continue;
        }
        const bool second = (e - place.first) % 2;
        if (!second || rows[e - 1] < 0) pair = PairBits<N>(mask.synapse_key(e - second), mask.keys);
        uint16_t *silent = trees.silent + e * (N / PIECE);
        pair.mark_silent(silent, second ? 16 : 0, mask.limit);
        add_product(z, trees.weight[e] * trees.scale, choose(silent, Tile<T, N>::spread(0), value));
    }
    return z;
}

// Four nodes that read the same inputs: each part of a tile is loaded once for all four. Parts of four vectors stay in
// registers, with their summands.
template <class T, int N> APART void run_four(const Trees<T, N> trees, int64_t p) {
    constexpr int M = std::min(N, std::max(PIECE, 4 * VECTOR_BYTES / int(sizeof(T))));
    const Place *four = trees.places + p;
    const T *w0 = trees.weight + four[0].first, *w1 = trees.weight + four[1].first;
    const T *w2 = trees.weight + four[2].first, *w3 = trees.weight + four[3].first;
    const int32_t *rows = trees.rows + four[0].first;
    for (int at = 0; at < N; at += M) {
        Tile<T, M> z[4];
        UNROLLED for (int k = 0; k < 4; k++) z[k] = Tile<T, M>::spread(trees.bias ? trees.bias[four[k].node] : T(0));
        for (int64_t e = 0; e < four[0].fan_in; e++) {
            auto row = Tile<T, M>::load(trees.inputs + rows[e] * trees.row_numbers + at);
            add_product(z[0], w0[e], row);
            add_product(z[1], w1[e], row);
            add_product(z[2], w2[e], row);
            add_product(z[3], w3[e], row);
        }
        for (int k = 0; k < 4; k++) pass_on<T, N, M>(trees, p + k, at, z[k]);
    }
}

// Values of the nodes of a chunk for one tile of samples, children before parents.
template <bool DROP, class T, int N> void run_nodes(const Trees<T, N> trees, Range places, const Mask mask) {
    for (int64_t p = places.begin; p < places.end; p++) {
        const Place &place = trees.places[p];
        const T bias = trees.bias ? trees.bias[place.node] : T(0);
        if constexpr (DROP) {
            pass_on<T, N, N>(trees, p, 0, dropped_sum(trees, place, bias, mask));
        } else if (place.is_quarter) {
            run_four(trees, p);
            p += 3;
        } else {
            pass_on<T, N, N>(trees, p, 0, weighted_sum(trees, place, bias));
        }
    }
}

// Run all samples through all trees; threads that enter together share the work. A job is a block, the tiles whose inputs
// are laid out together, and a share of the chunks. Each thread lays out the inputs for itself: reading what another core
// has just written takes longer. Those made for the first share are kept for the backward pass.
template <class T, int N> void forward(void *struct_of_call) {
    Call &call = *(Call *)struct_of_call;
    Trees<T, N> trees(call);
    Worker worker{call};
    T *memory = (T *)((char *)call.work + worker.number * call.work_bytes);
    trees.values = memory;
    T *outputs = memory + call.slots * N, *own_inputs = outputs + call.widest * N;
    Mask mask{uint32_t(call.limit) << 16, 0, 0, (uint32_t *)(own_inputs + call.input_numbers)};
    if (call.limit) mask.low = call.seed[0], mask.high = call.seed[1];
    T *inputs = own_inputs;
    int64_t block_at_hand = -1;
    while (worker.take(TILES, call.blocks * call.groups)) {
        const int64_t block = worker.job / call.groups, group = worker.job % call.groups;
        const bool is_kept = call.inputs && group == 0;
        if (block != block_at_hand || is_kept) {
            inputs = is_kept ? (T *)call.inputs + block * call.input_numbers : own_inputs;
            make_inputs<T, N>(call, block, inputs);
            block_at_hand = block;
        }
        const Range chunks = share_of(call.chunks, group, call.groups);
        for (int64_t i = 0; i < call.block_tiles; i++) {
            const int64_t t = block * call.block_tiles + i;
            if (call.limit) make_keys<N>(call, mask, block, i);
            trees.inputs = inputs + i * N;
            trees.trace = (char *)call.trace + t * call.nodes * int64_t(trees.trace_bytes());
            trees.silent = (uint16_t *)call.silent + t * call.edges * (N / PIECE);
            for (int64_t c = chunks.begin; c < chunks.end; c++) {
                const Chunk &here = call.chunk_table[c], &next = call.chunk_table[c + 1];
                trees.outputs = outputs - here.neuron * N;
                if (call.limit) run_nodes<true>(trees, {here.place, next.place}, mask);
                else run_nodes<false>(trees, {here.place, next.place}, mask);
                outputs_of<false, T, N>(call, block, i, here.neuron, next.neuron - here.neuron, outputs);
            }
        }
    }
}

}  // namespace DENDRITREE_ISA
