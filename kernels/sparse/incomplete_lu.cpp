// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/incomplete_lu.hpp"

#include <algorithm>
#include <complex>
#include <limits>
#include <string>
#include <utility>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/cuda/triangular_factors.hpp"

namespace quiver {

template <class T>
IncompleteLu<T>::IncompleteLu(Context& ctx, CsrRows<T> rows, double diagonal_shift)
    : factors_(std::move(rows)) {
    find_diagonal();
    const auto scale = static_cast<real_t<T>>(1 + diagonal_shift);
    for (const std::int64_t at : diagonal_) {
        factors_.value[static_cast<std::size_t>(at)] *= scale;
    }
    if (ctx.place() == Place::host) {
        eliminate();
    } else {
        to_device(ctx, true);
    }
}

template <class T>
IncompleteLu<T> IncompleteLu<T>::from_factors(Context& ctx, CsrRows<T> factors) {
    IncompleteLu result;
    result.factors_ = std::move(factors);
    result.find_diagonal();
    for (const std::int64_t at : result.diagonal_) {
        result.inverse_pivot_.push_back(T(1) / result.factors_.value[static_cast<std::size_t>(at)]);
    }
    if (ctx.place() == Place::device) {
        result.to_device(ctx, false);
    }
    return result;
}

/// Also converts the columns to local numbers.
template <class T>
void IncompleteLu<T>::find_diagonal() {
    const std::int64_t first = factors_.map.first_row();
    for (std::int64_t& column : factors_.column) {
        column -= first;
    }
    for (std::int64_t i = 0; i < factors_.map.local_rows(); ++i) {
        const auto begin =
            factors_.column.begin() + factors_.row_start[static_cast<std::size_t>(i)];
        const auto end =
            factors_.column.begin() + factors_.row_start[static_cast<std::size_t>(i) + 1];
        const auto at = std::lower_bound(begin, end, i);
        if (at == end || *at != i) {
            throw InputError("incomplete factorisation: row " + std::to_string(first + i + 1) +
                             " has no diagonal entry; use block-jacobi, which needs none");
        }
        diagonal_.push_back(at - factors_.column.begin());
    }
}

template <class T>
void IncompleteLu<T>::eliminate() {
    const std::int64_t n = factors_.map.local_rows();
    inverse_pivot_.resize(static_cast<std::size_t>(n));
    const std::vector<std::int64_t>& column = factors_.column;
    std::vector<T>& value = factors_.value;
    const auto start = [&](std::int64_t i) {
        return factors_.row_start[static_cast<std::size_t>(i)];
    };
    // The position of each column in the current row; -1 if the row has no such entry.
    std::vector<std::int64_t> where(static_cast<std::size_t>(n), -1);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t e = start(i); e < start(i + 1); ++e) {
            where[static_cast<std::size_t>(column[static_cast<std::size_t>(e)])] = e;
        }
        const std::int64_t at = diagonal_[static_cast<std::size_t>(i)];
        for (std::int64_t e = start(i); e < at; ++e) {
            const auto k = static_cast<std::size_t>(column[static_cast<std::size_t>(e)]);
            const T factor = multiply(value[static_cast<std::size_t>(e)], inverse_pivot_[k]);
            value[static_cast<std::size_t>(e)] = factor;
            for (std::int64_t u = diagonal_[k] + 1; u < start(static_cast<std::int64_t>(k) + 1);
                 ++u) {
                const std::int64_t target =
                    where[static_cast<std::size_t>(column[static_cast<std::size_t>(u)])];
                if (target >= 0) {
                    value[static_cast<std::size_t>(target)] -=
                        multiply(factor, value[static_cast<std::size_t>(u)]);
                }
            }
        }
        inverse_pivot_[static_cast<std::size_t>(i)] = T(1) / value[static_cast<std::size_t>(at)];
        for (std::int64_t e = start(i); e < start(i + 1); ++e) {
            where[static_cast<std::size_t>(column[static_cast<std::size_t>(e)])] = -1;
        }
    }
}

template <class T>
void IncompleteLu<T>::to_device(Context& ctx, bool factorise) {
    if (factors_.nonzeros() > std::numeric_limits<int>::max()) {
        throw UnsupportedError("incomplete factorisation: " + std::to_string(factors_.nonzeros()) +
                               " entries on this rank; a device supports at most 2147483647");
    }
    if constexpr (config::have_cuda) {
        const std::vector<int> row_start(factors_.row_start.begin(), factors_.row_start.end());
        const std::vector<int> column(factors_.column.begin(), factors_.column.end());
        on_device_ = std::make_shared<cuda::TriangularFactors<T>>(ctx, row_start, column,
                                                                  factors_.value, factorise);
        if (factorise) {
            on_device_->download(ctx, factors_.value);
            for (const std::int64_t at : diagonal_) {
                inverse_pivot_.push_back(T(1) / factors_.value[static_cast<std::size_t>(at)]);
            }
        }
    }
}

