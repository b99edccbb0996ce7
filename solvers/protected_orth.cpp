// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/protected_orth.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/abft/basis_checksums.hpp"
#include "solvers/abft/guarded_kernels.hpp"
#include "solvers/abft/recovery.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// One orthonormalisation, and the checksums of its Q.
template <class T>
struct Orthonormalisation {
    const Comm* comm = nullptr;
    OrthResult<T> result;
    Checksum<T> q;
    std::exception_ptr error;  // a NumericalError, which all ranks throw
};

/// True if both have the same bits on every rank. One all-reduce.
template <class T>
bool same_bits(const Orthonormalisation<T>& a, const Orthonormalisation<T>& b) {
    const auto same = [](const SmallMatrix<T>& c, const SmallMatrix<T>& d) {
        return c.rows() == d.rows() && c.cols() == d.cols() && same_bits(c, d);
    };
    const bool here = (a.error == nullptr) == (b.error == nullptr) &&
                      a.result.columns == b.result.columns &&
                      a.result.breakdown == b.result.breakdown && same(a.result.h, b.result.h) &&
                      same(a.result.r, b.result.r) && a.q.same(b.q);
    return a.comm->sum(std::int64_t{here ? 0 : 1}) == 0;
}

/// Adds the counts of the guarded kernels when it is destroyed.
struct CountKernels {
    OperationGuard& guard;
    const std::optional<GuardedKernels>& kernels;
    ~CountKernels() {
        if (kernels && guard.options.updates) {
            guard.counts.add_updates(kernels->counts());
        } else if (kernels) {
            guard.counts.injected += kernels->counts().injected;
        }
    }
};

template <class T>
struct OrthCheck {
    Context& ctx;
    OperationGuard& guard;
    const RowMap& map;
    const OrthOptions& options;
    BlockView<T> w;
    Operand<T> v, x;
    bool was_struck = false;

    Orthonormalisation<T> compute() {
        Orthonormalisation<T> made;
        made.comm = &ctx.comm();
        copy(ctx, BlockView<const T>(x.block), w);
        try {
            made.result = block_gram_schmidt<T>(ctx, map, BlockView<const T>(v.block), w, options);
        } catch (const NumericalError&) {
            made.error = std::current_exception();
            return made;
        }
        const BlockView<T> q = w.columns(0, made.result.columns);
        if (!std::exchange(was_struck, true)) {
            guard.strike(ctx, FaultPlace::basis, q);
        }
        made.q = Checksum<T>(ctx, q, {}, guard.options.log_chunk, guard.words());
        return made;
    }

    /// ||I - Q^H Q||_F + ||V^H Q||_F, by kernels without injected faults.
    double loss(BlockView<const T> q) const {
        const ScopedPolicy kernels(ctx, nullptr);
        SmallMatrix<T> gram(q.cols, q.cols);
        tsmttsm(ctx, T(1), q, q, T(0), gram);
        SmallMatrix<T> overlap(v.block.cols, q.cols);
        if (v.block.cols > 0) {
            tsmttsm(ctx, T(1), BlockView<const T>(v.block), q, T(0), overlap);
        }
        return frobenius_norm(gram, true) + frobenius_norm(overlap);
    }

    bool agrees(const Orthonormalisation<T>& made) {
        if (made.error != nullptr || made.result.breakdown >= 0) {
            return false;
        }
        ++guard.counts.basis_checks;
        BasisChecksums<T> basis(guard.options.log_chunk);
        basis.append(v.sums);
        const bool holds =
            basis.relation_holds(x.sums, made.result.h, made.q, made.result.r, made.result.passes);
        const int columns = v.block.cols + made.result.columns;
        const double most = 16 * static_cast<double>(epsilon_v<T>) * (columns + 4);
        const bool orthonormal =
            loss(BlockView<const T>(w.columns(0, made.result.columns))) <= most;
        return ctx.comm().sum(std::int64_t{holds && orthonormal ? 0 : 1}) == 0;
    }

    OperandRepair repair() {
        OperandRepair here = x.repair(ctx, guard);
        here.add(v.repair(ctx, guard));
        guard.count_memory(here.found, here.mended);
        std::int64_t counts[2] = {here.found, here.mended};
        ctx.comm().sum(std::span<std::int64_t>(counts));
        return {static_cast<int>(counts[0]), static_cast<int>(counts[1])};
    }
};

}  // namespace

template <class T>
OrthResult<T> protected_gram_schmidt(Context& ctx, OperationGuard& guard, const RowMap& map,
                                     BlockView<const T> v, BlockView<const T> x, BlockView<T> w,
                                     const OrthOptions& options) {
    const bool checks = guard.begin();
    const AbftMode kernel_mode = guard.options.updates ? guard.options.mode : AbftMode::off;
    AbftOptions kernel_options = guard.options;
    kernel_options.mode = kernel_mode;
    std::optional<GuardedKernels> kernels;
    const InjectOptions& inject = guard.options.inject;
    if (kernel_mode != AbftMode::off ||
        (inject.rate > 0 && inject.where[static_cast<int>(FaultPlace::output)])) {
        kernels.emplace(ctx, kernel_options);
    }
    const CountKernels count{guard, kernels};
    if (!checks) {
        guard.strike(ctx, FaultPlace::input, x);
        copy(ctx, x, w);
        OrthResult<T> result = block_gram_schmidt<T>(ctx, map, v, w, options);
        guard.strike(ctx, FaultPlace::basis, w.columns(0, result.columns));
        return result;
    }
    constexpr const char* operation = "orthonormalisation";
    OrthCheck<T> check{ctx,
                       guard,
                       map,
                       options,
                       w,
                       Operand<T>(ctx, guard, operation, writable(v), nullptr),
                       Operand<T>(ctx, guard, operation, writable(x), nullptr)};
    guard.strike(ctx, FaultPlace::input, x);
    Orthonormalisation<T> made = check.compute();
    ++guard.counts.checked;
    if (!check.agrees(made)) {
        OperationGuard together(guard.options);  // all ranks count the same
        Recovery<Orthonormalisation<T>> end = recover(
            together, made, [&] { return check.compute(); },
            [&](const Orthonormalisation<T>& now) { return check.agrees(now); },
            [&] { return check.repair(); });
        made = std::move(end.now);
        const bool lost = !end.agreed || end.operands.lost();
        if (ctx.comm().rank() == 0) {
            guard.counts.alarms += together.counts.alarms;
            guard.counts.rounding += together.counts.rounding;
            if (end.fault && end.operands.found == 0) {
                guard.count_fault(ctx, operation, lost ? Cure::failed : Cure::redone);
            }
        }
    }
    if (made.error != nullptr) {
        std::rethrow_exception(made.error);
    }
    return std::move(made.result);
}

#define QUIVER_INSTANTIATE(T)                                                               \
    template OrthResult<T> protected_gram_schmidt(Context&, OperationGuard&, const RowMap&, \
                                                  BlockView<const T>, BlockView<const T>,   \
                                                  BlockView<T>, const OrthOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
