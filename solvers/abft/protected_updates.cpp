// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/protected_updates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/abft/row_check.hpp"

namespace quiver {
namespace {

/// A term of an update: operand.block times the matrix `factor`.
template <class T>
struct Term {
    Operand<T> operand;
    SmallMatrix<checksum_t<T>> factor;
};

/// The largest number of non-zero factors in a column.
template <class T>
double longest_sum(std::span<const Term<T>> terms, int columns) {
    double most = 0;
    for (int j = 0; j < columns; ++j) {
        double length = 0;
        for (const Term<T>& term : terms) {
            for (int l = 0; l < term.factor.rows(); ++l) {
                length += term.factor(l, j) != checksum_t<T>(0) ? 1 : 0;
            }
        }
        most = std::max(most, length);
    }
    return most;
}

template <class T>
WantedSums<T> wanted_of(std::span<const Term<T>> terms, const BlockView<T>& y, int log_chunk) {
    WantedSums<T> wanted(y.rows, y.cols, log_chunk);
    const double unit = rounding_units<T>() * rounding_length(longest_sum(terms, y.cols));
    const std::int64_t chunks = checksum_chunks(y.rows, log_chunk);
    std::vector<double> size;  // |factor|, computed once: each needs a square root
    for (const Term<T>& term : terms) {
        const int rows = term.factor.rows();
        size.clear();
        for (int l = 0; l < rows; ++l) {
            for (int j = 0; j < y.cols; ++j) {
                size.push_back(std::abs(term.factor(l, j)));
            }
        }
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            for (int l = 0; l < rows; ++l) {
                const Checksum<T>& sums = term.operand.sums;
                const double norm = std::sqrt(std::real(sums(chunk, checksum_squares, l)));
                const std::ptrdiff_t row = std::ptrdiff_t{l} * y.cols;
                for (int k = 0; k < 2; ++k) {
                    wanted.add_multiples(chunk, k, sums(chunk, k, l), unit * norm,
                                         term.factor.data() + row, size.data() + row);
                }
            }
        }
    }
    return wanted;
}

/// Y = the sum of the terms, computed by `kernel`. X comes before Y_old in `terms`.
template <class T>
void update(Context& ctx, OperationGuard& guard, const char* operation, std::span<Term<T>> terms,
            const BlockView<T>& y, Checksum<T>* result, const std::function<void()>& kernel) {
    const int log_chunk = guard.options.log_chunk;
    if (!terms.empty()) {
        guard.strike(ctx, FaultPlace::input, terms.front().operand.block);
    }
    std::array<std::optional<Kept<T>>, 2> kept;
    bool gone = false;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        BlockView<T>& block = terms[i].operand.block;
        if (overlap(block, y)) {
            gone = gone || !guard.writes();
            if (guard.writes()) {
                kept[i].emplace(ctx, block);
                block = kept[i]->view();
            }
        }
    }
    kernel();
    // The host computes the expected checksums while a device computes Y.
    RowCheck<T> check{operation, y, wanted_of<T>(terms, y, log_chunk), {}, {}};
    guard.strike(ctx, FaultPlace::output, y);
    if (!gone) {
        check.again = [&] {
            for (std::size_t i = kept.size(); i-- > 0;) {
                if (kept[i]) {
                    kept[i]->put_back(ctx);
                }
            }
            kernel();
        };
        check.repair = [&](WantedSums<T>& wanted) {
            OperandRepair repair;
            for (Term<T>& term : terms) {
                repair.add(term.operand.repair(ctx, guard));
            }
            if (repair.lost()) {
                wanted = wanted_of<T>(terms, y, log_chunk);
            }
            return repair;
        };
    }
    Checksum<T> sums = check_rows(ctx, guard, std::move(check));
    if (result != nullptr) {
        *result = std::move(sums);
    }
}

/// factor * C in host memory.
template <class T>
SmallMatrix<checksum_t<T>> scaled(Context& ctx, T factor, const BlockView<const T>& c) {
    using Sum = checksum_t<T>;
    SmallMatrix<T> values(static_cast<int>(c.rows), c.cols);
    copy(ctx, c, values.view());
    SmallMatrix<Sum> result(values.rows(), values.cols());
    for (int i = 0; i < result.rows(); ++i) {
        for (int j = 0; j < result.cols(); ++j) {
            result(i, j) = multiply(static_cast<Sum>(factor), static_cast<Sum>(values(i, j)));
        }
    }
    return result;
}

template <class T>
SmallMatrix<checksum_t<T>> diagonal(std::span<const T> values) {
    const int n = static_cast<int>(values.size());
    SmallMatrix<checksum_t<T>> result(n, n);
    for (int j = 0; j < n; ++j) {
        result(j, j) = static_cast<checksum_t<T>>(values[static_cast<std::size_t>(j)]);
    }
    return result;
}

template <class T>
bool all_zero(std::span<const T> values) {
    return std::all_of(values.begin(), values.end(), [](T value) { return value == T(0); });
}

