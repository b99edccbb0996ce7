// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/block_lanczos.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

constexpr int max_block = 32;
/// Residuals below this many units of round-off of ||A|| are noise of the products themselves.
constexpr double attainable_units = 32;
/// A pair is locked a little below the tolerance, so that the fresh residual meets it.
constexpr double lock_margin = 0.7;
/// The complement's extreme Ritz value counts as outside when it is this many residuals away.
constexpr double outside_margin = 100;
constexpr int max_refinements = 5;

void check_options(const EigenOptions& options, std::int64_t rows) {
    const auto refuse = [](const std::string& text) {
        InputError error("block_lanczos: " + text);
        error.set_collective();  // options and global sizes are the same on every rank
        throw error;
    };
    if (options.k < 1 || options.k > rows) {
        refuse("k = " + std::to_string(options.k) + " eigenpairs of a matrix with " +
               std::to_string(rows) + " rows");
    }
    if (options.block < 0 || options.block > max_block || options.block > rows) {
        refuse("block = " + std::to_string(options.block) + ", must be 1 to " +
               std::to_string(std::min<std::int64_t>(max_block, rows)));
    }
    if (!(options.tol > 0) || !std::isfinite(options.tol)) {
        refuse("tol = " + std::to_string(options.tol) + ", must be a positive number");
    }
    if (options.max_basis < 0) {
        refuse("max_basis = " + std::to_string(options.max_basis));
    }
    if (options.max_iterations < 1) {
        refuse("max_iterations = " + std::to_string(options.max_iterations));
    }
}

int default_basis(int k, int block) {
    return std::max({2 * k + 4 * block, k + 16 * block, 24});
}

/// How a search in the complement of the locked pairs ended.
enum class SearchEnd { found, out_of_iterations };
enum class VerifyEnd { nothing_inside, taken_in, out_of_iterations };

template <class T>
class BlockLanczos {
    using Real = real_t<T>;

  public:
    BlockLanczos(Context& ctx, Operator<T>& a, const EigenOptions& options)
        : ctx_(ctx),
          a_(a),
          options_(options),
          rows_(a.row_map().global_rows()),
          begin_(std::chrono::steady_clock::now()) {
        check_options(options, rows_);
        block_ = options.block > 0 ? options.block : std::min(4, options.k);
        tol_ = std::max(options.tol, attainable_units * static_cast<double>(epsilon_v<T>));
        sign_ = options.which == Which::smallest ? 1 : -1;
        const int wide = std::max(block_, 2);
        const int least_basis = options.k + 3 * wide;
        max_basis_ = static_cast<int>(std::min<std::int64_t>(
            rows_,
            std::max(options.max_basis > 0 ? options.max_basis : default_basis(options.k, block_),
                     least_basis)));
        max_locked_ = static_cast<int>(std::min<std::int64_t>(rows_, options.k + 2 * wide));
        // The next block may be as wide as a refinement's start, all locked pairs; and fresh
        // products of all locked pairs fit behind them.
        basis_ = BlockVector<T>(ctx, a.row_map(), 0, max_locked_ + max_basis_ + max_locked_);
    }

    EigenResult<T> run() {
        EigenResult<T> result;
        start(block_);
        bool finished = false;
        int refinements = 0;
        while (!finished) {
            if (search() == SearchEnd::out_of_iterations) {
                result.message = "stopped after " + std::to_string(iterations_) +
                                 " block steps with " +
                                 std::to_string(std::min(locked_, options_.k)) + " of " +
                                 std::to_string(options_.k) + " pairs converged";
                keep_best_unconverged();
                refine();
                break;
            }
            const int good = refine();
            if (good < options_.k) {
                if (++refinements > max_refinements) {
                    result.message = "fresh residuals of " + std::to_string(options_.k - good) +
                                     " pairs stay above the tolerance";
                    break;
                }
                resume_from_locked(good);
                continue;
            }
            switch (verify()) {
                case VerifyEnd::nothing_inside:
                    refine_if_stale();
                    result.multiplicity = Multiplicity::verified;
                    finished = true;
                    break;
                case VerifyEnd::taken_in:
                    break;
                case VerifyEnd::out_of_iterations:
                    result.message = "stopped after " + std::to_string(iterations_) +
                                     " block steps, before the multiplicity was verified";
                    refine_if_stale();
                    finished = true;
                    break;
            }
        }
        fill_in(result);
        return result;
    }

