// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/orthonormaliser.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/orth/tsqr.hpp"
#include "solvers/orth/wide_gram.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

constexpr int max_passes = 12;
constexpr int max_completions = 3;
/// If cancellation increases the error of an updated B W by this factor, a fresh product is worth
/// its cost.
constexpr int max_drift = 10;
/// The smallest acceptable pivot of the Gram matrix of unit columns in the last pass. The loss of
/// orthogonality is about eps divided by the smallest pivot.
template <class T>
constexpr real_t<T> least_last_pivot = real_t<T>(0.1);

template <class T>
real_t<T> column_norm(const SmallMatrix<T>& a, int j) {
    real_t<T> sum = 0;
    for (int i = 0; i < a.rows(); ++i) {
        sum += abs_squared(a(i, j));
    }
    return std::sqrt(sum);
}

/// The Gram matrix of the `active` columns, divided by their lengths.
template <class T>
SmallMatrix<T> unit_gram(const SmallMatrix<T>& gram, const std::vector<int>& active,
                         const std::vector<real_t<T>>& length) {
    SmallMatrix<T> unit = SmallMatrix<T>::identity(static_cast<int>(active.size()));
    for (int i = 0; i < unit.rows(); ++i) {
        for (int j = 0; j < unit.cols(); ++j) {
            const auto at_i = static_cast<std::size_t>(i);
            const auto at_j = static_cast<std::size_t>(j);
            if (i != j) {
                unit(i, j) = gram(active[at_i], active[at_j]) / (length[at_i] * length[at_j]);
            }
        }
    }
    return unit;
}

/// True if columns with this Gram matrix, which has a unit diagonal, are nearly orthonormal.
template <class T>
bool is_nearly_identity(const SmallMatrix<T>& unit) {
    for (int i = 0; i < unit.rows(); ++i) {
        for (int j = 0; j < unit.cols(); ++j) {
            // Written so that NaN fails the comparison.
            if (i != j && !(std::abs(unit(i, j)) * static_cast<real_t<T>>(unit.rows()) <=
                            nearly_orthonormal<T>)) {
                return false;
            }
        }
    }
    return true;
}

}  // namespace

/// The state of W in one pass.
template <class T>
struct Orthonormaliser<T>::Pass {
    int number;
    /// The coefficients that the projections took from W.
    SmallMatrix<T> on_v;
    SmallMatrix<T> on_q;
    /// W^H B W after the projections, and its form in twice the precision if the method needs that.
    SmallMatrix<T> gram;
    std::optional<WideGram<T>> wide_gram = {};
    /// The columns that are not dropped, and their lengths after the projections.
    std::vector<int> active = {};
    std::vector<Real> length = {};
    /// The largest factor by which the projections shortened a column.
    Real cancellation = 1;
    /// False in the first pass. Otherwise true if the block was orthonormal to a tenth before this
    /// pass; it is then orthonormal after the pass.
    bool good = number > 1;
};

template <class T>
Orthonormaliser<T>::Orthonormaliser(Context& ctx, const OrthTask<T>& task)
    : ctx_(ctx),
      task_(task),
      w_(task.w),
      bw_(task.bw),
      h_(task.v.x.cols, w_.cols),
      g_(task.q.x.cols, w_.cols),
      t_(SmallMatrix<T>::identity(w_.cols)),
      dead_(static_cast<std::size_t>(w_.cols), false),
      input_norm_(static_cast<std::size_t>(w_.cols), Real(0)),
      noise_(missing_noise<T>(bases(), w_.cols)) {
    if (task.inner.b != nullptr && w_.cols > 0) {
        if (!task.bw_given) {
            multiply();
        }
        two_norm_.resize(static_cast<std::size_t>(w_.cols));
        norms(ctx, w_, std::span<Real>(two_norm_));
    }
}

template <class T>
OrthResult<T> Orthonormaliser<T>::run() {
    OrthResult<T> result;
    bool done = w_.cols == 0;
    while (!done && result.passes < max_passes) {
        ++result.passes;
        done = make_pass(result.passes, result);
    }
    if (!done) {
        fail(std::to_string(w_.cols) + " columns against " + std::to_string(bases()) +
             " did not become orthonormal in " + std::to_string(max_passes) +
             " passes; is the basis orthonormal?");
    }
    if (result.breakdown < 0) {
        compact(result);
    }
    return result;
}

