// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/block_lanczos.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "solvers/eigen/lanczos_basis.hpp"

namespace quiver {
namespace {

constexpr int max_block = 32;
/// Residuals below this many units of round-off of ||A|| are noise of the products themselves.
constexpr double attainable_units = 32;
/// A pair is locked a little below the tolerance, so that the fresh residual meets it.
constexpr double lock_margin = 0.7;
/// The complement's extreme Ritz value counts as outside when it is this many residuals, times the
/// square root of the rows, away: see docs/solvers.md.
constexpr double outside_margin = 100;
/// Where refinements do not help, the tolerance is raised to what fresh residuals attain, up to
/// this many times the attainable of a usual matrix.
constexpr double attainable_slack = 16;
/// Matrices up to this many rows get a basis that may span the whole space.
constexpr std::int64_t small_rows = 512;
constexpr int max_pairs = 1 << 20;
constexpr int max_refinements = 5;

int block_width(const EigenOptions& options) {
    return options.block > 0 ? options.block : std::min(4, options.k);
}

void check_options(const EigenOptions& options, std::int64_t rows) {
    const auto refuse = [](const std::string& text) {
        InputError error("block_lanczos: " + text);
        error.set_collective();  // options and global sizes are the same on every rank
        throw error;
    };
    if (options.k > max_pairs) {
        refuse("k = " + std::to_string(options.k) + " eigenpairs, " + std::to_string(max_pairs) +
               " are the most");
    }
    if (options.k < 1 || options.k > rows) {
        refuse("k = " + std::to_string(options.k) + " eigenpairs of a matrix with " +
               std::to_string(rows) + " rows");
    }
    if (options.block < 0 || options.block > max_block || options.block > rows) {
        refuse("block = " + std::to_string(options.block) + ", must be 1 to " +
               std::to_string(std::min<std::int64_t>(max_block, rows)));
    }
    if (!(options.tol > 0 && options.tol < 1)) {
        refuse("tol = " + std::to_string(options.tol) + ", must be above 0 and below 1");
    }
    const std::int64_t least = least_basis(options, rows);
    if (options.max_basis != 0 && (options.max_basis < least || options.max_basis > max_pairs)) {
        refuse("max_basis = " + std::to_string(options.max_basis) + ", must be " +
               std::to_string(least) + " to " + std::to_string(max_pairs) + ", or 0");
    }
    if (options.max_iterations < 1) {
        refuse("max_iterations = " + std::to_string(options.max_iterations));
    }
}

int checked_block_width(const EigenOptions& options, std::int64_t rows) {
    check_options(options, rows);
    return block_width(options);
}

/// Columns of the search space: what was asked for or k + 16 blocks, but no less than a restart
/// needs.
int search_width(const EigenOptions& options, int block, std::int64_t rows) {
    int wanted = options.max_basis;
    if (wanted == 0) {
        wanted = std::max({2 * options.k + 4 * block, options.k + 16 * block, 24});
        if (rows <= small_rows) {
            wanted = static_cast<int>(rows);
        }
    }
    return static_cast<int>(
        std::min(rows, std::max<std::int64_t>(wanted, least_basis(options, rows))));
}

/// How a search in the complement of the locked pairs ended.
enum class SearchEnd { found, out_of_iterations };
enum class VerifyEnd { nothing_inside, taken_in, out_of_iterations };

template <class T>
class BlockLanczos {
  public:
    BlockLanczos(Context& ctx, Operator<T>& a, const EigenOptions& options)
        : ctx_(ctx),
          map_(a.row_map()),
          options_(options),
          block_(checked_block_width(options, a.row_map().global_rows())),
          tol_(std::max(options.tol, attainable_units * static_cast<double>(epsilon_v<T>))),
          max_search_(search_width(options, block_, a.row_map().global_rows())),
          basis_(ctx, a, options.which, options.seed, max_search_,
                 static_cast<int>(std::min<std::int64_t>(a.row_map().global_rows(),
                                                         options.k + 2 * verify_width()))) {}

