// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/svd/tall_svd.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/equal_options.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/small_dense_svd.hpp"
#include "solvers/svd/singular_signs.hpp"
#include "solvers/svd/wide_products.hpp"

namespace quiver {
namespace {

template <class T>
void check_tall_svd(Context& ctx, const RowMap& map, const BlockView<const T>& x,
                    const TallSvdOptions& options) {
    EqualOptions equal("svd");
    equal.add("k", options.k);
    equal.add("left", options.left);
    equal.add("one_pass", options.one_pass);
    equal.add("columns", x.cols);
    equal.require(ctx.comm());
    ctx.comm().agree([&] {
        require_valid(x, "svd", "X");
        require_shape(
            x.rows == map.local_rows() && map.ranks() == ctx.comm().size() &&
                x.place == ctx.place(),
            "svd", "the rows or the place of X, the row map and the Context disagree", [&] {
                return describe(x) +
                       "; rows of this rank in the map: " + std::to_string(map.local_rows());
            });
        if (x.cols < 1) {
            throw InputError("svd: X has no columns");
        }
        if (map.global_rows() < x.cols) {
            throw InputError("svd: X has " + std::to_string(map.global_rows()) + " rows and " +
                             std::to_string(x.cols) +
                             " columns; it needs at least as many rows as columns: transpose it");
        }
        if (options.k < 0 || options.k > x.cols) {
            throw InputError("svd: k = " + std::to_string(options.k) + ", but X has " +
                             std::to_string(x.cols) + " singular values: k must be 0 (all) to " +
                             std::to_string(x.cols));
        }
    });
}

template <class T>
class TallSolver {
    using Wide = wide_t<T>;

  public:
    TallSolver(Context& ctx, const RowMap& map, BlockView<const T> x, const TallSvdOptions& options)
        : ctx_(ctx),
          map_(map),
          x_(x),
          options_(options),
          wanted_(options.k == 0 ? x.cols : options.k) {}

    TallSvd<T> run() {
        decompose_gram(gram());
        TallSvd<T> result;
        result.from_gram = !options_.left && (options_.one_pass || gram_suffices());
        if (result.from_gram) {
            finish(result, first_, first_vectors_);
            result.rank =
                static_cast<int>(std::count_if(first_.begin(), first_.end(), [&](double value) {
                    return value > gram_error(value);
                }));
        } else {
            refine(result);
        }
        unscale(result);
        return result;
    }

  private:
    double eps() const { return static_cast<double>(epsilon_v<T>); }
    static constexpr double wide_eps = std::numeric_limits<double>::epsilon();
    /// Rounding errors of sums grow with the number of columns; the factor covers the sums over the
    /// rows, which the kernels form in parts.
    double growth() const { return 8 + 4 * std::sqrt(static_cast<double>(x_.cols)); }
    double largest() const { return first_.front(); }
    /// |l - s| = |l^2 - s^2| / (l + s) for a value l from a Gram matrix with an error of growth()
    /// wide_eps ||X||^2.
    double gram_error(double value) const {
        const double noise = growth() * wide_eps * largest() * largest();
        return largest() == 0 ? 0 : noise / std::max(value, std::sqrt(noise));
    }
    double full_error() const { return growth() * eps() * largest(); }
    bool gram_suffices() const {
        return gram_error(first_[static_cast<std::size_t>(wanted_ - 1)]) <= full_error();
    }

    /// The Gram matrix of X, or of a scaled copy if its squares leave the range of double.
    SmallMatrix<Wide> gram() {
        SmallMatrix<Wide> gram = gram_in_double<T>(ctx_, x_);
        constexpr int shift = 511;
        const double most = largest_square(gram);
        const NormRange<double> range;
        if (most >= range.least * range.least && std::isfinite(most)) {
            return gram;
        }
        exponent_ = std::isfinite(most) ? shift : -shift;
        if constexpr (sizeof(real_t<T>) == sizeof(double)) {
            take_copy();
            scale<T>(ctx_, T(std::ldexp(1.0, exponent_)), copy_.view());
            x_ = copy_.view();
            gram = gram_in_double<T>(ctx_, x_);
        } else {
            exponent_ = 0;
        }
        require_finite(gram);
        return gram;
    }
    double largest_square(const SmallMatrix<Wide>& gram) const {
        double most = 0;
        for (int j = 0; j < gram.cols(); ++j) {
            const double square = std::real(gram(j, j));
            if (!(square <= most) && !std::isnan(most)) {
                most = square;
            }
        }
        return most;
    }
    void require_finite(const SmallMatrix<Wide>& gram) const {
        for (int j = 0; j < gram.cols(); ++j) {
            if (!std::isfinite(std::real(gram(j, j)))) {
                throw_collective(ErrorKind::input, "svd: column " + std::to_string(j) +
                                                       " of X (counted from 0) has NaN or "
                                                       "infinity");
            }
        }
    }
    void take_copy() {
        ctx_.comm().agree([&] { copy_ = BlockVector<T>(ctx_, map_, x_.cols); });
        copy(ctx_, x_, copy_.view());
    }