/// Makes one pass; returns true if W needs no further pass or the method has broken down.
template <class T>
bool Orthonormaliser<T>::make_pass(int number, OrthResult<T>& result) {
    Pass pass = project_block(number);
    if (number == 1 && task_.method == OrthMethod::tsqr) {
        return householder_pass(pass.on_v, pass.on_q);
    }
    if (number == 1 && task_.method == OrthMethod::mixed_cholesky_qr) {
        pass.wide_gram.emplace(ctx_, w_);
        pass.gram = pass.wide_gram->rounded();
    }
    if (number == 1 && task_.inner.b == nullptr) {
        enlarge_tiny_columns(pass);
    }
    check_finite(pass.on_v, pass.gram);
    if (task_.inner.b != nullptr) {
        make_hermitian(pass.gram, number == 1);
    }
    add_coefficients(pass.on_v, pass.on_q);
    result.breakdown = measure_columns(pass);
    if (result.breakdown >= 0) {
        return true;
    }
    const SmallMatrix<T> unit = unit_gram(pass.gram, pass.active, pass.length);
    pass.good = pass.good && is_nearly_identity(unit);
    const GramStep<T> step =
        pass.wide_gram ? pass.wide_gram->factor(pass.length) : factor(unit, number);
    if (step.breakdown >= 0) {
        result.breakdown = pass.active[static_cast<std::size_t>(step.breakdown)];
        return true;
    }
    result.used_svqb = result.used_svqb || step.used_svqb;
    if (task_.inner.b != nullptr) {
        grow_drift(pass, step.s);
    }
    const bool last = is_last(number, pass.good);
    apply(step, pass, !last);
    return last;
}

/// Projects W against V and task.q, in the first pass and in those that project again. Forms the
/// Gram matrix of W, unless the method forms another one.
template <class T>
auto Orthonormaliser<T>::project_block(int number) -> Pass {
    Pass pass{.number = number,
              .on_v = SmallMatrix<T>(task_.v.x.cols, w_.cols),
              .on_q = SmallMatrix<T>(0, w_.cols),
              .gram = SmallMatrix<T>(w_.cols, w_.cols)};
    if (number > 1 && !projects_again()) {
        gram_of_w(pass.gram);
        return pass;
    }
    const bool needs_gram = number > 1 || (task_.method != OrthMethod::tsqr &&
                                           task_.method != OrthMethod::mixed_cholesky_qr);
    // The last update of W also computes the Gram matrix.
    SmallMatrix<T>* const gram = needs_gram ? &pass.gram : nullptr;
    const bool on_both = task_.q.x.cols > 0;
    pass.on_v = project(task_.v, on_both ? nullptr : gram);
    if (on_both) {
        pass.on_q = project(task_.q, gram);
    }
    return pass;
}

/// Measures the columns of W, and drops missing ones if the method reveals the rank. Otherwise
/// returns the first missing column; -1: none.
template <class T>
int Orthonormaliser<T>::measure_columns(Pass& pass) {
    for (int j = 0; j < w_.cols; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (dead_[at]) {
            continue;
        }
        const Real left = std::sqrt(std::max(real_part(pass.gram(j, j)), Real(0)));
        const Real taken = std::hypot(column_norm(pass.on_v, j), column_norm(pass.on_q, j));
        if (pass.number == 1) {
            // Noise is relative to ||w||_2, and B can amplify it by up to sqrt(||B||).
            input_norm_[at] = std::hypot(left, taken) * real_part(t_(j, j));
            if (task_.inner.b != nullptr) {
                input_norm_[at] =
                    std::max(input_norm_[at], std::sqrt(task_.inner.norm) * two_norm_[at]);
            }
        }
        if (reveals_rank() && is_missing(j, left)) {
            drop(j);
            pass.good = false;
            continue;
        }
        if (!(left > Real(0))) {
            return j;
        }
        pass.good = pass.good && taken <= nearly_orthonormal<T> * left;
        pass.cancellation = std::max(pass.cancellation, std::hypot(left, taken) / left);
        pass.active.push_back(j);
        pass.length.push_back(left);
    }
    return -1;
}

/// Multiplies drift_ by the growth of the relative error of B W in this pass, whose step is W <- W
/// S.
template <class T>
void Orthonormaliser<T>::grow_drift(const Pass& pass, const SmallMatrix<T>& s) {
    // If B V is not given, the product B W was formed after the projection, so it has no
    // cancellation.
    drift_ *= task_.v.x.cols == task_.v.bx.cols ? pass.cancellation : Real(1);
    Real scaling = 1;
    for (int j = 0; j < s.cols(); ++j) {
        scaling = std::max(scaling, column_norm(s, j));
    }
    drift_ *= scaling;
}

