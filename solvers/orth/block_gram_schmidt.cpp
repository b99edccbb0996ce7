// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/block_gram_schmidt.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

constexpr int max_passes = 12;
constexpr int max_replacements = 3;

/// What a column of the block is at the moment.
enum class Column { own, random, dead };

/// One orthonormalisation within the block: W <- W s, and what was W t before is (W s) (s^-1 t).
template <class T>
struct Step {
    SmallMatrix<T> s;
    SmallMatrix<T> s_inverse;
    bool used_svqb = false;
};

/// Factors the scaled Gram matrix of unit columns: Cholesky-QR, or SVQB where that is unsafe.
template <class T>
Step<T> factor_unit_gram(const SmallMatrix<T>& gram) {
    using Real = real_t<T>;
    const int n = gram.rows();
    const Real small = static_cast<Real>(10 * std::max(1, n)) * epsilon_v<T>;
    Cholesky<T> factor = cholesky(gram);
    bool safe = factor.positive;
    for (int i = 0; i < n && safe; ++i) {
        safe = abs_squared(factor.r(i, i)) > small;
    }
    if (safe) {
        return {inverse_of_upper(factor.r), std::move(factor.r), false};
    }
    const HermitianEigen<T> eigen = hermitian_eigen(gram);
    const Real floor =
        small * std::max(eigen.values.empty() ? Real(0) : eigen.values.back(), epsilon_v<T>);
    Step<T> step{SmallMatrix<T>(n, n), SmallMatrix<T>(n, n), true};
    for (int j = 0; j < n; ++j) {
        const Real root = std::sqrt(std::max(eigen.values[static_cast<std::size_t>(j)], floor));
        for (int i = 0; i < n; ++i) {
            step.s(i, j) = eigen.vectors(i, j) / root;
            step.s_inverse(j, i) = conjugate(eigen.vectors(i, j)) * root;
        }
    }
    return step;
}

template <class T>
class Orthonormaliser {
    using Real = real_t<T>;

  public:
    Orthonormaliser(Context& ctx, const RowMap& map, BlockView<const T> v, BlockView<T> w,
                    const OrthOptions& options)
        : ctx_(ctx),
          map_(map),
          v_(v),
          w_(w),
          options_(options),
          h_(v.cols, w.cols),
          t_(SmallMatrix<T>::identity(w.cols)),
          column_(static_cast<std::size_t>(w.cols), Column::own),
          replaced_(static_cast<std::size_t>(w.cols), 0),
          input_norm_(static_cast<std::size_t>(w.cols), Real(0)),
          noise_(Real(8) * std::sqrt(static_cast<Real>(v.cols + w.cols)) * epsilon_v<T>) {}

    OrthResult<T> run() {
        OrthResult<T> result;
        bool done = w_.cols == 0;
        while (!done && result.passes < max_passes) {
            ++result.passes;
            done = pass(result.passes, result);
        }
        if (!done) {
            throw NumericalError("block Gram-Schmidt: " + std::to_string(w_.cols) +
                                 " columns against " + std::to_string(v_.cols) +
                                 " did not become orthonormal in " + std::to_string(max_passes) +
                                 " passes; is the basis orthonormal?");
        }
        finish(result);
        return result;
    }