  private:
    BlockView<T> locked() { return basis_.columns(0, locked_); }
    BlockView<T> search_space() { return basis_.columns(locked_, size_); }
    BlockView<T> everything() { return basis_.columns(0, locked_ + size_); }
    BlockView<T> next_block() { return basis_.columns(locked_ + size_, next_); }
    /// Ordering in which the wanted end comes first.
    double key(double value) const { return sign_ * value; }
    double threshold() const { return tol_ * norm_; }
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }
    OrthOptions orth_options() {
        return {true, options_.seed + 0x9e3779b97f4a7c15u * ++random_streams_};
    }

    /// Empties the search space; the next block is `width` fresh random columns orthogonal to the
    /// locked ones.
    void start(int width) {
        forget_search_space();
        next_ = static_cast<int>(std::min<std::int64_t>(width, rows_ - locked_));
        const OrthOptions options = orth_options();
        fill_random(ctx_, options.seed + 1, basis_.row_map().first_row(), 0, next_block());
        next_ =
            block_gram_schmidt<T>(ctx_, basis_.row_map(), locked(), next_block(), options).columns;
    }

    void forget_search_space() {
        size_ = 0;
        next_ = 0;
        h_ = SmallMatrix<T>(0, 0);
        coupling_ = SmallMatrix<T>(0, 0);
        last_width_ = 0;
        last_checked_ = 0;
    }

    int capacity() const {
        return static_cast<int>(std::min<std::int64_t>(max_basis_, rows_ - locked_));
    }

    /// Moves the next block into the search space, multiplies it and orthogonalises the product:
    /// one step. h_ grows by its columns, next_block() is the new residual block.
    void step() {
        const int old = size_;
        const int width = next_;
        const BlockView<T> current = next_block();
        size_ += width;
        next_ = width;
        a_.apply(ctx_, current, next_block());
        ++iterations_;
        applications_ += width;

        OrthResult<T> orth = block_gram_schmidt<T>(ctx_, basis_.row_map(), everything(),
                                                   next_block(), orth_options());
        SmallMatrix<T> h(size_, size_);
        for (int i = 0; i < old; ++i) {
            for (int j = 0; j < old; ++j) {
                h(i, j) = h_(i, j);
            }
        }
        double skew = 0;
        double size = 0;
        for (int j = 0; j < width; ++j) {
            for (int i = 0; i < size_; ++i) {
                const T above = orth.h(locked_ + i, j);
                size = std::max(size, static_cast<double>(std::abs(above)));
                if (i < old) {
                    h(i, old + j) = above;
                    h(old + j, i) = conjugate(above);
                } else {
                    const T mirrored = conjugate(orth.h(locked_ + old + j, i - old));
                    skew = std::max(skew, static_cast<double>(std::abs(above - mirrored)));
                    h(i, old + j) = (above + mirrored) / Real(2);
                }
            }
        }
        // What couples to the last block must be the adjoint of the residual it came from.
        for (int j = 0; j < std::min(coupling_.rows(), width) && old > 0; ++j) {
            for (int i = 0; i < coupling_.cols(); ++i) {
                const T above = orth.h(locked_ + old - coupling_.cols() + i, j);
                skew = std::max(skew,
                                static_cast<double>(std::abs(above - conjugate(coupling_(j, i)))));
            }
        }
        const double allowed = std::sqrt(static_cast<double>(epsilon_v<T>));
        if (skew > allowed * std::max(size, norm_)) {
            NumericalError error("block_lanczos: the operator is not Hermitian: in step " +
                                 std::to_string(iterations_) + " <u, A v> and <A u, v> differ by " +
                                 std::to_string(skew / std::max(size, norm_)) + " of the norm");
            error.set_collective();
            throw error;
        }
        h_ = std::move(h);
        coupling_ = std::move(orth.r);
        next_ = static_cast<int>(std::min<std::int64_t>(orth.columns, rows_ - locked_ - size_));
        last_width_ = width;
    }

    /// Ritz values, wanted end first, with residual estimates; vectors_ has their coefficients.
    void ritz() {
        HermitianEigen<T> eigen = hermitian_eigen(h_);
        if (!eigen.converged) {
            NumericalError error(
                "block_lanczos: the dense eigensolver failed on a projected "
                "matrix of " +
                std::to_string(size_) + " rows");
            error.set_collective();
            throw error;
        }
        const auto n = static_cast<std::size_t>(size_);
        ritz_value_.resize(n);
        ritz_residual_.resize(n);
        ritz_vector_ = SmallMatrix<T>(size_, size_);
        for (std::size_t j = 0; j < n; ++j) {
            const std::size_t from = sign_ > 0 ? j : n - 1 - j;
            ritz_value_[j] = static_cast<double>(eigen.values[from]);
            norm_ = std::max(norm_, std::abs(ritz_value_[j]));
            for (int i = 0; i < size_; ++i) {
                ritz_vector_(i, static_cast<int>(j)) = eigen.vectors(i, static_cast<int>(from));
            }
        }
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int i = 0; i < next_; ++i) {
                T value = T(0);
                for (int l = 0; l < last_width_; ++l) {
                    value += multiply(coupling_(i, l),
                                      ritz_vector_(size_ - last_width_ + l, static_cast<int>(j)));
                }
                sum += static_cast<double>(abs_squared(value));
            }
            ritz_residual_[j] = std::sqrt(sum);
        }
    }

    /// How many Ritz pairs at the wanted end have converged, without a gap.
    int converged_prefix() const {
        int count = 0;
        while (count < size_ &&
               ritz_residual_[static_cast<std::size_t>(count)] <= lock_margin * threshold()) {
            ++count;
        }
        return count;
    }

    /// Rotates the search space to its best Ritz vectors, locks the first `lock` of them and keeps
    /// some of the rest, followed by the residual block.
    void restart(int lock, int wanted_after) {
        const int free = size_ - lock;
        const int room = capacity() - lock - 2 * std::max(next_, 1);
        const int kept = std::clamp(wanted_after + (free - wanted_after) / 2, 0,
                                    std::max(0, std::min(free, room)));
        const int keep = lock + kept;
        SmallMatrix<T> rotation(size_, keep);
        for (int i = 0; i < size_; ++i) {
            for (int j = 0; j < keep; ++j) {
                rotation(i, j) = ritz_vector_(i, j);
            }
        }
        tsmm(ctx_, T(1), search_space(), rotation.view(), T(0), basis_.columns(locked_, keep));
        if (next_ > 0 && keep < size_) {
            move_columns(locked_ + size_, locked_ + keep, next_);
        }
        for (int j = 0; j < lock; ++j) {
            locked_value_.push_back(ritz_value_[static_cast<std::size_t>(j)]);
            locked_residual_.push_back(ritz_residual_[static_cast<std::size_t>(j)]);
        }
        // The residual block couples to every kept Ritz vector.
        SmallMatrix<T> coupling(next_, kept);
        SmallMatrix<T> h(kept, kept);
        for (int j = 0; j < kept; ++j) {
            h(j, j) = static_cast<Real>(ritz_value_[static_cast<std::size_t>(lock + j)]);
            for (int i = 0; i < next_; ++i) {
                for (int l = 0; l < last_width_; ++l) {
                    coupling(i, j) +=
                        multiply(coupling_(i, l), ritz_vector_(size_ - last_width_ + l, lock + j));
                }
            }
        }
        h_ = std::move(h);
        coupling_ = std::move(coupling);
        last_width_ = kept;
        locked_ += lock;
        size_ = kept;
        refined_ = refined_ && lock == 0;
        ctx_.emit(RestartEvent{"lanczos", iterations_, size_ + next_, kept, locked_});
    }

    void move_columns(int from, int to, int count) {
        // Source and target may overlap: go in pieces no wider than their distance.
        const int stride = from - to;
        for (int first = 0; first < count; first += stride) {
            const int width = std::min(stride, count - first);
            copy(ctx_, basis_.columns(from + first, width), basis_.columns(to + first, width));
        }
    }

    bool full() const { return next_ == 0 || size_ + next_ > capacity(); }

    void report(const char* stage) {
        const auto next = static_cast<std::size_t>(std::min(size_ - 1, converged_prefix()));
        const double residual = size_ > 0 && norm_ > 0 ? ritz_residual_[next] / norm_ : 0;
        ctx_.emit(IterationEvent{"lanczos", iterations_,
                                 std::min(options_.k, locked_ + converged_prefix()), options_.k,
                                 residual, seconds(), stage});
    }

    /// Until k pairs are locked.
    SearchEnd search() {
        while (locked_ < options_.k) {
            if (iterations_ >= options_.max_iterations) {
                return SearchEnd::out_of_iterations;
            }
            if (next_ == 0) {
                start(block_);
            }
            step();
            const int wanted = options_.k - locked_;
            if (!full() && !(size_ >= wanted && check_due())) {
                continue;
            }
            ritz();
            report("search");
            const int converged = std::min(converged_prefix(), max_locked_ - locked_);
            if (converged >= wanted || full()) {
                const int lock = std::min(converged, wanted);
                restart(lock, wanted - lock);
                last_checked_ = size_;
            }
        }
        return SearchEnd::found;
    }

    /// The dense eigenproblem costs size^3: look at it when the basis has grown by a quarter.
    bool check_due() {
        if (size_ - last_checked_ >= std::max(next_, size_ / 4)) {
            last_checked_ = size_;
            return true;
        }
        return false;
    }

    /// Rayleigh-Ritz on the locked pairs with fresh products; sorts them, good ones first by key.
    /// Returns how many of the wanted ones have fresh residuals within the tolerance.
    int refine() {
        const int n = locked_;
        if (n == 0) {
            return 0;
        }
        forget_search_space();
        BlockView<T> x = locked();
        BlockView<T> ax = basis_.columns(n, n);
        for (int first = 0; first < n; first += max_block) {
            const int width = std::min(max_block, n - first);
            a_.apply(ctx_, x.columns(first, width), ax.columns(first, width));
        }
        applications_ += n;
        SmallMatrix<T> h(n, n);
        tsmttsm(ctx_, T(1), x, ax, T(0), h);
        const HermitianEigen<T> eigen = hermitian_eigen(h);
        SmallMatrix<T> rotation(n, n);
        std::vector<T> minus_value(static_cast<std::size_t>(n));
        locked_value_.resize(static_cast<std::size_t>(n));
        for (int j = 0; j < n; ++j) {
            const int from = sign_ > 0 ? j : n - 1 - j;
            const auto at = static_cast<std::size_t>(j);
            locked_value_[at] = static_cast<double>(eigen.values[static_cast<std::size_t>(from)]);
            norm_ = std::max(norm_, std::abs(locked_value_[at]));
            minus_value[at] = T(-static_cast<Real>(locked_value_[at]));
            for (int i = 0; i < n; ++i) {
                rotation(i, j) = eigen.vectors(i, from);
            }
        }
        tsmm(ctx_, T(1), x, rotation.view(), T(0), x);
        tsmm(ctx_, T(1), ax, rotation.view(), T(0), ax);
        const std::vector<T> ones(static_cast<std::size_t>(n), T(1));
        axpby(ctx_, minus_value, x, ones, ax);
        std::vector<Real> residual(static_cast<std::size_t>(n));
        norms(ctx_, ax, std::span<Real>(residual));
        locked_residual_.assign(residual.begin(), residual.end());
        refined_ = true;
        return static_cast<int>(std::count_if(locked_residual_.begin(),
                                              locked_residual_.begin() + std::min(n, options_.k),
                                              [&](double value) { return value <= threshold(); }));
    }

    void refine_if_stale() {
        if (!refined_) {
            refine();
        }
    }

    /// Keeps the `good` pairs locked and searches again from the others.
    void resume_from_locked(int good) {
        std::vector<int> order;
        std::vector<int> bad;
        for (int j = 0; j < std::min(locked_, options_.k); ++j) {
            (locked_residual_[static_cast<std::size_t>(j)] <= threshold() ? order : bad)
                .push_back(j);
        }
        order.insert(order.end(), bad.begin(), bad.end());
        gather_columns(ctx_, basis_.columns(0, locked_), order,
                       basis_.columns(0, static_cast<int>(order.size())));
        std::vector<double> value;
        std::vector<double> residual;
        for (int j = 0; j < good; ++j) {
            const auto from = static_cast<std::size_t>(order[static_cast<std::size_t>(j)]);
            value.push_back(locked_value_[from]);
            residual.push_back(locked_residual_[from]);
        }
        locked_value_ = std::move(value);
        locked_residual_ = std::move(residual);
        locked_ = good;
        forget_search_space();
        next_ = static_cast<int>(bad.size());
    }

    /// Out of iterations: the best Ritz vectors fill the places that are missing.
    void keep_best_unconverged() {
        if (size_ == 0) {
            return;
        }
        ritz();
        restart(std::min({size_, options_.k - locked_, max_locked_ - locked_}), 0);
    }

    /// Searches the complement of the locked pairs from fresh random columns.
    VerifyEnd verify() {
        drop_beyond_wanted();
        start(std::max(block_, 2));
        bool taken_in = false;
        while (next_ > 0 || size_ > 0) {
            if (iterations_ >= options_.max_iterations) {
                return VerifyEnd::out_of_iterations;
            }
            if (next_ > 0) {
                step();
            }
            if (!full() && !check_due()) {
                continue;
            }
            ritz();
            report("verify");
            const double last = wanted_key();
            const double gap = key(ritz_value_[0]) - last;
            const double rho = ritz_residual_[0];
            const bool settled = rho <= lock_margin * threshold();
            if (settled || (gap > threshold() && outside_margin * rho <= gap)) {
                const double resolution = threshold() + rho;
                if (gap >= -resolution) {
                    cluster_cut_ = gap <= resolution;
                    forget_search_space();
                    return taken_in ? VerifyEnd::taken_in : VerifyEnd::nothing_inside;
                }
                int inside = 0;
                const int converged = std::min(converged_prefix(), max_locked_ - locked_);
                while (inside < converged &&
                       key(ritz_value_[static_cast<std::size_t>(inside)]) < last - resolution) {
                    ++inside;
                }
                taken_in = true;
                restart(inside, std::max(block_, 2));
                last_checked_ = size_;
                if (locked_ == max_locked_) {
                    return VerifyEnd::taken_in;
                }
                continue;
            }
            if (full()) {
                restart(0, std::max(block_, 2));
                last_checked_ = size_;
            }
        }
        return taken_in ? VerifyEnd::taken_in : VerifyEnd::nothing_inside;
    }

    /// Key of the k-th best locked pair.
    double wanted_key() const {
        std::vector<double> keys;
        for (const double value : locked_value_) {
            keys.push_back(key(value));
        }
        const auto at = keys.begin() + (options_.k - 1);
        std::nth_element(keys.begin(), at, keys.end());
        return *at;
    }

    /// Locked pairs come sorted from refine(): those beyond the k best make room.
    void drop_beyond_wanted() {
        locked_ = std::min(locked_, options_.k);
        locked_value_.resize(static_cast<std::size_t>(locked_));
        locked_residual_.resize(static_cast<std::size_t>(locked_));
    }

    void fill_in(EigenResult<T>& result) {
        const int count = std::min(locked_, options_.k);
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int i, int j) {
            return locked_value_[static_cast<std::size_t>(i)] <
                   locked_value_[static_cast<std::size_t>(j)];
        });
        result.vectors = BlockVector<T>(ctx_, basis_.row_map(), count);
        gather_columns(ctx_, basis_.columns(0, locked_), order, result.vectors.view());
        bool within = count == options_.k;
        for (const int j : order) {
            const auto at = static_cast<std::size_t>(j);
            result.eigenvalues.push_back(locked_value_[at]);
            result.residuals.push_back(locked_residual_[at]);
            within = within && locked_residual_[at] <= threshold();
        }
        result.norm_estimate = norm_;
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.converged = within && result.multiplicity == Multiplicity::verified;
        result.cluster_cut = cluster_cut_;
        result.iterations = iterations_;
        result.operator_applications = applications_;
        result.block = block_;
        result.basis = max_basis_;
        result.seconds = seconds();
        if (!result.converged && result.message.empty()) {
            result.message = "fresh residuals are above the tolerance";
        }
    }

    Context& ctx_;
    Operator<T>& a_;
    EigenOptions options_;
    std::int64_t rows_;
    std::chrono::steady_clock::time_point begin_;
    int block_ = 0;
    double tol_ = 0;
    int sign_ = 1;
    int max_basis_ = 0;
    int max_locked_ = 0;

    // Columns of basis_: locked pairs, search space, next block.
    BlockVector<T> basis_;
    int locked_ = 0;
    int size_ = 0;
    int next_ = 0;
    std::vector<double> locked_value_;
    std::vector<double> locked_residual_;
    bool refined_ = false;

    // A V = V h_ + F coupling_ E^T: F the next block, E the last last_width_ columns of V.
    SmallMatrix<T> h_;
    SmallMatrix<T> coupling_;
    int last_width_ = 0;
    std::vector<double> ritz_value_;
    std::vector<double> ritz_residual_;
    SmallMatrix<T> ritz_vector_;

    double norm_ = 0;
    int last_checked_ = 0;
    bool cluster_cut_ = false;
    std::int64_t iterations_ = 0;
    std::int64_t applications_ = 0;
    std::uint64_t random_streams_ = 0;
};

}  // namespace

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