template <class T>
bool Orthonormaliser<T>::is_last(int number, bool good) const {
    switch (task_.method) {
        case OrthMethod::cholesky_qr:
        case OrthMethod::tsqr:
            return number == (projects_again() ? 2 : 1);
        case OrthMethod::cholesky_qr2:
        case OrthMethod::mixed_cholesky_qr:
            return number == 2;
        default:
            return good;
    }
}

/// The first pass of TSQR, which needs no Gram matrix.
template <class T>
bool Orthonormaliser<T>::householder_pass(const SmallMatrix<T>& on_v, const SmallMatrix<T>& on_q) {
    add_coefficients(on_v, on_q);
    t_ = tsqr(ctx_, w_);
    check_finite(on_v, t_);
    return is_last(1, false);
}

template <class T>
GramStep<T> Orthonormaliser<T>::factor(const SmallMatrix<T>& unit, int number) const {
    switch (task_.method) {
        case OrthMethod::robust:
            return safe_step(unit);
        case OrthMethod::svqb:
            return svqb_step(unit);
        case OrthMethod::shifted_cholesky_qr3:
            return shifted_step(unit, number == 1);
        default:
            break;
    }
    GramStep<T> step = cholesky_step(unit);
    // In the last pass of a method with a fixed number of passes the block must be nearly
    // orthonormal.
    for (int i = 0; i < step.s.rows() && number > 1 && step.breakdown < 0; ++i) {
        step.breakdown = abs_squared(step.s_inverse(i, i)) < least_last_pivot<T> ? i : -1;
    }
    return step;
}

/// Multiplies the columns of the input whose squares underflow by a power of two, and divides T by
/// it; computes the Gram matrices again if there are such columns.
template <class T>
void Orthonormaliser<T>::enlarge_tiny_columns(Pass& pass) {
    using Limits = std::numeric_limits<Real>;
    const Real least = std::sqrt(Limits::min() / Limits::epsilon());
    const Real factor = std::ldexp(Real(1), Limits::max_exponent / 4 * 3);
    std::vector<T> factors(static_cast<std::size_t>(w_.cols), T(1));
    bool any = false;
    for (int j = 0; j < w_.cols; ++j) {
        const Real left = std::sqrt(std::max(real_part(pass.gram(j, j)), Real(0)));
        if (!(std::hypot(left, column_norm(pass.on_v, j), column_norm(pass.on_q, j)) < least)) {
            continue;
        }
        any = true;
        factors[static_cast<std::size_t>(j)] = T(factor);
        t_(j, j) = T(1 / factor);
        for (SmallMatrix<T>* const taken : {&pass.on_v, &pass.on_q}) {
            for (int i = 0; i < taken->rows(); ++i) {
                (*taken)(i, j) *= factor;
            }
        }
    }
    if (any) {
        scale(ctx_, std::span<const T>(factors), w_);
        gram_of_w(pass.gram);
    }
    if (any && pass.wide_gram) {
        pass.wide_gram.emplace(ctx_, w_);
    }
}

/// W <- W - basis (basis^H B W), panel by panel for modified Gram-Schmidt. `gram` receives W^H B W
/// of the result unless it is null.
template <class T>
SmallMatrix<T> Orthonormaliser<T>::project(const OrthBasis<T>& basis, SmallMatrix<T>* gram) {
    SmallMatrix<T> coefficients(basis.x.cols, w_.cols);
    const int cols = basis.x.cols;
    const int width = task_.projection == Projection::modified ? task_.panel : std::max(1, cols);
    for (int first = 0; first < cols; first += width) {
        const int count = std::min(width, cols - first);
        const OrthBasis<T> panel{basis.x.columns(first, count), basis.bx.cols > 0
                                                                    ? basis.bx.columns(first, count)
                                                                    : BlockView<const T>()};
        project_panel(panel, coefficients.view().row_range(first, count),
                      first + count == cols ? gram : nullptr);
    }
    if (cols == 0 && gram != nullptr) {
        gram_of_w(*gram);
    }
    return coefficients;
}

