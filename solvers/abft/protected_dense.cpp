// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/protected_dense.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/mtsm.hpp"
#include "solvers/abft/row_check.hpp"

namespace quiver {
namespace {

/// The number of columns whose checksums are formed at a time.
constexpr std::int64_t strip_width = 64;

/// Calls use(first column, strip) for strips of columns of a matrix; each strip is stored by rows.
template <class T, class Use>
void for_each_strip(Context& ctx, const MatrixView<const T>& a, Use&& use) {
    for (std::int64_t first = 0; first < a.cols; first += strip_width) {
        const int width = static_cast<int>(std::min(strip_width, a.cols - first));
        if (a.by_rows()) {
            use(first, BlockView<const T>(a.data + first, a.rows, width, a.ld, a.place));
            continue;
        }
        // Stored by columns: a product with the identity, which is exact, converts the strip to
        // storage by rows.
        const Scratch scratch =
            ctx.scratch(memory_kind(ctx.place()), static_cast<std::size_t>(a.rows) *
                                                      static_cast<std::size_t>(width) * sizeof(T));
        const BlockView<T> strip(scratch.template as<T>(), a.rows, width, width, ctx.place());
        const SmallMatrix<T> identity = SmallMatrix<T>::identity(width);
        tsmm(ctx, T(1),
             MatrixView<const T>(a.data + first * a.ld, a.rows, width, a.ld, a.order, a.place),
             MatrixView<const T>(identity.view()), T(0), MatrixView<T>(strip));
        use(first, BlockView<const T>(strip));
    }
}

/// The checksums of A's columns by chunks of rows, or of A^T's columns for the adjoint, such that
/// sum_l conj(result) x_l = w^H (op(A) x); and the squared norms of A by chunk.
template <class T>
std::vector<checksum_t<T>> column_sums(Context& ctx, const MatrixView<const T>& a, bool adjoint,
                                       int log_chunk, std::vector<double>& squares) {
    const std::int64_t chunks = checksum_chunks(a.rows, log_chunk);
    std::vector<checksum_t<T>> values(static_cast<std::size_t>(2 * chunks * a.cols));
    squares.assign(static_cast<std::size_t>(chunks), 0);
    for_each_strip<T>(ctx, a, [&](std::int64_t first, const BlockView<const T>& strip) {
        const Checksum<T> sums(ctx, strip, {}, log_chunk, WordSums::no);
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            for (int j = 0; j < strip.cols; ++j) {
                for (int k = 0; k < 2; ++k) {
                    const auto at = static_cast<std::size_t>(2 * (chunk * a.cols + first + j) + k);
                    values[at] = adjoint ? sums(chunk, k, j) : conjugate(sums(chunk, k, j));
                }
                squares[static_cast<std::size_t>(chunk)] +=
                    std::real(sums(chunk, checksum_squares, j));
            }
        }
    });
    return values;
}

}  // namespace

template <class T>
ProtectedDense<T>::ProtectedDense(Context& ctx, OperationGuard& guard, MatrixView<T> a,
                                  bool adjoint)
    : guard_(guard), a_(a) {
    if (guard.options.mode == AbftMode::off || a.empty()) {
        return;
    }
    require_shape(a.place == ctx.place(), "protected matrix", "A is not in the Context's place",
                  [&] { return std::string(to_string(a.place)); });
    forward_ = make_side(ctx, false);
    if (adjoint) {
        adjoint_ = make_side(ctx, true);
    }
    if (a.ld == a.line_length() && reinterpret_cast<std::uintptr_t>(a.data) % 8 == 0) {
        memory_.emplace(
            ctx, "matrix entries", a.data,
            static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(a.cols) * sizeof(T));
    }
}

