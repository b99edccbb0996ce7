// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/small_dense_qr.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <new>
#include <vector>

#include <Eigen/Dense>

#include "blockvec/eigen_interop.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{256} << 10;
/// The stack of all pieces' R then has at most a quarter of the rows of X.
constexpr std::int64_t least_rows_per_column = 4;

/// Returns R, min(rows, n) x n; overwrites the first min(rows, n) columns of X by Q. Columns whose
/// squares underflow are scaled by a power of two during the factorisation.
template <class T>
SmallMatrix<T> factor_piece(BlockView<T> x) {
    using Limits = std::numeric_limits<real_t<T>>;
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    auto block = as_eigen(x);
    const Eigen::Index k = std::min(block.rows(), block.cols());
    SmallMatrix<T> r(static_cast<int>(k), x.cols);
    if (k == 0) {
        return r;
    }
    Matrix factored = block;
    std::vector<real_t<T>> factors(static_cast<std::size_t>(x.cols), real_t<T>(1));
    for (Eigen::Index j = 0; j < block.cols(); ++j) {
        if (factored.col(j).squaredNorm() < Limits::min() / Limits::epsilon()) {
            factors[static_cast<std::size_t>(j)] =
                std::ldexp(real_t<T>(1), Limits::max_exponent / 4 * 3);
            factored.col(j) *= factors[static_cast<std::size_t>(j)];
        }
    }
    const Eigen::HouseholderQR<Eigen::Ref<Matrix>> qr(factored);
    as_eigen(r.view()) = Matrix(factored.topRows(k).template triangularView<Eigen::Upper>());
    for (Eigen::Index j = 0; j < block.cols(); ++j) {
        as_eigen(r.view()).col(j) /= factors[static_cast<std::size_t>(j)];
    }
    block.leftCols(k) = qr.householderQ() * Matrix::Identity(block.rows(), k);
    return r;
}

/// X <- Q M.
template <class T>
void multiply_piece(BlockView<T> x, BlockView<const T> m) {
    if (x.rows == 0) {
        return;
    }
    const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> q =
        as_eigen(x).leftCols(m.rows);
    as_eigen(x).noalias() = q * as_eigen(m);
}

/// Calls run(i) for all pieces on several threads; throws std::bad_alloc after all calls if one
/// failed.
template <class F>
void for_pieces(std::int64_t count, int threads, F&& run) {
    std::atomic<bool> failed = false;
    const int team = static_cast<int>(std::min<std::int64_t>(threads, count));
#pragma omp parallel for num_threads(team) schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
        try {
            run(i);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    }
    if (failed) {
        throw std::bad_alloc();
    }
}

}  // namespace

template <Scalar T>
void householder_qr(BlockView<T> x, int threads,
                    const std::function<SmallMatrix<T>(SmallMatrix<T>)>& middle) {
    const int n = x.cols;
    const std::int64_t least = least_rows_per_column * std::max(1, n);
    const std::int64_t wanted =
        std::max(least, piece_bytes / (static_cast<std::int64_t>(sizeof(T)) * std::max(1, n)));
    const std::int64_t pieces = std::max<std::int64_t>(1, x.rows / wanted);
    if (pieces == 1) {
        const SmallMatrix<T> m = middle(factor_piece(x));
        multiply_piece(x, BlockView<const T>(m.view()));
        return;
    }
    const auto piece = [&](std::int64_t i) {
        const std::int64_t first = x.rows * i / pieces;
        return x.row_range(first, x.rows * (i + 1) / pieces - first);
    };
    std::vector<T> stack(static_cast<std::size_t>(pieces * n * n));
    const BlockView<T> all(stack.data(), pieces * n, n, n);
    for_pieces(pieces, threads, [&](std::int64_t i) {
        const SmallMatrix<T> r = factor_piece(piece(i));
        std::copy_n(r.data(), n * n, all.data + i * n * n);
    });
    householder_qr<T>(all, threads, middle);
    for_pieces(pieces, threads, [&](std::int64_t i) {
        multiply_piece(piece(i), BlockView<const T>(all.row_range(i * n, n)));
    });
}

#define QUIVER_INSTANTIATE(T)                       \
    template void householder_qr(BlockView<T>, int, \
                                 const std::function<SmallMatrix<T>(SmallMatrix<T>)>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
