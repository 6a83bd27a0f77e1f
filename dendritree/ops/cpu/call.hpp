// The arguments of the kernels, one struct per call, and how the threads that enter a kernel together share its work.
// `native.py` has the same structs.
#pragma once
#include <cstddef>
#include <cstdint>

// A row of the table of places: the node computed at this place, its first edge, its number of children, how many of the
// first children are synapses, its slot, its parent's slot and place, the edge to its parent, its neuron if it is a root
// (-1 where these do not apply), and whether it is one of four consecutive nodes that read the same inputs.
struct Place {
    int32_t node, first, fan_in, synapses, slot, parent_slot, parent, edge, root, is_quarter;
};

// A row of the table of chunks: its first place and its first neuron. A final row holds the total counts.
struct Chunk {
    int32_t place, neuron;
};

// How the images of a block are laid out in planes: see layout.hpp.
struct Sheet {
    int64_t images, channels, height, width, top, left, row_step, column_step, rows, columns, plane, out_rows, out_columns;
};

enum Kind : int64_t { PIECEWISE, TANH, SIGMOID, GELU, SILU };

enum Jobs { PATHS, TILES, CHUNKS, INPUTS, KINDS_OF_JOBS };

struct Call {
    // counters, 0 at first
    int64_t taken[KINDS_OF_JOBS], from_end[KINDS_OF_JOBS], done[KINDS_OF_JOBS], helpers, failed;
    const void *caller;  // the calling thread, as the address of its `this_thread`
    // the forest
    int64_t features, neurons, nodes, edges, chunks, slots, widest;
    const Place *places;
    const int32_t *rows;  // for each edge the input it reads, or -1 - slot of the dendrite it reads
    const Chunk *chunk_table;
    // the batch
    int64_t batch, blocks, block_tiles;  // samples or images; blocks, whose inputs are laid out together; tiles of a block
    int64_t input_numbers, row_numbers;  // numbers of a block's inputs, and from one input to the next
    Sheet sheet;                         // of images; `sheet.images` is 0 for rows of features
    // the options
    int64_t kind, root_linear, limit;  // limit: how many of 65536 synapses dropout silences
    double slope, scale;               // scale: the factor of the other synapses
    // shares: of the chunks, each with its own gradients of inputs, and of the blocks, each with its own sums
    int64_t groups, parts;
    // the tensors, 0 for those that are absent; strides in numbers
    const void *x;
    int64_t x_sample, x_feature;
    const void *weight, *bias;
    const uint32_t *seed;
    void *y;  // outputs, or their gradients
    int64_t y_sample, y_feature;
    void *inputs, *trace, *silent;  // tiles of the inputs, if kept; by node signs or values; bits of silenced synapses
    void *work, *products;          // memory of each thread; P of every place, then Q of every place (see backward.hpp)
    int64_t work_bytes;             // of each thread
    void *gx, *gw, *gb;
    int64_t gx_numbers;  // of a group
};

inline int64_t count_up(int64_t &counter) { return __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST); }

inline thread_local char this_thread;

// One of the threads that share a call. The caller takes jobs from the first on, the others from the last on, so that two
// threads find what they wrote in the call before in their own caches.
struct Worker {
    Call &call;
    const bool is_caller = call.caller == &this_thread;
    const int64_t number = is_caller ? 0 : 1 + count_up(call.helpers);
    int64_t from_start[KINDS_OF_JOBS] = {}, job = 0;

    // Take one of `count` jobs, if any is left.
    bool take(Jobs jobs, int64_t count) {
        if (count_up(call.taken[jobs]) >= count) return false;
        job = is_caller ? from_start[jobs]++ : count - 1 - count_up(call.from_end[jobs]);
        return true;
    }
    void finish(Jobs jobs) { count_up(call.done[jobs]); }
    // A spin, since the other threads need only microseconds for their last jobs.
    void wait(Jobs jobs, int64_t count) {
        while (__atomic_load_n(&call.done[jobs], __ATOMIC_SEQ_CST) < count) {}
    }
};

struct Range {
    int64_t begin, end;
};
// The part of `0 ... total - 1` that belongs to one of several shares.
inline Range share_of(int64_t total, int64_t share, int64_t shares) {
    return {share * total / shares, (share + 1) * total / shares};
}
