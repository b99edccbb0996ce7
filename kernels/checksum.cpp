// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/checksum.hpp"

#include <algorithm>
#include <cstring>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"

namespace quiver {

double mixed_weight(std::int64_t row_of_chunk) {
    static_assert(mixed_weight_unit == mixed_row_unit);
    return mixed_row(static_cast<std::uint32_t>(row_of_chunk)) * mixed_row_unit;
}

std::uint32_t word_weight(std::int64_t left) {
    return word_factor(static_cast<std::uint32_t>(left));
}

template <class T>
void checksum(Context& ctx, int log_chunk, std::type_identity_t<BlockView<const T>> x,
              std::type_identity_t<BlockView<const checksum_t<T>>> weights,
              BlockView<checksum_t<T>> sums, std::span<std::uint64_t> words, int block) {
    using S = checksum_t<T>;
    constexpr const char* operation = operations::checksum.name;
    const bool given = weights.cols > 0;
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, weights, operation, "the weights");
    require_shape(!given || (weights.rows == x.rows && weights.cols == 2), operation,
                  "the weights are not two columns of the rows of X",
                  [&] { return describe("X", x, "weights", weights); });
    require_shape(log_chunk >= least_log_chunk && log_chunk <= most_log_chunk, operation,
                  "a chunk must have 2^12 to 2^16 rows",
                  [&] { return "2^" + std::to_string(log_chunk); });
    const std::int64_t chunks = checksum_chunks(x.rows, log_chunk);
    require_small(ctx, sums, chunks * checksum_kinds(given), x.cols, operation, "sums",
                  "kinds of sums of all chunks x columns");
    require_shape(sums.empty() || sums.ld == sums.cols, operation, "the sums have gaps",
                  [&] { return describe(sums); });
    constexpr std::size_t reals = is_complex_v<T> ? 2 : 1;
    const std::size_t word_count = static_cast<std::size_t>(chunks * word_kinds * x.cols) * reals;
    require_shape(
        words.empty() || words.size() == word_count, operation,
        "the number of word checksums is wrong",
        [&] { return std::to_string(words.size()) + " instead of " + std::to_string(word_count); });
    if (sums.empty()) {
        return;
    }
    dispatch<operations::checksum, T>(ctx, [&](const auto& kernel) {
        const auto compute = [&](S* target, std::uint64_t* word_target) {
            kernel(ChecksumArgs<T, S>{x.rows, x.cols, log_chunk, x.data, x.ld,
                                      given ? weights.data : nullptr, weights.ld, target,
                                      words.empty() ? nullptr : word_target,
                                      block > 0 ? std::min(block, x.cols) : x.cols});
        };
        if (sums.place == ctx.place()) {
            compute(sums.data, words.data());
            return;
        }
        // A word checksum has the size of a real number, so that one copy moves both kinds.
        const std::size_t count =
            static_cast<std::size_t>(sums.rows) * static_cast<std::size_t>(sums.cols);
        reduce_to_host<S>(
            ctx, count + words.size() / reals, Reduce::this_rank,
            [&](S* target) { compute(target, reinterpret_cast<std::uint64_t*>(target + count)); },
            [&](const S* values) {
                std::copy_n(values, count, sums.data);
                if (!words.empty()) {
                    std::memcpy(words.data(), values + count, words.size_bytes());
                }
            });
    });
}

void parity(Context& ctx, const void* data, std::size_t bytes, std::span<std::uint64_t> parity) {
    const auto pieces = static_cast<std::size_t>(parity_pieces(bytes));
    require_shape(
        parity.size() == pieces * parity_numbers && bytes % 4 == 0, "parity",
        "the array is not a multiple of 4 bytes, or the parity has the wrong length", [&] {
            return std::to_string(bytes) + " bytes, " + std::to_string(parity.size()) + " numbers";
        });
    if (bytes == 0) {
        return;
    }
    dispatch<operations::parity, double>(ctx, [&](const auto& kernel) {
        const auto size = static_cast<std::int64_t>(bytes);
        if (ctx.place() == Place::host) {
            kernel(ParityArgs{data, size, parity.data()});
            return;
        }
        const Scratch result = ctx.scratch(MemoryKind::device, parity.size_bytes());
        kernel(ParityArgs{data, size, result.as<std::uint64_t>()});
        device::copy(parity.data(), result.as<void>(), parity.size_bytes(), ctx.stream());
        ctx.synchronize();
    });
}

ParityFault find_fault(std::span<const std::uint64_t> then, std::span<const std::uint64_t> now,
                       std::int64_t from) {
    const auto pieces = static_cast<std::int64_t>(then.size()) / parity_numbers;
    for (std::int64_t piece = from; piece < pieces; ++piece) {
        const auto first = static_cast<std::size_t>(piece) * parity_numbers;
        ParityFault fault{piece, 0, then[first + log_parity_words] ^ now[first + log_parity_words]};
        bool single = fault.bits != 0;
        bool any = single;
        for (int bit = 0; bit < log_parity_words; ++bit) {
            const auto b = static_cast<std::size_t>(bit);
            const std::uint64_t changed = then[first + b] ^ now[first + b];
            any = any || changed != 0;
            single = single && (changed == 0 || changed == fault.bits);
            fault.word |= changed != 0 ? std::int64_t{1} << bit : 0;
        }
        if (any) {
            fault.word = single ? fault.word + (piece << log_parity_words) : -1;
            return fault;
        }
    }
    return {-1, -1, 0};
}

void flip_bits(Context& ctx, void* data, std::span<const unsigned char> mask) {
    unsigned char bytes[8];
    const std::size_t count = std::min(mask.size(), sizeof(bytes));
    const auto move = [&](void* to, const void* from) {
        if (ctx.place() == Place::host) {
            std::memcpy(to, from, count);
        } else {
            device::copy(to, from, count, ctx.stream());
            ctx.synchronize();
        }
    };
    move(bytes, data);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<unsigned char>(bytes[i] ^ mask[i]);
    }
    move(data, bytes);
}

#define QUIVER_INSTANTIATE(T)                                                                    \
    template void checksum<T>(Context&, int, BlockView<const T>, BlockView<const checksum_t<T>>, \
                              BlockView<checksum_t<T>>, std::span<std::uint64_t>, int);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
