// SPDX-License-Identifier: BSD-3-Clause
// OperationGuard: options and counts shared by the protected operations of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "solvers/abft/abft.hpp"
#include "solvers/abft/checksum.hpp"

namespace quiver {

/// The outcome of a fault.
enum class Cure : std::uint8_t {
    mended,  // the wrong words or rows were restored
    redone,  // chunks or steps were computed again
    failed,
};

/// Options, counts and fault injector. One guard may serve any number of operations of any shape
/// and scalar, one after the other, on one rank.
struct OperationGuard {
    OperationGuard() = default;
    explicit OperationGuard(const AbftOptions& wanted) : options(wanted), injector(wanted.inject) {}

    AbftOptions options{AbftMode::correct, {}, 14};
    /// `products` counts the calls of all operations; `checked` counts the calls that were compared
    /// in every chunk and column (or matrix of a batch).
    AbftCounts counts;
    FaultInjector injector;
    /// The bounds of the last check. An infinite bound means that its checksum was not compared.
    std::vector<double> bounds;

    bool writes() const { return options.mode == AbftMode::correct; }
    /// Word sums are formed for blocks that may have to be restored.
    WordSums words() const { return writes() ? WordSums::yes : WordSums::no; }
    /// Begins a call; true if the call is to be checked.
    bool begin() {
        injector.set_step(++counts.products);
        bounds.clear();
        return options.mode != AbftMode::off;
    }
    /// Emits a FaultEvent.
    void tell(Context& ctx, const char* where, const char* what) const {
        ctx.emit(FaultEvent{where, what, counts.products, ctx.comm().rank()});
    }
    /// Counts a fault of an operation and emits its event. `cure` is ignored with `detect`, which
    /// repairs nothing.
    void count_fault(Context& ctx, const char* operation, Cure cure) {
        ++counts.faults;
        if (!writes()) {
            tell(ctx, operation, "found");
            return;
        }
        ++(cure == Cure::mended   ? counts.mended
           : cure == Cure::redone ? counts.redone
                                  : counts.failed);
        tell(ctx, operation,
             cure == Cure::mended   ? "mended"
             : cure == Cure::redone ? "redone"
                                    : "not mended");
    }
    /// Counts faults in memory that were found outside of an operation.
    void count_memory(int found, int mended) {
        counts.faults += found;
        counts.mended += mended;
        counts.failed += writes() ? found - mended : 0;
    }
    template <class T>
    void strike(Context& ctx, FaultPlace place, BlockView<T> block) {
        counts.injected += injector.strike(ctx, place, block) ? 1 : 0;
    }
    /// Injected memory faults ignore const.
    template <class T>
    void strike(Context& ctx, FaultPlace place, BlockView<const T> block) {
        strike(ctx, place,
               BlockView<T>(const_cast<T*>(block.data), block.rows, block.cols, block.ld,
                            block.place));
    }
};

/// Checksums that the caller formed while a block was correct, and a place for the checksums of the
/// result. Checksums that are not given are formed by a pass over the block. All use the guard's
/// log_chunk.
template <class T>
struct KnownSums {
    const Checksum<T>* x = nullptr;
    /// Checksums of Y before the call; used if beta is not 0.
    const Checksum<T>* y = nullptr;
    /// Receives the checksums of Y after the call; empty with AbftMode::off.
    Checksum<T>* result = nullptr;
};

}  // namespace quiver
