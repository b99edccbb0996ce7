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
    run(ctx, {false, alpha, x, beta, y}, known);
}

template <class T>
void ProtectedDense<T>::apply_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                                      std::type_identity_t<BlockView<const T>> x,
                                      std::type_identity_t<T> beta, BlockView<T> y,
                                      const std::type_identity_t<KnownSums<T>>& known) {
    require_shape(adjoint_.has_value() || guard_.options.mode == AbftMode::off || a_.empty(),
                  "protected mtsm_adjoint", "the matrix is not protected for products with A^H",
                  [] { return std::string("adjoint = false"); });
    run(ctx, {true, alpha, x, beta, y}, known);
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
void ProtectedDense<T>::compute(Context& ctx, const Product& product) const {
    const auto& [adjoint, alpha, x, beta, y] = product;
    const MatrixView<const T> a = a_;
    adjoint ? mtsm_adjoint(ctx, alpha, a, MatrixView<const T>(x), beta, MatrixView<T>(y))
            : mtsm(ctx, alpha, a, MatrixView<const T>(x), beta, MatrixView<T>(y));
}

template <class T>
void ProtectedDense<T>::strike_operands(Context& ctx, const Product& product) const {
    guard_.strike(
        ctx, FaultPlace::matrix,
        BlockView<T>(a_.data, a_.lines(), static_cast<int>(a_.line_length()), a_.ld, a_.place));
    guard_.strike(ctx, FaultPlace::input, product.x);
}

/// A product with the checksums of its operands.
template <class T>
class ProtectedDense<T>::CheckedProduct {
  public:
    CheckedProduct(Context& ctx, ProtectedDense& dense, Side& side, const Product& product,
                   const KnownSums<T>& known)
        : ctx_(ctx),
          dense_(dense),
          guard_(dense.guard_),
          side_(side),
          product_(product),
          unit_(rounding_units<T>() * rounding_length(static_cast<double>(side.columns))),
          source_(ctx, guard_, product.name(), writable(product.x), known.x) {
        if (product.beta != T(0)) {
            old_.emplace(ctx, guard_, product.name(), product.y, known.y);
        }
    }

    /// Repairs X if it differs from its checksums.
    void repair_source() { count(source_.repair(ctx_, guard_)); }

    /// Computes Y and checks it; returns the checksums of Y.
    Checksum<T> run() {
        RowCheck<T> check{product_.name(), product_.y, wanted_sums(), {}, {}};
        // The checksums of A may have become infinite or NaN by a fault: repair them first.
        if (!check.wanted.complete() && count(side_.guarded.repair(ctx_, guard_)).mended > 0) {
            check.wanted = wanted_sums();
        }
        dense_.strike_operands(ctx_, product_);
        if (old_ && guard_.writes()) {
            kept_.emplace(ctx_, product_.y);
            old_->block = kept_->view();
        }
        dense_.compute(ctx_, product_);
        guard_.strike(ctx_, FaultPlace::output, product_.y);
        if (!old_ || kept_) {
            check.again = [this] { compute_again(); };
            check.repair = [this](WantedSums<T>& wanted) { return repair_operands(wanted); };
        }
        return check_rows(ctx_, guard_, std::move(check));
    }

  private:
    OperandRepair count(const OperandRepair& found) {
        guard_.count_memory(found.found, found.mended);
        return found;
    }

    /// The checksums that Y must have, by the present checksums of the operands.
    WantedSums<T> wanted_sums() const {
        WantedSums<T> wanted(product_.y.rows, product_.y.cols, guard_.options.log_chunk);
        for (std::int64_t chunk = 0; chunk < side_.chunks; ++chunk) {
            add_product(wanted, chunk);
            if (old_) {
                add_old(wanted, chunk);
            }
        }
        return wanted;
    }
    /// Adds the checksums of alpha op(A) X.
    void add_product(WantedSums<T>& wanted, std::int64_t chunk) const {
        constexpr double sum_unit = 2 * std::numeric_limits<double>::epsilon();
        const T alpha = product_.alpha;
        const Checksum<T> sums(ctx_, product_.x, dense_.weights_of(side_, chunk),
                               guard_.options.log_chunk, WordSums::no);
        const auto c = static_cast<std::size_t>(chunk);
        for (int j = 0; j < product_.y.cols; ++j) {
            for (int k = 0; k < 2; ++k) {
                const double rounding =
                    std::abs(alpha) * sums.norm(j) *
                    (unit_ * side_.norms[c] +
                     sum_unit * side_.sum_norms[2 * c + static_cast<std::size_t>(k)]);
                wanted.add(chunk, k, j,
                           multiply(static_cast<Sum>(alpha), sums.total(checksum_first + k, j)),
                           rounding);
            }
        }
    }
    /// Adds the checksums of beta Y_old.
    void add_old(WantedSums<T>& wanted, std::int64_t chunk) const {
        const T beta = product_.beta;
        for (int j = 0; j < product_.y.cols; ++j) {
            const double norm = std::sqrt(std::real(old_->sums(chunk, checksum_squares, j)));
            for (int k = 0; k < 2; ++k) {
                wanted.add(chunk, k, j, multiply(static_cast<Sum>(beta), old_->sums(chunk, k, j)),
                           unit_ * std::abs(beta) * norm);
            }
        }
    }

    void compute_again() {
        if (kept_) {
            kept_->put_back(ctx_);
        }
        dense_.compute(ctx_, product_);
    }
    OperandRepair repair_operands(WantedSums<T>& wanted) {
        OperandRepair found = dense_.repair(ctx_);
        found.add(source_.repair(ctx_, guard_));
        if (old_) {
            found.add(old_->repair(ctx_, guard_));
        }
        if (found.found > 0) {
            wanted = wanted_sums();
        }
        return found;
    }

    Context& ctx_;
    ProtectedDense& dense_;
    OperationGuard& guard_;
    Side& side_;
    const Product& product_;
    /// The rounding error of an element of Y relative to the norms of its factors.
    double unit_;
    Operand<T> source_;
    /// Y before the product, if beta is not 0, and its copy with `correct`.
    std::optional<Operand<T>> old_;
    std::optional<Kept<T>> kept_;
};

template <class T>
void ProtectedDense<T>::run(Context& ctx, const Product& product, const KnownSums<T>& known) {
    const BlockView<const T>& x = product.x;
    const BlockView<T>& y = product.y;
    if (known.result != nullptr) {
        *known.result = {};
    }
    Side& side = product.adjoint && adjoint_ ? *adjoint_ : forward_;
    // Invalid arguments are passed on unchecked, so that the kernel reports the error.
    const bool valid = x.rows == side.columns && y.rows == side.rows && x.cols == y.cols &&
                       !x.empty() && !y.empty() && x.place == ctx.place() && y.place == x.place;
    if (!guard_.begin() || !valid) {
        strike_operands(ctx, product);
        compute(ctx, product);
        guard_.strike(ctx, FaultPlace::output, y);
        return;
    }
    guard_.strike(ctx, FaultPlace::guard,
                  BlockView<Sum>(side.weights.template as<Sum>(), side.chunks * side.columns, 2, 2,
                                 a_.place));
    CheckedProduct checked(ctx, *this, side, product, known);
    if (known.x != nullptr) {
        checked.repair_source();
    }
    Checksum<T> sums = checked.run();
    if (known.result != nullptr) {
        *known.result = std::move(sums);
    }
}

#define QUIVER_INSTANTIATE(T) template class ProtectedDense<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