template <class T>
void IncompleteLu<T>::require_factors() const {
    if (factors_.row_start.empty()) {
        throw InputError("incomplete factorisation: its factors were moved to another object");
    }
}

template <class T>
std::int64_t IncompleteLu<T>::first_bad_pivot(bool positive) const {
    require_factors();
    for (std::size_t i = 0; i < diagonal_.size(); ++i) {
        const T pivot = factors_.value[static_cast<std::size_t>(diagonal_[i])];
        const bool good =
            is_finite(pivot) && is_finite(inverse_pivot_[i]) && (!positive || real_part(pivot) > 0);
        if (!good) {
            return static_cast<std::int64_t>(i);
        }
    }
    return -1;
}

template <class T>
typename IncompleteLu<T>::Parts IncompleteLu<T>::parts() const {
    require_factors();
    const std::int64_t first = factors_.map.first_row();
    const CsrRows<T> empty{factors_.map, factors_.global_cols, Symmetry::general, {0}, {}, {}};
    Parts parts{empty, empty, empty};
    const auto add = [&](CsrRows<T>& rows, std::int64_t begin, std::int64_t end, T factor) {
        for (auto e = static_cast<std::size_t>(begin); e < static_cast<std::size_t>(end); ++e) {
            rows.column.push_back(first + factors_.column[e]);
            rows.value.push_back(multiply(factor, factors_.value[e]));
        }
        rows.row_start.push_back(rows.nonzeros());
    };
    for (std::size_t i = 0; i < diagonal_.size(); ++i) {
        const std::int64_t at = diagonal_[i];
        add(parts.lower, factors_.row_start[i], at, T(1));
        add(parts.upper, at + 1, factors_.row_start[i + 1], inverse_pivot_[i]);
        add(parts.inverse_diagonal, at, at + 1, T(0));
        parts.inverse_diagonal.value.back() = inverse_pivot_[i];
    }
    return parts;
}

template <class T>
void IncompleteLu<T>::solve(Context& ctx, std::type_identity_t<BlockView<const T>> x,
                            BlockView<T> y) const {
    require_factors();
    constexpr const char* name = "incomplete_lu";
    require_valid(x, name, "X");
    require_valid(y, name, "Y");
    const auto both = [&] { return "X: " + describe(x) + "; Y: " + describe(y); };
    const std::int64_t n = factors_.map.local_rows();
    require_shape(
        x.rows == n && y.rows == n && x.cols == y.cols && x.place == ctx.place() &&
            y.place == ctx.place(),
        name, "X and Y must have this rank's rows, the same width, and the place of the Context",
        both);
    require_shape(!overlap(x, y) || same_block(x, y), name,
                  "X and Y overlap but are not the same block", both);
    const double block = static_cast<double>(n) * x.cols;
    KernelCall call;
    call.name = name;
    call.dtype = dtype_v<T>;
    call.place = ctx.place();
    call.rows = n;
    call.n = x.cols;
    call.bytes = static_cast<double>(factors_.nonzeros()) * static_cast<double>(sizeof(T) + 8) +
                 4 * static_cast<double>(sizeof(T)) * block;
    call.flops = static_cast<double>(factors_.nonzeros()) * x.cols * multiply_add_flops_v<T>;
    const Ledger::Entry entry(ctx.ledger(), call);
    if (!on_device_) {
        solve_on_host(x, y);
    } else if constexpr (config::have_cuda) {
        on_device_->solve(ctx, x, y);
    }
}

template <class T>
void IncompleteLu<T>::solve_on_host(BlockView<const T> x, BlockView<T> y) const {
    const std::int64_t n = factors_.map.local_rows();
    const std::int64_t* const column = factors_.column.data();
    const T* const value = factors_.value.data();
    const auto subtract = [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
        T* const target = y.data + i * y.ld;
        for (std::int64_t e = begin; e < end; ++e) {
            const T factor = value[e];
            const T* const source = y.data + column[e] * y.ld;
            for (int j = 0; j < y.cols; ++j) {
                target[j] -= multiply(factor, source[j]);
            }
        }
    };
    for (std::int64_t i = 0; i < n; ++i) {
        for (int j = 0; j < y.cols; ++j) {
            y(i, j) = x(i, j);
        }
        const auto row = static_cast<std::size_t>(i);
        subtract(i, factors_.row_start[row], diagonal_[row]);
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        const auto row = static_cast<std::size_t>(i);
        subtract(i, diagonal_[row] + 1, factors_.row_start[row + 1]);
        for (int j = 0; j < y.cols; ++j) {
            y(i, j) = multiply(y(i, j), inverse_pivot_[row]);
        }
    }
}

#define QUIVER_INSTANTIATE(T) template class IncompleteLu<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