template <class T>
void protect_axpby(Context& ctx, OperationGuard& guard, std::span<const T> alpha,
                   const BlockView<const T>& x, std::span<const T> beta, const BlockView<T>& y,
                   const KnownSums<T>& known, const std::function<void()>& kernel) {
    constexpr const char* operation = "axpby";
    std::vector<Term<T>> terms;
    if (!all_zero(alpha)) {
        terms.push_back({{ctx, guard, operation, writable(x), known.x}, diagonal(alpha)});
    }
    if (!all_zero(beta)) {
        terms.push_back({{ctx, guard, operation, y, known.y}, diagonal(beta)});
    }
    update<T>(ctx, guard, operation, terms, y, known.result, kernel);
}

/// Begins an update; returns whether it is checked. Invalid arguments are passed on unchecked, so
/// that the kernel reports the error.
template <class T>
bool begin_update(Context& ctx, OperationGuard& guard, const BlockView<const T>& x,
                  const BlockView<T>& y, bool fits, const KnownSums<T>& known,
                  const std::function<void()>& kernel) {
    if (known.result != nullptr) {
        *known.result = {};
    }
    const bool valid = fits && x.rows == y.rows &&
                       (x.empty() || y.empty() || (x.place == ctx.place() && y.place == x.place));
    if (guard.begin() && valid) {
        return true;
    }
    guard.strike(ctx, FaultPlace::input, x);
    kernel();
    guard.strike(ctx, FaultPlace::output, y);
    return false;
}

}  // namespace

template <class T>
void protected_tsmm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                    std::type_identity_t<BlockView<const T>> x,
                    std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
                    BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known) {
    const auto kernel = [&] { tsmm(ctx, alpha, x, c, beta, y); };
    const bool fits = c.rows == x.cols && c.cols == y.cols;
    if (!begin_update<T>(ctx, guard, x, y, fits, known, kernel)) {
        return;
    }
    std::vector<Term<T>> terms;
    terms.push_back({{ctx, guard, "tsmm", writable(x), known.x}, scaled(ctx, alpha, c)});
    if (beta != T(0)) {
        const std::vector<T> all(static_cast<std::size_t>(y.cols), beta);
        terms.push_back({{ctx, guard, "tsmm", y, known.y}, diagonal(std::span<const T>(all))});
    }
    update<T>(ctx, guard, "tsmm", terms, y, known.result, kernel);
}

template <class T>
void protected_tsmm(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                    std::type_identity_t<BlockView<const T>> x,
                    std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
                    BlockView<T> y, std::type_identity_t<BlockView<const T>> d,
                    const std::type_identity_t<KnownSums<T>>& known) {
    const auto kernel = [&] { tsmm(ctx, alpha, x, c, beta, y, d); };
    const bool fits = c.rows == x.cols && c.cols == y.cols && d.rows == y.cols && d.cols == y.cols;
    if (!begin_update<T>(ctx, guard, x, y, fits, known, kernel)) {
        return;
    }
    std::vector<Term<T>> terms;
    terms.push_back({{ctx, guard, "tsmm", writable(x), known.x}, scaled(ctx, alpha, c)});
    if (beta != T(0)) {
        terms.push_back({{ctx, guard, "tsmm", y, known.y}, scaled(ctx, beta, d)});
    }
    update<T>(ctx, guard, "tsmm", terms, y, known.result, kernel);
}

template <class T>
void protected_axpby(Context& ctx, OperationGuard& guard, std::type_identity_t<T> alpha,
                     std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
                     BlockView<T> y, const std::type_identity_t<KnownSums<T>>& known) {
    const auto kernel = [&] { axpby(ctx, alpha, x, beta, y); };
    if (begin_update<T>(ctx, guard, x, y, x.cols == y.cols, known, kernel)) {
        const std::vector<T> alphas(static_cast<std::size_t>(y.cols), alpha);
        const std::vector<T> betas(static_cast<std::size_t>(y.cols), beta);
        protect_axpby<T>(ctx, guard, alphas, x, betas, y, known, kernel);
    }
}

template <class T>
void protected_axpby(Context& ctx, OperationGuard& guard,
                     std::type_identity_t<std::span<const T>> alpha,
                     std::type_identity_t<BlockView<const T>> x,
                     std::type_identity_t<std::span<const T>> beta, BlockView<T> y,
                     const std::type_identity_t<KnownSums<T>>& known) {
    const auto kernel = [&] { axpby(ctx, alpha, x, beta, y); };
    const auto columns = static_cast<std::size_t>(y.cols);
    const bool fits = x.cols == y.cols && alpha.size() == columns && beta.size() == columns;
    if (begin_update<T>(ctx, guard, x, y, fits, known, kernel)) {
        protect_axpby<T>(ctx, guard, alpha, x, beta, y, known, kernel);
    }
}

#define QUIVER_INSTANTIATE(T)                                                               \
    template void protected_tsmm(Context&, OperationGuard&, T, BlockView<const T>,          \
                                 BlockView<const T>, T, BlockView<T>, const KnownSums<T>&); \
    template void protected_tsmm(Context&, OperationGuard&, T, BlockView<const T>,          \
                                 BlockView<const T>, T, BlockView<T>, BlockView<const T>,   \
                                 const KnownSums<T>&);                                      \
    template void protected_axpby(Context&, OperationGuard&, T, BlockView<const T>, T,      \
                                  BlockView<T>, const KnownSums<T>&);                       \
    template void protected_axpby(Context&, OperationGuard&, std::span<const T>,            \
                                  BlockView<const T>, std::span<const T>, BlockView<T>,     \
                                  const KnownSums<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
