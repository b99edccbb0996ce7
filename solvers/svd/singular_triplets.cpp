// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/svd/singular_triplets.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/dense_operator.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/equal_options.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/small_dense_svd.hpp"
#include "solvers/svd/singular_signs.hpp"
#include "solvers/svd/tall_svd.hpp"
#include "solvers/svd/wide_products.hpp"

namespace quiver {
namespace {

/// The most rows or columns of a matrix that becomes a dense block, and the most bytes of the block
/// over all ranks.
constexpr std::int64_t most_dense_columns = 512;
constexpr double most_dense_bytes = 1 << 30;
/// The same where products with A^H A cannot find small triplets of a matrix that is stored as a
/// dense one: 1,200 x 1,100 doubles take 7 s of one core, 3,000 x 2,000 take 42 s.
constexpr std::int64_t most_dense_columns_of_small_values = 2048;

/// For up to this many of the largest triplets on hosts block Lanczos comes first: it takes a third
/// of the products of other methods, and steps with this many columns verify multiplicities.
constexpr int most_lanczos_triplets = 128;
constexpr int lanczos_block = 6;
/// Another method takes over if the residual of the first pair is still this large after this many
/// steps, because the largest singular values are crowded, or after many more steps.
constexpr std::int64_t crowding_step = 40;
constexpr double crowding_residual = 1e-3;
constexpr std::int64_t most_lanczos_steps = 400;
constexpr std::int64_t most_steps_per_triplet = 5;

/// A power of two with which the squares of A's singular values neither underflow nor overflow; 1
/// if they do not without it. One product with a random vector decides; it can only be large or
/// small together with A. Only then the entries are read.
template <class T>
T safe_factor(Context& ctx, TripletMatrix<T>& a, std::uint64_t seed) {
    using Real = real_t<T>;
    constexpr double safe = std::is_same_v<Real, float> ? 1e3 : 1e50;
    BlockVector<T> x;
    BlockVector<T> y;
    ctx.comm().agree([&] {
        x = BlockVector<T>(ctx, a.domain_map(), 1);
        y = BlockVector<T>(ctx, a.range_map(), 1);
    });
    fill_random(ctx, seed, x);
    a.multiply(ctx, T(1), std::as_const(x).view(), y.view());
    Real length(0);
    norms(ctx, std::as_const(y).view(), std::span<Real>(&length, 1));
    if (length > 1 / safe && length < safe) {
        return T(1);
    }
    double largest = 0;
    ctx.comm().agree([&] { largest = a.largest_modulus(ctx); });
    largest = ctx.comm().max(largest);
    if (!(largest > 0) || !std::isfinite(largest)) {
        return T(1);
    }
    constexpr int most = std::numeric_limits<Real>::max_exponent - 2;
    return T(std::ldexp(Real(1), std::clamp(-std::ilogb(largest), -most, most)));
}

/// Y = (f B) (f A) X for two matrices whose product B A is square. Base: Operator<T>, or
/// DenseOperator<T> if they are stored as dense matrices.
template <class T, class Base>
class MatrixPair final : public Base {
  public:
    MatrixPair(TripletMatrix<T>& a, TripletMatrix<T>& b, T factor)
        : a_(a), b_(b), factor_(factor) {}

    const RowMap& row_map() const override { return a_.domain_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        if (x.cols > middle_.capacity()) {
            ctx.comm().agree([&] { middle_ = BlockVector<T>(ctx, a_.range_map(), x.cols); });
        }
        middle_.set_width(x.cols);
        a_.multiply(ctx, factor_, x, middle_.view());
        b_.multiply(ctx, factor_, std::as_const(middle_).view(), y);
    }
    void prepare(Context& ctx, std::span<const int> widths, bool /*dots*/) override {
        a_.prepare(ctx, widths);
        b_.prepare(ctx, widths);
    }

  private:
    TripletMatrix<T>& a_;
    TripletMatrix<T>& b_;
    const T factor_;
    BlockVector<T> middle_;
};

/// Triplets of a matrix with at least as many rows as columns.
template <class T>
class TallTriplets {
    using Wide = wide_t<T>;

  public:
    /// `adjoint`: A^H.
    TallTriplets(Context& ctx, TripletMatrix<T>& a, TripletMatrix<T>& adjoint,
                 const SvdsOptions& options)
        : ctx_(ctx), a_(a), adjoint_(adjoint), options_(options) {}

