// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/mass_factor.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/search/scaled_problem.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {
namespace {

/// Pivots up to this many units of rounding of their diagonal entry consist of rounding errors.
constexpr double noise_units = 16;

/// The methods that take the B that `method` refuses.
std::string other_methods(Method method, const std::string& at_an_end) {
    return method == Method::filter ? "use shift-invert or dense" : at_an_end;
}

[[noreturn]] void refuse(Method method, const std::string& text) {
    throw_collective(ErrorKind::input, std::string(to_string(method)) + ": " + text);
}

[[noreturn]] void throw_indefinite_mass(Method method, double pivot, const std::string& where) {
    const std::string text = std::string(to_string(method)) +
                             ": B is not positive definite: " + where + " is " + number_text(pivot);
    if (pivot < 0) {
        throw_indefinite(IndefiniteError::Operand::mass, text);
    }
    throw_indefinite<SingularMassError>(text + singular_mass_cure);
}

/// G = diag(g), stored as 1 / g.
template <class T>
class DiagonalFactor final : public MassFactor<T> {
  public:
    /// `diagonal`: the positive diagonal entries of this rank's rows of B; `least` and `largest`
    /// are the extreme ones of all ranks.
    DiagonalFactor(Context& ctx, Operator<T>& b, const std::vector<double>& diagonal, double least,
                   double largest)
        : b_(b) {
        this->exponent_ = even_exponent(largest);
        this->pivot_ratio_ = largest / least;
        const RowMap& map = b.row_map();
        CsrRows<T> rows;
        ctx.comm().agree([&] {
            SmallMatrix<T> column(static_cast<int>(diagonal.size()), 1);
            rows.map = map;
            rows.global_cols = map.global_rows();
            for (int i = 0; i < column.rows(); ++i) {
                const double pivot =
                    std::ldexp(diagonal[static_cast<std::size_t>(i)], -this->exponent_);
                column(i, 0) = T(static_cast<real_t<T>>(1 / std::sqrt(pivot)));
                rows.column.push_back(map.first_row() + i);
                rows.value.push_back(column(i, 0));
                rows.row_start.push_back(rows.nonzeros());
            }
            column_ = BlockVector<T>(ctx, map, 1);
            copy(ctx, std::as_const(column).view(), column_.view());
        });
        matrix_.emplace(ctx, std::move(rows));
    }

    void solve(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        matrix_->apply(ctx, x, y);
    }
    void solve_adjoint(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        matrix_->apply(ctx, x, y);
    }
    /// G^-1 B X: every element has a small relative error.
    void multiply_adjoint(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        BlockVector<T> bx;
        ctx.comm().agree([&] { bx = BlockVector<T>(ctx, b_.row_map(), x.cols); });
        b_.apply(ctx, x, bx.view());
        matrix_->apply(ctx, std::as_const(bx).view(), y);
    }
    const BlockVector<T>* inverse_diagonal() const override { return &column_; }

  private:
    Operator<T>& b_;
    BlockVector<T> column_;
    std::optional<SparseMatrix<T>> matrix_;
};

/// G = P^T L D^1/2.
template <class T>
class SparseFactor final : public MassFactor<T> {
  public:
    using Wide = DoubleOf<T>;

    /// The factor of 2^-scaling B.
    SparseFactor(Context& ctx, SparseMatrix<T>& b, int scaling, Method method) : scaling_(scaling) {
        CsrRows<Wide> rows =
            gather_rows<T>(ctx, b, (std::string(to_string(method)) + ": B").c_str());
        this->exponent_ = scale_to_one(rows) - scaling;
        ctx.comm().agree([&] { ldlt_.emplace(rows, nullptr, 0.0); });
        if (!ldlt_->complete()) {
            throw_indefinite_mass(method, 0, "a pivot of its factorisation");
        }
        const std::vector<double> pivots = ldlt_->pivots();
        require_positive(rows, pivots, method);
        const auto [least, largest] = std::minmax_element(pivots.begin(), pivots.end());
        this->pivot_ratio_ = *largest / *least;
    }

    void solve(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        on_host(ctx, x, y, [&](BlockView<Wide> rows) { ldlt_->solve_lower_half(rows); });
    }
    void solve_adjoint(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        on_host(ctx, x, y, [&](BlockView<Wide> rows) { ldlt_->solve_upper_half(rows); });
    }
    void multiply_adjoint(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        on_host(ctx, x, y, [&](BlockView<Wide> rows) { ldlt_->multiply_upper_half(rows); });
    }

