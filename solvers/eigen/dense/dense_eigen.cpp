// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/dense_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/dense/cusolver.hpp"
#include "solvers/dense/dense_pencil.hpp"
#include "solvers/dense/dense_spectrum.hpp"
#include "solvers/eigen/dense/dense_selection.hpp"
#include "solvers/eigen/dense/root_matrix.hpp"
#include "solvers/eigen/pencil/unit_residuals.hpp"
#include "solvers/eigen/search/given_columns.hpp"
#include "solvers/eigen/search/infinite_values.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/eigen/search/verified_search.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// Larger matrices are refused: indices of LAPACK's workspaces have 32 bits.
constexpr std::int64_t most_dense_rows = 40000;

/// The most shifts near which eigenvalues of a pencil are computed again, and the most in a row
/// after which as many pairs are wrong as before.
constexpr int most_shifts = 6;
constexpr int most_idle_shifts = 2;

[[noreturn]] void refuse_dense(const std::string& text) {
    InputError error("dense: " + text);
    error.set_collective();  // options and global sizes are the same on all ranks
    throw error;
}

/// The facts about the pencil that rank 0 broadcasts.
struct PencilFacts {
    PencilExponents exponents;
    double norm_a = 0;
    double norm_b = 0;
    PencilKind kind = PencilKind::regular;
    InfiniteEigenvalues infinite;
};

/// Pairs with the indices of their values. relative[j]: the larger of residual / scale() and
/// UnitResiduals::Residual::relative.
struct IndexedPairs {
    std::vector<int> indices;
    std::vector<RitzPair> pairs;
    std::vector<double> relative;
};

/// See DenseSpectrum.
struct FoundValues {
    std::size_t count = 0;
    bool smallest = false;
    bool largest = false;
    bool complete = false;
};

/// The index of a wanted pair whose vector depends on those of other pairs. Otherwise, with B, the
/// index of the value nearest 0 whose relative residual exceeds accepted(), and the number of such
/// pairs. -1 if there is none.
struct WrongPairs {
    int index = -1;
    std::int64_t count = 0;
};

/// The number of vectors whose length in the inner product of B is rounding noise, and how many of
/// these have a value below or above 0 beyond the rounding errors of A: it is infinite.
struct VectorsWithoutLength {
    std::int64_t count = 0;
    std::int64_t negative = 0;
    std::int64_t positive = 0;
};