template <class T>
void Orthonormaliser<T>::project_panel(const OrthBasis<T>& panel, BlockView<T> coefficients,
                                       SmallMatrix<T>* gram) {
    const bool with_b = task_.inner.b != nullptr;
    const bool known = panel.bx.cols > 0;
    tsmttsm(ctx_, T(1), with_b && known ? panel.bx : panel.x, with_b && !known ? bw_ : w_, T(0),
            coefficients, task_.reduce);
    if (!with_b && gram != nullptr) {
        tsmm_gram(ctx_, T(-1), panel.x, coefficients, T(1), w_, *gram, task_.reduce);
        return;
    }
    tsmm(ctx_, T(-1), panel.x, coefficients, T(1), w_);
    if (with_b && known) {
        tsmm(ctx_, T(-1), panel.bx, coefficients, T(1), bw_);
    } else if (with_b) {
        multiply();
    }
    if (gram != nullptr) {
        gram_of_w(*gram);
    }
}

template <class T>
void Orthonormaliser<T>::gram_of_w(SmallMatrix<T>& gram) {
    if (scaled_gram_) {
        gram = *std::exchange(scaled_gram_, std::nullopt);
    } else {
        tsmttsm(ctx_, T(1), w_, task_.inner.b == nullptr ? w_ : bw_, T(0), gram, task_.reduce);
    }
}

template <class T>
void Orthonormaliser<T>::add_coefficients(const SmallMatrix<T>& on_v, const SmallMatrix<T>& on_q) {
    const auto add = [&](SmallMatrix<T>& sum, const SmallMatrix<T>& taken) {
        const SmallMatrix<T> share = product(taken, t_);
        for (int i = 0; i < share.rows(); ++i) {
            for (int j = 0; j < share.cols(); ++j) {
                sum(i, j) += share(i, j);
            }
        }
    };
    add(h_, on_v);
    add(g_, on_q);
}

template <class T>
void Orthonormaliser<T>::multiply() {
    guarded_.apply<T>(ctx_, *task_.inner.b, w_, bw_);
    drift_ = 1;
}

/// Raises the norms of W's input columns to those of its present columns: if B is nearly singular,
/// V may hold long columns, and the projection then makes short columns long.
template <class T>
void Orthonormaliser<T>::see_projected_norms() {
    std::vector<Real> present(two_norm_.size());
    norms(ctx_, w_, std::span<Real>(present));
    for (std::size_t j = 0; j < present.size(); ++j) {
        two_norm_[j] = std::max(two_norm_[j], present[j]);
    }
}

/// Replaces W^H B W, which is Hermitian only up to rounding, by its Hermitian part. In the `first`
/// pass, in which the 2-norms of W's columns are known, throws if W^H B W is farther from Hermitian
/// than rounding allows or has a negative diagonal entry.
template <class T>
void Orthonormaliser<T>::make_hermitian(SmallMatrix<T>& gram, bool first) {
    const auto allowed = [&](int i, int j) {
        return std::sqrt(epsilon_v<T>) * task_.inner.norm * two_norm_[static_cast<std::size_t>(i)] *
               two_norm_[static_cast<std::size_t>(j)];
    };
    const auto defect = [&](int i, int j) {
        return std::abs(gram(i, j) - conjugate(gram(j, i))) / 2;
    };
    if (first) {
        bool seems_hermitian = true;
        for (int i = 0; i < w_.cols; ++i) {
            for (int j = 0; j <= i; ++j) {
                seems_hermitian = seems_hermitian && defect(i, j) <= allowed(i, j);
            }
        }
        if (!seems_hermitian) {
            see_projected_norms();
        }
    }
    for (int i = 0; i < w_.cols; ++i) {
        for (int j = 0; j <= i; ++j) {
            const T mean = (gram(i, j) + conjugate(gram(j, i))) / Real(2);
            if (first) {
                if (defect(i, j) > allowed(i, j)) {
                    fail("B is not Hermitian: <w, B u> and <B w, u> differ for columns " +
                         column_name(j) + " and " + column_name(i));
                }
                if (i == j && real_part(mean) < -allowed(i, i)) {
                    fail(IndefiniteError(
                        IndefiniteError::Operand::mass,
                        "block Gram-Schmidt: B is not positive definite: <w, B w> = " +
                            number_text(static_cast<double>(real_part(mean))) + " for column " +
                            column_name(i)));
                }
            }
            gram(i, j) = mean;
            gram(j, i) = conjugate(mean);
        }
    }
}