template <class T>
auto ProtectedDense<T>::make_side(Context& ctx, bool adjoint) const -> Side {
    const MatrixView<T> a = matrix_of(adjoint);
    const int log_chunk = guard_.options.log_chunk;
    Side side;
    side.rows = a.rows;
    side.columns = a.cols;
    side.chunks = checksum_chunks(a.rows, log_chunk);
    side.values = column_sums<T>(ctx, a, adjoint, log_chunk, side.norms);
    for (double& norm : side.norms) {
        norm = std::sqrt(norm);
    }
    side.sum_norms.assign(static_cast<std::size_t>(2 * side.chunks), 0);
    for (std::size_t at = 0; at < side.values.size(); ++at) {
        const std::size_t chunk = at / static_cast<std::size_t>(2 * a.cols);
        double& norm = side.sum_norms[2 * chunk + at % 2];
        norm = std::hypot(norm, std::abs(side.values[at]));
    }
    const std::size_t bytes = side.values.size() * sizeof(Sum);
    side.weights = ctx.allocate(memory_kind(ctx.place()), bytes, "checksums of a dense matrix");
    const std::int64_t lines = side.chunks * a.cols;
    copy(ctx, BlockView<const Sum>(side.values.data(), lines, 2, 2),
         BlockView<Sum>(side.weights.template as<Sum>(), lines, 2, 2, ctx.place()));
    side.guarded =
        GuardedArray(ctx, "checksums of the matrix", side.weights.template as<void>(), bytes);
    return side;
}

template <class T>
auto ProtectedDense<T>::weights_of(const Side& side, std::int64_t chunk) const -> BlockView<Sum> {
    return {side.weights.template as<Sum>() + 2 * chunk * side.columns, side.columns, 2, 2,
            a_.place};
}

template <class T>
void ProtectedDense<T>::apply(Context& ctx, std::type_identity_t<T> alpha,
                              std::type_identity_t<BlockView<const T>> x,
                              std::type_identity_t<T> beta, BlockView<T> y,
                              const std::type_identity_t<KnownSums<T>>& known) {
    run(ctx, false, alpha, x, beta, y, known);
}

template <class T>
void ProtectedDense<T>::apply_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                                      std::type_identity_t<BlockView<const T>> x,
                                      std::type_identity_t<T> beta, BlockView<T> y,
                                      const std::type_identity_t<KnownSums<T>>& known) {
    require_shape(adjoint_.has_value() || guard_.options.mode == AbftMode::off || a_.empty(),
                  "protected mtsm_adjoint", "the matrix is not protected for products with A^H",
                  [] { return std::string("adjoint = false"); });
    run(ctx, true, alpha, x, beta, y, known);
}

template <class T>
OperandRepair ProtectedDense<T>::repair(Context& ctx) {
    OperandRepair repair = forward_.guarded.repair(ctx, guard_);
    if (adjoint_) {
        repair.add(adjoint_->guarded.repair(ctx, guard_));
    }
    bool lost = repair.lost();
    if (memory_) {
        const OperandRepair entries = memory_->repair(ctx, guard_);
        if (guard_.writes() && entries.lost()) {
            memory_->accept(ctx);
        }
        lost = lost || entries.lost();
        repair.add(entries);
    } else {
        std::vector<double> norms;
        const std::vector<Sum> now =
            column_sums<T>(ctx, a_, false, guard_.options.log_chunk, norms);
        if (std::memcmp(now.data(), forward_.values.data(), now.size() * sizeof(Sum)) != 0) {
            ++repair.found;
            lost = true;
            guard_.tell(ctx, "matrix entries", guard_.writes() ? "not mended" : "found");
        }
    }
    if (lost && guard_.writes()) {
        forward_ = make_side(ctx, false);
        if (adjoint_) {
            adjoint_ = make_side(ctx, true);
        }
    }
    return repair;
}

template <class T>
void ProtectedDense<T>::audit(Context& ctx) {
    if (guard_.options.mode == AbftMode::off || a_.empty()) {
        return;
    }
    ++guard_.counts.basis_checks;
    const OperandRepair found = repair(ctx);
    guard_.count_memory(found.found, found.mended);
}

