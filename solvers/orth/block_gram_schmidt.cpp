// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/block_gram_schmidt.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

constexpr int max_passes = 12;
constexpr int max_replacements = 3;
/// Cancellation that makes a fresh product with B worth its price.
constexpr int max_drift = 10;

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

/// Orthonormal columns and, where kept, their product with B.
template <class T>
struct Basis {
    BlockView<const T> x;
    BlockView<const T> bx = {};
};

/// Orthonormalises a block against V and Q; directions that are missing drop out.
template <class T>
class Orthonormaliser {
    using Real = real_t<T>;

  public:
    /// With B, `bw` is memory for B W, and holds it already if `bw_given`.
    Orthonormaliser(Context& ctx, const InnerProduct<T>& inner, const Basis<T>& v,
                    const Basis<T>& q, BlockView<T> w, BlockView<T> bw, bool bw_given)
        : ctx_(ctx),
          inner_(inner),
          v_(v),
          q_(q),
          w_(w),
          bw_(bw),
          h_(v.x.cols, w.cols),
          t_(SmallMatrix<T>::identity(w.cols)),
          dead_(static_cast<std::size_t>(w.cols), false),
          input_norm_(static_cast<std::size_t>(w.cols), Real(0)),
          noise_(Real(8) * std::sqrt(static_cast<Real>(v.x.cols + q.x.cols + w.cols)) *
                 epsilon_v<T>) {
        if (inner.b != nullptr && w.cols > 0) {
            if (!bw_given) {
                multiply();
            }
            two_norm_.resize(static_cast<std::size_t>(w.cols));
            norms(ctx, w, std::span<Real>(two_norm_));
        }
    }

    /// The survivors stand in the first columns of w afterwards.
    OrthResult<T> run() {
        OrthResult<T> result;
        bool done = w_.cols == 0;
        while (!done && result.passes < max_passes) {
            ++result.passes;
            done = pass(result.passes, result.used_svqb);
        }
        if (!done) {
            NumericalError error("block Gram-Schmidt: " + std::to_string(w_.cols) +
                                 " columns against " + std::to_string(v_.x.cols + q_.x.cols) +
                                 " did not become orthonormal in " + std::to_string(max_passes) +
                                 " passes; is the basis orthonormal?");
            error.set_collective();  // all ranks see the same small matrices
            throw error;
        }
        compact(result);
        return result;
    }

