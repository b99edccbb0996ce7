// SPDX-License-Identifier: BSD-3-Clause
// Random blocks on the host: Philox4x32-10 for several elements at a time, one per lane.
#include "blockvec/scalar_list.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {
namespace {

constexpr int lanes = 16;

/// The four words of `lanes` counters, and the rounds of the generator.
struct PhiloxLanes {
    std::uint32_t word[4][lanes];

    [[gnu::always_inline]] inline void scramble(std::uint64_t seed) noexcept {
        auto key0 = static_cast<std::uint32_t>(seed);
        auto key1 = static_cast<std::uint32_t>(seed >> 32);
        for (int round = 0; round < 10; ++round) {
            for (int l = 0; l < lanes; ++l) {
                const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * word[0][l];
                const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * word[2][l];
                word[0][l] = static_cast<std::uint32_t>(product1 >> 32) ^ word[1][l] ^ key0;
                word[1][l] = static_cast<std::uint32_t>(product1);
                word[2][l] = static_cast<std::uint32_t>(product0 >> 32) ^ word[3][l] ^ key1;
                word[3][l] = static_cast<std::uint32_t>(product0);
            }
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
    }
};

/// A number in [-1, 1). Every operation is exact, so that all machines give the same bits.
template <class R>
[[gnu::always_inline]] inline R signed_unit(std::uint32_t high, std::uint32_t low) {
    if constexpr (std::is_same_v<R, float>) {
        return static_cast<float>(static_cast<std::int32_t>(high >> 8)) * 0x1p-23f - 1.0f;
    } else {
        const std::uint64_t bits = ((std::uint64_t{high} << 32) | low) >> 11;
        return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-52 - 1.0;
    }
}

template <class T>
struct Random {
    RandomArgs<T> args;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        using R = real_t<T>;
        std::int64_t r = chunk.first;
        int j = 0;
        while (r < chunk.last) {
            PhiloxLanes random;
            T* target[lanes];
            int used = 0;
            for (; used < lanes && r < chunk.last; ++used) {
                const auto row = static_cast<std::uint64_t>(args.first_row + r);
                random.word[0][used] = static_cast<std::uint32_t>(row);
                random.word[1][used] = static_cast<std::uint32_t>(row >> 32);
                random.word[2][used] = static_cast<std::uint32_t>(args.first_column + j);
                random.word[3][used] = 0;
                target[used] = args.x + r * args.ldx + j;
                if (++j == args.cols) {
                    j = 0;
                    ++r;
                }
            }
            for (int l = used; l < lanes; ++l) {
                random.word[0][l] = random.word[1][l] = random.word[2][l] = random.word[3][l] = 0;
            }
            random.scramble(args.seed);
            for (int l = 0; l < used; ++l) {
                const R real = signed_unit<R>(random.word[0][l], random.word[1][l]);
                if constexpr (is_complex_v<T>) {
                    *target[l] = T(real, signed_unit<R>(random.word[2][l], random.word[3][l]));
                } else {
                    *target[l] = real;
                }
            }
        }
    }
};

}  // namespace

template <class T>
void fill_random(int threads, const RandomArgs<T>& args) {
    if (args.rows == 0 || args.cols == 0) {
        return;
    }
    const int chunks =
        chunk_count(threads, args.rows, 4 * sizeof(T) * static_cast<std::size_t>(args.cols));
    run_chunks(chunks, args.rows, Random<T>{args});
}

#define QUIVER_INSTANTIATE(T) template void fill_random(int, const RandomArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