  private:
    void require_positive(const CsrRows<Wide>& rows, const std::vector<double>& pivots,
                          Method method) const {
        const std::vector<std::int64_t> places = ldlt_->places();
        for (std::size_t i = 0; i < places.size(); ++i) {
            const auto row = static_cast<std::int64_t>(i);
            double diagonal = 0;
            visit_row(rows, row, [&](std::int64_t column, const Wide& value) {
                diagonal += column == row ? std::real(value) : 0;
            });
            const double pivot = pivots[static_cast<std::size_t>(places[i])];
            if (!(pivot > noise_units * static_cast<double>(epsilon_v<T>) * diagonal)) {
                const int exponent = this->exponent_ + scaling_;
                throw_indefinite_mass(method, std::ldexp(pivot, exponent),
                                      "the pivot of row " + std::to_string(i + 1) +
                                          ", whose diagonal entry is " +
                                          number_text(std::ldexp(diagonal, exponent)) + ",");
            }
        }
    }

    template <class Change>
    void on_host(Context& ctx, BlockView<const T> x, BlockView<T> y, Change&& change) {
        SmallMatrix<Wide> rows(static_cast<int>(x.rows), x.cols);
        copy(ctx, x, rows.view());
        change(rows.view());
        copy(ctx, std::as_const(rows).view(), y);
    }

    int scaling_;
    std::optional<SparseLdlt<Wide>> ldlt_;
};

/// The diagonal entries of this rank's rows, and whether all other entries of all ranks are 0.
struct Diagonal {
    std::vector<double> entries;
    bool is_all = false;
};

template <class T>
Diagonal diagonal_of(Context& ctx, const SparseMatrix<T>& b, Method method) {
    Diagonal diagonal;
    std::int64_t others = 0;
    ctx.comm().agree([&] {
        diagonal.entries.assign(static_cast<std::size_t>(b.row_map().local_rows()), 0);
        b.for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            if (!is_finite(value)) {
                throw NumericalError(std::string(to_string(method)) +
                                     ": an entry of B is not finite");
            }
            if (column != static_cast<std::int64_t>(row)) {
                others += value != T(0) ? 1 : 0;
                return;
            }
            if (std::imag(value) != 0) {
                throw NumericalError(std::string(to_string(method)) + ": B is not Hermitian");
            }
            diagonal.entries[row] += static_cast<double>(std::real(value));
        });
    });
    diagonal.is_all = ctx.comm().max(others) == 0;
    return diagonal;
}

}  // namespace

template <class T>
std::unique_ptr<MassFactor<T>> factor_mass(Context& ctx, Operator<T>& b, Method method) {
    const auto* const scaled = dynamic_cast<const ScaledOperator<T>*>(&b);
    const int scaling = scaled == nullptr ? 0 : scaled->exponent();
    auto* const stored =
        dynamic_cast<SparseMatrix<T>*>(scaled == nullptr ? &b : &scaled->unscaled());
    if (stored == nullptr) {
        refuse(method, "B has no stored entries to factorise; " +
                           other_methods(method, "use lobpcg or jd, which only multiply with B"));
    }
    const RowMap& map = b.row_map();
    Diagonal diagonal = diagonal_of(ctx, *stored, method);
    if (diagonal.is_all) {
        double largest = 0;
        double least = std::numeric_limits<double>::infinity();
        for (const double entry : diagonal.entries) {
            largest = std::max(largest, entry);
            least = std::min(least, entry);
        }
        largest = ctx.comm().max(largest);
        least = -ctx.comm().max(-least);
        if (!(least > 0)) {
            throw_indefinite_mass(method, least, "its least diagonal entry");
        }
        for (double& entry : diagonal.entries) {
            entry = std::ldexp(entry, -scaling);
        }
        return std::make_unique<DiagonalFactor<T>>(
            ctx, b, diagonal.entries, std::ldexp(least, -scaling), std::ldexp(largest, -scaling));
    }
    const std::string ends = "use lobpcg, jd or shift-invert";
    if (ctx.comm().size() > 1) {
        refuse(method, "several ranks take a diagonal B only; run on one rank, or " +
                           other_methods(method, ends));
    }
    if (map.global_rows() > most_ldlt_rows) {
        refuse(method, "B is not diagonal and has " + std::to_string(map.global_rows()) +
                           " rows; its factorisation takes at most " +
                           std::to_string(most_ldlt_rows) + "; " + other_methods(method, ends));
    }
    return std::make_unique<SparseFactor<T>>(ctx, *stored, scaling, method);
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define QUIVER_INSTANTIATE(T) \
    template std::unique_ptr<MassFactor<T>> factor_mass(Context&, Operator<T>&, Method);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