  private:
    /// Returns true when the block came in orthonormal to a tenth and so leaves orthonormal.
    bool pass(int number, bool& used_svqb) {
        // The Gram matrix comes with the last update of W.
        SmallMatrix<T> gram(w_.cols, w_.cols);
        const bool twice = q_.x.cols > 0;
        const SmallMatrix<T> on_v = project(v_, twice ? nullptr : &gram);
        const SmallMatrix<T> on_q = twice ? project(q_, &gram) : SmallMatrix<T>(0, w_.cols);
        check_finite(on_v, gram);
        if (inner_.b != nullptr) {
            make_hermitian(gram, number == 1);
        }
        const SmallMatrix<T> share = product(on_v, t_);
        for (int i = 0; i < h_.rows(); ++i) {
            for (int j = 0; j < h_.cols(); ++j) {
                h_(i, j) += share(i, j);
            }
        }

        bool good = number > 1;
        std::vector<int> active;
        std::vector<Real> length;
        Real cancellation = 1;
        for (int j = 0; j < w_.cols; ++j) {
            const auto at = static_cast<std::size_t>(j);
            if (dead_[at]) {
                continue;
            }
            const Real left = std::sqrt(std::max(real_part(gram(j, j)), Real(0)));
            const Real taken = std::hypot(column_norm(on_v, j), column_norm(on_q, j));
            if (number == 1) {
                // Noise is a fraction of ||w||_2, and B stretches it by up to sqrt(||B||).
                input_norm_[at] = std::hypot(left, taken);
                if (inner_.b != nullptr) {
                    input_norm_[at] =
                        std::max(input_norm_[at], std::sqrt(inner_.norm) * two_norm_[at]);
                }
            }
            if (is_missing(j, left)) {
                drop(j);
                good = false;
                continue;
            }
            good = good && taken <= Real(0.1) * left;
            cancellation = std::max(cancellation, std::hypot(left, taken) / left);
            active.push_back(j);
            length.push_back(left);
        }

        const int n = static_cast<int>(active.size());
        SmallMatrix<T> unit = SmallMatrix<T>::identity(n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                const auto at_i = static_cast<std::size_t>(i);
                const auto at_j = static_cast<std::size_t>(j);
                if (i != j) {
                    unit(i, j) = gram(active[at_i], active[at_j]) / (length[at_i] * length[at_j]);
                    good = good && std::abs(unit(i, j)) * static_cast<Real>(n) <= Real(0.1);
                }
            }
        }
        const Step<T> step = factor_unit_gram(unit);
        used_svqb = used_svqb || step.used_svqb;
        if (inner_.b != nullptr) {
            // Without B V the product was formed after the projection.
            drift_ *= v_.x.cols == v_.bx.cols ? cancellation : Real(1);
            Real scaling = 1;
            for (int j = 0; j < n; ++j) {
                scaling = std::max(scaling, column_norm(step.s, j));
            }
            drift_ *= scaling;
        }
        apply(step, active, length, !good);
        return good;
    }

    /// W <- W - basis (basis^H B W), and W^H B W of the result where asked for.
    SmallMatrix<T> project(const Basis<T>& basis, SmallMatrix<T>* gram) {
        SmallMatrix<T> coefficients(basis.x.cols, w_.cols);
        if (basis.x.cols == 0) {
            if (gram == nullptr) {
                return coefficients;
            }
            if (scaled_gram_) {
                *gram = *std::exchange(scaled_gram_, std::nullopt);
            } else {
                tsmttsm(ctx_, T(1), w_, inner_.b == nullptr ? w_ : bw_, T(0), *gram);
            }
        } else if (inner_.b != nullptr) {
            project_with_b(basis, coefficients);
            if (gram != nullptr) {
                tsmttsm(ctx_, T(1), w_, bw_, T(0), *gram);
            }
        } else {
            tsmttsm(ctx_, T(1), basis.x, w_, T(0), coefficients);
            if (gram != nullptr) {
                tsmm_gram(ctx_, T(-1), basis.x, coefficients.view(), T(1), w_, *gram);
            } else {
                tsmm(ctx_, T(-1), basis.x, coefficients.view(), T(1), w_);
            }
        }
        return coefficients;
    }

    void project_with_b(const Basis<T>& basis, SmallMatrix<T>& coefficients) {
        const bool known = basis.bx.cols > 0;
        tsmttsm(ctx_, T(1), known ? basis.bx : basis.x, known ? w_ : bw_, T(0), coefficients);
        tsmm(ctx_, T(-1), basis.x, coefficients.view(), T(1), w_);
        if (known) {
            tsmm(ctx_, T(-1), basis.bx, coefficients.view(), T(1), bw_);
        } else {
            multiply();
        }
    }

    void multiply() {
        guarded_.apply<T>(ctx_, *inner_.b, w_, bw_);
        drift_ = 1;
    }

    /// W^H B W is so to rounding only: its Hermitian part. What is further away, or negative in the
    /// `first` pass, where lengths are known, is not an inner product.
    void make_hermitian(SmallMatrix<T>& gram, bool first) {
        const Real rounding = std::sqrt(epsilon_v<T>);
        const auto fail = [](const std::string& text) {
            NumericalError error("block Gram-Schmidt: B is not " + text);
            error.set_collective();
            throw error;
        };
        for (int i = 0; i < w_.cols; ++i) {
            for (int j = 0; j <= i; ++j) {
                const T above = gram(j, i);
                const T below = gram(i, j);
                const T mean = (below + conjugate(above)) / Real(2);
                if (first) {
                    const Real scale = inner_.norm * two_norm_[static_cast<std::size_t>(i)] *
                                       two_norm_[static_cast<std::size_t>(j)];
                    if (std::abs(below - mean) > rounding * scale) {
                        fail("Hermitian: <w, B u> and <B w, u> differ for columns " +
                             std::to_string(j) + " and " + std::to_string(i));
                    }
                    if (i == j && real_part(mean) < -rounding * scale) {
                        fail("positive definite: <w, B w> < 0 for column " + std::to_string(i));
                    }
                }
                gram(i, j) = mean;
                gram(j, i) = conjugate(mean);
            }
        }
    }

    /// W <- W D^-1 S, T <- S^-1 D T on the active columns; dead ones stay zero. `again`: a pass
    /// follows.
    void apply(const Step<T>& step, const std::vector<int>& active, const std::vector<Real>& length,
               bool again) {
        const int n = static_cast<int>(active.size());
        SmallMatrix<T> s = SmallMatrix<T>::identity(w_.cols);
        SmallMatrix<T> t_active(n, w_.cols);
        for (int i = 0; i < n; ++i) {
            const int row = active[static_cast<std::size_t>(i)];
            const Real d = length[static_cast<std::size_t>(i)];
            for (int j = 0; j < n; ++j) {
                s(row, active[static_cast<std::size_t>(j)]) = step.s(i, j) / d;
            }
            for (int j = 0; j < w_.cols; ++j) {
                t_active(i, j) = t_(row, j) * d;
            }
        }
        t_active = product(step.s_inverse, t_active);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < w_.cols; ++j) {
                t_(active[static_cast<std::size_t>(i)], j) = t_active(i, j);
            }
        }
        if (inner_.b != nullptr) {
            tsmm(ctx_, T(1), w_, s.view(), T(0), w_);
            if (again && drift_ > max_drift) {
                multiply();
            } else {
                tsmm(ctx_, T(1), bw_, s.view(), T(0), bw_);
            }
        } else if (again && v_.x.cols + q_.x.cols == 0) {
            scaled_gram_.emplace(w_.cols, w_.cols);
            tsmm_gram(ctx_, T(1), w_, s.view(), T(0), w_, *scaled_gram_);
        } else {
            tsmm(ctx_, T(1), w_, s.view(), T(0), w_);
        }
    }

    /// Whether what is left of direction j is rounding noise of the columns it came from.
    bool is_missing(int j, Real left) const {
        Real share = 0;
        for (int k = 0; k < w_.cols; ++k) {
            const Real norm = input_norm_[static_cast<std::size_t>(k)];
            if (norm > 0) {
                share = std::max(share, std::abs(t_(j, k)) / norm);
            }
        }
        return !(left * share > noise_);
    }

    void drop(int j) {
        dead_[static_cast<std::size_t>(j)] = true;
        for (int k = 0; k < w_.cols; ++k) {
            t_(j, k) = T(0);
        }
        fill(ctx_, T(0), w_.columns(j, 1));
        if (inner_.b != nullptr) {
            fill(ctx_, T(0), bw_.columns(j, 1));
        }
    }

    static Real column_norm(const SmallMatrix<T>& a, int j) {
        Real sum = 0;
        for (int i = 0; i < a.rows(); ++i) {
            sum += abs_squared(a(i, j));
        }
        return std::sqrt(sum);
    }

    void check_finite(const SmallMatrix<T>& projection, const SmallMatrix<T>& gram) {
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
            guarded_.rethrow();
            NumericalError error(
                "block Gram-Schmidt: NaN, infinity or squares that overflow in "
                "column " +
                bad + " of " + std::to_string(w_.cols) +
                (inner_.b == nullptr ? "" : " or of its product with B, which may have failed"));
            error.set_collective();
            throw error;
        }
    }

    void compact(OrthResult<T>& result) {
        std::vector<int> alive;
        for (int j = 0; j < w_.cols; ++j) {
            if (!dead_[static_cast<std::size_t>(j)]) {
                alive.push_back(j);
            }
        }
        result.columns = result.rank = static_cast<int>(alive.size());
        if (result.columns < w_.cols) {
            gather_columns(ctx_, w_, alive, w_.columns(0, result.columns));
            if (inner_.b != nullptr) {
                gather_columns(ctx_, bw_, alive, bw_.columns(0, result.columns));
            }
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
    const InnerProduct<T>& inner_;
    Basis<T> v_;
    Basis<T> q_;
    BlockView<T> w_;
    BlockView<T> bw_;
    // W_in = V h_ + W t_ at any time.
    SmallMatrix<T> h_;
    SmallMatrix<T> t_;
    std::vector<bool> dead_;
    std::vector<Real> input_norm_;
    Real noise_;
    /// Of W as the last pass left it, where the next one begins with it.
    std::optional<SmallMatrix<T>> scaled_gram_;
    // With B only: ||w||_2 of the input; how much cancellation has enlarged the relative error of
    // BW, which goes through the same updates as W, since it was last multiplied; failures of B.
    std::vector<Real> two_norm_;
    Real drift_ = 1;
    GuardedProduct guarded_;
};

template <class T>
OrthResult<T> orthonormalise(Context& ctx, const RowMap& map, const InnerProduct<T>& inner,
                             const Basis<T>& v, BlockView<T> w, BlockView<T> bw,
                             const OrthOptions& options) {
    const BlockView<const T> none(nullptr, w.rows, 0, 0, w.place);
    OrthResult<T> result =
        Orthonormaliser<T>(ctx, inner, v, {none}, w, bw, options.product_given).run();
    for (int attempt = 0; options.replace_deficient && attempt < max_replacements; ++attempt) {
        const int have = result.columns;
        const int missing = static_cast<int>(
            std::min<std::int64_t>(w.cols - have, map.global_rows() - v.x.cols - have));
        if (missing <= 0) {
            break;
        }
        const BlockView<T> fresh = w.columns(have, missing);
        fill_random(ctx, options.seed, map.first_row(), attempt * w.cols + have, fresh);
        const bool with_b = inner.b != nullptr;
        const Basis<T> q{w.columns(0, have), with_b ? bw.columns(0, have) : BlockView<T>()};
        const OrthResult<T> more =
            Orthonormaliser<T>(ctx, inner, v, q, fresh, with_b ? bw.columns(have, missing) : bw,
                               false)
                .run();
        result.columns += more.columns;
        result.passes += more.passes;
    }
    if (result.columns > result.rank) {
        SmallMatrix<T> r(result.columns, w.cols);
        std::copy_n(result.r.data(),
                    static_cast<std::size_t>(result.rank) * static_cast<std::size_t>(w.cols),
                    r.data());
        result.r = std::move(r);
    }
    return result;
}

template <class T>
void require_layout(const RowMap& map, const BlockView<const T>& v, const BlockView<T>& w) {
    require_shape(v.cols == 0 || v.rows == w.rows, "block_gram_schmidt", "V and W differ in rows",
                  [&] { return describe(v) + "; " + describe(w); });
    require_shape(w.rows == map.local_rows(), "block_gram_schmidt", "W is not laid out as the map",
                  [&] { return describe(w) + "; map " + std::to_string(map.local_rows()); });
}

}  // namespace