    EigenResult<T> run() {
        EigenResult<T> result;
        basis_.start(block_);
        int refinements = 0;
        for (bool finished = false; !finished;) {
            if (search() == SearchEnd::out_of_iterations) {
                result.message = "stopped after " + std::to_string(basis_.steps()) +
                                 " block steps with " +
                                 std::to_string(std::min(basis_.locked(), options_.k)) + " of " +
                                 std::to_string(options_.k) + " pairs converged";
                keep_best_unconverged();
                break;
            }
            basis_.refine();
            if (const int above = wanted_above_tolerance(); above > 0) {
                if (++refinements <= max_refinements) {
                    basis_.drop_beyond(options_.k);
                    basis_.search_again_above(threshold());
                    continue;
                }
                if (!raise_tolerance()) {
                    result.message = "fresh residuals of " + std::to_string(above) +
                                     " pairs stay above the tolerance";
                    break;
                }
            }
            switch (verify()) {
                case VerifyEnd::nothing_inside:
                    result.multiplicity = Multiplicity::verified;
                    finished = true;
                    break;
                case VerifyEnd::taken_in:
                    break;
                case VerifyEnd::out_of_iterations:
                    result.message = "stopped after " + std::to_string(basis_.steps()) +
                                     " block steps, before the multiplicity was verified";
                    finished = true;
                    break;
            }
        }
        fill_in(result);
        return result;
    }

  private:
    double threshold() const { return tol_ * basis_.norm(); }
    double attainable() const {
        return attainable_units * static_cast<double>(epsilon_v<T>) * basis_.norm();
    }

    /// To the largest fresh residual of the wanted pairs, if rounding can explain it.
    bool raise_tolerance() {
        const auto begin = basis_.locked_residuals().begin();
        const double worst = *std::max_element(begin, begin + options_.k);
        if (worst > attainable_slack * attainable()) {
            return false;
        }
        tol_ = std::max(tol_, worst / basis_.norm());
        return true;
    }

    int converged_prefix() const { return basis_.converged_prefix(lock_margin * threshold()); }
    int verify_width() const { return std::max(block_, 2); }
    bool out_of_iterations() const { return basis_.steps() >= options_.max_iterations; }
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

    void report(const char* stage) const {
        const int converged = converged_prefix();
        const int next = std::min(basis_.size() - 1, converged);
        ctx_.emit(IterationEvent{"lanczos", basis_.steps(),
                                 std::min(options_.k, basis_.locked() + converged), options_.k,
                                 basis_.norm() > 0 ? basis_.ritz_residual(next) / basis_.norm() : 0,
                                 seconds(), stage});
    }

    /// Until k pairs are locked.
    SearchEnd search() {
        while (basis_.locked() < options_.k) {
            if (out_of_iterations()) {
                return SearchEnd::out_of_iterations;
            }
            if (basis_.next_width() == 0) {
                basis_.start(block_);
            }
            basis_.step();
            const int wanted = options_.k - basis_.locked();
            if (!basis_.full() && !(basis_.size() >= wanted && basis_.ritz_due())) {
                continue;
            }
            basis_.ritz();
            report("search");
            const int lock = std::min(converged_prefix(), wanted);
            if (lock == wanted || basis_.full()) {
                basis_.restart(lock, wanted - lock);
            }
        }
        return SearchEnd::found;
    }

    int wanted_above_tolerance() const {
        const auto begin = basis_.locked_residuals().begin();
        return static_cast<int>(
            std::count_if(begin, begin + std::min(basis_.locked(), options_.k),
                          [&](double residual) { return residual > threshold(); }));
    }

    /// Out of iterations: the best Ritz vectors fill the places that are missing.
    void keep_best_unconverged() {
        if (basis_.size() > 0) {
            basis_.ritz();
            basis_.restart(std::min(basis_.size(), options_.k - basis_.locked()), 0);
        }
    }