/// W <- W D^-1 S, T <- S^-1 D T on the active columns; dropped columns stay zero. `again`: another
/// pass follows.
template <class T>
void Orthonormaliser<T>::apply(const GramStep<T>& step, const Pass& pass, bool again) {
    const std::vector<int>& active = pass.active;
    const int n = static_cast<int>(active.size());
    SmallMatrix<T> s = SmallMatrix<T>::identity(w_.cols);
    SmallMatrix<T> t_active(n, w_.cols);
    for (int i = 0; i < n; ++i) {
        const int row = active[static_cast<std::size_t>(i)];
        const Real d = pass.length[static_cast<std::size_t>(i)];
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
    if (task_.inner.b != nullptr) {
        tsmm(ctx_, T(1), w_, s.view(), T(0), w_);
        if (again && drift_ > max_drift) {
            multiply();
        } else {
            tsmm(ctx_, T(1), bw_, s.view(), T(0), bw_);
        }
    } else if (again && !projects_again()) {
        scaled_gram_.emplace(w_.cols, w_.cols);
        tsmm_gram(ctx_, T(1), w_, s.view(), T(0), w_, *scaled_gram_, task_.reduce);
    } else {
        tsmm(ctx_, T(1), w_, s.view(), T(0), w_);
    }
}

/// True if the remainder of direction j, of length `left`, is rounding noise of the input columns.
template <class T>
bool Orthonormaliser<T>::is_missing(int j, Real left) const {
    Real share = 0;
    for (int k = 0; k < w_.cols; ++k) {
        const Real norm = input_norm_[static_cast<std::size_t>(k)];
        if (norm > 0) {
            share = std::max(share, std::abs(t_(j, k)) / norm);
        }
    }
    return !(left * share > noise_);
}

template <class T>
void Orthonormaliser<T>::drop(int j) {
    dead_[static_cast<std::size_t>(j)] = true;
    for (int k = 0; k < w_.cols; ++k) {
        t_(j, k) = T(0);
    }
    fill(ctx_, T(0), w_.columns(j, 1));
    if (task_.inner.b != nullptr) {
        fill(ctx_, T(0), bw_.columns(j, 1));
    }
}

template <class T>
void Orthonormaliser<T>::check_finite(const SmallMatrix<T>& projection,
                                      const SmallMatrix<T>& gram) {
    std::string bad;
    for (int j = 0; j < w_.cols; ++j) {
        bool finite = is_finite(gram(j, j));
        for (int i = 0; i < projection.rows(); ++i) {
            finite = finite && is_finite(projection(i, j));
        }
        if (!finite) {
            bad += (bad.empty() ? "" : ", ") + column_name(j);
        }
    }
    if (!bad.empty()) {
        guarded_.rethrow();
        fail("NaN, infinity or squares that overflow in column " + bad +
             (task_.inner.b == nullptr ? "" : " or of its product with B, which may have failed"));
    }
}

template <class T>
void Orthonormaliser<T>::compact(OrthResult<T>& result) {
    std::vector<int> alive;
    for (int j = 0; j < w_.cols; ++j) {
        if (!dead_[static_cast<std::size_t>(j)]) {
            alive.push_back(j);
        }
    }
    result.columns = result.rank = static_cast<int>(alive.size());
    if (result.columns < w_.cols) {
        gather_columns(ctx_, w_, alive, w_.columns(0, result.columns));
        if (task_.inner.b != nullptr) {
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

/// All ranks have the same small matrices, so they fail together, unless the task is restricted to
/// this rank.
template <class T>
void Orthonormaliser<T>::fail(const std::string& text) const {
    fail(NumericalError("block Gram-Schmidt: " + text));
}

template <class T>
template <class Failure>
void Orthonormaliser<T>::fail(Failure error) const {
    if (task_.reduce == Reduce::all_ranks) {
        error.set_collective();
    }
    throw error;
}

template <class T>
int complete(Context& ctx, OrthTask<T> task, int have, int wanted, std::int64_t first_row,
             std::uint64_t seed, int& passes) {
    const BlockView<T> w = task.w;
    const BlockView<T> bw = task.bw;
    for (int attempt = 0; attempt < max_completions && have < wanted;) {
        const int width = std::min(wanted - have, widest_orth_panel);
        task.w = w.columns(have, width);
        fill_random(ctx, seed, first_row, attempt * w.cols + have, task.w);
        task.q.x = w.columns(0, have);
        if (task.inner.b != nullptr) {
            task.q.bx = bw.columns(0, have);
            task.bw = bw.columns(have, width);
            task.bw_given = false;
        }
        const OrthResult<T> more = Orthonormaliser<T>(ctx, task).run();
        have += more.columns;
        passes += more.passes;
        attempt += more.columns < width ? 1 : 0;
    }
    return have;
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template int complete(Context&, OrthTask<T>, int, int, std::int64_t, std::uint64_t, int&); \
    template class Orthonormaliser<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
