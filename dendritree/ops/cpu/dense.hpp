// Dendrites that read every input: logarithms of products of sigmoids (DNM) and depths of points in boxes (DMNN).
//
// Threads take tiles of samples in forward passes and tiles of inputs in backward passes: nothing is summed across
// threads, and results do not depend on their number.
#pragma once
#include <limits>

#include "kernels.hpp"
#include "tiles.hpp"

namespace DENDRITREE_ISA {

constexpr int64_t TILE = 64;  // inputs, and samples, of a tile of the backward pass: two of them fill the L1 cache
constexpr int64_t SAMPLES = 8;

// Load and store the vectors of `n` numbers; the last vector is padded with zeros.
template <class T> struct Dense {
    static constexpr int W = VECTOR_BYTES / int(sizeof(T));
    using Vector = typename VectorOf<T, W>::type;
    static INLINE Vector load(const T *from, int64_t n) {
        Vector v{};
        std::memcpy(&v, from, size_t(std::min<int64_t>(n, W)) * sizeof(T));
        return v;
    }
    static INLINE void store(T *to, Vector v, int64_t n) {
        std::memcpy(to, &v, size_t(std::min<int64_t>(n, W)) * sizeof(T));
    }
};

// The sum over inputs of log sigmoid(u), u = gain x - shift.
//
// log sigmoid(u) = min(u, 0) - log(1 + exp(-|u|)). The factors 1 + exp(-|u|) lie between 1 and 2, so 56 of them are
// multiplied before a logarithm is taken. The product is held as q = product - 1, which loses no precision near 1.
template <class T> T log_products(const T *x, const T *gain, const T *shift, int64_t inputs) {
    using D = Dense<T>;
    using Vector = typename D::Vector;
    constexpr int64_t each = 8, panel = 7 * each * D::W;  // `each` vectors side by side, 7 factors in each place
    T total = 0;
    for (int64_t start = 0; start < inputs; start += panel) {
        Vector q[each] = {}, sums[each] = {};
        for (int64_t i = start, k = 0; i < std::min(start + panel, inputs); i += D::W, k = (k + 1) % each) {
            const int64_t n = inputs - i;
            Vector u = D::load(x + i, n) * D::load(gain + i, n) - D::load(shift + i, n);
            Vector e = exp<T, D::W>(-absolute(u));
            if (n < D::W)  // places beyond the last input
                for (int64_t j = n; j < D::W; j++) e[j] = 0;
            q[k] += e * (T(1) + q[k]);
            sums[k] += u < 0 ? u : Vector{};
        }
        for (int64_t k = 1; k < each; k++) {  // 56 factors in each place; 128 would overflow float32
            q[0] += q[k] * (T(1) + q[0]);
            sums[0] += sums[k];
        }
        for (int64_t j = 0; j < D::W; j++) total += sums[0][j] - std::log1p(q[0][j]);
    }
    return total;
}

// The depth in a box, min over inputs of min(x - low, high - x), and the first input that attains it. NaN is the minimum.
template <class T> struct Depth {
    T least;
    int64_t nearest;
};
template <class T> Depth<T> depth(const T *x, const T *low, const T *high, int64_t inputs) {
    Depth<T> found{std::numeric_limits<T>::infinity(), 0};
    constexpr int64_t run = 64;
    T distance[run];
    for (int64_t start = 0; start < inputs; start += run) {
        const int64_t n = std::min(run, inputs - start);
        T least = std::numeric_limits<T>::infinity();
        bool is_nan = false;
        for (int64_t j = 0; j < n; j++) {
            const T below = x[start + j] - low[start + j], above = high[start + j] - x[start + j];
            distance[j] = (below <= above) | (below != below) ? below : above;
            least = distance[j] < least ? distance[j] : least;
            is_nan |= distance[j] != distance[j];
        }
        if (!is_nan && !(least < found.least) && !(start == 0)) continue;
        for (int64_t j = 0; j < n; j++)
            if (is_nan ? distance[j] != distance[j] : distance[j] == least) {
                found = {distance[j], start + j};
                break;
            }
        if (is_nan) break;
    }
    return found;
}

// The sum of exp((least - distance) / t) over both faces of all inputs. The distance is rounded first, as in `depth`.
template <class T> T weigh(const T *x, const T *low, const T *high, T least, T per_t, int64_t inputs) {
    using D = Dense<T>;
    using Vector = typename D::Vector;
    Vector sums{};
    for (int64_t i = 0; i < inputs; i += D::W) {
        const int64_t n = inputs - i;
        Vector point = D::load(x + i, n), below = point - D::load(low + i, n), above = D::load(high + i, n) - point;
        Vector each = exp<T, D::W>((least - below) * per_t) + exp<T, D::W>((least - above) * per_t);
        if (n < D::W)
            for (int64_t j = n; j < D::W; j++) each[j] = 0;
        sums += each;
    }
    T total = 0;
    for (int j = 0; j < D::W; j++) total += sums[j];
    return total;
}

template <class T> void forward_sample(const DenseCall &call, int64_t s, int64_t d) {
    const int64_t inputs = call.inputs, at = s * call.dendrites + d;
    const T *x = (const T *)call.x + s * inputs, *weight = (const T *)call.weight + d * inputs;
    const T *other = (const T *)call.other + d * inputs;
    T &out = ((T *)call.out)[at];
    if (call.step == LOG_PRODUCTS) {
        out = log_products(x, weight, other, inputs);
        return;
    }
    const Depth<T> found = depth(x, weight, other, inputs);
    if (call.step == DEPTHS) {
        out = found.least;
        call.nearest[at] = found.nearest;
        return;
    }
    const T t = T(call.temperature);
    const T total = std::isfinite(found.least) ? weigh(x, weight, other, found.least, T(1) / t, inputs) : T(1);
    ((T *)call.least_out)[at] = found.least;
    ((T *)call.total_out)[at] = total;
    out = found.least - t * std::log(total);
}

// The gradients of a tile of inputs from all samples. Tiles of samples are summed separately, so that rounding errors do
// not grow with the batch.
template <class T> void backward_inputs(const DenseCall &call, int64_t first, int64_t n) {
    using D = Dense<T>;
    using Vector = typename D::Vector;
    const T per_t = T(1 / call.temperature);
    for (int64_t tile = 0; tile < call.samples; tile += TILE)
        for (int64_t d = 0; d < call.dendrites; d++) {
            const int64_t at = d * call.inputs + first;
            const T *weight = (const T *)call.weight + at, *other = (const T *)call.other + at;
            Vector of_weight[TILE / D::W] = {}, of_other[TILE / D::W] = {};
            for (int64_t s = tile; s < std::min(tile + TILE, call.samples); s++) {
                const T g = ((const T *)call.gy)[s * call.dendrites + d];
                const T least = call.least ? ((const T *)call.least)[s * call.dendrites + d] : T(0);
                const T *x = (const T *)call.x + s * call.inputs + first;
                T *of_x = (T *)call.of_x + s * call.inputs + first;
                for (int64_t i = 0, k = 0; i < n; i += D::W, k++) {
                    const Vector point = D::load(x + i, n - i), a = D::load(weight + i, n - i), b = D::load(other + i, n - i);
                    Vector to_x = D::load(of_x + i, n - i);
                    if (call.step == LOG_PRODUCTS_BACKWARD) {
                        const Vector u = point * a - b, e = exp<T, D::W>(-absolute(u)), upper = T(1) / (T(1) + e);
                        const Vector slope = g * (u > 0 ? e * upper : upper);  // sigmoid(-u); NaN comes from e
                        to_x += slope * a;
                        of_weight[k] += slope * point;
                        of_other[k] -= slope;
                    } else {
                        const Vector below = point - a, above = b - point;
                        const Vector to_low = g * exp<T, D::W>((least - below) * per_t);
                        const Vector to_high = g * exp<T, D::W>((least - above) * per_t);
                        to_x += to_low - to_high;
                        of_weight[k] -= to_low;
                        of_other[k] += to_high;
                    }
                    D::store(of_x + i, to_x, n - i);
                }
            }
            for (int64_t i = 0, k = 0; i < n; i += D::W, k++) {
                T *w = (T *)call.of_weight + at + i, *o = (T *)call.of_other + at + i;
                D::store(w, D::load(w, n - i) + of_weight[k], n - i);
                D::store(o, D::load(o, n - i) + of_other[k], n - i);
            }
        }
}

template <class T> void dense(void *struct_of_call) {
    DenseCall &call = *(DenseCall *)struct_of_call;
    const bool is_backward = call.step == LOG_PRODUCTS_BACKWARD || call.step == SMOOTH_DEPTHS_BACKWARD;
    const int64_t each = is_backward ? TILE : SAMPLES, total = is_backward ? call.inputs : call.samples;
    for (int64_t job; (job = count_up(call.taken)) * each < total;) {
        const int64_t first = job * each, n = std::min(each, total - first);
        if (is_backward) backward_inputs<T>(call, first, n);
        else
            for (int64_t s = first; s < first + n; s++)
                for (int64_t d = 0; d < call.dendrites; d++) forward_sample<T>(call, s, d);
    }
}

}  // namespace DENDRITREE_ISA
