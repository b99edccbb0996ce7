// SPDX-License-Identifier: BSD-3-Clause
// Arrays of the host in the Context's place. Private to kernels/hamiltonian/.
#pragma once

#include <vector>

#include "blockvec/context.hpp"

namespace quiver {

/// Gives device copies of host arrays; on the host the arrays themselves.
class PlacedArrays {
  public:
    explicit PlacedArrays(Context& ctx) : ctx_(ctx) {}
    /// The array, which must outlive the pointer on the host, in the Context's place.
    template <class V>
    const V* place(const V* data, std::size_t count) {
        const std::size_t bytes = count * sizeof(V);
        bytes_ += static_cast<std::int64_t>(bytes);
        if (ctx_.place() == Place::host || bytes == 0) {
            return data;
        }
        copies_.push_back(ctx_.allocate(MemoryKind::device, bytes, "tables of a Hamiltonian"));
        device::copy(copies_.back().as<void>(), data, bytes, ctx_.stream());
        ctx_.synchronize();
        bytes_ += static_cast<std::int64_t>(bytes);
        return copies_.back().as<V>();
    }
    template <class V>
    const V* place(const std::vector<V>& array) {
        return place(array.data(), array.size());
    }
    std::int64_t bytes() const { return bytes_; }
    std::vector<Buffer> take() { return std::move(copies_); }

  private:
    Context& ctx_;
    std::int64_t bytes_ = 0;
    std::vector<Buffer> copies_;
};

}  // namespace quiver
