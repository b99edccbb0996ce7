// SPDX-License-Identifier: BSD-3-Clause
// Operands that the kernels for batches of small matrices share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/device.hpp"

namespace quiver::apps::bench {

inline constexpr std::int64_t most_matrices = 1000000;
/// The batch repeats after this many different matrices, or earlier if these would have more than
/// period_elements elements.
inline constexpr std::int64_t period_matrices = 257;
inline constexpr std::int64_t period_elements = std::int64_t{1} << 22;

/// An array of a plain type in the Context's place.
template <class V>
class BatchArray {
  public:
    BatchArray(Context& ctx, std::int64_t size, const char* what)
        : ctx_(ctx),
          size_(static_cast<std::size_t>(size)),
          // NOLINTNEXTLINE(bugprone-sizeof-expression): V may be a pointer
          memory_(ctx.allocate(memory_kind(ctx.place()), size_ * sizeof(V), what)) {}

    std::span<V> part(std::int64_t first, std::int64_t count) {
        return {memory_.template as<V>() + first, static_cast<std::size_t>(count)};
    }
    void put(const std::vector<V>& values) {
        move(part(0, 1).data(), values.data(), values.size());
    }
    std::vector<V> get(std::int64_t first, std::int64_t count) {
        std::vector<V> values(static_cast<std::size_t>(count));
        move(values.data(), part(first, count).data(), values.size());
        return values;
    }

  private:
    void move(V* to, const V* from, std::size_t count) {
        if (ctx_.place() == Place::device) {
            // NOLINTNEXTLINE(bugprone-sizeof-expression)
            device::copy(to, from, count * sizeof(V), ctx_.stream());
            ctx_.synchronize();
        } else {
            std::copy_n(from, count, to);
        }
    }

    Context& ctx_;
    std::size_t size_;
    Buffer memory_;
};

}  // namespace quiver::apps::bench
