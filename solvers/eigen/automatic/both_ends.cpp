// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/automatic/both_ends.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/scaled_problem.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/precond/chebyshev.hpp"

namespace quiver {

namespace {

/// The tolerance of the coarse solve that looks for a large |value| at the other end.
constexpr double coarse_tolerance = 1e-2;
/// Residuals of the joined pairs may be this many times the tolerance.
constexpr double slack_of_ends = 4;
/// The part of a vector of one end along those of the other. Up to the first value, in units of
/// eps, they are rounding errors; above the second one the ends share eigenvectors.
constexpr double rounding_of_ends = 1024;
constexpr double shared_part = 0.125;

[[noreturn]] void refuse(const std::string& text) {
    InputError error("eigensolver: " + text);
    error.set_collective();  // the options are the same on all ranks
    throw error;
}

/// The results at both ends, each ascending.
template <class T>
struct Ends {
    EigenResult<T> low;
    EigenResult<T> high;

    EigenResult<T>& at(Which end) { return end == Which::smallest ? low : high; }
};

Which other_end(Which end) {
    return end == Which::smallest ? Which::largest : Which::smallest;
}

template <class T>
BlockView<const T> columns_of(const EigenResult<T>& result) {
    return result.vectors.view();
}

/// The columns of `first`, then those of `second`.
template <class T>
BlockVector<T> side_by_side(Context& ctx, const RowMap& map, BlockView<const T> first,
                            BlockView<const T> second) {
    BlockVector<T> all(ctx, map, first.cols + second.cols);
    if (first.cols > 0) {
        copy(ctx, first, all.columns(0, first.cols));
    }
    if (second.cols > 0) {
        copy(ctx, second, all.columns(first.cols, second.cols));
    }
    return all;
}

/// The number of pairs to take from the low end of `values` (ascending), so that these and the last
/// pairs of the high end are the `count` pairs of largest |value|. The comparison omits the |.| of
/// high values: a negative high value has a smaller |value| than every low value, because low
/// values lie below it.
std::size_t share_of_low_end(const std::vector<double>& values, std::size_t count) {
    std::size_t low = 0;
    while (low < count && -values[low] > values[values.size() - (count - low)]) {
        ++low;
    }
    return low;
}

/// Stores in `result` the first `low` pairs and the last count - low pairs, with their vectors.
template <class T>
void select_pairs(Context& ctx, const RowMap& map, Ends<T>& ends, std::size_t low,
                  std::size_t count, EigenResult<T>& result) {
    const auto join = [](const std::vector<double>& first, const std::vector<double>& second) {
        std::vector<double> all(first);
        all.insert(all.end(), second.begin(), second.end());
        return all;
    };
    result.eigenvalues = join(ends.low.eigenvalues, ends.high.eigenvalues);
    result.residuals = join(ends.low.residuals, ends.high.residuals);
    result.errors = join(ends.low.errors, ends.high.errors);
    const std::size_t size = result.eigenvalues.size();
    const auto drop = [&](std::vector<double>& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(low);
        all.erase(begin, begin + static_cast<std::ptrdiff_t>(size - count));
    };
    drop(result.eigenvalues);
    drop(result.residuals);
    if (!result.errors.empty()) {
        drop(result.errors);
    }
    const BlockVector<T> all =
        side_by_side<T>(ctx, map, columns_of(ends.low), columns_of(ends.high));
    const auto first_high = static_cast<int>(size - (count - low));
    result.vectors = side_by_side<T>(ctx, map, all.columns(0, static_cast<int>(low)),
                                     all.columns(first_high, static_cast<int>(size) - first_high));
}

template <class T>
class BothEnds {
  public:
    BothEnds(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : ctx_(ctx), problem_(problem), options_(options), map_(problem.a.row_map()) {}

    EigenResult<T> solve() {
        const bool magnitude = options_.which == Which::largest_magnitude;
        const Which first = magnitude ? larger_end() : Which::largest;
        const int high = magnitude ? options_.k : options_.k - options_.k / 2;
        EigenResult<T>& found = ends_.at(first);
        found = solve_end(first, high, options_.tol);
        const auto left = static_cast<int>(std::min<std::int64_t>(
            magnitude ? options_.k : options_.k - high, dimensions(problem_) - high));
        EigenResult<T> total = counts(found);
        if (found.converged && left > 0 && !(magnitude && other_end_is_smaller(first, total))) {
            const Which last = other_end(first);
            EigenResult<T>& second = ends_.at(last);
            second = solve_end(last, left, options_.tol);
            if (second.converged && !separate(second, found)) {
                add_work(total, second);
                second = solve_end(last, left, options_.tol, columns_of(found));
                are_changed_ = true;
            }
            add(total, second);
        }
        take_pairs(total);
        if (total.converged && are_changed_) {
            judge_pairs(total);
        }
        return total;
    }

  private:
    /// Makes the vectors of the second end orthogonal to those of the first. False if they are so
    /// far from it that both ends have taken copies of the same eigenvalues.
    bool separate(EigenResult<T>& second, const EigenResult<T>& first) {
        using Real = real_t<T>;
        const BlockView<T> x = second.vectors.view();
        const BlockView<const T> normals = columns_of(first);
        if (x.cols == 0) {
            return true;
        }
        BlockVector<T> images;
        if (problem_.b != nullptr) {
            ctx_.comm().agree([&] { images = BlockVector<T>(ctx_, map_, x.cols); });
            checked_product(ctx_, second.method, *problem_.b, BlockView<const T>(x), images.view());
        }
        const BlockView<const T> bx = problem_.b == nullptr ? x : std::as_const(images).view();
        SmallMatrix<T> shares(normals.cols, x.cols);
        tsmttsm(ctx_, T(1), normals, bx, T(0), shares);
        Real largest(0);
        for (int j = 0; j < x.cols; ++j) {
            Real sum(0);
            for (int i = 0; i < normals.cols; ++i) {
                sum += std::norm(shares(i, j));
            }
            largest = std::max(largest, std::sqrt(sum));
        }
        if (largest <= Real(rounding_of_ends) * epsilon_v<T>) {
            return true;
        }
        if (!(largest <= Real(shared_part))) {
            return false;
        }
        are_changed_ = true;
        OrthOptions options;
        options.replace_deficient = false;
        const InnerProduct<T> inner = inner_product<T>(ctx_, problem_.b);
        const BlockView<T> none{};
        return block_gram_schmidt<T>(ctx_, map_, inner, normals, none, x, none, options).columns ==
               x.cols;
    }

    /// The end at which a few Lanczos steps find the larger |value|. With a B these steps, which
    /// use A alone, say nothing about the pencil: the largest end is taken.
    Which larger_end() {
        if (problem_.b != nullptr) {
            return Which::largest;
        }
        const int exponent = needed_exponents(ctx_, problem_).a;
        ScaledOperator<T> scaled(problem_.a, exponent);
        const SpectrumEstimate estimate = estimate_spectrum<T>(
            ctx_, exponent == 0 ? problem_.a : static_cast<Operator<T>&>(scaled));
        return -estimate.least > estimate.largest ? Which::smallest : Which::largest;
    }

    /// Moves the wanted pairs of both ends to the result.
    void take_pairs(EigenResult<T>& total) {
        std::vector<double> all = ends_.low.eigenvalues;
        all.insert(all.end(), ends_.high.eigenvalues.begin(), ends_.high.eigenvalues.end());
        const std::size_t count = std::min(all.size(), static_cast<std::size_t>(options_.k));
        std::size_t low = ends_.low.eigenvalues.size();
        bool cut = ends_.low.cluster_cut || ends_.high.cluster_cut;
        if (options_.which == Which::largest_magnitude) {
            low = share_of_low_end(all, count);
            if (count < all.size()) {
                const std::size_t high = all.size() - (count - low);
                double last = std::numeric_limits<double>::infinity();
                last = low > 0 ? std::min(last, std::abs(all[low - 1])) : last;
                last = low < count ? std::min(last, std::abs(all[high])) : last;
                const double next = std::max(std::abs(all[low]), std::abs(all[high - 1]));
                cut = last - next <= total.tolerance * total.norm_estimate;
            }
        }
        select_pairs(ctx_, map_, ends_, low, count, total);
        total.cluster_cut = cut;
        total.cut_depth = std::max(ends_.low.cut_depth, ends_.high.cut_depth);
    }

    /// Replaces all residuals by those of the problem after vectors of the second end have changed:
    /// separate() has moved them, or a solve in the complement of the pairs of the first end knows
    /// no components along these.
    void judge_pairs(EigenResult<T>& total) {
        const BlockVector<T> normals = constraint_normals(ctx_, total.method, problem_);
        total.residuals = scaled_residuals(
            ctx_, total.method, problem_, std::as_const(total.vectors).view(), total.eigenvalues,
            PencilExponents{even_exponent(total.norm_estimate), 0}, normals.view());
        total.operator_applications += total.vectors.width();
        const double worst = *std::max_element(total.residuals.begin(), total.residuals.end());
        if (worst > slack_of_ends * total.tolerance * total.norm_estimate) {
            withdraw(total, "a residual is " + number_text(worst / total.norm_estimate, 2) +
                                " ||A||, above the tolerance: pairs of one end were found in the "
                                "complement of inexact pairs of the other; use dense");
        }
    }

    /// k pairs at `end`, orthogonal to `more` columns.
    EigenResult<T> solve_end(Which end, int k, double tol, BlockView<const T> more = {}) {
        EigenOptions options = options_;
        options.which = end;
        options.k = k;
        options.tol = tol;
        EigenProblem<T> problem = problem_;
        BlockVector<T> constraints;
        if (more.cols > 0) {
            ctx_.comm().agree(
                [&] { constraints = side_by_side<T>(ctx_, map_, problem_.constraints, more); });
            problem.constraints = std::as_const(constraints).view();
        }
        options.max_seconds = remaining_seconds(ctx_.comm(), options_, seconds_);
        EigenResult<T> result = eigensolve(ctx_, problem, options);
        seconds_ += result.seconds;
        return result;
    }

    /// True if one coarse pair shows that every |value| at the other end is below those found.
    bool other_end_is_smaller(Which first, EigenResult<T>& total) {
        const std::vector<double>& found = ends_.at(first).eigenvalues;
        const double least = first == Which::largest ? found.front() : -found.back();
        if (least <= 0) {
            return false;
        }
        const EigenResult<T> coarse =
            solve_end(other_end(first), 1, std::max(options_.tol, coarse_tolerance));
        add_work(total, coarse);
        if (!coarse.converged) {
            return false;
        }
        const double value = coarse.eigenvalues.front();
        const double error = 4 * coarse.tolerance * std::max(total.norm_estimate, least);
        return (first == Which::largest ? -value : value) + error < least;
    }

    /// Copies the counts and verdicts of a result without its pairs.
    static EigenResult<T> counts(const EigenResult<T>& part) {
        EigenResult<T> result;
        result.norm_estimate = part.norm_estimate;
        result.tolerance = part.tolerance;
        result.tolerance_raised = part.tolerance_raised;
        result.converged = part.converged;
        result.multiplicity = part.multiplicity;
        result.iterations = part.iterations;
        result.operator_applications = part.operator_applications;
        result.block = part.block;
        result.basis = part.basis;
        result.seconds = part.seconds;
        result.method = part.method;
        result.method_reason = part.method_reason;
        result.library = part.library;
        result.interrupted = part.interrupted;
        result.message = part.message;
        return result;
    }

    static void add_work(EigenResult<T>& total, const EigenResult<T>& part) {
        total.iterations += part.iterations;
        total.operator_applications += part.operator_applications;
        total.seconds += part.seconds;
        total.norm_estimate = std::max(total.norm_estimate, part.norm_estimate);
        total.interrupted = total.interrupted || part.interrupted;
    }

    static void add(EigenResult<T>& total, const EigenResult<T>& part) {
        add_work(total, part);
        if (part.method != total.method) {
            total.method_reason = std::string("at one end ") + to_string(total.method) + ": " +
                                  total.method_reason + "; at the other " + to_string(part.method) +
                                  ": " + part.method_reason;
            total.method = part.method;
        }
        total.library = total.library.empty() ? part.library : total.library;
        total.tolerance = std::max(total.tolerance, part.tolerance);
        total.tolerance_raised = total.tolerance_raised || part.tolerance_raised;
        total.converged = total.converged && part.converged;
        total.multiplicity = std::min(total.multiplicity, part.multiplicity);
        if (total.message.empty()) {
            total.message = part.message;
        }
    }

    Context& ctx_;
    const EigenProblem<T>& problem_;
    const EigenOptions& options_;
    RowMap map_;
    Ends<T> ends_;
    /// Of all solves so far.
    double seconds_ = 0;
    /// True if vectors are no longer those of which the solves have computed residuals.
    bool are_changed_ = false;
};

}  // namespace

template <class T>
EigenResult<T> solve_both_ends(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options) {
    if (problem.checkpoint != nullptr) {
        refuse(
            "eigenvalues at both ends take two solves, and a checkpoint holds one: solve for "
            "the smallest and for the largest separately");
    }
    EigenOptions one_end = options;
    one_end.which = Which::largest;
    check_options(one_end, dimensions(problem));
    return BothEnds<T>(ctx, problem, options).solve();
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> solve_both_ends(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