    void decompose_gram(const SmallMatrix<Wide>& gram) {
        const HermitianEigen<Wide> eigen = projected_eigen(ctx_, gram);
        if (!eigen.converged) {
            throw_collective(ErrorKind::numerical,
                             "svd: the eigenvalues of the Gram matrix did not converge");
        }
        const int n = x_.cols;
        first_vectors_ = SmallMatrix<Wide>(n, n);
        for (int j = 0; j < n; ++j) {
            const int from = n - 1 - j;
            first_.push_back(
                std::sqrt(std::max(eigen.values[static_cast<std::size_t>(from)], 0.0)));
            for (int i = 0; i < n; ++i) {
                first_vectors_(i, j) = eigen.vectors(i, from);
            }
        }
    }

    /// X V diag(1 / d) = Q R: the decomposition of R diag(d) corrects V and gives U.
    void refine(TallSvd<T>& result) {
        const int n = x_.cols;
        const double floor = largest() > 0 ? largest() * std::sqrt(growth() * wide_eps) : 1;
        std::vector<double> d;
        SmallMatrix<Wide> scaled = first_vectors_;
        for (int j = 0; j < n; ++j) {
            d.push_back(std::max(first_[static_cast<std::size_t>(j)], floor));
            for (int i = 0; i < n; ++i) {
                scaled(i, j) /= d.back();
            }
        }
        BlockVector<T> w = std::move(copy_);
        if (w.width() == n) {
            tsmm<T>(ctx_, T(1), w.view(), rounded<T>(scaled), T(0), w.view());
        } else {
            ctx_.comm().agree([&] { w = BlockVector<T>(ctx_, map_, n); });
            tsmm<T>(ctx_, T(1), x_, rounded<T>(scaled), T(0), w.view());
        }
        const OrthResult<T> orth = block_gram_schmidt<T>(
            ctx_, map_, BlockView<const T>(nullptr, x_.rows, 0, 0, x_.place), w.view());
        SmallMatrix<Wide> r = rounded<Wide>(orth.r);
        for (int i = 0; i < r.rows(); ++i) {
            for (int j = 0; j < n; ++j) {
                r(i, j) *= d[static_cast<std::size_t>(j)];
            }
        }
        const SmallSvd<Wide> svd = small_svd(r);
        const std::vector<Wide> phases = finish(result, svd.values, product(first_vectors_, svd.v));
        const double least = static_cast<double>(std::max<std::int64_t>(map_.global_rows(), n)) *
                             eps() * svd.values.front();
        result.rank = static_cast<int>(std::count_if(svd.values.begin(), svd.values.end(),
                                                     [&](double value) { return value > least; }));
        if (options_.left) {
            SmallMatrix<Wide> u = columns_of(svd.u);
            multiply_columns(u, phases);
            tsmm<T>(ctx_, T(1), w.view(), rounded<T>(u), T(0), w.view().columns(0, wanted_));
            w.set_width(wanted_);
            result.left = std::move(w);
        }
    }

    SmallMatrix<Wide> columns_of(const SmallMatrix<Wide>& all) const {
        SmallMatrix<Wide> first(all.rows(), wanted_);
        for (int i = 0; i < all.rows(); ++i) {
            for (int j = 0; j < wanted_; ++j) {
                first(i, j) = all(i, j);
            }
        }
        return first;
    }
    /// Stores values, errors and right vectors; returns the factors of the vectors.
    std::vector<Wide> finish(TallSvd<T>& result, const std::vector<double>& values,
                             const SmallMatrix<Wide>& vectors) {
        result.values.assign(values.begin(), values.begin() + wanted_);
        // Sums over the rows: up to 4.4 full_error() was seen with 300 rows and conditions of 1e14.
        const double margin =
            std::min(1 + std::sqrt(static_cast<double>(map_.global_rows())) / 4, 16.0);
        for (const double value : result.values) {
            result.errors.push_back(result.from_gram ? gram_error(value) : margin * full_error());
        }
        SmallMatrix<Wide> right = columns_of(vectors);
        std::vector<Wide> phases = phases_of(right);
        multiply_columns(right, phases);
        result.right = rounded<T>(right);
        return phases;
    }
    void unscale(TallSvd<T>& result) const {
        for (std::vector<double>* const numbers : {&result.values, &result.errors}) {
            for (double& number : *numbers) {
                number = std::ldexp(number, -exponent_);
            }
        }
    }

    Context& ctx_;
    const RowMap& map_;
    BlockView<const T> x_;
    const TallSvdOptions& options_;
    int wanted_;
    /// A copy of X, 2^exponent_ X, if the squares of X leave the range of double.
    BlockVector<T> copy_;
    int exponent_ = 0;
    /// Values and right vectors from the Gram matrix.
    std::vector<double> first_;
    SmallMatrix<Wide> first_vectors_;
};

}  // namespace

template <class T>
TallSvd<T> tall_svd(Context& ctx, const RowMap& map, BlockView<const T> x,
                    const TallSvdOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    check_tall_svd<T>(ctx, map, x, options);
    TallSvd<T> result = TallSolver<T>(ctx, map, x, options).run();
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                 \
    template TallSvd<T> tall_svd(Context&, const RowMap&, BlockView<const T>, \
                                 const TallSvdOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
