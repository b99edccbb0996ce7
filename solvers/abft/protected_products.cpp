// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/protected_products.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/abft/row_check.hpp"

namespace quiver {
namespace {

/// Two linearly independent weights for every column: exact in every scalar type, at most 1.
template <class T>
SmallMatrix<T> column_weights(int n) {
    SmallMatrix<T> weights(n, 2);
    const double unit = 1.0 / static_cast<double>(std::bit_ceil(static_cast<unsigned>(n)));
    for (int j = 0; j < n; ++j) {
        weights(j, 0) = T(1);
        weights(j, 1) = T(static_cast<real_t<T>>((j + 1) * unit));
    }
    return weights;
}

/// Column norms over this rank's rows.
template <class T>
std::vector<double> norms_of(Context& ctx, const BlockView<const T>& x, const Checksum<T>* known) {
    std::vector<double> norms;
    if (known != nullptr && known->columns() == x.cols) {
        for (int j = 0; j < x.cols; ++j) {
            norms.push_back(known->norm(j));
        }
        return norms;
    }
    std::vector<T> squares(static_cast<std::size_t>(x.cols));
    dots(ctx, x, x, std::span<T>(squares), Reduce::this_rank);
    for (const T square : squares) {
        norms.push_back(std::sqrt(static_cast<double>(real_part(square))));
    }
    return norms;
}

/// One rank's part of a product with its expected checksums.
template <class T>
class ProductCheck {
  public:
    ProductCheck(Context& ctx, T alpha, BlockView<const T> a, BlockView<const T> b,
                 const Checksum<T>* known_a, const Checksum<T>* known_b)
        : ctx_(ctx), alpha_(alpha), a_(a), b_(b), weights_(column_weights<T>(b.cols)) {
        const std::vector<double> a_norms = norms_of(ctx, a, known_a);
        const bool same = same_block(a, b) && a.cols == b.cols;
        const std::vector<double> b_norms =
            same && known_b == nullptr ? a_norms : norms_of(ctx, b, known_b);
        const double rows = std::sqrt(static_cast<double>(a.rows));
        const double unit =
            rounding_units<T>() * (rows + 4 + rounding_length(b.cols)) * std::abs(alpha);
        for (const double a_norm : a_norms) {
            for (int k = 0; k < 2; ++k) {
                double b_norm = 0;
                for (int j = 0; j < b.cols; ++j) {
                    b_norm += static_cast<double>(real_part(weights_(j, k))) *
                              b_norms[static_cast<std::size_t>(j)];
                }
                const double bound = unit * a_norm * b_norm +
                                     static_cast<double>(std::numeric_limits<real_t<T>>::min()) *
                                         static_cast<double>(a.rows + b.cols);
                bounds_.push_back(std::isfinite(bound) ? bound
                                                       : std::numeric_limits<double>::infinity());
                complete_ = complete_ && std::isfinite(bound);
            }
        }
        encode();
    }
    /// Computes Q = alpha A^H (B E).
    void encode() {
        const Scratch scratch = ctx_.scratch(memory_kind(ctx_.place()),
                                             2 * static_cast<std::size_t>(b_.rows) * sizeof(T));
        const BlockView<T> sums(scratch.template as<T>(), b_.rows, 2, 2, ctx_.place());
        tsmm(ctx_, T(1), b_, weights_, T(0), sums);
        wanted_ = SmallMatrix<T>(a_.cols, 2);
        tsmttsm(ctx_, alpha_, a_, sums, T(0), wanted_, Reduce::this_rank);
    }
    bool complete() const { return complete_; }
    const std::vector<double>& bounds() const { return bounds_; }
    bool holds(const SmallMatrix<T>& part) const {
        using Sum = checksum_t<T>;
        for (int i = 0; i < part.rows(); ++i) {
            for (int k = 0; k < 2; ++k) {
                const double bound = bounds_[static_cast<std::size_t>(2 * i + k)];
                Sum rest = -static_cast<Sum>(wanted_(i, k));
                for (int j = 0; j < part.cols(); ++j) {
                    rest += static_cast<Sum>(part(i, j)) *
                            static_cast<double>(real_part(weights_(j, k)));
                }
                // Written so that NaN fails the comparison.
                if (std::isfinite(bound) && !(std::abs(rest) <= bound)) {
                    return false;
                }
            }
        }
        return true;
    }