    SparseSvd<T> run() {
        const std::int64_t columns = a_.domain_map().global_rows();
        const double bytes = static_cast<double>(a_.range_map().global_rows()) *
                             static_cast<double>(columns) * sizeof(T);
        factor_ = safe_factor(ctx_, a_, options_.seed);
        const bool may_be_block = options_.method == Method::automatic && bytes <= most_dense_bytes;
        if (may_be_block && columns <= most_dense_columns) {
            solve_dense();
        } else if (a_.is_dense()) {
            iterate<DenseOperator<T>>();
            if (eigen_converged_ && !result_.converged && may_be_block &&
                columns <= most_dense_columns_of_small_values) {
                solve_dense();
            }
        } else {
            iterate<Operator<T>>();
        }
        const double back = 1 / static_cast<double>(std::real(factor_));
        for (std::vector<double>* const numbers :
             {&result_.values, &result_.residuals, &result_.errors}) {
            for (double& number : *numbers) {
                number *= back;
            }
        }
        result_.norm_estimate *= back;
        return std::move(result_);
    }

  private:
    static double eps() { return static_cast<double>(epsilon_v<T>); }
    void multiply(TripletMatrix<T>& matrix, BlockView<const T> x, BlockView<T> y) {
        matrix.multiply(ctx_, factor_, x, y);
    }

    /// A times the unit vectors.
    BlockVector<T> dense_block() {
        const RowMap& domain = a_.domain_map();
        const int columns = static_cast<int>(domain.global_rows());
        constexpr int most = 64;
        BlockVector<T> block;
        BlockVector<T> units;
        ctx_.comm().agree([&] {
            block = BlockVector<T>(ctx_, a_.range_map(), columns);
            units = BlockVector<T>(ctx_, domain, std::min(columns, most));
        });
        for (int first = 0; first < columns; first += most) {
            const int count = std::min(most, columns - first);
            SmallMatrix<T> here(static_cast<int>(domain.local_rows()), count);
            for (int j = 0; j < count; ++j) {
                const std::int64_t row = first + j - domain.first_row();
                if (row >= 0 && row < domain.local_rows()) {
                    here(static_cast<int>(row), j) = T(1);
                }
            }
            units.set_width(count);
            copy(ctx_, here.view(), units.view());
            multiply(a_, std::as_const(units).view(), block.columns(first, count));
        }
        result_.products += columns;
        return block;
    }

    void solve_dense() {
        const BlockVector<T> block = dense_block();
        const int columns = block.width();
        TallSvdOptions options;
        options.k = options_.smallest ? 0 : options_.k;
        TallSvd<T> svd = tall_svd<T>(ctx_, a_.range_map(), block.view(), options);
        result_.dense = true;
        result_.multiplicity = Multiplicity::verified;
        result_.method = Method::dense;
        result_.method_reason = "all singular values are computed";
        raised_ = 0;
        norm_ = svd.values.front();
        const int first = options_.smallest ? columns - options_.k : 0;
        result_.values.assign(svd.values.begin() + first, svd.values.begin() + first + options_.k);
        const RowMap& domain = a_.domain_map();
        SmallMatrix<T> right(static_cast<int>(domain.local_rows()), options_.k);
        for (int i = 0; i < right.rows(); ++i) {
            for (int j = 0; j < options_.k; ++j) {
                right(i, j) = svd.right(static_cast<int>(domain.first_row()) + i, first + j);
            }
        }
        allocate_result(options_.k);
        copy(ctx_, right.view(), result_.right.view());
        copy(ctx_, std::as_const(svd.left).columns(first, options_.k), result_.left.view());
        measure();
        judge();
    }

    void allocate_result(int k) {
        ctx_.comm().agree([&] {
            result_.left = BlockVector<T>(ctx_, a_.range_map(), k);
            if (result_.right.width() != k) {
                result_.right = BlockVector<T>(ctx_, a_.domain_map(), k);
            }
        });
    }

    bool begins_with_lanczos() {
        const std::int64_t devices =
            ctx_.comm().sum(std::int64_t{ctx_.place() == Place::device ? 1 : 0});
        return options_.method == Method::automatic && !options_.smallest && options_.block == 0 &&
               options_.max_basis == 0 && options_.k <= most_lanczos_triplets && devices == 0;
    }

    /// eigensolve() for the largest eigenvalues, first by block Lanczos.
    EigenResult<T> solve_by_lanczos(const EigenProblem<T>& problem, const EigenOptions& options) {
        EigenOptions first = options;
        first.method = Method::lanczos;
        first.block = lanczos_block;
        const std::int64_t most = most_lanczos_steps + most_steps_per_triplet * options.k;
        const bool limited = options.max_iterations == 0 || most < options.max_iterations;
        first.max_iterations = limited ? most : options.max_iterations;
        bool is_crowded = false;
        first.keep_going = [&](const IterationEvent& event) {
            is_crowded = event.converged == 0 && event.iteration >= crowding_step &&
                         event.residual > crowding_residual;
            return !is_crowded && (!options.keep_going || options.keep_going(event));
        };
        EigenResult<T> found = eigensolve(ctx_, problem, first);
        if (is_crowded) {
            found.interrupted = false;
        }
        if (found.converged || found.interrupted ||
            !(is_crowded || (limited && found.iterations >= most))) {
            found.method_reason = "the largest singular values, on hosts";
            return found;
        }
        EigenOptions next = options;
        next.max_seconds = remaining_seconds(ctx_.comm(), options, found.seconds);
        if (next.max_iterations > 0) {
            next.max_iterations = std::max<std::int64_t>(1, next.max_iterations - found.iterations);
        }
        EigenProblem<T> again = problem;
        again.start = std::as_const(found).vectors.view();
        EigenResult<T> result = eigensolve(ctx_, again, next);
        result.iterations += found.iterations;
        result.operator_applications += found.operator_applications;
        result.seconds += found.seconds;
        result.method_reason = "lanczos made slow progress; " + result.method_reason;
        return result;
    }