    /// Searches the complement of the k best locked pairs from fresh random columns.
    VerifyEnd verify() {
        basis_.drop_beyond(options_.k);
        basis_.start(verify_width());
        const double margin = outside_margin * std::sqrt(static_cast<double>(map_.global_rows()));
        bool taken_in = false;
        while (basis_.next_width() > 0 || basis_.size() > 0) {
            if (out_of_iterations()) {
                return VerifyEnd::out_of_iterations;
            }
            if (basis_.next_width() > 0) {
                basis_.step();
            }
            if (!basis_.full() && !basis_.ritz_due()) {
                continue;
            }
            basis_.ritz();
            report("verify");
            const double last = last_wanted_key();
            const double gap = basis_.key(basis_.ritz_value(0)) - last;
            const double rho = basis_.ritz_residual(0);
            // The tolerance does not count here: a loose one would settle for a mixture.
            const bool settled = rho <= lock_margin * std::min(threshold(), attainable());
            const bool outside = gap > threshold() && margin * rho <= gap;
            if (settled || outside) {
                const double resolution = threshold() + rho;
                if (gap >= -resolution) {
                    cluster_cut_ = gap <= resolution;
                    break;
                }
                int inside = 0;
                const int converged = converged_prefix();
                while (inside < converged &&
                       basis_.key(basis_.ritz_value(inside)) < last - resolution) {
                    ++inside;
                }
                taken_in = true;
                basis_.restart(inside, verify_width());
                if (basis_.locked() == basis_.max_locked()) {
                    break;
                }
            } else if (basis_.full()) {
                basis_.restart(0, verify_width());
            }
        }
        return taken_in ? VerifyEnd::taken_in : VerifyEnd::nothing_inside;
    }

    /// Key of the k-th best locked pair.
    double last_wanted_key() const {
        std::vector<double> keys;
        for (const double value : basis_.locked_values()) {
            keys.push_back(basis_.key(value));
        }
        const auto at = keys.begin() + (options_.k - 1);
        std::nth_element(keys.begin(), at, keys.end());
        return *at;
    }

    void fill_in(EigenResult<T>& result) {
        if (!basis_.refined()) {
            basis_.refine();
        }
        // Sorted by key; ascending from here on.
        const int count = std::min(basis_.locked(), options_.k);
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        if (options_.which == Which::largest) {
            std::reverse(order.begin(), order.end());
        }
        ctx_.comm().agree([&] { result.vectors = BlockVector<T>(ctx_, map_, count); });
        basis_.extract(order, result.vectors.view());
        bool within = count == options_.k;
        for (const int j : order) {
            const auto at = static_cast<std::size_t>(j);
            result.eigenvalues.push_back(basis_.locked_values()[at]);
            result.residuals.push_back(basis_.locked_residuals()[at]);
            within = within && result.residuals.back() <= threshold();
        }
        result.norm_estimate = basis_.norm();
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.converged = within && result.multiplicity == Multiplicity::verified;
        result.cluster_cut = cluster_cut_;
        result.iterations = basis_.steps();
        result.operator_applications = basis_.applications();
        result.block = block_;
        result.basis = max_search_;
        result.seconds = seconds();
        if (!result.converged && result.message.empty()) {
            result.message = "fresh residuals are above the tolerance";
        }
    }

    Context& ctx_;
    RowMap map_;
    EigenOptions options_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    int block_;
    double tol_;
    int max_search_;
    LanczosBasis<T> basis_;
    bool cluster_cut_ = false;
};

}  // namespace

std::int64_t least_basis(const EigenOptions& options, std::int64_t rows) {
    return std::min<std::int64_t>(rows,
                                  std::int64_t{options.k} + 3 * std::max(block_width(options), 2));
}

template <class T>
EigenResult<T> block_lanczos(Context& ctx, Operator<T>& a, const EigenOptions& options) {
    return BlockLanczos<T>(ctx, a, options).run();
}

template EigenResult<float> block_lanczos(Context&, Operator<float>&, const EigenOptions&);
template EigenResult<double> block_lanczos(Context&, Operator<double>&, const EigenOptions&);
template EigenResult<std::complex<float>> block_lanczos(Context&, Operator<std::complex<float>>&,
                                                        const EigenOptions&);
template EigenResult<std::complex<double>> block_lanczos(Context&, Operator<std::complex<double>>&,
                                                         const EigenOptions&);

}  // namespace quiver
