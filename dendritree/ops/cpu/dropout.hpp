// Which synapses dropout silences: a hash of (seed, sample, synapse) decides. `ops/dropout.py` is the PyTorch version.
//
// One 32-bit hash serves two neighboring synapses of a node, 16 bits each.
#pragma once
#include "tiles.hpp"

namespace DENDRITREE_ISA {

// Scramble 32 bits so that every input bit affects every output bit.
INLINE uint32_t mix(uint32_t h) {
    h = (h ^ (h >> 16)) * 0x7FEB352Du;
    h = (h ^ (h >> 15)) * 0x846CA68Bu;
    return h ^ (h >> 16);
}

struct Mask {
    uint32_t limit;  // a synapse is silent if its 16 bits, the upper ones of a shifted hash, are below this
    uint32_t low, high;  // both halves of the seed
    uint32_t *keys;      // of the current samples

    INLINE uint32_t synapse_key(int64_t edge) const { return mix(mix(uint32_t(edge) + high + 0x9E3779B9u) ^ low); }
    INLINE uint32_t sample_key(int64_t sample) const { return mix(mix(uint32_t(sample) ^ low) + high); }
};

// 32 random bits per sample for a pair of synapses. Each pair has its own multiplier: with a common one, the masks of
// synapses with similar keys are correlated.
template <int N> struct PairBits {
    using Words = Tile<uint32_t, N>;
    Words words;

    INLINE PairBits(uint32_t key, const uint32_t *keys) : words(Words::load(keys)) {
        UNROLLED for (int i = 0; i < words.COUNT; i++) {
            words.v[i] = (words.v[i] ^ key) * (key | 1u);
            words.v[i] ^= words.v[i] >> 16;
        }
    }
    // Mark the samples in which the first (shift 0) or second synapse (shift 16) of the pair is silent.
    INLINE void mark_silent(uint16_t *marks, int shift, uint32_t limit) const {
        constexpr int each = PIECE / Words::WIDTH;
        UNROLLED for (int i = 0; i < words.COUNT; i += each) {
            unsigned bits = 0;
            UNROLLED for (int k = 0; k < each; k++)
                bits |= bits_below(words.v[i + k] << shift, limit) << (k * words.WIDTH);
            marks[i / each] = uint16_t(bits);
        }
    }
};

}  // namespace DENDRITREE_ISA