  private:
    Context& ctx_;
    T alpha_;
    BlockView<const T> a_;
    BlockView<const T> b_;
    SmallMatrix<T> weights_;
    SmallMatrix<T> wanted_;
    std::vector<double> bounds_;
    bool complete_ = true;
};

/// Number of elements whose bits differ.
template <class T>
int different(const SmallMatrix<T>& a, const SmallMatrix<T>& b) {
    int count = 0;
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            count += std::memcmp(&a(i, j), &b(i, j), sizeof(T)) != 0 ? 1 : 0;
        }
    }
    return count;
}

/// C = part + beta C.
template <class T>
void add_part(Context& ctx, const SmallMatrix<T>& part, T beta, const BlockView<T>& c) {
    if (c.place == Place::device) {
        const Scratch scratch =
            ctx.scratch(MemoryKind::device, static_cast<std::size_t>(part.rows()) *
                                                static_cast<std::size_t>(part.cols()) * sizeof(T));
        const BlockView<T> sum(scratch.template as<T>(), part.rows(), part.cols(), part.cols(),
                               Place::device);
        copy(ctx, part.view(), sum);
        axpby(ctx, T(1), BlockView<const T>(sum), beta, c);
        return;
    }
    for (int i = 0; i < part.rows(); ++i) {
        for (int j = 0; j < part.cols(); ++j) {
            c(i, j) = beta == T(0) ? part(i, j) : part(i, j) + multiply(beta, c(i, j));
        }
    }
}

}  // namespace

template <class T>
void protected_tsmttsm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                       std::type_identity_t<BlockView<const T>> a,
                       std::type_identity_t<BlockView<const T>> b, std::type_identity_t<T> beta,
                       BlockView<T> c, Reduce reduce,
                       const std::type_identity_t<Checksum<T>>* known_a,
                       const std::type_identity_t<Checksum<T>>* known_b) {
    // Invalid arguments are passed on unchecked, so that the kernel reports the error.
    const bool valid = a.rows == b.rows && c.rows == a.cols && c.cols == b.cols && !c.empty() &&
                       (c.place == Place::host || ctx.place() == Place::device) && !overlap(a, c) &&
                       !overlap(b, c);
    if (!guard.begin() || !valid) {
        tsmttsm(ctx, alpha, a, b, beta, c, reduce);
        guard.strike(ctx, FaultPlace::output, c);
        return;
    }
    SmallMatrix<T> part(a.cols, b.cols);
    const auto make = [&] { tsmttsm(ctx, alpha, a, b, T(0), part, Reduce::this_rank); };
    make();
    guard.strike(ctx, FaultPlace::output, part.view());
    ProductCheck<T> check(ctx, alpha, a, b, known_a, known_b);
    guard.bounds = check.bounds();
    guard.counts.checked += check.complete() ? 1 : 0;
    if (!check.holds(part)) {
        const SmallMatrix<T> first = part;
        const auto end = recover(
            guard, first,
            [&] {
                make();
                return part;
            },
            [&](const SmallMatrix<T>& now) { return check.holds(now); },
            [&] {
                check.encode();
                return OperandRepair{};
            });
        if (end.fault) {
            guard.count_fault(ctx, "tsmttsm",
                              !end.agreed                   ? Cure::failed
                              : different(first, part) <= 1 ? Cure::mended
                                                            : Cure::redone);
        }
        if (!guard.writes()) {
            part = first;
        }
    }
    if (reduce == Reduce::all_ranks) {
        ctx.comm().sum(std::span<T>(part.data(), static_cast<std::size_t>(part.rows()) *
                                                     static_cast<std::size_t>(part.cols())));
    }
    add_part(ctx, part, beta, c);
}

#define QUIVER_INSTANTIATE(T)                                                         \
    template void protected_tsmttsm(Context&, OperationGuard&, T, BlockView<const T>, \
                                    BlockView<const T>, T, BlockView<T>, Reduce,      \
                                    const Checksum<T>*, const Checksum<T>*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