template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, BlockView<const T> v,
                                 BlockView<T> w, const OrthOptions& options) {
    require_layout(map, v, w);
    return orthonormalise<T>(ctx, map, {}, {v}, w, {}, options);
}

template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, const InnerProduct<T>& inner,
                                 std::type_identity_t<BlockView<const T>> v,
                                 std::type_identity_t<BlockView<const T>> bv, BlockView<T> w,
                                 std::type_identity_t<BlockView<T>> bw,
                                 const OrthOptions& options) {
    if (inner.b == nullptr) {
        return block_gram_schmidt<T>(ctx, map, v, w, options);
    }
    require_layout(map, v, w);
    const auto same_shape = [](const auto& x, const auto& bx) {
        return bx.cols == 0 || (bx.rows == x.rows && bx.cols == x.cols);
    };
    require_shape(same_shape(v, bv), "block_gram_schmidt", "V and B V differ in shape",
                  [&] { return describe(v) + "; " + describe(bv); });
    require_shape(same_shape(w, bw) && !overlap(w, bw), "block_gram_schmidt",
                  "W and B W differ in shape or overlap",
                  [&] { return describe(w) + "; " + describe(bw); });
    if (bw.cols > 0) {
        return orthonormalise<T>(ctx, map, inner, {v, bv}, w, bw, options);
    }
    require_shape(!options.product_given || w.cols == 0, "block_gram_schmidt",
                  "B W is said to be given and is not", [&] { return describe(bw); });
    const std::size_t bytes =
        static_cast<std::size_t>(w.rows) * static_cast<std::size_t>(w.cols) * sizeof(T);
    const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), bytes);
    const BlockView<T> product(scratch.as<T>(), w.rows, w.cols, w.cols, ctx.place());
    return orthonormalise<T>(ctx, map, inner, {v, bv}, w, product, options);
}

