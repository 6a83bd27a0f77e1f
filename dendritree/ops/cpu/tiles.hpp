// A tile: one value for N samples, held in vector registers. Kernels written with tiles read like the equations.
//
// Arithmetic uses the vector extensions of gcc and clang; a vector has the width of the instruction set that the file is
// compiled for. Bits about a tile, one per sample, are stored in memory as 16-bit words: the signs of a node's sums, the
// samples that dropout silences. Only turning vectors into bits and back needs intrinsics.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define APART __attribute__((noinline))  // inlined, it would take registers from the loop around it
#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#define PRAGMA(text) _Pragma(#text)
#define SUMMED(operation, value) PRAGMA(omp simd reduction(operation : value))  // in any order
#define SCALAR asm volatile("")  // in a loop: short ones are faster without vectors
#define UNROLLED _Pragma("GCC unroll 32")

namespace DENDRITREE_ISA {

constexpr int PIECE = 16;  // numbers that are summed, transposed or marked with bits together

template <class T, int W> struct VectorOf { typedef T type __attribute__((vector_size(W * sizeof(T)))); };
template <class T> using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class T, int N> struct Tile {
    static constexpr int WIDTH = VECTOR_BYTES / int(sizeof(T)), COUNT = N / WIDTH;
    using Vector = typename VectorOf<T, WIDTH>::type;
    Vector v[COUNT];

    static INLINE Tile load(const T *from) {
        Tile tile;
        UNROLLED for (int i = 0; i < COUNT; i++) std::memcpy(&tile.v[i], from + i * WIDTH, sizeof(Vector));
        return tile;
    }
    INLINE void store(T *to) const {
        UNROLLED for (int i = 0; i < COUNT; i++) std::memcpy(to + i * WIDTH, &v[i], sizeof(Vector));
    }
    static INLINE Tile spread(T value) {
        Tile tile;
        UNROLLED for (int i = 0; i < COUNT; i++) tile.v[i] = value - Vector{};
        return tile;
    }
};

// ------------------------------------------------------------------------------------------------------- arithmetic

template <class T, int N> INLINE Tile<T, N> operator*(T a, const Tile<T, N> &b) {
    Tile<T, N> out;
    UNROLLED for (int i = 0; i < b.COUNT; i++) out.v[i] = a * b.v[i];
    return out;
}
// sum += a b: contracted to fused multiply-adds where the machine has them
template <class T, int N> INLINE void add_product(Tile<T, N> &sum, T a, const Tile<T, N> &b) {
    UNROLLED for (int i = 0; i < b.COUNT; i++) sum.v[i] += a * b.v[i];
}

// a . b over every PIECE-th sample, for `total` and `totals`: two sums at a time, since each waits for the one before it.
template <class T, int N> INLINE Tile<T, PIECE> dot(const Tile<T, N> &a, const Tile<T, N> &b) {
    constexpr int count = Tile<T, PIECE>::COUNT, each = N > PIECE ? 2 * count : count;
    typename Tile<T, N>::Vector sums[each];
    UNROLLED for (int i = 0; i < each; i++) sums[i] = a.v[i] * b.v[i];
    UNROLLED for (int i = each; i < a.COUNT; i++) sums[i % each] += a.v[i] * b.v[i];
    Tile<T, PIECE> out;
    UNROLLED for (int i = 0; i < count; i++) out.v[i] = each > count ? sums[i] + sums[i + each - count] : sums[i];
    return out;
}
template <class T, int N> INLINE Tile<T, PIECE> folded(const Tile<T, N> &a) {
    constexpr int count = Tile<T, PIECE>::COUNT;
    Tile<T, PIECE> sum;
    UNROLLED for (int i = 0; i < count; i++) sum.v[i] = a.v[i];
    UNROLLED for (int i = count; i < a.COUNT; i++) sum.v[i % count] += a.v[i];
    return sum;
}

// The sum of the vectors of a piece.
template <class T> INLINE auto one_vector(const Tile<T, PIECE> &piece) {
    auto sum = piece.v[0];
    UNROLLED for (int i = 1; i < piece.COUNT; i++) sum += piece.v[i];
    return sum;
}
// Sums of both halves of every 2 RUN lanes of x, then of y.
template <int RUN, class Vector, size_t... I> INLINE Vector halves(Vector x, Vector y, std::index_sequence<I...>) {
    return __builtin_shufflevector(x, y, int(I / RUN * 2 * RUN + I % RUN)...) +
           __builtin_shufflevector(x, y, int(I / RUN * 2 * RUN + I % RUN + RUN)...);
}
// Sums over every 2 DISTANCE lanes, in all of them.
template <int DISTANCE, class Vector, size_t... I> INLINE Vector swept(Vector v, std::index_sequence<I...> lanes) {
    if constexpr (DISTANCE == 0) return v;
    else return swept<DISTANCE / 2>(v + __builtin_shufflevector(v, v, int(I ^ DISTANCE)...), lanes);
}

// The sums of four pieces, in half as many steps as one by one.
template <class T> struct Four { T sum[4]; };
template <class T>
INLINE Four<T> totals(const Tile<T, PIECE> &a, const Tile<T, PIECE> &b, const Tile<T, PIECE> &c, const Tile<T, PIECE> &d) {
    constexpr int W = a.WIDTH;
    constexpr auto lanes = std::make_index_sequence<W>();
    const auto ab = halves<W / 2>(one_vector(a), one_vector(b), lanes), cd = halves<W / 2>(one_vector(c), one_vector(d), lanes);
    if constexpr (W == 2) {
        return {{ab[0], ab[1], cd[0], cd[1]}};
    } else {
        const auto all = swept<W / 8>(halves<W / 4>(ab, cd, lanes), lanes);
        return {{all[0], all[W / 4], all[W / 2], all[3 * W / 4]}};
    }
}
template <class T> INLINE T total(const Tile<T, PIECE> &a) {
    return swept<a.WIDTH / 2>(one_vector(a), std::make_index_sequence<a.WIDTH>())[0];
}

// ------------------------------------------------------------------------------------------------------------- bits

// One bit for each number of a vector, set where a comparison is true.
template <class Vector> INLINE unsigned bits_of(Vector marks) {
    constexpr bool is_single = sizeof(marks[0]) == 4;
#if defined(__AVX2__) && !defined(__AVX512F__)
    if constexpr (is_single) return unsigned(_mm256_movemask_ps((__m256)marks));
    else return unsigned(_mm256_movemask_pd((__m256d)marks));
#elif defined(__SSE2__) && !defined(__AVX512F__)
    if constexpr (is_single) return unsigned(_mm_movemask_ps((__m128)marks));
    else return unsigned(_mm_movemask_pd((__m128d)marks));
#else
    unsigned bits = 0;
    for (unsigned j = 0; j < sizeof(Vector) / sizeof(marks[0]); j++) bits |= (marks[j] ? 1u : 0u) << j;
    return bits;
#endif
}
template <class Vector> INLINE unsigned bits_not_positive(Vector v) {
#if defined(__AVX512F__)  // without a vector of marks
    if constexpr (sizeof(v[0]) == 4) return _mm512_cmp_ps_mask((__m512)v, __m512{}, _CMP_LE_OQ);
    else return _mm512_cmp_pd_mask((__m512d)v, __m512d{}, _CMP_LE_OQ);
#else
    return bits_of(v <= 0);
#endif
}
template <class Vector> INLINE unsigned bits_below(Vector v, uint32_t limit) {
#if defined(__AVX512F__)
    return _mm512_cmplt_epu32_mask((__m512i)v, _mm512_set1_epi32(int(limit)));
#else
    return bits_of(v < limit);
#endif
}

// Set the bits of samples whose number is not positive, and clear all others; NaN counts as positive.
template <class T, int N> INLINE void mark_not_positive(uint16_t *words, const Tile<T, N> &a) {
    constexpr int each = PIECE / Tile<T, N>::WIDTH;
    UNROLLED for (int i = 0; i < a.COUNT; i += each) {
        unsigned bits = 0;
        UNROLLED for (int k = 0; k < each; k++) bits |= bits_not_positive(a.v[i + k]) << (k * a.WIDTH);
        words[i / each] = uint16_t(bits);
    }
}

// The numbers of `marked` where a vector's bits are set, of `other` elsewhere.
template <class T, class Vector> INLINE Vector choose(unsigned bits, Vector marked, Vector other) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return (Vector)_mm512_mask_blend_ps(__mmask16(bits), (__m512)other, (__m512)marked);
    else return (Vector)_mm512_mask_blend_pd(__mmask8(bits), (__m512d)other, (__m512d)marked);
#else
    constexpr int width = sizeof(Vector) / sizeof(T);
    using Bits = typename VectorOf<Integer<T>, width>::type;
    Bits lane;
    UNROLLED for (int j = 0; j < width; j++) lane[j] = Integer<T>(1) << j;
    return (lane & (Integer<T>(bits) - Bits{})) != 0 ? marked : other;
#endif
}
template <class T, int N>
INLINE Tile<T, N> choose(const uint16_t *words, const Tile<T, N> &marked, const Tile<T, N> &other) {
    constexpr int each = PIECE / Tile<T, N>::WIDTH;
    Tile<T, N> out;
    UNROLLED for (int i = 0; i < out.COUNT; i++)
        out.v[i] = choose<T>(unsigned(words[i / each]) >> (i % each * out.WIDTH), marked.v[i], other.v[i]);
    return out;
}

