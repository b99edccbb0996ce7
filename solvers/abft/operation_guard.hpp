// SPDX-License-Identifier: BSD-3-Clause
// OperationGuard: what the protected operations of this folder share.
#pragma once

#include <vector>

#include "solvers/abft/abft.hpp"
#include "solvers/abft/checksum.hpp"

namespace quiver {

/// What is asked for, and what came of it. One guard may serve any number of operations of any
/// shape and scalar, one after the other, of one rank.
struct OperationGuard {
    OperationGuard() = default;
    explicit OperationGuard(const AbftOptions& wanted) : options(wanted), injector(wanted.inject) {}

    AbftOptions options{AbftMode::correct, {}, 14};
    /// `products` counts the calls of all operations, `checked` those of them that were compared in
    /// every chunk and column (or matrix of a batch).
    AbftCounts counts;
    FaultInjector injector;
    /// What the last check allowed each difference to be; not finite where it could not compare.
    std::vector<double> bounds;

    bool writes() const { return options.mode == AbftMode::correct; }
    /// Of blocks that it may have to restore.
    WordSums words() const { return writes() ? WordSums::yes : WordSums::no; }
    /// A call begins. True where it is to be checked.
    bool begin() {
        injector.set_step(++counts.products);
        bounds.clear();
        return options.mode != AbftMode::off;
    }
    void tell(Context& ctx, const char* where, const char* what) const {
        ctx.emit(FaultEvent{where, what, counts.products, ctx.comm().rank()});
    }
    template <class T>
    void strike(Context& ctx, FaultPlace place, BlockView<T> block) {
        counts.injected += injector.strike(ctx, place, block) ? 1 : 0;
    }
    /// Memory faults do not ask whether a block is const.
    template <class T>
    void strike(Context& ctx, FaultPlace place, BlockView<const T> block) {
        strike(ctx, place,
               BlockView<T>(const_cast<T*>(block.data), block.rows, block.cols, block.ld,
                            block.place));
    }
};

/// Sums that the caller has from when a block was right, and the place for those of the result.
/// What is not given is formed, in a pass over the block. All with the guard's log_chunk.
template <class T>
struct KnownSums {
    const Checksum<T>* x = nullptr;
    /// Of Y before the call, where beta is not 0.
    const Checksum<T>* y = nullptr;
    /// Becomes the sums of Y as the call leaves it; empty with AbftMode::off.
    Checksum<T>* result = nullptr;
};

}  // namespace quiver
