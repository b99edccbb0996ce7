// SPDX-License-Identifier: BSD-3-Clause
// Operands of a protected operation: blocks with their earlier checksums, and arrays with a parity.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/abft/operation_guard.hpp"

namespace quiver {

/// Corrupted operands: those found, and those repaired.
struct OperandRepair {
    int found = 0;
    int mended = 0;
    bool lost() const { return mended < found; }
    void add(const OperandRepair& more) {
        found += more.found;
        mended += more.mended;
    }
};

/// A block operand and the checksums that it had when it was correct.
template <class T>
struct Operand {
    BlockView<T> block;
    Checksum<T> sums;

    /// Uses the `known` checksums, or forms them if `known` is null. Throws ShapeError if they
    /// belong to a block of another shape.
    Operand(Context& ctx, const OperationGuard& guard, const char* operation, BlockView<T> operand,
            const Checksum<T>* known);
    Operand(BlockView<T> operand, Checksum<T> known) : block(operand), sums(std::move(known)) {}
    /// Compares the block with its checksums; with `correct` restores it from them, bit for bit. If
    /// it cannot be restored, forms the checksums of its present contents. One read.
    OperandRepair repair(Context& ctx, const OperationGuard& guard);
};

/// A copy of a block that will be overwritten.
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

/// A read-only array in the Context's place, with the parity that it had when it was correct.
class GuardedArray {
  public:
    GuardedArray() = default;
    /// `name` is used in events. data: aligned to 8 bytes; bytes: a multiple of 4. One read.
    GuardedArray(Context& ctx, const char* name, void* data, std::size_t bytes);
    /// Compares the array with its parity, exactly; with `correct` repairs one word of each piece
    /// of 2^16 words. One read.
    OperandRepair repair(Context& ctx, const OperationGuard& guard);
    /// The present contents become the reference. One read.
    void accept(Context& ctx) { parity(ctx, data_, bytes_, parity_); }

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
