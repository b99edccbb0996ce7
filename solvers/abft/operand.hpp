// SPDX-License-Identifier: BSD-3-Clause
// What a protected operation reads: blocks with the sums that they had, and arrays with a parity.
#pragma once

#include <cstdint>
#include <vector>

#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// Operands that are not what they were, and those that are again.
struct OperandRepair {
    int found = 0;
    int mended = 0;
    bool lost() const { return mended < found; }
    void add(const OperandRepair& more) {
        found += more.found;
        mended += more.mended;
    }
};

/// A block that is read, and its sums from when it was right.
template <class T>
struct Operand {
    BlockView<T> block;
    Checksum<T> sums;

    /// Takes the known sums, or forms them. Throws ShapeError for sums of another block.
    Operand(Context& ctx, const OperationGuard& guard, const char* operation, BlockView<T> operand,
            const Checksum<T>* known);
    /// Compares the block with its sums; `correct` restores it from them, bit for bit. Sums of what
    /// can not be restored are formed anew: it is what it is now. One read.
    OperandRepair repair(Context& ctx, const OperationGuard& guard);
};

/// A copy of a block that is overwritten.
template <class T>
class Kept {
  public:
    Kept(Context& ctx, const BlockView<T>& source);
    const BlockView<T>& view() const { return view_; }
    void put_back(Context& ctx) const;

  private:
    Scratch scratch_;
    BlockView<T> source_;
    BlockView<T> view_;
};

/// An array that is only read, in the Context's place, with its parity from when it was right.
class GuardedArray {
  public:
    GuardedArray() = default;
    /// `name` for events. data: aligned to 8 bytes, bytes a multiple of 4. One read.
    GuardedArray(Context& ctx, const char* name, void* data, std::size_t bytes);
    /// Compares exactly; `correct` mends one word of each piece of 2^16. What can not be mended is
    /// from then on what it is now. One read.
    OperandRepair repair(Context& ctx, const OperationGuard& guard);

  private:
    const char* name_ = "";
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::vector<std::uint64_t> parity_;
};

template <class T>
BlockView<T> writable(const BlockView<const T>& x) {
    return {const_cast<T*>(x.data), x.rows, x.cols, x.ld, x.place};
}

}  // namespace quiver