  private:
    /// Returns true when the block came in orthonormal to a tenth and so leaves orthonormal.
    bool pass(int number, OrthResult<T>& result) {
        SmallMatrix<T> projection(v_.cols, w_.cols);
        if (v_.cols > 0) {
            tsmttsm(ctx_, T(1), v_, w_, T(0), projection);
            tsmm(ctx_, T(-1), v_, projection.view(), T(1), w_);
        }
        SmallMatrix<T> gram(w_.cols, w_.cols);
        tsmttsm(ctx_, T(1), w_, w_, T(0), gram);
        check_finite(projection, gram);
        add_product(projection);

        bool good = number > 1;
        std::vector<int> order;  // own columns before random ones, which must not leak into them
        std::vector<int> random_columns;
        std::vector<Real> length(column_.size(), Real(1));
        for (int j = 0; j < w_.cols; ++j) {
            const auto at = static_cast<std::size_t>(j);
            if (column_[at] == Column::dead) {
                continue;
            }
            const Real left = std::sqrt(std::max(real_part(gram(j, j)), Real(0)));
            const Real before = std::hypot(left, column_norm(projection, j));
            if (number == 1) {
                input_norm_[at] = before;
            }
            if (is_missing(j, left, before)) {
                replace(j);
                good = false;
                continue;
            }
            length[at] = left;
            good = good && column_norm(projection, j) <= Real(0.1) * before;
            (column_[at] == Column::own ? order : random_columns).push_back(j);
        }
        order.insert(order.end(), random_columns.begin(), random_columns.end());

        const int active = static_cast<int>(order.size());
        SmallMatrix<T> unit(active, active);
        for (int i = 0; i < active; ++i) {
            for (int j = 0; j < active; ++j) {
                const int gi = order[static_cast<std::size_t>(i)];
                const int gj = order[static_cast<std::size_t>(j)];
                unit(i, j) = i == j ? T(1)
                                    : gram(gi, gj) / (length[static_cast<std::size_t>(gi)] *
                                                      length[static_cast<std::size_t>(gj)]);
                good = good && (i == j || std::abs(unit(i, j)) * Real(active) <= Real(0.1));
            }
        }
        apply(factor_unit_gram(unit), order, length, result);
        return good;
    }

    /// W <- W D^-1 S, T <- S^-1 D T on the active columns; the others stay.
    void apply(const Step<T>& step, const std::vector<int>& order, const std::vector<Real>& length,
               OrthResult<T>& result) {
        result.used_svqb = result.used_svqb || step.used_svqb;
        const int active = static_cast<int>(order.size());
        SmallMatrix<T> s = SmallMatrix<T>::identity(w_.cols);
        SmallMatrix<T> t_active(active, w_.cols);
        for (int i = 0; i < active; ++i) {
            const int gi = order[static_cast<std::size_t>(i)];
            const Real d = length[static_cast<std::size_t>(gi)];
            for (int j = 0; j < active; ++j) {
                s(gi, order[static_cast<std::size_t>(j)]) = step.s(i, j) / d;
            }
            for (int j = 0; j < w_.cols; ++j) {
                t_active(i, j) = t_(gi, j) * d;
            }
        }
        t_active = product(step.s_inverse, t_active);
        for (int i = 0; i < active; ++i) {
            for (int j = 0; j < w_.cols; ++j) {
                t_(order[static_cast<std::size_t>(i)], j) = t_active(i, j);
            }
        }
        tsmm(ctx_, T(1), w_, s.view(), T(0), w_);
    }

    /// Whether what is left of column j after the projection is noise: of the input for an own
    /// column, of the column itself for a random one.
    bool is_missing(int j, Real left, Real before) const {
        if (column_[static_cast<std::size_t>(j)] == Column::random) {
            return left <= std::sqrt(epsilon_v<T>) * before;
        }
        Real share = 0;
        for (int k = 0; k < w_.cols; ++k) {
            const Real norm = input_norm_[static_cast<std::size_t>(k)];
            if (norm > 0) {
                share = std::max(share, std::abs(t_(j, k)) / norm);
            }
        }
        return !(left * share > noise_);
    }

    void replace(int j) {
        const auto at = static_cast<std::size_t>(j);
        for (int k = 0; k < w_.cols; ++k) {
            t_(j, k) = T(0);
        }
        if (options_.replace_deficient && replaced_[at] < max_replacements) {
            column_[at] = Column::random;
            const int stream = replaced_[at] * w_.cols + j;
            ++replaced_[at];
            fill_random(ctx_, options_.seed, map_.first_row(), stream, w_.columns(j, 1));
        } else {
            column_[at] = Column::dead;
            fill(ctx_, T(0), w_.columns(j, 1));
        }
    }