template <class T>
class DenseSearch : public VerifiedSearch<T> {
  public:
    DenseSearch(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : VerifiedSearch<T>(ctx, problem, as_one_end(options), {Method::dense, "steps"}),
          which_(options.which),
          n_(static_cast<int>(std::min(problem.a.row_map().global_rows(), most_dense_rows))) {
        if (problem.a.row_map().global_rows() > most_dense_rows) {
            refuse_dense(std::to_string(problem.a.row_map().global_rows()) + " rows; at most " +
                         std::to_string(most_dense_rows) + " are possible");
        }
        if (problem.checkpoint != nullptr) {
            refuse_dense(
                "a dense solve has no state to save or to resume from; omit the "
                "checkpoint");
        }
    }

  private:
    /// The units of residuals and shifts.
    struct Units {
        std::optional<UnitResiduals<T>> residuals;
        /// ||A|| / ||B|| in the units for the wanted eigenvalues.
        double size = std::numeric_limits<double>::infinity();
        /// True if the spectrum has the matrices, in units for eigenvalues of this size.
        bool has_matrices = false;
        double size_of_matrices = 0;
    };

    bool is_root() const { return this->ctx().comm().rank() == 0; }

    void begin() override {
        steps_ = 1;
        take_constraint_columns();
        WideMatrix<T> a = gather(this->problem().a);
        WideMatrix<T> b;
        if (this->problem().b != nullptr) {
            b = gather(*this->problem().b);
        }
        WideMatrix<T> constraints = all_columns(this->ctx(), constraints_);
        if (this->report(0, 1, "search")) {
            solve(std::move(a), std::move(b), constraints);
            solved_ = true;
        }
    }

    /// Makes orthonormal bases of the constraints C and of B C; residuals omit their components
    /// along B C.
    void take_constraint_columns() {
        const BlockView<const T> given = this->problem().constraints;
        const RowMap& map = this->problem().a.row_map();
        this->ctx().comm().agree([&] {
            constraints_ = BlockVector<T>(this->ctx(), map, given.cols);
            normals_ = BlockVector<T>(this->ctx(), map, given.cols);
        });
        take_constraints(this->ctx(), map, given, constraints_.view());
        const BlockView<const T> basis = std::as_const(constraints_).view();
        if (given.cols == 0) {
            return;
        }
        if (this->problem().b == nullptr) {
            copy(this->ctx(), basis, normals_.view());
            return;
        }
        BlockVector<T> images(this->ctx(), map, given.cols);
        multiply(*this->problem().b, basis, images.view());
        take_constraints(this->ctx(), map, std::as_const(images).view(), normals_.view());
    }

    WideMatrix<T> gather(Operator<T>& a) {
        std::int64_t products = 0;
        WideMatrix<T> dense = matrix_on_root(this->ctx(), a, products);
        applications_ += &a == &this->problem().a ? products : 0;
        return dense;
    }

    void multiply(Operator<T>& a, BlockView<const T> x, BlockView<T> y) {
        checked_product(this->ctx(), Method::dense, a, x, y);
        applications_ += &a == &this->problem().a ? x.cols : 0;
    }

    using Spectrum = DenseSpectrum<Wide<T>>;

    /// Rank 0 solves; all ranks receive the eigenvalues, choose, and receive the vectors. While a
    /// pair is wrong, rank 0 solves again with a shift beside its eigenvalue.
    void solve(WideMatrix<T> a, WideMatrix<T> b, const WideMatrix<T>& constraints) {
        const Comm& comm = this->ctx().comm();
        for (int i = 0; i < b.rows(); ++i) {
            diagonal_of_b_.push_back(std::real(b(i, i)));
        }
        PencilFacts facts;
        std::optional<Spectrum> spectrum;
        comm.agree([&] {
            if (is_root()) {
                ScaledMatrix<Wide<T>> left = scaled(std::move(a));
                ScaledMatrix<Wide<T>> right = scaled(std::move(b));
                facts.exponents.a = left.exponent;
                facts.exponents.b = right.exponent;
                facts.norm_a = left.column_norm;
                facts.norm_b = right.column_norm;
                spectrum.emplace(this->ctx(), std::move(left.entries), std::move(right.entries));
                facts.kind = spectrum->solve(constraints, attainable_tolerance<T>(0));
                facts.infinite = spectrum->infinite();
            }
        });
        comm.broadcast(&facts, sizeof(facts), 0);
        require_finite_values(facts);
        // Of two infinite eigenvalues with one vector, rounding can make finite ones of about
        // ||A|| / (||B|| sqrt(eps)). Rows of B that are zero show them nevertheless.
        EigenOptions options = this->options();
        options.which = which_;
        refuse_infinite_ends(this->ctx(), this->problem(), options);
        exponents_ = facts.exponents;
        norm_b_ = facts.norm_b;
        norm_ = facts.norm_a;
        Spectrum* const on_root = spectrum ? &*spectrum : nullptr;
        int shifts = 0;
        take_values(on_root);
        if (this->problem().b != nullptr) {
            units_.residuals.emplace(this->ctx(), this->problem(), Method::dense,
                                     this->options().seed);
        }
        if (facts.kind == PencilKind::degenerate) {
            // Where a shift is an eigenvalue, the next one is this part of ||A|| / ||B|| above it.
            constexpr double part = 1.0 / 27;
            for (; values_.empty() && shifts < most_shifts; ++shifts) {
                add_shift(on_root, first_shift() + shifts * part * size_of_values());
            }
            require_values_near_shifts();
        }
        // If A - sigma B is singular to rounding, the next shift is this many times farther away.
        constexpr double farther = 8;
        double part = 1.0 / 8;
        std::int64_t before = std::numeric_limits<std::int64_t>::max();
        for (int idle = 0;; ++shifts) {
            choose(on_root);
            const WrongPairs wrong = wrong_pairs();
            idle = wrong.count < before ? 0 : idle + 1;
            before = wrong.count;
            if (wrong.index < 0 || shifts >= most_shifts || idle >= most_idle_shifts ||
                constraints_.width() > 0) {
                return;
            }
            const double value = values_[static_cast<std::size_t>(wrong.index)];
            const double distance = std::max({2 * errors_[static_cast<std::size_t>(wrong.index)],
                                              std::abs(value) / 8, part * size_near(value)});
            const bool added =
                add_shift(on_root, shifts % 2 == 0 ? value - distance : value + distance);
            if (!added) {
                part *= farther;
                before = std::numeric_limits<std::int64_t>::max();
            }
        }
    }

    /// The largest |lambda| that is wanted, by the values found so far; 0 if none is known.
    double size_of_wanted() const {
        double size = 0;
        if (!values_.empty()) {
            const PairChoice choice = select_pairs(values_, this->options(), which_,
                                                   size_of_values(), attainable_tolerance<T>(0));
            for (const int i : choice.indices) {
                size = std::max(size, std::abs(values_[static_cast<std::size_t>(i)]));
            }
        }
        if (size == 0 && this->options().window) {
            size = std::max(std::abs(this->options().window->low),
                            std::abs(this->options().window->high));
        } else if (size == 0 && which_ == Which::target) {
            size = std::abs(this->options().target);
        }
        return size;
    }

    bool has_units() const { return units_.residuals && units_.residuals->is_needed(); }

    /// ||A|| / ||B|| in the units for eigenvalues of the size of `value`.
    double size_near(double value) {
        if (!has_units()) {
            return size_of_values();
        }
        units_.residuals->choose_for(std::abs(value));
        return units_.residuals->norm_a() / units_.residuals->norm_b();
    }

    /// Gives the spectrum the matrices in the units of units_.
    void set_matrices(Spectrum* spectrum) {
        WideMatrix<T> a = gather(this->problem().a);
        WideMatrix<T> b = gather(*this->problem().b);
        std::vector<double> all(static_cast<std::size_t>(n_), 0.0);
        if (has_units()) {
            const std::vector<int>& here = units_.residuals->exponents();
            std::copy(here.begin(), here.end(),
                      all.begin() + this->problem().a.row_map().first_row());
            this->ctx().comm().sum(std::span<double>(all));
        }
        if (spectrum == nullptr) {
            return;
        }
        std::vector<int> units(all.begin(), all.end());
        ScaledMatrix<Wide<T>> left = scaled(in_units(std::move(a), units));
        // All solves of a spectrum must scale eigenvalues and vectors alike, so the exponents of
        // the first solve decide those of B and of D.
        const int exponent_b = left.exponent - (exponents_.a - exponents_.b);
        b = in_units(std::move(b), units, exponent_b);
        for (int& unit : units) {
            unit += (exponents_.b - exponent_b) / 2;
        }
        spectrum->set_matrices(std::move(left.entries), std::move(b), std::move(units));
    }

    /// False if A - sigma B is singular to rounding.
    bool add_shift(Spectrum* spectrum, double sigma) {
        if (has_units()) {
            units_.residuals->choose_for(std::abs(sigma));
        }
        if (const double size = has_units() ? units_.residuals->size() : 0;
            !units_.has_matrices || size != units_.size_of_matrices) {
            set_matrices(spectrum);
            units_.has_matrices = true;
            units_.size_of_matrices = size;
        }
        bool added = false;
        this->ctx().comm().agree([&] {
            if (is_root()) {
                added = spectrum->add_shift(std::ldexp(sigma, exponents_.b - exponents_.a));
            }
        });
        this->ctx().comm().broadcast(&added, sizeof(added), 0);
        if (added) {
            take_values(spectrum);
        }
        return added;
    }

    void take_values(const Spectrum* spectrum) {
        const Comm& comm = this->ctx().comm();
        if (spectrum != nullptr) {
            found_ = {spectrum->values().size(), spectrum->has_smallest(), spectrum->has_largest(),
                      spectrum->is_complete()};
        }
        comm.broadcast(&found_, sizeof(found_), 0);
        values_.assign(found_.count, 0.0);
        errors_.assign(found_.count, 0.0);
        if (spectrum != nullptr) {
            values_ = spectrum->values();
            errors_ = spectrum->errors();
        }
        comm.broadcast(values_.data(), values_.size() * sizeof(double), 0);
        comm.broadcast(errors_.data(), errors_.size() * sizeof(double), 0);
        for (std::size_t i = 0; i < values_.size(); ++i) {
            values_[i] = std::ldexp(values_[i], exponents_.a - exponents_.b);
            errors_[i] = std::ldexp(errors_[i], exponents_.a - exponents_.b);
            if (this->problem().b == nullptr) {
                norm_ = std::max(norm_, std::abs(values_[i]));
            }
        }
    }

    /// Chooses the wanted pairs, and those that rounding errors could bring into the choice:
    /// these, too, must have small residuals. Otherwise a wanted eigenvalue may be missing.
    void choose(Spectrum* spectrum) {
        if (has_units()) {
            units_.size = size_near(size_of_wanted());
        }
        choice_ = select_pairs(values_, this->options(), which_, size_of_values(),
                               attainable_tolerance<real_t<T>>(0));
        vectors_ = send_vectors(spectrum, choice_.indices, true);
        chosen_ = pairs_of(std::as_const(vectors_).view(), choice_.indices);
        doubtful_ = {};
        const double error =
            errors_.empty() ? 0 : *std::max_element(errors_.begin(), errors_.end());
        if (this->problem().b != nullptr && error > this->tolerance() * size_of_values()) {
            const std::vector<int> indices =
                doubtful_pairs(values_, errors_, this->options(), which_, choice_);
            const BlockVector<T> x = send_vectors(spectrum, indices, false);
            doubtful_ = pairs_of(x.view(), indices);
        }
    }

    WrongPairs wrong_pairs() const {
        if (dependent_ >= 0) {
            return {dependent_, 1};
        }
        WrongPairs wrong;
        const auto look = [&](const IndexedPairs& found) {
            for (std::size_t j = 0; j < found.indices.size(); ++j) {
                if (!(found.relative[j] > accepted())) {
                    continue;
                }
                ++wrong.count;
                const double value = std::abs(found.pairs[j].value);
                if (wrong.index < 0 ||
                    value < std::abs(values_[static_cast<std::size_t>(wrong.index)])) {
                    wrong.index = found.indices[j];
                }
            }
        };
        if (this->problem().b != nullptr) {
            look(chosen_);
            look(doubtful_);
        }
        return wrong;
    }

    /// A pair with a larger relative residual is wrong: the residual is above what rounding
    /// explains and, if no value is in doubt or there can be no shifts, above the tolerance. With a
    /// loose tolerance, errors of doubtful values could otherwise hide a copy.
    double accepted() const {
        const double rounding = attainable_slack * attainable_tolerance<T>(0);
        const bool is_strict = !doubtful_.indices.empty() && constraints_.width() == 0;
        return is_strict ? rounding : std::max(this->tolerance(), rounding);
    }

    /// The shift nearest the wanted eigenvalues of a degenerate pencil, which has no finite end. A
    /// shift far above ||A|| / ||B|| would lose A in A - sigma B.
    double first_shift() const {
        constexpr double farthest = 8;
        const auto& window = this->options().window;
        const double middle = window                    ? std::midpoint(window->low, window->high)
                              : which_ == Which::target ? this->options().target
                                                        : 0;
        return std::clamp(middle, -farthest * size_of_values(), farthest * size_of_values());
    }

    /// Throws on all ranks if the wanted eigenvalues are not all finite or the pencil does not
    /// determine them; emits the number of infinite eigenvalues.
    void require_finite_values(const PencilFacts& facts) {
        const auto [negative, positive, unsigned_pairs] = facts.infinite;
        switch (facts.kind) {
            case PencilKind::regular:
            case PencilKind::degenerate:
                break;
            case PencilKind::indefinite:
                throw_indefinite(IndefiniteError::Operand::mass,
                                 "dense: B is not positive semidefinite to rounding: it is zero or "
                                 "has a negative eigenvalue");
            case PencilKind::common_null_vector:
                throw_indefinite<SingularMassError>(
                    std::string("dense: A v and B v vanish to rounding for some v: ") +
                    singular_pencil);
        }
        const int infinite = negative + positive + 2 * unsigned_pairs;
        if (infinite == 0) {
            return;
        }
        const std::string text = "dense: infinite eigenvalues: " + std::to_string(infinite) +
                                 " of " + std::to_string(n_) +
                                 ", because B is singular to rounding";
        const bool at_low = negative + unsigned_pairs > 0;
        const bool at_high = positive + unsigned_pairs > 0;
        if ((wants_low_end(this->options(), which_) && at_low) ||
            (wants_high_end(this->options(), which_) && at_high)) {
            throw_indefinite<InfiniteEigenvalueError>(
                text + ", among them the wanted ones; " +
                finite_request(this->options(), which_, !at_low, !at_high));
        }
        const int finite = n_ - infinite - constraints_.width();
        if (!this->options().window && this->options().k > finite) {
            throw_indefinite<InfiniteEigenvalueError>(text + "; request at most " +
                                                      std::to_string(std::max(finite, 0)));
        }
        if (facts.kind == PencilKind::degenerate && constraints_.width() > 0) {
            throw_degenerate();
        }
        this->ctx().emit(NoticeEvent{text});
    }

    [[noreturn]] void throw_degenerate() const {
        throw_indefinite<SingularMassError>(
            "dense: v^H A v and B v vanish to rounding for some v, and the wanted eigenvalues are "
            "not near ||A|| / ||B|| = " +
            number_text(size_of_values(), 2) +
            ", or there are constraints; shift-invert takes such a pencil");
    }

    /// Throws if a degenerate pencil may have wanted eigenvalues too far from the shifts.
    void require_values_near_shifts() const {
        const auto& window = this->options().window;
        // The missing eigenvalues lie far from the shift.
        const bool is_near = which_ != Which::target || first_shift() == this->options().target;
        const bool enough = window ? !values_.empty() &&
                                         (found_.smallest || values_.front() < window->low) &&
                                         (found_.largest || values_.back() > window->high)
                                   : is_near && std::ssize(values_) >= this->options().k;
        if (!enough && !found_.complete) {
            throw_degenerate();
        }
    }

    /// The vectors of some values, by the rank that has the spectrum; those of `chosen` pairs are
    /// B-orthonormal.
    BlockVector<T> send_vectors(Spectrum* spectrum, const std::vector<int>& indices, bool chosen) {
        const RowMap& map = this->problem().a.row_map();
        const int count = static_cast<int>(indices.size());
        BlockVector<T> vectors;
        WideMatrix<T> x;
        this->ctx().comm().agree([&] {
            vectors = BlockVector<T>(this->ctx(), map, count);
            if (spectrum != nullptr) {
                x = spectrum->vectors(indices);
                if (chosen) {
                    dependent_ = spectrum->orthonormalise(indices, x);
                }
            }
        });
        if (chosen) {
            this->ctx().comm().broadcast(&dependent_, sizeof(dependent_), 0);
            require_length_in_b(spectrum, x);
            if (units_.has_matrices) {
                take_quotients(spectrum, x);
            }
        }
        const double factor = std::ldexp(1.0, -exponents_.b / 2);
        for (int first = 0; first < count; first += root_panel) {
            SmallMatrix<T> panel(n_, std::min(root_panel, count - first));
            for (int i = 0; i < n_ && is_root(); ++i) {
                for (int j = 0; j < panel.cols(); ++j) {
                    panel(i, j) = static_cast<T>(factor * x(i, first + j));
                }
            }
            const auto size = static_cast<std::size_t>(n_) * static_cast<std::size_t>(panel.cols());
            this->ctx().comm().broadcast(panel.data(), size * sizeof(T), 0);
            copy(this->ctx(),
                 std::as_const(panel).view().row_range(map.first_row(), map.local_rows()),
                 vectors.columns(first, panel.cols()));
        }
        return vectors;
    }

    /// Replaces the chosen values by Rayleigh quotients where these lie within the errors.
    void take_quotients(const Spectrum* spectrum, const WideMatrix<T>& x) {
        std::vector<double> quotients(choice_.indices.size());
        if (spectrum != nullptr) {
            quotients = spectrum->quotients(x);
        }
        this->ctx().comm().broadcast(quotients.data(), quotients.size() * sizeof(double), 0);
        for (std::size_t j = 0; j < quotients.size(); ++j) {
            const auto i = static_cast<std::size_t>(choice_.indices[j]);
            const double quotient = std::ldexp(quotients[j], exponents_.a - exponents_.b);
            if (std::abs(quotient - values_[i]) <= errors_[i]) {
                values_[i] = quotient;
            }
        }
    }

    /// Of the columns of X, the vectors of the values with these indices, those for which x^H B x
    /// is rounding noise of its terms: B is then singular to rounding, and its Cholesky factor
    /// gives x an arbitrary or huge value. The test does not depend on the units of the unknowns:
    /// it compares x^H B x with x^H diag(B) x.
    VectorsWithoutLength without_length(const WideMatrix<T>& x,
                                        const std::vector<int>& indices) const {
        const double scale = std::ldexp(1.0, -exponents_.b);  // X is normalised for the scaled B
        const double noise = 4 * std::sqrt(static_cast<double>(n_)) * this->eps();
        const double noise_of_a = 16 * n_ * this->eps() * std::ldexp(norm_, -exponents_.a);
        VectorsWithoutLength lost;
        for (int j = 0; j < x.cols(); ++j) {
            double terms = 0;
            double squares = 0;
            for (int i = 0; i < x.rows(); ++i) {
                terms += scale * diagonal_of_b_[static_cast<std::size_t>(i)] * std::norm(x(i, j));
                squares += std::norm(x(i, j));
            }
            if (noise * terms < 1) {
                continue;
            }
            ++lost.count;
            const auto index = static_cast<std::size_t>(indices[static_cast<std::size_t>(j)]);
            const double value = std::ldexp(values_[index], exponents_.b - exponents_.a);
            if (std::abs(value) > noise_of_a * squares) {
                ++(value < 0 ? lost.negative : lost.positive);
            }
        }
        return lost;
    }

    /// Throws on all ranks if wanted vectors X have no length in the inner product of B.
    void require_length_in_b(Spectrum* spectrum, const WideMatrix<T>& x) {
        if (this->problem().b == nullptr) {
            return;
        }
        const Comm& comm = this->ctx().comm();
        VectorsWithoutLength lost = without_length(x, choice_.indices);
        comm.broadcast(&lost, sizeof(lost), 0);
        if (lost.count == 0) {
            return;
        }
        if (lost.negative + lost.positive < lost.count) {
            throw_indefinite<SingularMassError>(
                "dense: B is singular to rounding: " + std::to_string(lost.count) +
                " of the wanted eigenvectors have no length in its inner product, so that their "
                "eigenvalues are arbitrary" +
                singular_mass_cure);
        }
        const std::vector<int> ends{0, static_cast<int>(values_.size()) - 1};
        VectorsWithoutLength at_ends;
        comm.agree([&] {
            if (spectrum != nullptr) {
                at_ends = without_length(spectrum->vectors(ends), ends);
            }
        });
        comm.broadcast(&at_ends, sizeof(at_ends), 0);
        const std::int64_t wanted = std::ssize(choice_.indices);
        const bool wants_end = this->options().window || wants_low_end(this->options(), which_) ||
                               wants_high_end(this->options(), which_);
        throw_indefinite<InfiniteEigenvalueError>(
            "dense: infinite eigenvalues: " + std::to_string(lost.count) + " of " +
            std::to_string(wanted) + " wanted ones, because B is singular to rounding; " +
            (wants_end             ? finite_request(this->options(), which_, at_ends.negative == 0,
                                                    at_ends.positive == 0)
             : lost.count < wanted ? "request at most " + std::to_string(wanted - lost.count)
                                   : "request a target nearer 0"));
    }

    bool found() override { return solved_; }
    void extend() override {}
    int give_up() override { return 0; }

    std::vector<RitzPair> pairs() override { return chosen_.pairs; }
    void extract(const std::vector<int>& order, BlockView<T> y) override {
        if (y.cols > 0) {
            gather_columns(this->ctx(), std::as_const(vectors_).view(), order, y);
        }
    }

    /// Pairs with the residuals of R = A X - B X Lambda, scaled so that squares neither overflow
    /// nor underflow; `indices` are those of the values.
    IndexedPairs pairs_of(BlockView<const T> x, const std::vector<int>& indices) {
        IndexedPairs found{indices, {}, {}};
        for (int first = 0; first < x.cols; first += root_panel) {
            const int width = std::min(root_panel, x.cols - first);
            std::vector<double> values;
            values.reserve(static_cast<std::size_t>(width));
            for (int j = first; j < first + width; ++j) {
                const int index = indices[static_cast<std::size_t>(j)];
                values.push_back(values_[static_cast<std::size_t>(index)]);
            }
            const std::vector<double> residuals = scaled_residuals(
                this->ctx(), Method::dense, this->problem(), x.columns(first, width), values,
                exponents_, std::as_const(normals_).view());
            applications_ += width;
            for (std::size_t j = 0; j < values.size(); ++j) {
                found.pairs.push_back({values[j], residuals[j]});
                found.relative.push_back(residuals[j] == 0 ? 0 : residuals[j] / scale(values[j]));
            }
        }
        if (has_units()) {
            std::vector<double> values;
            for (const RitzPair& pair : found.pairs) {
                values.push_back(pair.value);
            }
            const auto in_units = units_.residuals->residuals(x, values);
            for (std::size_t j = 0; j < values.size(); ++j) {
                found.relative[j] = std::max(found.relative[j], in_units[j].relative);
            }
        }
        return found;
    }

    void refine_pairs() override {}
    /// Vectors of several solves have the rounding errors of dense matrices.
    double largest_rounding() const override {
        const double rounding = VerifiedSearch<T>::largest_rounding();
        const double dense = 32 * n_ * std::numeric_limits<double>::epsilon();
        return units_.has_matrices ? std::max(rounding, dense) : rounding;
    }
    std::string doubt() const override {
        if (this->problem().b == nullptr) {
            return VerifiedSearch<T>::doubt();
        }
        const std::string cause = "A is not Hermitian, or B is nearly singular";
        return constraints_.width() > 0 ? cause : cause + ": then use shift-invert";
    }

    bool search_again() override { return false; }
    void begin_complement() override {}
    ComplementVerdict complement() override {
        const auto above = [](const IndexedPairs& found, double bound) {
            return std::count_if(found.relative.begin(), found.relative.end(),
                                 [bound](double relative) { return !(relative <= bound); });
        };
        // refine() has accepted the residuals of chosen pairs in the units of the problem. In
        // other units, to make vectors of several solves orthonormal enlarges the residuals.
        const double least = units_.has_matrices ? attainable_in_units : 0;
        if (const auto wrong =
                has_units() ? above(chosen_, std::max({this->tolerance(), accepted(), least})) : 0;
            wrong > 0) {
            this->give_up_because(
                "residuals are above the tolerance in units of the unknowns in which the rows of A "
                "and B are alike (pairs: " +
                std::to_string(wrong) + "): " + doubt());
            return ComplementVerdict::open;
        }
        const auto wrong = above(doubtful_, accepted());
        if (wrong > 0) {
            this->give_up_because("the residuals of " + std::to_string(wrong) +
                                  " pairs that may belong to wanted eigenvalues are above rounding "
                                  "errors: " +
                                  doubt());
            return ComplementVerdict::open;
        }
        if (dependent_ >= 0) {
            this->give_up_because("wanted eigenvectors depend on each other: " + doubt());
            return ComplementVerdict::open;
        }
        return choice_.distance <= this->tolerance() * size_of_values()
                   ? ComplementVerdict::tied
                   : ComplementVerdict::outside;
    }
    void extend_complement() override {}
    void save(SolverState<T>& /*state*/) override {}
    void restore(const SavedState<T>& /*state*/) override {}

    std::int64_t iterations() const override { return steps_; }
    void describe(EigenResult<T>& result) const override {
        result.operator_applications =
            applications_ + (units_.residuals ? units_.residuals->applications() : 0);
        result.basis = n_;
        if (this->options().window) {
            result.expected_count = static_cast<double>(result.eigenvalues.size());
        }
    }
    /// ||A|| / ||B||, to which rounding errors of the eigenvalues are relative; in the units for
    /// the wanted eigenvalues if it is smaller there.
    double size_of_values() const {
        return norm_b_ > 0 ? std::min(norm_ / norm_b_, units_.size) : norm_;
    }
    double norm() const override { return norm_; }
    double scale(double value) const override { return norm_ + std::abs(value) * norm_b_; }

    Which which_;
    int n_;
    std::int64_t steps_ = 0;
    std::int64_t applications_ = 0;
    bool solved_ = false;
    BlockVector<T> constraints_;
    BlockVector<T> normals_;
    /// On rank 0.
    std::vector<double> diagonal_of_b_;
    Units units_;
    FoundValues found_;
    /// The eigenvalues, ascending, bounds of their errors, and those that are wanted.
    std::vector<double> values_;
    std::vector<double> errors_;
    PairChoice choice_;
    PencilExponents exponents_;
    double norm_ = 0;
    /// 0 if B = I: residuals are then relative to ||A|| alone.
    double norm_b_ = 0;
    BlockVector<T> vectors_;
    IndexedPairs chosen_;
    /// The pairs that may belong to wanted eigenvalues by the errors of the values.
    IndexedPairs doubtful_;
    /// An index whose vector depends on those of other wanted pairs; -1 if there is none.
    int dependent_ = -1;
};

}  // namespace

template <class T>
EigenResult<T> dense_eigen(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options) {
    return verified_search<DenseSearch>(ctx, problem, options);
}

std::string cusolver_version() {
    return Cusolver::version();
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> dense_eigen(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
