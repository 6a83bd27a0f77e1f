// From rows of samples, or images, to tiles and back.
//
// Images become planes: a plane is a channel's pixels in one run of memory, image after image and row after row, with
// zeros between rows and between images. In it, the patch at position q + 1 is the patch at position q, shifted by one
// number. So a tile is a run of positions, and an input of the patch, for all of these positions, is the tile that starts
// a fixed distance further: `rows` holds these distances. With a stride of s, a channel has s x s planes, each of every
// s-th pixel. Positions at the end of a row, where no patch begins, are computed too, and skipped when outputs are
// written; their gradient is 0.
#pragma once
#include <algorithm>
#include <utility>

#include "call.hpp"
#include "dropout.hpp"
#include "tiles.hpp"

namespace DENDRITREE_ISA {

// Swap the off-diagonal squares of two rows: the lanes I of `a` and `b` that `SIDE` decides.
template <int SIDE, bool UPPER, class Vector, size_t... I>
INLINE Vector swapped(Vector a, Vector b, std::index_sequence<I...>) {
    constexpr int W = sizeof...(I);
    if constexpr (UPPER) return __builtin_shufflevector(a, b, (int(I) & SIDE ? W + int(I) : int(I) + SIDE)...);
    else return __builtin_shufflevector(a, b, (int(I) & SIDE ? W + int(I) - SIDE : int(I))...);
}
template <int SIDE, int W, class Vector> INLINE void transpose_rows(Vector (&rows)[W]) {
    if constexpr (SIDE < W) {
        UNROLLED for (int i = 0; i < W; i++)
            if (!(i & SIDE)) {
                Vector a = rows[i], b = rows[i + SIDE];
                rows[i] = swapped<SIDE, false>(a, b, std::make_index_sequence<W>());
                rows[i + SIDE] = swapped<SIDE, true>(a, b, std::make_index_sequence<W>());
            }
        transpose_rows<2 * SIDE>(rows);
    }
}
// target[c][r] = source[r][c] for a square of vectors, by swapping squares of side 1, 2, 4 ...
template <class T> struct Square {
    static constexpr int SIDE = VECTOR_BYTES / int(sizeof(T));
    using Vector = typename VectorOf<T, SIDE>::type;
    static INLINE void transpose(const T *source, int64_t source_stride, T *target, int64_t target_stride) {
        Vector rows[SIDE];
        UNROLLED for (int i = 0; i < SIDE; i++) std::memcpy(&rows[i], source + i * source_stride, sizeof(Vector));
        transpose_rows<1>(rows);
        UNROLLED for (int i = 0; i < SIDE; i++) std::memcpy(target + i * target_stride, &rows[i], sizeof(Vector));
    }
};

// target[c][r] = source[r][c]: whole squares first, then the rest.
template <class T>
void transpose(const T *source, int64_t source_stride, int64_t rows, int64_t columns, T *target, int64_t target_stride) {
    constexpr int side = Square<T>::SIDE;
    const int64_t square_rows = rows / side * side, square_columns = columns / side * side;
    for (int64_t c = 0; c < square_columns; c += side)
        for (int64_t r = 0; r < square_rows; r += side)
            Square<T>::transpose(source + r * source_stride + c, source_stride, target + c * target_stride + r, target_stride);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < square_rows ? square_columns : 0; c < columns; c++)
            target[c * target_stride + r] = source[r * source_stride + c];
}

// Tiles of `count` features of `n` samples, padded with zeros to the length of a tile.
template <class T, int N>
void to_tiles(const T *x, int64_t sample_stride, int64_t feature_stride, int64_t n, int64_t count, T *tiles) {
    if (n < N) std::memset(tiles, 0, size_t(count) * N * sizeof(T));
    if (sample_stride == 1)  // samples are contiguous already
        for (int64_t f = 0; f < count; f++) std::memcpy(tiles + f * N, x + f * feature_stride, size_t(n) * sizeof(T));
    else
        transpose(x, sample_stride, n, count, tiles, int64_t(N));
}

// ----------------------------------------------------------------------------------------------------------- images

// Rows of an image are short: a call of memcpy for each would take a third of a small layer's time.
template <class T> INLINE void copy_run(const T *source, T *target, int64_t n) {
    constexpr int64_t piece = 8;
    if (n >= piece) {  // whole pieces, the last of which overlaps the one before it
        for (int64_t i = 0; i < n; i += piece) {
            int64_t first = std::min(i, n - piece);
            std::memcpy(target + first, source + first, piece * sizeof(T));
        }
    } else {
        for (int64_t i = 0; i < n; i++) target[i] = source[i];
    }
}