// -------------------------------------------------------------------------------------------------------- functions

// exp(v) = 2^n exp(r), n the integer nearest to v / log 2, r the remainder, whose exponential is a short Taylor series.
// The error is about 2 units in the last place. For v up to 80; NaN stays NaN; what would be subnormal is 0. V is a
// number or a vector.
template <class T> struct ExpOf;
template <> struct ExpOf<float> {
    static constexpr int mantissa = 23, degree = 6;
    static constexpr float least = -87, push = 12582912.0f + 127;  // 1.5 * 2^23, and the bias of the exponent
};
template <> struct ExpOf<double> {
    static constexpr int mantissa = 52, degree = 12;
    static constexpr double least = -708, push = 6755399441055744.0 + 1023;
};
constexpr double factorial(int n) { return n < 2 ? 1.0 : n * factorial(n - 1); }

template <class T, int W> INLINE typename VectorOf<T, W>::type exp(typename VectorOf<T, W>::type v) {
    using Vector = typename VectorOf<T, W>::type;
    using Bits = typename VectorOf<Integer<T>, W>::type;
    using E = ExpOf<T>;
    constexpr T log_2 = T(0.6931471805599453), per_log_2 = T(1.4426950408889634);
    Vector inside = v < E::least ? E::least - Vector{} : v;
    Vector pushed = inside * per_log_2 + E::push;  // the sum's last bits are n + bias
    Vector r = inside - (pushed - E::push) * log_2;
    Vector series = T(1 / factorial(E::degree)) - Vector{};
    UNROLLED for (int k = E::degree - 1; k >= 0; k--) series = T(1 / factorial(k)) + r * series;
    Vector power = (Vector)((Bits)pushed << E::mantissa);
    return v < E::least ? Vector{} : series * power;
}
template <class Vector> INLINE Vector absolute(Vector v) { return v < 0 ? -v : v; }