template OrthResult<float> block_gram_schmidt(Context&, const RowMap&, BlockView<const float>,
                                              BlockView<float>, const OrthOptions&);
template OrthResult<float> block_gram_schmidt(Context&, const RowMap&, const InnerProduct<float>&,
                                              BlockView<const float>, BlockView<const float>,
                                              BlockView<float>, BlockView<float>,
                                              const OrthOptions&);
template OrthResult<double> block_gram_schmidt(Context&, const RowMap&, BlockView<const double>,
                                               BlockView<double>, const OrthOptions&);
template OrthResult<double> block_gram_schmidt(Context&, const RowMap&, const InnerProduct<double>&,
                                               BlockView<const double>, BlockView<const double>,
                                               BlockView<double>, BlockView<double>,
                                               const OrthOptions&);
template OrthResult<std::complex<float>> block_gram_schmidt(Context&, const RowMap&,
                                                            BlockView<const std::complex<float>>,
                                                            BlockView<std::complex<float>>,
                                                            const OrthOptions&);
template OrthResult<std::complex<float>> block_gram_schmidt(
    Context&, const RowMap&, const InnerProduct<std::complex<float>>&,
    BlockView<const std::complex<float>>, BlockView<const std::complex<float>>,
    BlockView<std::complex<float>>, BlockView<std::complex<float>>, const OrthOptions&);
template OrthResult<std::complex<double>> block_gram_schmidt(Context&, const RowMap&,
                                                             BlockView<const std::complex<double>>,
                                                             BlockView<std::complex<double>>,
                                                             const OrthOptions&);
template OrthResult<std::complex<double>> block_gram_schmidt(
    Context&, const RowMap&, const InnerProduct<std::complex<double>>&,
    BlockView<const std::complex<double>>, BlockView<const std::complex<double>>,
    BlockView<std::complex<double>>, BlockView<std::complex<double>>, const OrthOptions&);

}  // namespace quiver