// Fill planes with `n` images surrounded by zeros, or write planes back to images.
template <bool FILL, class T>
void copy_planes(const Sheet &sheet, std::conditional_t<FILL, const T, T> *images, int64_t n,
                 std::conditional_t<FILL, T, const T> *planes) {
    const int64_t each = sheet.row_step * sheet.column_step, step = sheet.column_step;
    if constexpr (FILL) std::memset(planes, 0, size_t(sheet.channels * each * sheet.plane) * sizeof(T));
    auto *pixels = images;
    for (int64_t image = 0; image < n; image++)
        for (int64_t c = 0; c < sheet.channels; c++)
            for (int64_t y = 0; y < sheet.height; y++, pixels += sheet.width) {
                int64_t row = (y + sheet.top) / sheet.row_step, phase = (y + sheet.top) % sheet.row_step;
                auto *line = planes + (c * each + phase * step) * sheet.plane + (image * sheet.rows + row) * sheet.columns;
                if (step == 1) {
                    if constexpr (FILL) copy_run(pixels, line + sheet.left, sheet.width);
                    else copy_run(line + sheet.left, pixels, sheet.width);
                    continue;
                }
                for (int64_t x = 0; x < sheet.width; x++) {
                    auto &number = line[(x + sheet.left) % step * sheet.plane + (x + sheet.left) / step];
                    if constexpr (FILL) number = pixels[x];
                    else pixels[x] = number;
                }
            }
}

// Write the tiles of `count` neurons, positions from `first` on, to `n` images of outputs, or read them back. `y` is the
// first of these neurons' outputs for the first image; an image has `neurons` outputs.
template <bool READ, class T, int N>
void copy_outputs(const Sheet &sheet, T *y, int64_t neurons, int64_t count, int64_t first, int64_t n, T *outputs) {
    const int64_t first_line = first / sheet.columns, end = first + N;
    for (int64_t neuron = 0; neuron < count; neuron++) {  // not line by line: a neuron's rows follow each other in memory
        T *tile = outputs + neuron * N;
        if constexpr (READ) std::memset(tile, 0, N * sizeof(T));
        int64_t image = first_line / sheet.rows, row = first_line % sheet.rows, column = first % sheet.columns;
        for (int64_t position = first; position < end && image < n;) {
            if (row < sheet.out_rows && column < sheet.out_columns) {
                int64_t run = std::min(sheet.out_columns - column, end - position);
                T *pixel = y + ((image * neurons + neuron) * sheet.out_rows + row) * sheet.out_columns + column;
                if constexpr (READ) copy_run(pixel, tile + position - first, run);
                else copy_run(tile + position - first, pixel, run);
            }
            position += sheet.columns - column;
            column = 0;
            if (++row == sheet.rows) image++, row = 0;
        }
    }
}

// The dropout keys of the samples of a tile; of an image each position is a sample, in the order of outputs.
template <int N> void make_keys(const Call &call, const Mask &mask, int64_t block, int64_t tile) {
    const Sheet &sheet = call.sheet;
    for (int64_t j = 0; j < N; j++) {
        int64_t sample = block * N + j;
        if (sheet.images) {
            int64_t line = (tile * N + j) / sheet.columns, column = (tile * N + j) % sheet.columns;
            int64_t row = line / sheet.rows * sheet.out_rows + line % sheet.rows;
            sample = (block * sheet.images * sheet.out_rows + row) * sheet.out_columns + column;
        }
        mask.keys[j] = mask.sample_key(sample);
    }
}

// ------------------------------------------------------------------------------------- the tensors of a call as tiles

template <int N> INLINE Range samples_of(const Call &call, int64_t block) {
    int64_t each = call.sheet.images ? call.sheet.images : N;
    return {block * each, std::min(block * each + each, call.batch)};
}

// Lay out the inputs of a block.
template <class T, int N> void make_inputs(const Call &call, int64_t block, T *inputs) {
    Range samples = samples_of<N>(call, block);
    const T *x = (const T *)call.x + samples.begin * call.x_sample;
    if (call.sheet.images) copy_planes<true, T>(call.sheet, x, samples.end - samples.begin, inputs);
    else to_tiles<T, N>(x, call.x_sample, call.x_feature, samples.end - samples.begin, call.features, inputs);
}

// Write the outputs of `count` neurons for a tile of a block, or read their gradients.
template <bool READ, class T, int N>
void outputs_of(const Call &call, int64_t block, int64_t tile, int64_t neuron, int64_t count, T *outputs) {
    Range samples = samples_of<N>(call, block);
    int64_t n = samples.end - samples.begin;
    T *y = (T *)call.y + samples.begin * call.y_sample + neuron * call.y_feature;
    if (call.sheet.images) copy_outputs<READ, T, N>(call.sheet, y, call.neurons, count, tile * N, n, outputs);
    else if constexpr (READ) to_tiles<T, N>(y, call.y_sample, call.y_feature, n, count, outputs);
    else transpose(outputs, int64_t(N), count, n, y, call.y_sample);
}

// Write a group's share of the gradients of a block's inputs.
template <class T, int N> void write_gradients(const Call &call, int64_t block, int64_t group, const T *gradients) {
    Range samples = samples_of<N>(call, block);
    int64_t n = samples.end - samples.begin, each = call.gx_numbers / call.batch;
    T *gx = (T *)call.gx + group * call.gx_numbers + samples.begin * each;
    if (call.sheet.images) copy_planes<false, T>(call.sheet, gx, n, gradients);
    else transpose(gradients, int64_t(N), call.features, n, gx, each);
}

}  // namespace DENDRITREE_ISA