template <class T, int W> INLINE typename VectorOf<T, W>::type sigmoid(typename VectorOf<T, W>::type v) {
    using Vector = typename VectorOf<T, W>::type;
    Vector e = exp<T, W>(-absolute(v));
    return (v < 0 ? e : T(1) - Vector{}) / (T(1) + e);
}
// Near 0, where 1 - exp(-2 |v|) would lose digits, tanh is a Taylor series.
template <class T, int W> INLINE typename VectorOf<T, W>::type tanh(typename VectorOf<T, W>::type v) {
    using Vector = typename VectorOf<T, W>::type;
    constexpr double c[] = {1.0, -1.0 / 3, 2.0 / 15, -17.0 / 315, 62.0 / 2835, -1382.0 / 155925, 21844.0 / 6081075,
                            -929569.0 / 638512875, 6404582.0 / 10854718875, -443861162.0 / 1856156927625,
                            18888466084.0 / 194896477400625};
    constexpr int terms = sizeof(T) == 4 ? 5 : 11;
    Vector square = v * v, series = T(c[terms - 1]) - Vector{};
    UNROLLED for (int k = terms - 2; k >= 0; k--) series = T(c[k]) + square * series;
    Vector size = absolute(v), e = exp<T, W>(T(-2) * size), far = (T(1) - e) / (T(1) + e);
    return size < T(0.25) ? v * series : (v > 0 ? far : -far);
}

}  // namespace DENDRITREE_ISA