    void add_product(const SmallMatrix<T>& projection) {
        const SmallMatrix<T> share = product(projection, t_);
        for (int i = 0; i < h_.rows(); ++i) {
            for (int j = 0; j < h_.cols(); ++j) {
                h_(i, j) += share(i, j);
            }
        }
    }

    static Real column_norm(const SmallMatrix<T>& a, int j) {
        Real sum = 0;
        for (int i = 0; i < a.rows(); ++i) {
            sum += abs_squared(a(i, j));
        }
        return std::sqrt(sum);
    }

    void check_finite(const SmallMatrix<T>& projection, const SmallMatrix<T>& gram) const {
        std::string bad;
        for (int j = 0; j < w_.cols; ++j) {
            bool finite = is_finite(gram(j, j));
            for (int i = 0; i < projection.rows(); ++i) {
                finite = finite && is_finite(projection(i, j));
            }
            if (!finite) {
                bad += (bad.empty() ? "" : ", ") + std::to_string(j);
            }
        }
        if (!bad.empty()) {
            NumericalError error("block Gram-Schmidt: NaN, infinity or overflow in column " + bad +
                                 " of " + std::to_string(w_.cols));
            error.set_collective();  // the Gram matrix is the same on every rank
            throw error;
        }
    }

    /// Moves dead columns out of the way and fills in the result.
    void finish(OrthResult<T>& result) {
        std::vector<int> alive;
        for (int j = 0; j < w_.cols; ++j) {
            if (column_[static_cast<std::size_t>(j)] != Column::dead) {
                alive.push_back(j);
                result.rank += column_[static_cast<std::size_t>(j)] == Column::own ? 1 : 0;
            }
        }
        result.columns = static_cast<int>(alive.size());
        if (result.columns < w_.cols) {
            gather_columns(ctx_, w_, alive, w_.columns(0, result.columns));
        }
        result.h = std::move(h_);
        result.r = SmallMatrix<T>(result.columns, w_.cols);
        for (int i = 0; i < result.columns; ++i) {
            for (int j = 0; j < w_.cols; ++j) {
                result.r(i, j) = t_(alive[static_cast<std::size_t>(i)], j);
            }
        }
    }

    Context& ctx_;
    const RowMap& map_;
    BlockView<const T> v_;
    BlockView<T> w_;
    OrthOptions options_;
    SmallMatrix<T> h_;
    SmallMatrix<T> t_;
    std::vector<Column> column_;
    std::vector<int> replaced_;
    std::vector<Real> input_norm_;
    Real noise_;
};

}  // namespace

template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, BlockView<const T> v,
                                 BlockView<T> w, const OrthOptions& options) {
    require_shape(v.cols == 0 || v.rows == w.rows, "block_gram_schmidt", "V and W differ in rows",
                  [&] { return describe(v) + "; " + describe(w); });
    require_shape(w.rows == map.local_rows(), "block_gram_schmidt", "W is not laid out as the map",
                  [&] { return describe(w) + "; map " + std::to_string(map.local_rows()); });
    return Orthonormaliser<T>(ctx, map, v, w, options).run();
}

template OrthResult<float> block_gram_schmidt(Context&, const RowMap&, BlockView<const float>,
                                              BlockView<float>, const OrthOptions&);
template OrthResult<double> block_gram_schmidt(Context&, const RowMap&, BlockView<const double>,
                                               BlockView<double>, const OrthOptions&);
template OrthResult<std::complex<float>> block_gram_schmidt(Context&, const RowMap&,
                                                            BlockView<const std::complex<float>>,
                                                            BlockView<std::complex<float>>,
                                                            const OrthOptions&);
template OrthResult<std::complex<double>> block_gram_schmidt(Context&, const RowMap&,
                                                             BlockView<const std::complex<double>>,
                                                             BlockView<std::complex<double>>,
                                                             const OrthOptions&);

}  // namespace quiver