    /// Base: as of MatrixPair.
    template <class Base>
    void iterate() {
        MatrixPair<T, Base> pair(a_, adjoint_, factor_);
        EigenOptions options;
        options.k = options_.k;
        options.which = options_.smallest ? Which::smallest : Which::largest;
        options.block = options_.block;
        options.max_basis = options_.max_basis;
        options.max_iterations = options_.max_iterations;
        options.seed = options_.seed;
        options.method = options_.method;
        options.keep_going = options_.keep_going;
        // ||A^H u - s v|| is ||A^H A v - s^2 v|| / s.
        options.tol = std::max(0.1 * options_.tol, eps());
        constexpr int most_solves = 3;
        const bool begins = begins_with_lanczos();
        for (int solve = 1;; ++solve) {
            options.max_seconds = options_.max_seconds;
            if (options_.max_seconds > 0) {
                EigenOptions limit;
                limit.max_seconds = options_.max_seconds;
                options.max_seconds = remaining_seconds(ctx_.comm(), limit, result_.seconds);
            }
            EigenProblem<T> problem{pair};
            const BlockVector<T> start = std::move(result_.right);
            problem.start = start.view();
            EigenResult<T> found = begins && solve == 1 ? solve_by_lanczos(problem, options)
                                                        : eigensolve(ctx_, problem, options);
            take(found);
            const double worst = worst_excess();
            if (!found.converged || worst <= 1 || solve == most_solves ||
                found.method == Method::dense || options.tol <= attainable_units * eps()) {
                break;
            }
            options.tol = std::max(options.tol / (4 * worst), attainable_units * eps());
        }
        judge();
    }

    /// Values, vectors and residuals from the eigenvectors of A^H A.
    void take(EigenResult<T>& found) {
        result_.iterations += found.iterations;
        result_.products += 2 * found.operator_applications;
        result_.multiplicity = found.multiplicity;
        result_.method = found.method;
        result_.method_reason = found.method_reason;
        result_.interrupted = found.interrupted;
        result_.message = found.message;
        result_.seconds += found.seconds;
        eigen_converged_ = found.converged;
        raised_ = found.converged && found.tolerance_raised ? found.tolerance : 0;
        result_.right = std::move(found.vectors);
        const int k = result_.right.width();
        norm_ = std::sqrt(found.norm_estimate);
        allocate_result(k);
        BlockVector<T>& u = result_.left;
        BlockVector<T>& v = result_.right;
        multiply(a_, std::as_const(v).view(), u.view());
        const OrthResult<T> orth = block_gram_schmidt<T>(
            ctx_, a_.range_map(), BlockView<const T>(nullptr, u.rows(), 0, 0, u.place()), u.view());
        const SmallSvd<Wide> svd = small_svd(rounded<Wide>(orth.r));
        tsmm<T>(ctx_, T(1), u.view(), rounded<T>(svd.u), T(0), u.view());
        tsmm<T>(ctx_, T(1), v.view(), rounded<T>(svd.v), T(0), v.view());
        result_.values = svd.values;
        if (!svd.values.empty()) {
            norm_ = std::max(norm_, svd.values.front());
        }
        measure();
    }

