// The kernels of an instruction set, by number type (float, double) and tile length.
#pragma once
#include "call.hpp"

// Dendrites that read every input: DNM (products of sigmoids) and DMNN (depths in boxes).
struct DenseCall {
    int64_t step;  // LOG_PRODUCTS ...
    const void *x, *weight, *other, *gy, *least;  // gain and shift, or low and high faces of boxes
    void *out, *least_out, *total_out, *of_x, *of_weight, *of_other;
    int64_t *nearest;
    int64_t inputs, dendrites, samples;
    double temperature;
    int64_t taken;  // jobs: tiles of samples, or in the backward pass tiles of inputs
};
enum DenseStep : int64_t { LOG_PRODUCTS, LOG_PRODUCTS_BACKWARD, DEPTHS, SMOOTH_DEPTHS, SMOOTH_DEPTHS_BACKWARD };

// Batch normalization of images, channels last, and the activation after it: y = act((x - mean) / deviation * weight + bias).
struct NormCall {
    int64_t step;  // MOMENTS ..., set by the dispatcher
    const void *x, *gy, *weight, *bias;
    void *out, *moments, *gw, *gb;  // y or the gradient of x; of each channel mean, 1 / deviation, variance; gradients
    void *rows, *sums;              // memory: four rows of a period, two sums per chunk and channel, in double precision
    int64_t pixels, channels, period, chunk, chunks;  // period: numbers after which the channels of vectors repeat
    int64_t kind;                                     // chunk: its numbers, whole periods
    double slope, eps;
    int64_t taken;
};
enum NormStep : int64_t {
    MOMENTS, COMBINE_MOMENTS, APPLY, PREPARE_GRADIENTS, GRADIENT_SUMS, COMBINE_GRADIENTS, APPLY_GRADIENTS
};

using Kernel = void (*)(void *call);  // the signature that OpenMP calls

struct Kernels {
    Kernel forward[2][3], backward[2][3], dense[2], normalize[2];
};
