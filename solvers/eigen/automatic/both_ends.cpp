// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/automatic/both_ends.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/pencil/solve_with_errors.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/scaled_problem.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/precond/chebyshev.hpp"

namespace quiver {

namespace {

/// The tolerance of the coarse solve that looks for a large |value| at the other end.
constexpr double coarse_tolerance = 1e-2;
/// Vectors that were made orthogonal may have residuals of this many times the tolerance.
constexpr double slack_of_ends = 4;
/// The part of a vector of one end along the other end: up to rounding_of_ends eps it is made of
/// rounding errors; above shared_part, normalising the rest would multiply its errors by more than
/// 3.
constexpr double rounding_of_ends = 1024;
constexpr double shared_part = 0.95;

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

/// Stores in `result` the first `low` pairs and the last count - low pairs, ascending: the ends of
/// a cluster that both have found may overlap by rounding errors.
template <class T>
void store_pairs(Context& ctx, const RowMap& map, Ends<T>& ends, std::size_t low, std::size_t count,
                 EigenResult<T>& result) {
    const auto join = [](const std::vector<double>& first, const std::vector<double>& second) {
        std::vector<double> all(first);
        all.insert(all.end(), second.begin(), second.end());
        return all;
    };
    const std::vector<double> values = join(ends.low.eigenvalues, ends.high.eigenvalues);
    const std::vector<double> residuals = join(ends.low.residuals, ends.high.residuals);
    const std::vector<double> errors = join(ends.low.errors, ends.high.errors);
    std::vector<int> chosen(count);
    for (std::size_t j = 0; j < count; ++j) {
        chosen[j] = static_cast<int>(j < low ? j : values.size() - count + j);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](int i, int j) {
        return values[static_cast<std::size_t>(i)] < values[static_cast<std::size_t>(j)];
    });
    // An interrupted solve with a B has no bounds of errors.
    const bool has_errors = errors.size() == values.size();
    for (const int i : chosen) {
        const auto at = static_cast<std::size_t>(i);
        result.eigenvalues.push_back(values[at]);
        result.residuals.push_back(residuals[at]);
        if (has_errors) {
            result.errors.push_back(errors[at]);
        }
    }
    const BlockVector<T> all =
        side_by_side<T>(ctx, map, columns_of(ends.low), columns_of(ends.high));
    ctx.comm().agree([&] { result.vectors = BlockVector<T>(ctx, map, static_cast<int>(count)); });
    if (count > 0) {
        gather_columns(ctx, std::as_const(all).view(), chosen, result.vectors.view());
    }
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
                second = solve_in_complement(last, left, columns_of(found));
            }
            add(total, second);
        }
        take_pairs(total);
        return total;
    }

  private:
    /// Makes the vectors of the second end orthogonal to those of the first. False if too little of
    /// them is left, because both ends have taken the same copies of an eigenvalue, or if their
    /// residuals are then above the tolerance.
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
        OrthOptions options;
        options.replace_deficient = false;
        const InnerProduct<T> inner = inner_product<T>(ctx_, problem_.b);
        const BlockView<T> none{};
        return largest <= Real(shared_part) &&
               block_gram_schmidt<T>(ctx_, map_, inner, normals, none, x, none, options).columns ==
                   x.cols &&
               pairs_fit(second);
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
                cut = last - next <= resolution(total);
            }
        }
        store_pairs(ctx_, map_, ends_, low, count, total);
        total.cluster_cut = cut;
        total.cut_depth = std::max(ends_.low.cut_depth, ends_.high.cut_depth);
    }

    /// Eigenvalues whose magnitudes differ by less may be equal.
    double resolution(const EigenResult<T>& total) const {
        if (problem_.b == nullptr) {
            return total.tolerance * total.norm_estimate;
        }
        // The norm of A in the units of the problem says nothing about eigenvalues.
        double largest = 0;
        for (const EigenResult<T>* part : {&ends_.low, &ends_.high}) {
            for (const double error : part->errors) {
                largest = std::max(largest, error);
            }
        }
        return 2 * largest;
    }

    /// Computes the residuals of the pairs again, because the vectors have changed or were found in
    /// the complement of others. False if one of them is above slack_of_ends times the tolerance.
    bool pairs_fit(EigenResult<T>& part) {
        const BlockVector<T> normals = constraint_normals(ctx_, part.method, problem_);
        part.residuals = scaled_residuals(
            ctx_, part.method, problem_, std::as_const(part.vectors).view(), part.eigenvalues,
            PencilExponents{even_exponent(part.norm_estimate), 0}, normals.view());
        part.operator_applications += part.vectors.width();
        const double worst = *std::max_element(part.residuals.begin(), part.residuals.end());
        if (!(worst <= slack_of_ends * part.tolerance * part.norm_estimate)) {
            return false;
        }
        if (part.norm_estimate > 0) {
            part.tolerance = std::max(part.tolerance, worst / part.norm_estimate);
            part.tolerance_raised = part.tolerance > options_.tol;
        }
        return true;
    }

    /// k pairs at `end`, orthogonal to the pairs found. Their residuals and errors are those of the
    /// problem, not of its restriction to the complement.
    EigenResult<T> solve_in_complement(Which end, int k, BlockView<const T> found) {
        EigenResult<T> result = solve_end(end, k, options_.tol, found);
        if (!result.converged) {
            return result;
        }
        if (!pairs_fit(result)) {
            withdraw(result,
                     "a residual is above the tolerance: pairs of one end were found in the "
                     "complement of inexact pairs of the other; use dense");
        }
        const std::vector<double> bounds =
            eigenvalue_errors<T>(ctx_, problem_, options_, result).bounds;
        for (std::size_t j = 0; j < bounds.size(); ++j) {
            result.errors[j] = std::max(result.errors[j], bounds[j]);
        }
        return result;
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
        // With a B the tolerance times a norm bounds no eigenvalue.
        const double bound = coarse.errors.empty() ? 0 : coarse.errors.front();
        const double error =
            std::max(4 * coarse.tolerance * std::max(total.norm_estimate, least), bound);
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
    /// Seconds of all solves so far.
    double seconds_ = 0;
};

}  // namespace

template <class T>
EigenResult<T> solve_both_ends(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options) {
    if (problem.checkpoint != nullptr) {
        throw_collective(ErrorKind::input,
                         "eigensolver: eigenvalues at both ends take two solves, and a checkpoint "
                         "holds one: solve for the smallest and for the largest separately");
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