    /// Residuals and error bounds of the triplets, by one product with A and one with A^H.
    void measure() {
        const auto k = result_.values.size();
        const BlockVector<T>& u = result_.left;
        const BlockVector<T>& v = result_.right;
        std::vector<T> minus;
        std::vector<T> one(k, T(1));
        for (const double value : result_.values) {
            minus.push_back(static_cast<T>(static_cast<real_t<T>>(-value)));
        }
        std::vector<real_t<T>> of_u(k);
        std::vector<real_t<T>> of_v(k);
        const auto residuals = [&](TripletMatrix<T>& matrix, const BlockVector<T>& from,
                                   const BlockVector<T>& to, std::span<real_t<T>> norm) {
            BlockVector<T> rest;
            ctx_.comm().agree(
                [&] { rest = BlockVector<T>(ctx_, to.row_map(), static_cast<int>(k)); });
            multiply(matrix, from.view(), rest.view());
            axpby<T>(ctx_, std::span<const T>(minus), to.view(), std::span<const T>(one),
                     rest.view());
            norms(ctx_, rest.view(), norm);
        };
        residuals(a_, v, u, of_u);
        residuals(adjoint_, u, v, of_v);
        result_.products += 2 * static_cast<std::int64_t>(k);
        result_.residuals.clear();
        result_.errors.clear();
        const double noise = attainable_units * eps() * norm_;
        for (std::size_t j = 0; j < k; ++j) {
            const double right = static_cast<double>(of_u[j]);
            // A value below the tolerance is 0 to the tolerance; u is then any unit vector.
            const bool zero = result_.values[j] <= std::max(noise, 0.5 * options_.tol * norm_);
            const double left = zero ? 0 : static_cast<double>(of_v[j]);
            // The eigenvalues of [0 A; A^H 0] are the singular values and their negatives; (u, v)
            // has length sqrt(2).
            result_.residuals.push_back(zero ? right + result_.values[j] : std::hypot(left, right));
            result_.errors.push_back(
                (zero ? result_.residuals[j] : result_.residuals[j] / std::sqrt(2.0)) + noise);
        }
        result_.norm_estimate = norm_;
    }

    double allowed(double value) const {
        const double least = attainable_units * eps() * norm_;
        const double of_square = value > 0 ? std::min(least * (norm_ / value), value / 16) : 0;
        return std::max({options_.tol * norm_, 2 * least, 2 * raised_ * norm_, of_square});
    }
    /// The largest ratio of a residual to what is allowed for it without the limits of A^H A.
    double worst_excess() const {
        double worst = 0;
        for (const double residual : result_.residuals) {
            worst = std::max(worst,
                             residual / (std::max(options_.tol, attainable_units * eps()) * norm_));
        }
        return worst;
    }
    void judge() {
        bool small = std::ssize(result_.values) == options_.k;
        for (std::size_t j = 0; j < result_.values.size(); ++j) {
            small = small && result_.residuals[j] <= allowed(result_.values[j]);
        }
        result_.tolerance_raised = worst_excess() > 1 || options_.tol < attainable_units * eps();
        result_.converged = small && (result_.dense || eigen_converged_);
        if (!result_.converged && result_.message.empty()) {
            result_.message = "residuals stay above the tolerance";
        }
        if (result_.converged) {
            result_.message.clear();
        }
    }

    Context& ctx_;
    TripletMatrix<T>& a_;
    TripletMatrix<T>& adjoint_;
    const SvdsOptions& options_;
    /// All numbers are those of factor_ A until the end.
    T factor_ = T(1);
    SparseSvd<T> result_;
    double norm_ = 0;
    bool eigen_converged_ = false;
    /// The tolerance of the eigensolver if it had to raise it, else 0.
    double raised_ = 0;
};

}  // namespace

void check_svds(const Comm& comm, std::int64_t rows, std::int64_t columns,
                const SvdsOptions& options) {
    EqualOptions equal("svds");
    equal.add("k", options.k);
    equal.add("smallest", options.smallest);
    equal.add("tol", options.tol);
    equal.add("seed", options.seed);
    equal.add("keep_going", static_cast<bool>(options.keep_going));
    equal.require(comm);
    const std::int64_t most = std::min(rows, columns);
    if (options.k < 1 || options.k > most) {
        throw_collective(ErrorKind::input, "svds: k = " + std::to_string(options.k) + ", but a " +
                                               std::to_string(rows) + " x " +
                                               std::to_string(columns) + " matrix has " +
                                               std::to_string(most) + " singular values");
    }
    if (!(options.tol >= 0) || !(options.tol < 1)) {
        throw_collective(ErrorKind::input, "svds: tol = " + number_text(options.tol) +
                                               ", but a number from 0 to 1 is needed");
    }
}

template <class T>
SparseSvd<T> singular_triplets(Context& ctx, TripletMatrix<T>& a, TripletMatrix<T>& adjoint,
                               const SvdsOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const bool is_tall = a.range_map().global_rows() >= a.domain_map().global_rows();
    SparseSvd<T> result =
        TallTriplets<T>(ctx, is_tall ? a : adjoint, is_tall ? adjoint : a, options).run();
    if (!is_tall) {
        std::swap(result.left, result.right);
    }
    if (!result.values.empty()) {
        const std::vector<T> phases = phases_of<T>(ctx, result.right);
        scale<T>(ctx, phases, result.left.view());
        scale<T>(ctx, phases, result.right.view());
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                               \
    template SparseSvd<T> singular_triplets(Context&, TripletMatrix<T>&, TripletMatrix<T>&, \
                                            const SvdsOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