template <class T>
void ProtectedDense<T>::run(Context& ctx, bool adjoint, T alpha, const BlockView<const T>& x,
                            T beta, const BlockView<T>& y, const KnownSums<T>& known) {
    const char* const operation = adjoint ? "mtsm_adjoint" : "mtsm";
    const int log_chunk = guard_.options.log_chunk;
    const auto kernel = [&] {
        const MatrixView<const T> a = a_;
        adjoint ? mtsm_adjoint(ctx, alpha, a, MatrixView<const T>(x), beta, MatrixView<T>(y))
                : mtsm(ctx, alpha, a, MatrixView<const T>(x), beta, MatrixView<T>(y));
    };
    const auto strike_matrix = [&] {
        guard_.strike(
            ctx, FaultPlace::matrix,
            BlockView<T>(a_.data, a_.lines(), static_cast<int>(a_.line_length()), a_.ld, a_.place));
    };
    if (known.result != nullptr) {
        *known.result = {};
    }
    Side& side = adjoint && adjoint_ ? *adjoint_ : forward_;
    // Invalid arguments are passed on unchecked, so that the kernel reports the error.
    const bool valid = x.rows == side.columns && y.rows == side.rows && x.cols == y.cols &&
                       !x.empty() && !y.empty() && x.place == ctx.place() && y.place == x.place;
    if (!guard_.begin() || !valid) {
        strike_matrix();
        guard_.strike(ctx, FaultPlace::input, x);
        kernel();
        guard_.strike(ctx, FaultPlace::output, y);
        return;
    }
    guard_.strike(ctx, FaultPlace::guard,
                  BlockView<Sum>(side.weights.template as<Sum>(), side.chunks * side.columns, 2, 2,
                                 a_.place));
    Operand<T> source(ctx, guard_, operation, writable(x), known.x);
    std::optional<Operand<T>> old;
    if (beta != T(0)) {
        old.emplace(ctx, guard_, operation, y, known.y);
    }
    const double unit = rounding_units<T>() * rounding_length(static_cast<double>(side.columns));
    constexpr double sum_unit = 2 * std::numeric_limits<double>::epsilon();
    const Sum alpha_sum = static_cast<Sum>(alpha);
    const Sum beta_sum = static_cast<Sum>(beta);
    const auto wanted_of = [&] {
        WantedSums<T> wanted(y.rows, y.cols, log_chunk);
        for (std::int64_t chunk = 0; chunk < side.chunks; ++chunk) {
            const Checksum<T> sums(ctx, x, weights_of(side, chunk), log_chunk, WordSums::no);
            const auto c = static_cast<std::size_t>(chunk);
            for (int j = 0; j < y.cols; ++j) {
                for (int k = 0; k < 2; ++k) {
                    const double rounding =
                        std::abs(alpha) * sums.norm(j) *
                        (unit * side.norms[c] +
                         sum_unit * side.sum_norms[2 * c + static_cast<std::size_t>(k)]);
                    wanted.add(chunk, k, j, multiply(alpha_sum, sums.total(checksum_first + k, j)),
                               rounding);
                    if (old) {
                        const double norm =
                            std::sqrt(std::real(old->sums(chunk, checksum_squares, j)));
                        wanted.add(chunk, k, j, multiply(beta_sum, old->sums(chunk, k, j)),
                                   unit * std::abs(beta) * norm);
                    }
                }
            }
        }
        return wanted;
    };
    // Repair a corrupted operand before it is read.
    if (known.x != nullptr) {
        const OperandRepair found = source.repair(ctx, guard_);
        guard_.count_memory(found.found, found.mended);
    }
    RowCheck<T> check{operation, y, wanted_of(), {}, {}};
    if (!check.wanted.complete()) {
        // The checksums of A may have become infinite or NaN by a fault: repair them first.
        const OperandRepair found = side.guarded.repair(ctx, guard_);
        guard_.count_memory(found.found, found.mended);
        if (found.mended > 0) {
            check.wanted = wanted_of();
        }
    }
    strike_matrix();
    guard_.strike(ctx, FaultPlace::input, x);
    std::optional<Kept<T>> kept;
    if (old && guard_.writes()) {
        kept.emplace(ctx, y);
        old->block = kept->view();
    }
    kernel();
    guard_.strike(ctx, FaultPlace::output, y);
    if (!old || kept) {
        check.again = [&] {
            if (kept) {
                kept->put_back(ctx);
            }
            kernel();
        };
        check.repair = [&](WantedSums<T>& wanted) {
            OperandRepair found = repair(ctx);
            found.add(source.repair(ctx, guard_));
            if (old) {
                found.add(old->repair(ctx, guard_));
            }
            if (found.found > 0) {
                wanted = wanted_of();
            }
            return found;
        };
    }
    Checksum<T> sums = check_rows(ctx, guard_, std::move(check));
    if (known.result != nullptr) {
        *known.result = std::move(sums);
    }
}

#define QUIVER_INSTANTIATE(T) template class ProtectedDense<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
